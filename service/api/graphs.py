"""Graphs in messages: translation into programs of the engine, and back. Only this module knows both forms.

`Translator` reads the JSON of a graph into a `Program`: each node `{"op": "mul", "operands": [0, 1]}` becomes a
`Statement` of the op, its operands and its attributes, whose lists and tensors become the engine's values. The engine
checks everything else: shapes, dtypes and references. `write_graph` is the inverse, for graphs that are registered or
differentiated: it keeps the nodes that were sent, with canonical op names, and appends those that were added.

`Programs` caches programs by the hash of a graph's text, so that no text is parsed and checked twice:

    source = programs.cached(name) or programs.source(name, text)   # nothing is parsed yet
    program = programs.program(source)                             # from the cache, or read now
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np

from engine import (
    LATEST,
    OPSET,
    EngineError,
    Faults,
    Function,
    HostArray,
    Limits,
    Program,
    Registry,
    Statement,
    printable,
)
from engine.compiler.compiler import Cache, collector_paused
from engine.ir.op import Definition
from engine.ir.spellings import join_hint
from schemas import Graph, GraphFunction, GraphNode, Tensor
from service.api.hints import tensor_hint
from service.api.json_codec import json_kind, parse_json
from service.api.tensors import FunctionPlace, Location, NodePlace, decode, format_location, validate
from service.core.errors import Refusal, from_engine, pointer

#: bytes of a program for each of its nodes, without tensors, and for each function, as measured in CPython
NODE_BYTES: Final = 600
FUNCTION_BYTES: Final = 800

#: writes the value of a constant; None if it is sent beside the JSON
Encode = Callable[[NodePlace, HostArray], Tensor | None]


class Translator:
    """Translator of graphs of all opsets, within limits."""

    def __init__(self, registry: Registry, limits: Limits) -> None:
        self._registry = registry
        self._limits = limits

    def program(self, graph: Graph, constants: Mapping[NodePlace, HostArray]) -> Program:
        """Translate a graph; `constants` were sent beside the JSON. Raises Refusal and EngineError."""
        opset = _opset(graph)
        unused_constants, functions = dict(constants), list[Function]()
        for function_json in graph.get("functions", ()):
            functions.append(self._function(function_json, functions, unused_constants))
        faults = Faults()
        statements = self._statements(graph["nodes"], None, unused_constants, faults)
        program = Program(self._registry, statements, self._limits, faults, opset, functions)
        for place in unused_constants:
            raise _unplaced_constant(place, program)
        return program

    def _function(
        self, function_json: Any, before: Sequence[Function], unused_constants: dict[NodePlace, HostArray]
    ) -> Function:
        """Translate the function that follows `before`."""
        index = len(before)
        function = validate(GraphFunction, function_json, FunctionPlace(index).location)
        faults = Faults(index)
        statements = self._statements(function["nodes"], index, unused_constants, faults)
        label = function.get("name")
        return Function(self._registry, statements, function["outputs"], self._limits, faults, before, label)

    def _statements(
        self,
        nodes: Sequence[GraphNode],
        function: int | None,
        unused_constants: dict[NodePlace, HostArray],
        faults: Faults,
    ) -> list[Statement | None]:
        """Read the statements of nodes; None for a node with a fault, which `faults` records."""
        statements: list[Statement | None] = []
        for i, node in enumerate(nodes):
            try:
                statements.append(self._statement(NodePlace(i, function), node, unused_constants))
            except EngineError:
                statements.append(None)
                # Only after an error: entering it for each node would take as long as the statement.
                with faults.at(i, printable(node["op"]), node.get("name")):
                    raise
        return statements

    def _statement(
        self, node_place: NodePlace, node: GraphNode, unused_constants: dict[NodePlace, HostArray]
    ) -> Statement:
        op, label = self._registry.find(node["op"]) or self._registry.get(node["op"]), node.get("name")
        sent_attrs = node.get("attrs")
        attrs = self._attributes(node_place, node, op, sent_attrs) if sent_attrs else {}
        constant = unused_constants.pop(node_place, None) if unused_constants else None
        if constant is not None:
            if op.name != "constant" or "value" in attrs:
                reason = f"{node_place.description} is not a constant without a value"
                raise unexpected_tensor(node_place.tensor_name("constants"), reason)
            attrs["value"] = constant
        return Statement(op, tuple(node.get("operands", ())), attrs, label)

    def _attributes(
        self, node_place: NodePlace, node: GraphNode, op: Definition, sent_attrs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Translate the attributes that the op has; the engine refuses others. An empty list counts only if required.

        Some clients send [] for every list that they leave unset; `pad` and `update_slice` of a 0-d tensor need one.
        """
        return {
            name: self._attribute(node_place, node, name, value) if name in op.attrs else value
            for name, value in sent_attrs.items()
            if value != [] or (name in op.attrs and op.attrs[name].required)
        }

    def _attribute(self, node_place: NodePlace, node: GraphNode, name: str, value: Any) -> Any:
        """Translate the value of an attribute. The engine, which knows the op, checks numbers and lists."""
        kind = self._registry.attributes[name]
        place = (*node_place.location, "attrs", printable(name))
        if isinstance(value, dict) is not kind.is_object:
            advice = tensor_hint(value) if kind.is_object else ""
            raise _bad_attribute(node_place, node, place, kind.roughly, value, advice)
        return kind.from_wire(
            value,
            lambda tensor: read_array(validate(Tensor, tensor, place, node_place), self._limits, place, node_place),
        )


