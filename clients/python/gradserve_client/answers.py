"""What comes back: tensors of an answer by handle, by name, or in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar, overload

from gradserve_client import safetensors
from gradserve_client.errors import InputError, MalformedAnswer, Refusal, refusal
from gradserve_client.graph import Graph, Node, NodeLike
from gradserve_client.requests import JSON, SAFETENSORS
from gradserve_client.resident import Resident
from gradserve_client.tensors import Array, Buffer, from_json

T = TypeVar("T")
Key = Node | tuple[Node, ...]
_PROBLEM: Final = "application/problem+json"
_BINARY: Final = (SAFETENSORS, "application/octet-stream")
#: which fields have tensors, and what in their entries names the nodes that these belong to
_NODES: Final[Mapping[str, tuple[str, ...]]] = {
    "values": ("node",),
    "gradients": ("node",),
    "tangents": ("node",),
    "hvp": ("node",),
    "jacobian": ("of", "wrt"),
    "hessian": ("row", "column"),
}


class Response(NamedTuple):
    """An answer as it came; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: Buffer

    @property
    def media(self) -> str:
        """The media type of the body."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def checked(self) -> Response:
        """Itself, where it is an answer. Raises what it refuses, and MalformedAnswer for a redirect."""
        if self.status >= 400:
            raise self._refusal()
        if self.status not in (200, 201, 304):
            raise MalformedAnswer(f"the answer has the status {self.status}, which a server of gradserve does not give")
        return self

    def _refusal(self) -> Refusal:
        stated = self.headers.get("retry-after", "").strip()
        retry_after = float(stated) if stated.isdecimal() and stated.isascii() else None
        problem: Any = None
        if self.media in (_PROBLEM, JSON):
            problem = _parsed_or_none(self.body)
        told = problem if isinstance(problem, dict) and isinstance(problem.get("code"), str) else {}
        return refusal(told | {"status": self.status}, retry_after)

    def json(self) -> dict[str, Any]:
        """The object that the body is. Raises MalformedAnswer."""
        if self.media != JSON:
            raise self._other_media(JSON)
        return _object(self.body)

    def parts(self) -> tuple[dict[str, Any], Mapping[str, Array]]:
        """The object that the answer is, and the tensors beside it. Raises MalformedAnswer."""
        if self.media not in _BINARY:
            return self.json(), {}
        read = safetensors.decode(self.body)
        return _object(read.metadata.get("response", "").encode()), read.tensors

    def tensor(self) -> tuple[str, Array]:
        """Etag and elements of a resident tensor. Raises MalformedAnswer."""
        if self.media in _BINARY:
            arrays = [*safetensors.decode(self.body).tensors.values()]
            if len(arrays) != 1:
                raise MalformedAnswer(f"the answer holds {len(arrays)} tensors where one was asked for")
            return self.headers.get("etag", "").removeprefix("W/").strip('"'), arrays[0]
        return read(lambda answer: (str(answer["etag"]), from_json(answer["tensor"])), self.json())

    def _other_media(self, wanted: str) -> MalformedAnswer:
        return MalformedAnswer(f"the answer is {self.media or 'of no media type'}, where {wanted} was asked for")


def _parsed_or_none(body: Buffer) -> Any:
    try:
        return json.loads(bytes(body))
    except (ValueError, RecursionError):
        return None


def _object(body: Buffer) -> dict[str, Any]:
    answer = _parsed_or_none(body)
    if not isinstance(answer, dict):
        raise MalformedAnswer("the answer is no JSON object")
    return answer


def read(reader: Callable[[dict[str, Any]], T], answer: dict[str, Any]) -> T:
    """What is read in an answer. Raises MalformedAnswer where it lacks that."""
    try:
        return reader(answer)
    except (LookupError, TypeError, AttributeError, InputError) as error:
        raise MalformedAnswer(f"the answer is not as promised: {type(error).__name__}: {error}") from None


class Results(Sequence[T]):
    """Results by node: looked up by its handle or name, or by their place in the order of the request.

    Those that belong to two nodes, as the blocks of a Hessian, are looked up by both.
    """

    def __init__(self, graph: Graph, nodes: Sequence[tuple[int, ...]], results: Sequence[T]) -> None:
        self._graph = graph
        self._places = {key: place for place, key in enumerate(nodes)}
        self._results = results

    def __len__(self) -> int:
        return len(self._results)

    @overload
    def __getitem__(self, key: NodeLike | tuple[NodeLike, NodeLike]) -> T: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[T]: ...
    def __getitem__(self, key: NodeLike | tuple[NodeLike, NodeLike] | slice) -> T | Sequence[T]:
        """Raises KeyError for a node without a result here, and InputError for one that is not in the graph."""
        if isinstance(key, int | slice):
            return self._results[key]
        nodes = [self._graph.find(each) for each in (key if isinstance(key, tuple) else (key,))]
        place = self._places.get(tuple(node.id for node in nodes))
        if place is None:
            raise KeyError(f"there is no result for {', '.join(node.told for node in nodes)} in this answer")
        return self._results[place]

    def items(self) -> Iterator[tuple[Key, T]]:
        """Nodes with their results, in order."""
        for key, place in self._places.items():
            nodes = tuple(self._graph.find(each) for each in key)
            yield (nodes[0] if len(nodes) == 1 else nodes), self._results[place]

    def __repr__(self) -> str:
        return f"<results of {', '.join(repr(key) for key, _ in self.items())}>"


class Answer:
    """An answer to a call on a graph. `fields` has all that came, by its names on the wire, tensors as arrays."""

    #: which of the fields have tensors
    with_tensors: ClassVar[tuple[str, ...]] = ()

    def __init__(self, fields: dict[str, Any], graph: Graph) -> None:
        self.fields = fields
        self._graph = graph

    @classmethod
    def of(cls, response: Response, graph: Graph) -> Self:
        """The answer that came. Raises MalformedAnswer."""
        fields, beside = response.parts()
        return read(lambda answer: cls(answer, graph).placed(beside), fields)

    def placed(self, beside: Mapping[str, Array]) -> Self:
        """With tensors as arrays, those that stand in the answer and those beside it."""
        for name in self.with_tensors:
            for entry in self.fields[name]:
                place = ".".join([name, *(str(entry[node]) for node in _NODES[name])])
                entry["tensor"] = from_json(entry["tensor"]) if "tensor" in entry else beside[place]
        return self

    def _arrays(self, name: str) -> Results[Array]:
        entries = self.fields[name]
        nodes = [tuple(entry[node] for node in _NODES[name]) for entry in entries]
        return Results(self._graph, nodes, [entry["tensor"] for entry in entries])

    @property
    def stats(self) -> Mapping[str, Any]:
        """The receipt: what running it took, and on what."""
        stats: Mapping[str, Any] = self.fields.get("stats", {})
        return stats

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {', '.join(self.fields)}>"


class Values(Answer):
    """Values of nodes."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values",)

    @cached_property
    def values(self) -> Results[Array]:
        """By output."""
        return self._arrays("values")

    @property
    def value(self) -> Array:
        """The value of the only output. Raises InputError where there are several."""
        if len(self.values) != 1:
            raise InputError(f"the answer has {len(self.values)} values, and not one")
        return self.values[0]

    @cached_property
    def stored(self) -> Results[Resident]:
        """By node: the handles of what the call had the server keep."""
        entries = self.fields.get("stored", ())
        handles = [Resident.from_wire(entry) for entry in entries]
        return Results(self._graph, [(entry["node"],) for entry in entries], handles)


