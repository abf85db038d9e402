"""Bodies of functions, a model's own and those with which ONNX defines ops, with a node's attributes substituted."""

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
    """Return ONNX's definition of a node's op in the stated opset, or None if ONNX has no such op."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    try:
        return defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except defs.SchemaError:
        return None


def body_of(
    node: NodeProto, opsets: Mapping[str, int], operands: Sequence[Value | None], functions: Functions
) -> FunctionProto | None:
    """Return the function that a node calls, or with which ONNX defines its op for these operands, or None."""
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
    """Return the serialised ONNX type of an operand."""
    if operand is None or not isinstance(operand.example, np.ndarray):
        return b""
    element = helper.np_dtype_to_tensor_dtype(operand.dtype)
    return bytes(helper.make_tensor_type_proto(element, operand.shape).SerializeToString())


def _parsed(stated: bytes, opsets: Mapping[str, int]) -> FunctionProto | None:
    """Parse a function. Return None if a schema builds none for the operands."""
    if not stated:
        return None
    function = FunctionProto()
    function.ParseFromString(stated)
    return _with_opset(function, opsets) if function.node else None


def _with_opset(function: FunctionProto, opsets: Mapping[str, int]) -> FunctionProto:
    """Return the function with opset versions: its own, or else those of the model around it."""
    if function.opset_import:
        return function
    copy = FunctionProto()
    copy.CopyFrom(function)
    copy.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in opsets.items())
    return copy


def attributes_for(node: NodeProto, function: FunctionProto, schema: defs.OpSchema | None) -> dict[str, AttributeProto]:
    """Return the attributes that a function's nodes may refer to: the node's own, or else their defaults."""
    defaults = {} if schema is None else {name: each.default_value for name, each in schema.attributes.items()}
    stated = {name: default for name, default in defaults.items() if default.type}
    return (
        stated | {each.name: each for each in function.attribute_proto} | {each.name: each for each in node.attribute}
    )


def substituted(nodes: Iterable[NodeProto], attributes: Mapping[str, AttributeProto]) -> list[NodeProto]:
    """Return copies of nodes, bodies included, with references to attributes replaced.

    Unstated attributes are dropped.
    """
    return [_node_with(node, attributes) for node in nodes]


def _node_with(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    copy.attribute.extend(attribute for each in node.attribute for attribute in _attribute_with(each, attributes))
    return copy


def _attribute_with(stated: AttributeProto, attributes: Mapping[str, AttributeProto]) -> Iterator[AttributeProto]:
    copy = AttributeProto()
    if not stated.ref_attr_name:
        copy.CopyFrom(stated)
        for graph in (copy.g, *copy.graphs) if copy.type in {AttributeProto.GRAPH, AttributeProto.GRAPHS} else ():
            _put_in(graph, attributes)
    elif stated.ref_attr_name in attributes:
        copy.CopyFrom(attributes[stated.ref_attr_name])
        copy.name = stated.name
    else:
        return
    yield copy


def _put_in(graph: GraphProto, attributes: Mapping[str, AttributeProto]) -> None:
    nodes = substituted(graph.node, attributes)
    del graph.node[:]
    graph.node.extend(nodes)


def bodies_of(node: NodeProto) -> dict[str, GraphProto]:
    """Return the bodies that a node runs, by attribute."""
    return {each.name: each.g for each in node.attribute if each.type == AttributeProto.GRAPH}


def read_around(bodies: Iterable[GraphProto]) -> list[str]:
    """Return the names that bodies read from the scope around them, each once, in order."""
    names: dict[str, Any] = {}
    for body in bodies:
        defined = {each.name for each in (*body.input, *body.initializer)}
        for node in body.node:
            names |= {
                name: None
                for name in (*node.input, *read_around(bodies_of(node).values()))
                if name and name not in defined
            }
            defined |= {*node.output}
        names |= {each.name: None for each in body.output if each.name not in defined}
    return [*names]