def write_graph(graph: Graph, statements: Sequence[Statement], functions: Sequence[Function], encode: Encode) -> Graph:
    """Write `graph` with canonical op names, and append the statements and functions that it lacks.

    `encode` writes the value of a constant; None if that is sent beside the JSON.
    """
    result = Graph(opset=graph.get("opset", OPSET), nodes=_nodes(graph["nodes"], statements, None, encode))
    if functions:
        sent_functions: list[GraphFunction] = graph.get("functions", [])
        sent_nodes = [function["nodes"] for function in sent_functions] + [[]] * (len(functions) - len(sent_functions))
        result["functions"] = []
        for nodes_of_function, function in zip(sent_nodes, functions, strict=True):
            nodes = _nodes(nodes_of_function, function.statements, function.index, encode)
            result["functions"].append(GraphFunction(nodes=nodes, outputs=list(function.outputs)))
            if function.name is not None:
                result["functions"][-1]["name"] = function.name
    return result


def _nodes(
    sent_nodes: Sequence[GraphNode], statements: Sequence[Statement], function: int | None, encode: Encode
) -> list[GraphNode]:
    nodes = []
    for i, statement in enumerate(statements):
        op = statement.op.name
        # A constant without a value in the JSON has it beside: its node is written from the statement.
        if i >= len(sent_nodes) or (op == "constant" and "value" not in sent_nodes[i].get("attrs", {})):
            nodes.append(_node(NodePlace(i, function), statement, encode))
            continue
        renamed = GraphNode(**sent_nodes[i] | {"op": op})
        if "attrs" in sent_nodes[i]:
            renamed["attrs"] = _without_wide_integers(sent_nodes[i]["attrs"])
        nodes.append(renamed)
    return nodes


def _without_wide_integers(value: Any) -> Any:
    """Convert integers beyond 64 bits to the floats that they stand for, since many JSON readers reject them."""
    if isinstance(value, dict):
        return {key: _without_wide_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_wide_integers(item) for item in value] if any(map(_is_wide, value)) else value
    return float(value) if _is_wide(value) else value


def _is_wide(value: object) -> bool:
    return type(value) is int and not -(2**63) <= value < 2**63


def _node(node_place: NodePlace, statement: Statement, encode: Encode) -> GraphNode:
    node = GraphNode(op=statement.op.name)
    if statement.operands:
        node["operands"] = list(statement.operands)
    kinds = {name: attr.definition for name, attr in statement.op.attrs.items()}
    attrs = {name: kinds[name].written(value, partial(encode, node_place)) for name, value in statement.attrs.items()}
    stated_attrs = {name: value for name, value in attrs.items() if value is not None}
    if stated_attrs:
        node["attrs"] = stated_attrs
    if statement.name is not None:
        node["name"] = statement.name
    return node


def read_array(tensor: Tensor, limits: Limits, place: Location, node: NodePlace | None) -> HostArray:
    """Decode the tensor at this place. Raises Refusal."""
    try:
        return decode(tensor, limits)
    except (EngineError, Refusal) as error:
        raise with_location(error, place, node) from None