class Gradients(Values):
    """Values and gradients."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values", "gradients")

    @cached_property
    def gradients(self) -> Results[Array]:
        """By node of `wrt`, each of its node's shape; where that is batched, behind the leading axis."""
        return self._arrays("gradients")

    @property
    def disconnected(self) -> list[Node]:
        """The nodes of `wrt` that have no path to what was differentiated; their gradients are zeros."""
        return [self._graph.find(node) for node in self.fields["disconnected"]]


class Batched(Gradients):
    """Values and gradients with a leading axis; values alone, where there is nothing to differentiate.

    In a graph of opset 2 whose `of` has several elements, gradients are Jacobians: the shape of `of`, then the node's.
    """

    def placed(self, beside: Mapping[str, Array]) -> Self:
        """As of all answers; what is not there is empty."""
        self.fields.setdefault("gradients", [])
        self.fields.setdefault("disconnected", [])
        return super().placed(beside)


class Tangents(Values):
    """Values, and their derivatives along the tangents of leaves."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values", "tangents")

    @cached_property
    def tangents(self) -> Results[Array]:
        """By output."""
        return self._arrays("tangents")


class Jacobian(Values):
    """Values and Jacobians."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values", "jacobian")

    @cached_property
    def jacobian(self) -> Results[Array]:
        """By output and node of `wrt`: of the shape of the one, then that of the other."""
        return self._arrays("jacobian")


