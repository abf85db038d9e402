"""Validated requests, whose parts are read as the call needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from engine import NO_END, EngineError, HostArray, Limits, Program, TensorType
from engine.ir.run_report import IEEE, PRECISIONS, Precision
from schemas import Feed, Graph, NodeType
from service.api.graphs import Programs, Translator, located, read_array, unexpected_tensor
from service.api.json_reader import Message, admit_nodes
from service.api.residents import Find, ResidentFeed, fed_rows, rows_refusal
from service.api.tensors import type_of
from service.api.validation import NodePlace, validate
from service.core.errors import Refusal
from service.store.tables import checked_name, is_name, unknown_tensor


class PrecisionChoice(NamedTuple):
    """Precision of requests that state none, and the coarsest that a request may state."""

    default: Precision = IEEE
    least: Precision = PRECISIONS[-1]

    def of(self, stated: Precision | None) -> Precision:
        """Return the precision of a request that states this one, or none. Raises Refusal."""
        precision = self.default if stated is None else stated
        allowed = PRECISIONS[: PRECISIONS.index(self.least) + 1]
        if precision in allowed:
            return precision
        expected, got = f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0], f"“{precision}”"
        sentence = f"precision must be {expected} on this server, but is {got}"
        raise Refusal("invalid_field", sentence, expected=expected, got=got, pointer="/precision")


class RequestReader:
    """Validator of requests within limits."""

    def __init__(
        self,
        translator: Translator,
        programs: Programs,
        limits: Limits,
        max_nodes: int,
        precisions: PrecisionChoice,
    ) -> None:
        self.limits = limits
        self.translator = translator
        self.programs = programs
        self._max_nodes = max_nodes
        self._precisions = precisions

    def open(self, message: Message, model: type, roles: Sequence[str], find: Find, *, packed: bool) -> ParsedRequest:
        """Validate a request against `model`; `roles` are those of tensors that may stand beside its JSON.

        `find` gives the resident tensors that it may name. `packed`: the answer is in safetensors. Raises Refusal.
        """
        self._admit(message.body)
        fields: Mapping[str, Any] = validate(model, message.body)
        for role, place in message.tensors:
            if role not in roles:
                takes = ", ".join(f"{name}.NODE" for name in roles)
                raise unexpected_tensor(place.tensor_name(role), f"this call takes {takes}")
        encoding = "binary" if packed else fields.get("encoding", "json")
        return ParsedRequest(fields, message, self, encoding, find, self._precisions.of(fields.get("precision")))

    def _admit(self, body: Mapping[str, Any]) -> None:
        """Raise Refusal for a graph that is too long before each of its nodes is validated."""
        graph = body.get("graph")
        if isinstance(graph, dict):
            functions = graph.get("functions")
            inside = map(_length, functions) if isinstance(functions, list) else ()
            admit_nodes(_length(graph), self._max_nodes, inside)


@dataclass(frozen=True)
class ParsedRequest:
    """Fields of a request, and their values in the engine's terms. Parts raise Refusal and EngineError.

    `encoding` is that of tensors in the answer: json or base64, or binary for safetensors. `find` gives the resident
    tensors. `precision` is how products and convolutions may read float32: stated by the request, or the server's.
    """

    fields: Mapping[str, Any]
    message: Message
    reader: RequestReader
    encoding: str
    find: Find
    precision: Precision

    def get(self, *names: str) -> list[Any]:
        """Return fields of the request, None for absent ones."""
        return [self.fields.get(name) for name in names]

    @cached_property
    def program(self) -> Program:
        """The program that the graph stands for."""
        constants, source = self.message.placed("constants"), self.message.source
        if source is None or constants:
            return self.reader.translator.program(self.graph, constants)
        return self.reader.programs.of(source)

    @cached_property
    def graph(self) -> Graph:
        """The graph as it was sent."""
        graph: Graph = self.fields["graph"] if self.message.source is None else self.message.source.graph
        return graph

    @cached_property
    def feeds(self) -> dict[int, HostArray]:
        """The values of leaves, by node."""
        return self.tensors("feeds")

    def tensors(self, role: str) -> dict[int, HostArray]:
        """Read the tensors of one role by node: those beside the JSON, and those in its field of that name."""
        arrays = self.message.of_role(role)
        listed: Sequence[Feed] = self.fields.get(role, [])
        for i, one in enumerate(listed):
            if one["node"] in arrays:
                raise _twice(role, i, one["node"])
            arrays[one["node"]] = self._tensor(one, role, i)
        return arrays

    def _tensor(self, one: Feed, role: str, i: int) -> HostArray:
        if ("tensor" in one) == ("tensor_id" in one):
            raise _not_one_tensor(one, role, i)
        if "rows" in one and "tensor" in one:
            raise rows_refusal(one, role, i, "absent beside a tensor", str(one["rows"]))
        if "tensor" in one:
            return read_array(one["tensor"], self.reader.limits, (role, i, "tensor"), NodePlace(one["node"]))
        place = f"/{role}/{i}/tensor_id"
        name = checked_name(one["tensor_id"], f"{role}[{i}].tensor_id", place, one["node"])
        version = self.find(name)
        if version is None:
            raise unknown_tensor(name, place, one["node"])
        return fed_rows(version.array, one, role, i) if "rows" in one else version.array

    def residents(self, role: str) -> dict[int, ResidentFeed]:
        """Return the resident tensors of one role, by node."""
        listed: Sequence[Feed] = self.fields.get(role, [])
        return {one["node"]: ResidentFeed(one["tensor_id"], "rows" in one) for one in listed if "tensor_id" in one}

    def wanted(self, roles: Sequence[str]) -> list[str]:
        """Return the names of all resident tensors of these roles, if any of them is unknown here."""
        named = chain.from_iterable(self.residents(role).values() for role in roles)
        names = [name for name in dict.fromkeys(one.name for one in named) if is_name(name)]
        return names if any(self.find(name) is None for name in names) else []

    @cached_property
    def types(self) -> dict[int, TensorType]:
        """The types of leaves, if the request has types in place of values, by node."""
        types: dict[int, TensorType] = {}
        limits = replace(self.reader.limits, bytes=NO_END)  # nothing of these types is allocated
        listed: Sequence[NodeType] = self.fields.get("types", [])
        for i, one in enumerate(listed):
            if one["node"] in types:
                raise _twice("types", i, one["node"])
            try:
                types[one["node"]] = type_of(one, limits)
            except (EngineError, Refusal) as error:
                raise located(error, ("types", i), NodePlace(one["node"])) from None
        return types

    @cached_property
    def memory_budget(self) -> int | None:
        """The limit of the peak in bytes; None if the request states none."""
        budget: int | None = self.number("memory_budget", None, 1, self.reader.limits.bytes, "d")
        return budget

    def number(self, field: str, default: float | None, low: float, high: float, form: str = "g") -> Any:
        """Return a field that must be from `low` to `high`; sentences have numbers of this form. Raises Refusal."""
        value = self.fields.get(field)
        if value is None:
            return default
        if low <= value <= high:
            return value
        expected, got = f"{low:{form}} to {high:{form}}", f"{value:{form}}"
        detail = f"{field} must be {expected}, but is {got}"
        raise Refusal("invalid_field", detail, expected=expected, got=got, pointer=f"/{field}")


def _length(nodes_of: object) -> int:
    """Count the nodes of a graph or a function; 0 if it has no list of nodes."""
    nodes = nodes_of.get("nodes") if isinstance(nodes_of, dict) else None
    return len(nodes) if isinstance(nodes, list) else 0


def types_of(arrays: Mapping[int, HostArray]) -> dict[int, TensorType]:
    """Return the types of arrays, by node."""
    return {node: TensorType.of(array) for node, array in arrays.items()}


def _not_one_tensor(one: Feed, role: str, i: int) -> Refusal:
    node = one["node"]
    got, has, field = "neither", "neither tensor nor tensor_id", "tensor"
    if "tensor" in one:
        got, has, field = "both", "both tensor and tensor_id", "tensor_id"
    detail, pointer = f"node {node}: {role}[{i}] has {has}; one of them is expected", f"/{role}/{i}/{field}"
    return Refusal("invalid_field", detail, node=node, expected="tensor or tensor_id", got=got, pointer=pointer)


def _twice(role: str, i: int, node: int) -> Refusal:
    detail, expected = f"{role} name node {node} twice", f"one of {role} for a node"
    return Refusal("invalid_field", detail, node=node, expected=expected, got="two", pointer=f"/{role}/{i}/node")
