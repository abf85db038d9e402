"""Graphs on the wire: translate them into programs of the engine, and back. The only module that knows both forms.

`Translator` reads the JSON of a graph into a `Program`: each node `{"op": "mul", "operands": [0, 1]}` becomes a
`Statement` of the op, its operands and its attributes, whose lists and tensors become the engine's values. The engine
checks everything else: shapes, dtypes and references. `written` goes the other way, for graphs that are registered or
differentiated: it keeps the nodes that were sent, with their ops under canonical names, and appends those that were
added.

`Programs` caches programs by the hash of a graph's text, so that no text is parsed and checked twice:

    source = programs.known(name) or programs.source(name, text)   # nothing is parsed yet
    program = programs.of(source)                                  # from the cache, or read now
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
from schemas import Graph, GraphFunction, GraphNode, Tensor
from service.api.json_codec import json_kind, parse_json
from service.api.tensors import FunctionPlace, Location, NodePlace, decode, pointer, spoken, validate
from service.core.errors import Refusal, from_engine

#: bytes that a program holds for each of its nodes beside tensors, and for each function, as counted in CPython
NODE_BYTES: Final = 600
FUNCTION_BYTES: Final = 800

#: writes the value of a constant; None if it travels beside the JSON
Encode = Callable[[NodePlace, HostArray], Tensor | None]


class Translator:
    """Reader of graphs of all opsets within limits."""

    def __init__(self, registry: Registry, limits: Limits) -> None:
        self._registry = registry
        self._limits = limits

    def program(self, graph: Graph, constants: Mapping[NodePlace, HostArray]) -> Program:
        """Translate a graph; `constants` came beside the JSON. Raises Refusal and EngineError."""
        opset = _opset(graph)
        beside, functions = dict(constants), list[Function]()
        for sent in graph.get("functions", ()):
            functions.append(self._function(sent, functions, beside))
        faults = Faults()
        statements = self._statements(graph["nodes"], None, beside, faults)
        program = Program(self._registry, statements, self._limits, faults, opset, functions)
        for place in beside:
            raise _without_place(place, program)
        return program

    def _function(self, sent: Any, before: Sequence[Function], beside: dict[NodePlace, HostArray]) -> Function:
        """Translate the function that follows these."""
        index = len(before)
        function = validate(GraphFunction, sent, FunctionPlace(index).location)
        faults = Faults(index)
        statements = self._statements(function["nodes"], index, beside, faults)
        label = function.get("name")
        return Function(self._registry, statements, function["outputs"], self._limits, faults, before, label)

    def _statements(
        self, nodes: Sequence[GraphNode], function: int | None, beside: dict[NodePlace, HostArray], faults: Faults
    ) -> list[Statement | None]:
        """Read the statements of nodes; None for a node with a fault, which `faults` records."""
        statements: list[Statement | None] = []
        for i, node in enumerate(nodes):
            try:
                statements.append(self._statement(NodePlace(i, function), node, beside))
            except EngineError:
                statements.append(None)
                # entered for each node, it would take as long as the statement
                with faults.at(i, printable(node["op"]), node.get("name")):
                    raise
        return statements

    def _statement(self, at: NodePlace, node: GraphNode, beside: dict[NodePlace, HostArray]) -> Statement:
        op, label = self._registry.find(node["op"]) or self._registry.get(node["op"]), node.get("name")
        given = node.get("attrs")
        attrs = self._attributes(at, node, op, given) if given else {}
        constant = beside.pop(at, None) if beside else None
        if constant is not None:
            if op.name != "constant" or "value" in attrs:
                why = f"{at.spoken} is no constant without a value of its own"
                raise unexpected_tensor(at.tensor_name("constants"), why)
            attrs["value"] = constant
        return Statement(op, tuple(node.get("operands", ())), attrs, label)

    def _attributes(self, at: NodePlace, node: GraphNode, op: Definition, given: Mapping[str, Any]) -> dict[str, Any]:
        """Translate attributes. An empty list counts only if the attribute is required.

        Some clients send [] for every list that they leave unset; `pad` and `update_slice` of a 0-d tensor need one.
        """
        return {
            name: self._attribute(at, node, name, value)
            for name, value in given.items()
            if value != [] or (name in op.attrs and op.attrs[name].required)
        }

    def _attribute(self, at: NodePlace, node: GraphNode, name: str, value: Any) -> Any:
        """Translate the value of an attribute. The engine, which knows the op, checks numbers and lists."""
        place = (*at.location, "attrs", printable(name))
        kind = self._registry.attributes.get(name)
        expected = "a value" if kind is None else kind.roughly
        if value is None:
            raise _bad_attribute(at, node, place, f"{expected}, or absent", value)
        if kind is None:
            return value
        if isinstance(value, dict) is not kind.is_object:
            raise _bad_attribute(at, node, place, expected, value)
        return kind.from_wire(
            value, lambda tensor: read_array(validate(Tensor, tensor, place, at), self._limits, place, at)
        )


def written(graph: Graph, statements: Sequence[Statement], functions: Sequence[Function], encode: Encode) -> Graph:
    """Write `graph`, its ops under their canonical names, and behind it the statements and functions that it lacks.

    `encode` writes the value of a constant; None if it travels beside the JSON.
    """
    whole = Graph(opset=graph.get("opset", OPSET), nodes=_nodes(graph["nodes"], statements, None, encode))
    if functions:
        sent: list[GraphFunction] = graph.get("functions", [])
        own = [function["nodes"] for function in sent] + [[]] * (len(functions) - len(sent))
        whole["functions"] = []
        for own_nodes, function in zip(own, functions, strict=True):
            nodes = _nodes(own_nodes, function.statements, function.index, encode)
            whole["functions"].append(GraphFunction(nodes=nodes, outputs=list(function.outputs)))
            if function.name is not None:
                whole["functions"][-1]["name"] = function.name
    return whole


def _nodes(
    own: Sequence[GraphNode], statements: Sequence[Statement], function: int | None, encode: Encode
) -> list[GraphNode]:
    nodes = []
    for i, statement in enumerate(statements):
        op = statement.op.name
        # A constant without a value in the JSON has it beside: its node is written anew.
        if i >= len(own) or (op == "constant" and "value" not in own[i].get("attrs", {})):
            nodes.append(_node(NodePlace(i, function), statement, encode))
            continue
        renamed = GraphNode(**own[i] | {"op": op})
        if "attrs" in own[i]:
            renamed["attrs"] = _narrowed(own[i]["attrs"])
        nodes.append(renamed)
    return nodes


def _narrowed(value: Any) -> Any:
    """Convert integers beyond 64 bits to the floats that they stand for: not every reader takes them."""
    if isinstance(value, dict):
        return {key: _narrowed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_narrowed(item) for item in value] if any(map(_is_wide, value)) else value
    return float(value) if _is_wide(value) else value


def _is_wide(value: object) -> bool:
    return type(value) is int and not -(2**63) <= value < 2**63


def _node(at: NodePlace, statement: Statement, encode: Encode) -> GraphNode:
    node = GraphNode(op=statement.op.name)
    if statement.operands:
        node["operands"] = list(statement.operands)
    kinds = {name: attr.definition for name, attr in statement.op.attrs.items()}
    attrs = {name: kinds[name].written(value, partial(encode, at)) for name, value in statement.attrs.items()}
    stated = {name: value for name, value in attrs.items() if value is not None}
    if stated:
        node["attrs"] = stated
    if statement.name is not None:
        node["name"] = statement.name
    return node


def read_array(tensor: Tensor, limits: Limits, place: Location, node: NodePlace | None) -> HostArray:
    """Decode the tensor at this place. Raises Refusal."""
    try:
        return decode(tensor, limits)
    except (EngineError, Refusal) as error:
        raise located(error, place, node) from None


def located(error: EngineError | Refusal, place: Location, node: NodePlace | None) -> Refusal:
    """Add the place of a tensor to the report of an error in it or its type."""
    refusal = from_engine(error) if isinstance(error, EngineError) else error
    where, fields = (spoken(place), {}) if node is None else (f"{node.spoken}: {spoken(place)}", node.fields)
    detail = f"{where} {refusal.detail}" if refusal.code == "bad_tensor" else f"{where}: {refusal.detail}"
    return replace(refusal, detail=detail, pointer=pointer(place), **fields)


def _without_place(place: NodePlace, program: Program) -> Refusal:
    """Return the refusal of a constant beside the JSON for a node that does not exist."""
    functions, inside = program.functions, place.function
    if inside is None:
        has = f"the graph has {len(program.statements)} nodes"
    elif inside < len(functions):
        has = f"function {inside} has {len(functions[inside].statements)} nodes"
    else:
        has = f"the graph has {len(functions)} functions"
    return unexpected_tensor(place.tensor_name("constants"), has)


def unexpected_tensor(name: str, why: str) -> Refusal:
    """Return the refusal of a tensor beside the JSON that has no place in the request."""
    return Refusal("invalid_field", f"the body has a tensor “{printable(name)}”, but {why}", got=printable(name))


def _bad_attribute(at: NodePlace, node: GraphNode, place: Location, expected: str, value: object) -> Refusal:
    got = json_kind(value)
    detail = f"{at.spoken} ({printable(node['op'])}): attribute {place[-1]} must be {expected}, but is {got}"
    return Refusal("bad_attribute", detail, expected=expected, got=got, pointer=pointer(place), **at.fields)


def _opset(graph: Graph) -> int:
    """Return the opset of a graph. Raises Refusal if it is unknown, and for functions in opset 1."""
    opset = graph.get("opset", OPSET)
    if not OPSET <= opset <= LATEST:
        known = f"{OPSET} or {LATEST}"
        detail = f"the graph is of opset {opset}, and this server has opset {known}"
        raise Refusal("invalid_field", detail, expected=known, got=str(opset), pointer="/graph/opset")
    if opset == OPSET and graph.get("functions"):
        detail, place = "graph.functions must be absent or empty: opset 1 has no functions", "/graph/functions"
        raise Refusal("invalid_field", detail, expected="an empty list", got="functions", pointer=place)
    return opset


class GraphSource:
    """JSON of a graph, under a name: equal names stand for equal texts."""

    def __init__(self, name: Hashable, text: bytes, depth: int) -> None:
        """`depth` bounds its nesting."""
        self.name = name
        self.text = text
        self._depth = depth

    @cached_property
    def graph(self) -> Graph:
        """The parsed and validated graph. Raises Refusal."""
        with collector_paused():
            return validate(Graph, parse_json(self.text, self._depth, "the graph"), ("graph",))


class Known(NamedTuple):
    """A program, and its text."""

    program: Program
    text: bytes

    @property
    def nbytes(self) -> int:
        """Estimate the bytes that both take."""
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
        self._kept: Cache[Known] = Cache(capacity, nbytes, lambda known: known.nbytes)

    def source(self, name: Hashable, text: bytes) -> GraphSource:
        """Make the source of a graph of this name and text."""
        return GraphSource(name, text, self._depth)

    def known(self, name: Hashable) -> GraphSource | None:
        """Return the graph of this name if its program is in the cache, so that the graph is known to be valid."""
        known = self._kept.find(name)
        return None if known is None else self.source(name, known.text)

    def of(self, source: GraphSource) -> Program:
        """Return the program of a graph. Raises Refusal and EngineError."""

        def read() -> Known:
            with collector_paused():
                return Known(self._translator.program(source.graph, {}), source.text)

        return self._kept.get(source.name, read)[0].program