def with_location(error: EngineError | Refusal, place: Location, node: NodePlace | None) -> Refusal:
    """Add the location of a tensor to the report of an error in it or its type, whose pointer starts at the tensor."""
    refusal = from_engine(error) if isinstance(error, EngineError) else error
    place_name, fields = (
        (format_location(place), {}) if node is None else (f"{node.description}: {format_location(place)}", node.fields)
    )
    detail = f"{place_name} {refusal.detail}" if refusal.code == "bad_tensor" else f"{place_name}: {refusal.detail}"
    return replace(refusal, detail=detail, pointer=pointer(place) + (refusal.pointer or ""), **fields)


def _unplaced_constant(place: NodePlace, program: Program) -> Refusal:
    """Return the refusal of a constant beside the JSON for a node that does not exist."""
    functions, function = program.functions, place.function
    if function is None:
        description = f"the graph has {len(program.statements)} nodes"
    elif function < len(functions):
        description = f"function {function} has {len(functions[function].statements)} nodes"
    else:
        description = f"the graph has {len(functions)} functions"
    return unexpected_tensor(place.tensor_name("constants"), description)


def unexpected_tensor(name: str, reason: str) -> Refusal:
    """Return the refusal of a tensor beside the JSON that does not belong to the request."""
    return Refusal("invalid_field", f"the body has a tensor “{printable(name)}”, but {reason}", got=printable(name))


def _bad_attribute(
    node_place: NodePlace, node: GraphNode, place: Location, expected: str, value: object, advice: str
) -> Refusal:
    got = json_kind(value)
    sentence = f"attribute {place[-1]} must be {expected}, but is {got}"
    detail = f"{node_place.description} ({printable(node['op'])}): {join_hint(sentence, advice)}"
    return Refusal("bad_attribute", detail, expected=expected, got=got, pointer=pointer(place), **node_place.fields)


def _opset(graph: Graph) -> int:
    """Return the opset of a graph. Raises Refusal if it is unknown, and for functions in opset 1."""
    opset = graph.get("opset", OPSET)
    if not OPSET <= opset <= LATEST:
        supported = f"{OPSET} or {LATEST}"
        detail = f"the graph uses opset {opset}, but this server supports opset {supported}"
        raise Refusal("invalid_field", detail, expected=supported, got=str(opset), pointer="/graph/opset")
    if opset == OPSET and graph.get("functions"):
        detail, place = 'functions need opset 2: add "opset": 2 to the graph', "/graph/functions"
        raise Refusal("invalid_field", detail, expected="an empty list", got="functions", pointer=place)
    return opset


class GraphSource:
    """JSON of a graph, under a name: equal names mean equal texts."""

    def __init__(self, name: Hashable, text: bytes, depth: int) -> None:
        """`depth` bounds its nesting."""
        self.name = name
        self.text = text
        self._depth = depth

    @cached_property
    def graph(self) -> Graph:
        """Parsed and validated graph. Raises Refusal."""
        with collector_paused():
            return validate(Graph, parse_json(self.text, self._depth, "the graph"), ("graph",))


class CachedProgram(NamedTuple):
    """A program and its text."""

    program: Program
    text: bytes

    @property
    def nbytes(self) -> int:
        """Estimate of the bytes of both."""
        parts = (self.program, *self.program.functions)
        attrs = (value for part in parts for attrs in part.attrs for value in attrs.values())
        tensors = sum(value.nbytes for value in attrs if isinstance(value, np.ndarray))
        return NODE_BYTES * self.program.size + FUNCTION_BYTES * (len(parts) - 1) + tensors + len(self.text)


class Programs:
    """Cache of programs by the names of their graphs: at most `capacity`, of at most `nbytes` in all."""

    def __init__(self, translator: Translator, capacity: int, nbytes: int, depth: int) -> None:
        """`depth` bounds the nesting of their texts."""
        self._translator = translator
        self._depth = depth
        self._cache: Cache[CachedProgram] = Cache(capacity, nbytes, lambda program: program.nbytes)

    def source(self, name: Hashable, text: bytes) -> GraphSource:
        """Make the source of a graph with this name and text."""
        return GraphSource(name, text, self._depth)

    def cached(self, name: Hashable) -> GraphSource | None:
        """Return the graph of this name if its program is in the cache, and the graph therefore valid."""
        cached = self._cache.find(name)
        return None if cached is None else self.source(name, cached.text)

    def program(self, source: GraphSource) -> Program:
        """Return the program of a graph. Raises Refusal and EngineError."""

        def read() -> CachedProgram:
            with collector_paused():
                return CachedProgram(self._translator.program(source.graph, {}), source.text)

        return self._cache.get(source.name, read)[0].program
