"""Ops that ONNX defines as functions, and a model's own functions: their bodies, with a node's attributes put in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, defs, helper

from gradserve_client.onnx.scope import Value

#: domain, name and overload of a model's own function
FunctionKey = tuple[str, str, str]
Functions = Mapping[FunctionKey, FunctionProto]


def schema_of(node: NodeProto, opsets: Mapping[str, int]) -> defs.OpSchema | None:
    """ONNX's definition of a node's op, of the version that the opsets say, or None for an op that it has not."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    try:
        return defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except defs.SchemaError:
        return None


def body_of(
    node: NodeProto, opsets: Mapping[str, int], operands: Sequence[Value | None], functions: Functions
) -> FunctionProto | None:
    """The function that a node calls, or that ONNX defines its op by for such operands; None: there is none."""
    own = functions.get((node.domain, node.op_type, node.overload))
    if own is not None:
        return own
    schema = schema_of(node, opsets)
    if schema is None:
        return None
    if schema.has_context_dependent_function:
        types = [_type_of(operand) for operand in operands]
        return _parsed(schema.get_context_dependent_function(node.SerializeToString(), types), opsets)
    return _with_opset(schema.function_body, opsets) if schema.has_function else None


def _type_of(operand: Value | None) -> bytes:
    """The type of an operand as ONNX has it."""
    if operand is None or not isinstance(operand.example, np.ndarray):
        return b""
    element = helper.np_dtype_to_tensor_dtype(operand.dtype)
    return bytes(helper.make_tensor_type_proto(element, operand.shape).SerializeToString())


def _parsed(stated: bytes, opsets: Mapping[str, int]) -> FunctionProto | None:
    """A function; None where a schema builds none for the operands."""
    if not stated:
        return None
    function = FunctionProto()
    function.ParseFromString(stated)
    return _with_opset(function, opsets) if function.node else None


def _with_opset(function: FunctionProto, opsets: Mapping[str, int]) -> FunctionProto:
    """The function with versions of its own, or else those around it."""
    if function.opset_import:
        return function
    made = FunctionProto()
    made.CopyFrom(function)
    made.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in opsets.items())
    return made


def attributes_for(node: NodeProto, function: FunctionProto, schema: defs.OpSchema | None) -> dict[str, AttributeProto]:
    """What the attributes are that a function's nodes refer to: the node's, or else their defaults."""
    defaults = {} if schema is None else {name: each.default_value for name, each in schema.attributes.items()}
    stated = {name: default for name, default in defaults.items() if default.type}
    return (
        stated | {each.name: each for each in function.attribute_proto} | {each.name: each for each in node.attribute}
    )


def substituted(nodes: Iterable[NodeProto], attributes: Mapping[str, AttributeProto]) -> list[NodeProto]:
    """Nodes with what they refer to put in, those of bodies, too. What is not stated is left out."""
    return [_node_with(node, attributes) for node in nodes]


def _node_with(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> NodeProto:
    made = NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    made.attribute.extend(found for each in node.attribute for found in _attribute_with(each, attributes))
    return made


def _attribute_with(stated: AttributeProto, attributes: Mapping[str, AttributeProto]) -> Iterator[AttributeProto]:
    made = AttributeProto()
    if not stated.ref_attr_name:
        made.CopyFrom(stated)
        for graph in (made.g, *made.graphs) if made.type in {AttributeProto.GRAPH, AttributeProto.GRAPHS} else ():
            _put_in(graph, attributes)
    elif stated.ref_attr_name in attributes:
        made.CopyFrom(attributes[stated.ref_attr_name])
        made.name = stated.name
    else:
        return
    yield made


def _put_in(graph: GraphProto, attributes: Mapping[str, AttributeProto]) -> None:
    nodes = substituted(graph.node, attributes)
    del graph.node[:]
    graph.node.extend(nodes)


def bodies_of(node: NodeProto) -> dict[str, GraphProto]:
    """The bodies that a node runs, by attribute."""
    return {each.name: each.g for each in node.attribute if each.type == AttributeProto.GRAPH}


def read_around(bodies: Iterable[GraphProto]) -> list[str]:
    """The names that bodies read of the scope around them, each once, in order."""
    found: dict[str, Any] = {}
    for body in bodies:
        own = {each.name for each in (*body.input, *body.initializer)}
        for node in body.node:
            found |= {
                name: None for name in (*node.input, *read_around(bodies_of(node).values())) if name and name not in own
            }
            own |= {*node.output}
        found |= {each.name: None for each in body.output if each.name not in own}
    return [*found]
