"""From wire messages to the engine's terms, and programs back. The only place that knows both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from engine import NO_END, EngineError, Gradients, Limits, Op, Program, Registry, Statement, TensorType, registry
from schemas import CheckRequest, DifferentiateRequest, Feed, Graph, Node, NodeType, PlanRequest, Tensor
from service.asks import Ask, Check, Compute, Differentiate, Plan
from service.calls import COMPUTING, Asked, planned
from service.errors import Refusal, from_engine, printable
from service.jsonio import json_kind
from service.tensors import Array, decode, type_of
from service.validation import Place, pointer, spoken, validate

OPSET: Final = 1
_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a string",
    "ints": "a list of whole numbers",
    "dtype": "a dtype",
    "tensor": "a tensor",
}
#: roles of tensors that belong to the graph and its leaves, whatever the call
_ALWAYS: Final = ("feeds", "constants")


@dataclass(frozen=True)
class Message:
    """A request once it is parsed: its JSON, and the tensors that came beside it, by (role, node)."""

    body: Mapping[str, Any]
    tensors: Mapping[tuple[str, int], Array] = field(default_factory=dict)

    def of_role(self, role: str) -> dict[int, Array]:
        """The tensors of one role, by node."""
        return {node: array for (other, node), array in self.tensors.items() if other == role}


class Translator:
    """Reads requests of one opset within limits."""

    def __init__(self, registry: Registry, limits: Limits, max_nodes: int) -> None:
        self._registry = registry
        self._limits = limits
        self._planned = replace(limits, bytes=NO_END)  # nothing of these types is allocated
        self._max_nodes = max_nodes
        self._others: Final[Mapping[str, Callable[[Message], Ask]]] = {
            "plan": self._plan,
            "check": self._check,
            "differentiate": self._differentiate,
        }

    def read(self, call: str, message: Message) -> Ask:
        """What a request of `call` asks for. Raises Refusal and EngineError."""
        self._admit(message.body)
        return self._others[call](message) if call in self._others else self._compute(call, message)

    def _compute(self, call: str, message: Message) -> Compute:
        known = COMPUTING[call]
        request: Any = validate(known.request, message.body)
        _check_roles(message, (*_ALWAYS, *known.roles))
        program = self._program(request["graph"], message)
        feeds: dict[Any, Array] = self._tensors(message, "feeds", request)
        types = {node: TensorType.of(array) for node, array in feeds.items()}
        beside = {role: self._tensors(message, role, request) for role in known.roles}
        if "cotangent" in request:
            of = request.get("of", len(program.statements) - 1)
            if of in beside["cotangents"]:
                raise _unexpected(f"cotangents.{of}", "its request has a cotangent, too")
            beside["cotangents"][of] = self._array(request["cotangent"], ("cotangent",), None)
        given = {role: tuple((n, TensorType.of(a)) for n, a in arrays.items()) for role, arrays in beside.items()}
        named = {(role, node): array for role, arrays in beside.items() for node, array in arrays.items()}
        return Compute(
            program=program,
            types=types,
            call=known.make(Asked(program, types, request, given)),
            tensors=feeds | named,
            encoding=request.get("encoding", "json"),
            diagnose=request.get("diagnose", False),
        )

    def _plan(self, message: Message) -> Plan:
        request = validate(PlanRequest, message.body)
        _check_roles(message, ("constants",))
        program, types = self._program(request["graph"], message), self._types(request)
        return Plan(program, types, planned(program, types, request), request.get("encoding", "json"))

    def _check(self, message: Message) -> Check:
        request = validate(CheckRequest, message.body)
        _check_roles(message, _ALWAYS)
        program = self._program(request["graph"], message)
        return Check(
            program=program,
            feeds=self._tensors(message, "feeds", request),
            call=Gradients.of_program(program, request.get("of"), request.get("wrt")),
            directions=_between("directions", request.get("directions", 4), 1, 64),
            tolerance=_between("tolerance", request.get("tolerance", 1e-6), 1e-12, 1.0),
        )

    def _differentiate(self, message: Message) -> Differentiate:
        request = validate(DifferentiateRequest, message.body)
        _check_roles(message, ("constants",))
        program = self._program(request["graph"], message)
        return Differentiate(
            program=program,
            types=self._types(request),
            call=Gradients.of_program(program, request.get("of"), request.get("wrt")),
            graph=request["graph"],
        )

    def _admit(self, body: Mapping[str, Any]) -> None:
        """Refuse a graph that is too long before each of its nodes is looked at."""
        graph = body.get("graph")
        nodes = graph.get("nodes") if isinstance(graph, dict) else None
        if isinstance(nodes, list) and len(nodes) > self._max_nodes:
            raise Refusal(
                "too_many_nodes",
                f"the graph has {len(nodes)} nodes, and the limit is {self._max_nodes}",
                expected=f"at most {self._max_nodes} nodes",
                got=f"{len(nodes)} nodes",
            )

    def _tensors(self, message: Message, role: str, request: Mapping[str, Any]) -> dict[int, Array]:
        """The tensors of one role by node: those beside the JSON, and those in its field of that name."""
        arrays = message.of_role(role)
        listed: Sequence[Feed] = request.get(role, [])
        for i, one in enumerate(listed):
            if one["node"] in arrays:
                raise _twice(role, i, one["node"])
            arrays[one["node"]] = self._array(one["tensor"], (role, i, "tensor"), one["node"])
        return arrays

    def _types(self, request: PlanRequest | DifferentiateRequest) -> dict[int, TensorType]:
        types: dict[int, TensorType] = {}
        for i, one in enumerate(request.get("types", [])):
            if one["node"] in types:
                raise _twice("types", i, one["node"])
            types[one["node"]] = self._type(one, i)
        return types

    def _type(self, one: NodeType, i: int) -> TensorType:
        try:
            return type_of(one, self._planned)
        except (EngineError, Refusal) as error:
            raise _at(error, ("types", i), one["node"]) from None

    def _array(self, tensor: Tensor, place: Place, node: int | None) -> Array:
        try:
            return decode(tensor, self._limits)
        except (EngineError, Refusal) as error:
            raise _at(error, place, node) from None

    def _program(self, graph: Graph, message: Message) -> Program:
        _check_opset(graph)
        constants = message.of_role("constants")
        statements = [self._statement(i, node, constants.pop(i, None)) for i, node in enumerate(graph["nodes"])]
        for i in constants:
            raise _unexpected(f"constants.{i}", f"the graph has {len(statements)} nodes")
        return Program(registry(), statements, self._limits)

    def _statement(self, i: int, node: Node, constant: Array | None) -> Statement:
        label = node.get("name")
        try:
            op = self._registry.get(node["op"])
        except EngineError as error:
            raise error.at(i, printable(node["op"]), label) from None
        attrs = {
            name: self._attribute(i, node, name, value)
            for name, value in node.get("attrs", {}).items()
            if value != [] or _has_no_default(op, name)
        }
        if constant is not None:
            if op.name != "constant" or "value" in attrs:
                raise _unexpected(f"constants.{i}", f"node {i} is no constant without a value of its own")
            attrs["value"] = constant
        return Statement(op, tuple(node.get("operands", ())), attrs, label)

    def _attribute(self, i: int, node: Node, name: str, value: Any) -> Any:
        """The value as the engine takes it. What is wrong with numbers and lists, the engine says; it knows the op."""
        place = ("graph", "nodes", i, "attrs", printable(name))
        kind = self._registry.attributes.get(name)
        if value is None:
            raise _bad_attribute(i, node, place, f"{_KINDS.get(kind or '', 'a value')}, or absent", value)
        if kind == "tensor":
            if not isinstance(value, dict):
                raise _bad_attribute(i, node, place, _KINDS[kind], value)
            return self._array(validate(Tensor, value, place, i), place, i)
        if kind is not None and isinstance(value, dict):
            raise _bad_attribute(i, node, place, _KINDS[kind], value)
        return value


def _has_no_default(op: Op, name: str) -> bool:
    """Whether an empty list is meant: some clients send [] for every list that they leave unset.

    Of a 0-d tensor, `pad` and `update_slice` need an empty one.
    """
    return name in op.attrs and op.attrs[name].required


def written(graph: Graph, statements: Sequence[Statement], encode: Callable[[int, Array], Tensor | None]) -> Graph:
    """`graph`, its ops under their canonical names, and behind it the statements that it does not have yet.

    `encode` gives the value of constant number i, or None where it travels beside the JSON.
    """
    own = graph["nodes"]
    nodes = [
        Node(**own[i] | {"op": statement.op.name})
        if i < len(own) and not _lacks_its_value(own[i], statement)
        else _node(i, statement, encode)
        for i, statement in enumerate(statements)
    ]
    return Graph(opset=OPSET, nodes=nodes)


def _lacks_its_value(node: Node, statement: Statement) -> bool:
    """Whether a constant came beside the JSON."""
    return statement.op.name == "constant" and "value" not in node.get("attrs", {})


def _node(i: int, statement: Statement, encode: Callable[[int, Array], Tensor | None]) -> Node:
    node = Node(op=statement.op.name)
    if statement.operands:
        node["operands"] = list(statement.operands)
    attrs = {
        name: encode(i, value) if isinstance(value, np.ndarray) else value for name, value in statement.attrs.items()
    }
    stated = {name: value for name, value in attrs.items() if value is not None}
    if stated:
        node["attrs"] = stated
    if statement.name is not None:
        node["name"] = statement.name
    return node


def _between(field: str, value: float, low: float, high: float) -> Any:
    if low <= value <= high:
        return value
    wanted = f"{low:g} to {high:g}"
    raise Refusal(
        "invalid_field",
        f"{field} must be {wanted}, but is {value:g}",
        expected=wanted,
        got=f"{value:g}",
        pointer=f"/{field}",
    )


def _at(error: EngineError | Refusal, place: Place, node: int | None) -> Refusal:
    """What is wrong with a tensor or its type, with the place it stands at."""
    refusal = from_engine(error) if isinstance(error, EngineError) else error
    where = f"node {node}: {spoken(place)}" if node is not None else spoken(place)
    refusal.detail = f"{where} {refusal.detail}" if refusal.code == "bad_tensor" else f"{where}: {refusal.detail}"
    refusal.node, refusal.pointer = node, pointer(place)
    return refusal


def _twice(role: str, i: int, node: int) -> Refusal:
    return Refusal(
        "invalid_field",
        f"{role} name node {node} twice",
        node=node,
        expected=f"one of {role} for a node",
        got="two",
        pointer=f"/{role}/{i}/node",
    )


def _check_roles(message: Message, known: Sequence[str]) -> None:
    """Refuse tensors beside the JSON that the call has no use for."""
    for role, node in message.tensors:
        if role not in known:
            raise _unexpected(f"{role}.{node}", "this call takes " + ", ".join(f"{name}.NODE" for name in known))


def _unexpected(name: str, why: str) -> Refusal:
    return Refusal("invalid_field", f"the body has a tensor “{printable(name)}”, but {why}", got=printable(name))


def _bad_attribute(i: int, node: Node, place: Place, expected: str, value: object) -> Refusal:
    got = json_kind(value)
    return Refusal(
        "bad_attribute",
        f"node {i} ({printable(node['op'])}): attribute {place[-1]} must be {expected}, but is {got}",
        node=i,
        expected=expected,
        got=got,
        pointer=pointer(place),
    )


def _check_opset(graph: Graph) -> None:
    opset = graph.get("opset", OPSET)
    if opset != OPSET:
        raise Refusal(
            "invalid_field",
            f"the graph is of opset {opset}, and this server has opset {OPSET}",
            expected=str(OPSET),
            got=str(opset),
            pointer="/graph/opset",
        )
    if graph.get("functions"):
        raise Refusal(
            "invalid_field",
            "graph.functions must be absent or empty: opset 1 has no functions",
            expected="an empty list",
            got="functions",
            pointer="/graph/functions",
        )