class Hvp(Gradients):
    """Values, gradients, and the Hessian times vectors."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values", "gradients", "hvp")

    @cached_property
    def hvp(self) -> Results[Array]:
        """By node of `wrt`."""
        return self._arrays("hvp")


class Hessian(Gradients):
    """Values, gradients and Hessians."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values", "gradients", "hessian")

    @cached_property
    def hessian(self) -> Results[Array]:
        """By pairs of nodes of `wrt`: of the shape of the one, then that of the other."""
        return self._arrays("hessian")


class Certificate(Answer):
    """How far gradients are from central differences."""

    @property
    def passed(self) -> bool:
        """Whether every node was compared, and within the tolerance."""
        passed: bool = self.fields["passed"]
        return passed

    @cached_property
    def errors(self) -> Results[float]:
        """Relative errors, by the nodes that were compared."""
        entries = self.fields["errors"]
        return Results(self._graph, [(e["node"],) for e in entries], [e["relative_error"] for e in entries])

    @cached_property
    def uncertified(self) -> Results[str]:
        """Why the others were not compared."""
        entries = self.fields["uncertified"]
        return Results(self._graph, [(e["node"],) for e in entries], [e["reason"] for e in entries])


class Forecast(Answer):
    """What a call would take, in `fields` by its names on the wire."""

    @property
    def admitted(self) -> bool:
        """Whether the call would be within the server's limits."""
        admitted: bool = self.fields["admitted"]
        return admitted


class Derivative(Answer):
    """The gradient as a graph, whose first nodes are those that were sent."""

    def placed(self, beside: Mapping[str, Array]) -> Self:
        """With the graph that came, its constants in it."""
        stated = self.fields["graph"]
        _fill(stated["nodes"], beside, "")
        for index, function in enumerate(stated.get("functions", ())):
            _fill(function["nodes"], beside, f"functions.{index}.")
        self.graph = Graph.from_wire(stated)
        return self

    def find(self, node: NodeLike) -> Node:
        """What a node of the graph that was sent is in this one."""
        return self.graph.find(self._graph.find(node).id)

    @cached_property
    def gradients(self) -> Results[Node]:
        """By node of `wrt` as it was sent: where its gradient is computed."""
        entries = self.fields["gradients"]
        made = [self.graph.find(entry["gradient_node"]) for entry in entries]
        return Results(self._graph, [(entry["node"],) for entry in entries], made)

    @property
    def disconnected(self) -> list[Node]:
        """The nodes of `wrt`, as they were sent, that have no path to what was differentiated."""
        return [self._graph.find(node) for node in self.fields["disconnected"]]


def _fill(nodes: Sequence[dict[str, Any]], beside: Mapping[str, Array], within: str) -> None:
    """Write constants that came beside the JSON where they would stand in it."""
    for place, node in enumerate(nodes):
        if f"{within}constants.{place}" in beside:
            node.setdefault("attrs", {})["value"] = beside[f"{within}constants.{place}"]
