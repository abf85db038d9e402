"""From wire messages to the engine's terms. The only place that knows both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine import EngineError, Limits, Program, Registry, Statement
from schemas import Feed, ForwardRequest, GradientsRequest, Graph, Node, Tensor
from service.errors import Refusal, from_engine, printable
from service.handlers import ForwardCall, GradientsCall
from service.jsonio import json_kind
from service.tensors import Array, decode
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


class Translator:
    """Reads requests of one opset within limits."""

    def __init__(self, registry: Registry, limits: Limits, max_nodes: int) -> None:
        self._registry = registry
        self._limits = limits
        self._max_nodes = max_nodes

    def forward(self, body: Mapping[str, Any]) -> ForwardCall:
        """The call that a forward request makes. Raises Refusal and EngineError."""
        self._admit(body)
        request = validate(ForwardRequest, body)
        return ForwardCall(
            program=self._program(request["graph"]),
            feeds=self._feeds(request.get("feeds", [])),
            outputs=request.get("outputs"),
            encoding=request.get("encoding", "json"),
        )

    def gradients(self, body: Mapping[str, Any]) -> GradientsCall:
        """The call that a gradients request makes. Raises Refusal and EngineError."""
        self._admit(body)
        request = validate(GradientsRequest, body)
        return GradientsCall(
            program=self._program(request["graph"]),
            feeds=self._feeds(request.get("feeds", [])),
            outputs=request.get("outputs"),
            encoding=request.get("encoding", "json"),
            of=request.get("of"),
            wrt=request.get("wrt"),
            cotangent=self._cotangent(request),
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

    def _cotangent(self, request: GradientsRequest) -> Array | None:
        tensor = request.get("cotangent")
        return None if tensor is None else self._array(tensor, ("cotangent",), None)

    def _feeds(self, feeds: Sequence[Feed]) -> dict[int, Array]:
        arrays: dict[int, Array] = {}
        for i, feed in enumerate(feeds):
            node = feed["node"]
            if node in arrays:
                raise Refusal(
                    "invalid_field",
                    f"feeds name node {node} twice",
                    node=node,
                    expected="one feed for a node",
                    got="two",
                    pointer=f"/feeds/{i}/node",
                )
            arrays[node] = self._array(feed["tensor"], ("feeds", i, "tensor"), node)
        return arrays

    def _array(self, tensor: Tensor, place: Place, node: int | None) -> Array:
        try:
            return decode(tensor, self._limits)
        except EngineError as error:
            refusal = from_engine(error)
        except Refusal as error:
            refusal = error
        where = f"node {node}: {spoken(place)}" if node is not None else spoken(place)
        refusal.detail = f"{where} {refusal.detail}" if refusal.code == "bad_tensor" else f"{where}: {refusal.detail}"
        refusal.node, refusal.pointer = node, pointer(place)
        raise refusal

    def _program(self, graph: Graph) -> Program:
        _check_opset(graph)
        return Program([self._statement(i, node) for i, node in enumerate(graph["nodes"])], self._limits)

    def _statement(self, i: int, node: Node) -> Statement:
        label = node.get("name")
        try:
            op = self._registry.get(node["op"])
        except EngineError as error:
            raise error.at(i, printable(node["op"]), label) from None
        # Some clients send [] for every list that they leave unset: an empty list stands for the default.
        attrs = {
            name: self._attribute(i, node, name, value) for name, value in node.get("attrs", {}).items() if value != []
        }
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
