"""From graphs on the wire to programs of the engine, and back. The only place that knows both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from engine import LATEST, OPSET, EngineError, Faults, HostArray, Limits, Program, Registry, Statement, printable
from engine.graph.op import Definition
from schemas import Graph, GraphNode, Tensor
from service.errors import Refusal, from_engine
from service.wire.json_codec import json_kind
from service.wire.tensors import decode
from service.wire.validation import Location, pointer, spoken, validate


class Translator:
    """Reads graphs of all opsets within limits."""

    def __init__(self, registry: Registry, limits: Limits) -> None:
        self._registry = registry
        self._limits = limits

    def program(self, graph: Graph, constants: dict[int, HostArray]) -> Program:
        """The program that a graph stands for; `constants` came beside the JSON. Raises Refusal and EngineError."""
        opset = _opset(graph)
        beside = dict(constants)
        faults, statements = Faults(), list[Statement | None]()
        for i, node in enumerate(graph["nodes"]):
            try:
                statements.append(self._statement(i, node, beside.pop(i, None)))
            except EngineError:
                statements.append(None)
                with faults:  # entered for each node, it would take as long as the statement
                    raise
        program = Program(self._registry, statements, self._limits, faults, opset)
        for i in beside:
            raise unexpected_tensor(f"constants.{i}", f"the graph has {len(statements)} nodes")
        return program

    def _statement(self, i: int, node: GraphNode, constant: HostArray | None) -> Statement:
        op, label = self._registry.find(node["op"]) or self._unknown(i, node), node.get("name")
        given = node.get("attrs")
        attrs = self._attributes(i, node, op, given) if given else {}
        if constant is not None:
            if op.name != "constant" or "value" in attrs:
                raise unexpected_tensor(f"constants.{i}", f"node {i} is no constant without a value of its own")
            attrs["value"] = constant
        return Statement(op, tuple(node.get("operands", ())), attrs, label)

    def _unknown(self, i: int, node: GraphNode) -> Definition:
        """Raise the error for an op that there is not."""
        try:
            return self._registry.get(node["op"])
        except EngineError as error:
            raise error.at(i, printable(node["op"]), node.get("name")) from None

    def _attributes(self, i: int, node: GraphNode, op: Definition, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values as the engine takes them."""
        return {
            name: self._attribute(i, node, name, value)
            for name, value in given.items()
            if value != [] or _has_no_default(op, name)
        }

    def _attribute(self, i: int, node: GraphNode, name: str, value: Any) -> Any:
        """The value as the engine takes it. What is wrong with numbers and lists, the engine says; it knows the op."""
        place = ("graph", "nodes", i, "attrs", printable(name))
        kind = self._registry.attributes.get(name)
        wanted = "a value" if kind is None else kind.roughly
        if value is None:
            raise _bad_attribute(i, node, place, f"{wanted}, or absent", value)
        if kind is None:
            return value
        if isinstance(value, dict) is not kind.is_object:
            raise _bad_attribute(i, node, place, wanted, value)
        return kind.from_wire(
            value, lambda tensor: read_array(validate(Tensor, tensor, place, i), self._limits, place, i)
        )


def _has_no_default(op: Definition, name: str) -> bool:
    """Whether an empty list is meant: some clients send [] for every list that they leave unset.

    Of a 0-d tensor, `pad` and `update_slice` need an empty one.
    """
    return name in op.attrs and op.attrs[name].required


def written(graph: Graph, statements: Sequence[Statement], encode: Callable[[int, HostArray], Tensor | None]) -> Graph:
    """`graph`, its ops under their canonical names, and behind it the statements that it does not have yet.

    `encode` gives the value of constant number i, or None where it travels beside the JSON.
    """
    own = graph["nodes"]
    nodes = [
        _renamed(own[i], statement.op.name)
        if i < len(own) and not _lacks_its_value(own[i], statement)
        else _node(i, statement, encode)
        for i, statement in enumerate(statements)
    ]
    return Graph(opset=graph.get("opset", OPSET), nodes=nodes)


def _renamed(node: GraphNode, op: str) -> GraphNode:
    """The node, its op under this name."""
    renamed = GraphNode(**node | {"op": op})
    if "attrs" in node:
        renamed["attrs"] = _narrowed(node["attrs"])
    return renamed


def _narrowed(value: Any) -> Any:
    """The value, with whole numbers beyond 64 bits as the floats that they stand for: not every reader takes them."""
    if isinstance(value, dict):
        return {key: _narrowed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_narrowed(item) for item in value] if any(map(_is_wide, value)) else value
    return float(value) if _is_wide(value) else value


def _is_wide(value: object) -> bool:
    return type(value) is int and not -(2**63) <= value < 2**63


def _lacks_its_value(node: GraphNode, statement: Statement) -> bool:
    """Whether a constant came beside the JSON."""
    return statement.op.name == "constant" and "value" not in node.get("attrs", {})


def _node(i: int, statement: Statement, encode: Callable[[int, HostArray], Tensor | None]) -> GraphNode:
    node = GraphNode(op=statement.op.name)
    if statement.operands:
        node["operands"] = list(statement.operands)
    kinds = {name: attr.definition for name, attr in statement.op.attrs.items()}
    attrs = {name: kinds[name].written(value, partial(encode, i)) for name, value in statement.attrs.items()}
    stated = {name: value for name, value in attrs.items() if value is not None}
    if stated:
        node["attrs"] = stated
    if statement.name is not None:
        node["name"] = statement.name
    return node


def read_array(tensor: Tensor, limits: Limits, place: Location, node: int | None) -> HostArray:
    """The array that a tensor at this place stands for. Raises Refusal."""
    try:
        return decode(tensor, limits)
    except (EngineError, Refusal) as error:
        raise located(error, place, node) from None


def located(error: EngineError | Refusal, place: Location, node: int | None) -> Refusal:
    """What is wrong with a tensor or its type, with the place it stands at."""
    refusal = from_engine(error) if isinstance(error, EngineError) else error
    where = f"node {node}: {spoken(place)}" if node is not None else spoken(place)
    refusal.detail = f"{where} {refusal.detail}" if refusal.code == "bad_tensor" else f"{where}: {refusal.detail}"
    refusal.node, refusal.pointer = node, pointer(place)
    return refusal


def unexpected_tensor(name: str, why: str) -> Refusal:
    """The report of a tensor beside the JSON that has no place in the request."""
    return Refusal("invalid_field", f"the body has a tensor “{printable(name)}”, but {why}", got=printable(name))


def _bad_attribute(i: int, node: GraphNode, place: Location, expected: str, value: object) -> Refusal:
    got = json_kind(value)
    return Refusal(
        "bad_attribute",
        f"node {i} ({printable(node['op'])}): attribute {place[-1]} must be {expected}, but is {got}",
        node=i,
        expected=expected,
        got=got,
        pointer=pointer(place),
    )


def _opset(graph: Graph) -> int:
    """The opset that a graph is of. Raises Refusal for one that there is not, and for functions."""
    opset = graph.get("opset", OPSET)
    if not OPSET <= opset <= LATEST:
        known = f"{OPSET} or {LATEST}"
        raise Refusal(
            "invalid_field",
            f"the graph is of opset {opset}, and this server has opset {known}",
            expected=known,
            got=str(opset),
            pointer="/graph/opset",
        )
    if graph.get("functions"):
        why = "opset 1 has no functions" if opset == OPSET else "this server runs none yet"
        raise Refusal(
            "invalid_field",
            f"graph.functions must be absent or empty: {why}",
            expected="an empty list",
            got="functions",
            pointer="/graph/functions",
        )
    return opset
