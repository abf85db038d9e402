"""Parsed responses: results that are looked up by node, by name, or by position."""

from __future__ import annotations

import builtins
import json
import operator
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
#: the fields that hold tensors, each with the members of its entries that name the tensor's nodes
_NODES: Final[Mapping[str, tuple[str, ...]]] = {
    "values": ("node",),
    "gradients": ("node",),
    "tangents": ("node",),
    "hvp": ("node",),
    "jacobian": ("of", "wrt"),
    "hessian": ("row", "column"),
}


class Response(NamedTuple):
    """An HTTP response as received. The names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: Buffer

    @property
    def media(self) -> str:
        """The media type of the body."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def checked(self) -> Response:
        """Return self if the request succeeded.

        Raises the matching Refusal for an error status, and MalformedAnswer for any other unexpected status, such as a
        redirect.
        """
        if self.status >= 400:
            raise self._refusal()
        if self.status not in (200, 201, 304):
            raise MalformedAnswer(f"unexpected status {self.status}: not a gradserve response")
        return self

    def _refusal(self) -> Refusal:
        header = self.headers.get("retry-after", "").strip()
        retry_after = float(header) if header.isdecimal() and header.isascii() else None
        problem: Any = None
        if self.media in (_PROBLEM, JSON):
            problem = _parsed_or_none(self.body)
        report = problem if isinstance(problem, dict) and isinstance(problem.get("code"), str) else {}
        return refusal(report | {"status": self.status}, retry_after)

    def json(self) -> dict[str, Any]:
        """Parse the body as a JSON object. Raises MalformedAnswer if it is not one."""
        if self.media != JSON:
            raise self._other_media(JSON)
        return _object(self.body)

    def parts(self) -> tuple[dict[str, Any], Mapping[str, Array]]:
        """Return the JSON object of the response, and the tensors that travel beside it in safetensors.

        Raises MalformedAnswer if the body cannot be read.
        """
        if self.media not in _BINARY:
            return self.json(), {}
        file = safetensors.decode(self.body)
        return _object(file.metadata.get("response", "").encode()), file.tensors

    def tensor(self) -> tuple[str, Array]:
        """Return the etag and the elements of a resident tensor. Raises MalformedAnswer."""
        if self.media in _BINARY:
            arrays = [*safetensors.decode(self.body).tensors.values()]
            if len(arrays) != 1:
                raise MalformedAnswer(f"expected one tensor in the response, got {len(arrays)}")
            return self.headers.get("etag", "").removeprefix("W/").strip('"'), arrays[0]
        return read(lambda answer: (str(answer["etag"]), from_json(answer["tensor"])), self.json())

    def _other_media(self, expected: str) -> MalformedAnswer:
        return MalformedAnswer(f"expected a response of media type {expected}, got {self.media or 'none'}")


def _parsed_or_none(body: Buffer) -> Any:
    try:
        return json.loads(bytes(body))
    except (ValueError, RecursionError):
        return None


def _object(body: Buffer) -> dict[str, Any]:
    answer = _parsed_or_none(body)
    if not isinstance(answer, dict):
        raise MalformedAnswer("the response is not a JSON object")
    return answer


def read(reader: Callable[[dict[str, Any]], T], answer: dict[str, Any]) -> T:
    """Apply a reader to a response. Raises MalformedAnswer if a member is missing or has the wrong type."""
    try:
        return reader(answer)
    except (LookupError, TypeError, AttributeError, InputError) as error:
        raise MalformedAnswer(f"invalid response: {type(error).__name__}: {error}") from None


class Results(Sequence[T]):
    """Results of a call, one per node: indexed by node, by name, or by position in the request.

    Results that belong to two nodes, such as the blocks of a Hessian, are indexed by the pair.
    """

    def __init__(self, graph: Graph, nodes: Sequence[tuple[int, ...]], results: Sequence[T]) -> None:
        self._graph = graph
        self._positions = {key: position for position, key in enumerate(nodes)}
        self._results = results

    def __len__(self) -> int:
        return len(self._results)

    @overload
    def __getitem__(self, key: NodeLike | tuple[NodeLike, NodeLike]) -> T: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[T]: ...
    def __getitem__(self, key: NodeLike | tuple[NodeLike, NodeLike] | slice) -> T | Sequence[T]:
        """Return the result of a node, a pair of nodes or a position; a slice returns a sequence.

        Raises KeyError for a node without a result, and InputError for a node that is not in the graph.
        """
        if isinstance(key, int | slice):
            return self._results[key]
        nodes = [self._graph.find(each) for each in (key if isinstance(key, tuple) else (key,))]
        position = self._positions.get(tuple(node.id for node in nodes))
        if position is None:
            raise KeyError(f"the answer has no result for {', '.join(node.told for node in nodes)}")
        return self._results[position]

    def items(self) -> Iterator[tuple[Key, T]]:
        """Iterate over pairs of a node, or a tuple of nodes, and its result, in order."""
        for key, position in self._positions.items():
            nodes = tuple(self._graph.find(each) for each in key)
            yield (nodes[0] if len(nodes) == 1 else nodes), self._results[position]

    def __repr__(self) -> str:
        return f"<results of {', '.join(repr(key) for key, _ in self.items())}>"


class Answer:
    """The response to a call on a graph. `fields` holds all of it by the names on the wire, with tensors as arrays."""

    #: the fields that hold tensors
    with_tensors: ClassVar[tuple[str, ...]] = ()

    def __init__(self, fields: dict[str, Any], graph: Graph) -> None:
        self.fields = fields
        self._graph = graph

    @classmethod
    def of(cls, response: Response, graph: Graph) -> Self:
        """Read a result from a response. Raises MalformedAnswer."""
        fields, separate_tensors = response.parts()
        return read(lambda answer: cls(answer, graph).placed(separate_tensors), fields)

    def placed(self, separate_tensors: Mapping[str, Array]) -> Self:
        """Replace tensors by arrays: those in the JSON itself, and those that came beside it."""
        for name in self.with_tensors:
            for entry in self.fields[name]:
                _place(entry, ".".join([name, *(str(entry[node]) for node in _NODES[name])]), separate_tensors)
        return self

    def _arrays(self, name: str) -> Results[Array]:
        entries = self.fields[name]
        nodes = [tuple(entry[node] for node in _NODES[name]) for entry in entries]
        return Results(self._graph, nodes, [entry["tensor"] for entry in entries])

    @property
    def stats(self) -> Mapping[str, Any]:
        """The execution statistics of the call: time, memory and hardware, as docs/wire.md lists them."""
        stats: Mapping[str, Any] = self.fields.get("stats", {})
        return stats

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {', '.join(self.fields)}>"


def _place(entry: dict[str, Any], name: str, separate_tensors: Mapping[str, Array]) -> None:
    """Replace the tensor of an entry by an array. Beside the JSON, the tensor has this name."""
    entry["tensor"] = from_json(entry["tensor"]) if "tensor" in entry else separate_tensors[name]


class Values(Answer):
    """Values of nodes."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values",)

    @cached_property
    def values(self) -> Results[Array]:
        """The values by output, each with the shape and dtype of its node."""
        return self._arrays("values")

    @property
    def value(self) -> Array:
        """The value of the only output. Raises InputError if there are several outputs."""
        if len(self.values) != 1:
            raise InputError(f"the answer has {len(self.values)} values, not one")
        return self.values[0]

    @cached_property
    def stored(self) -> Results[Resident]:
        """The handles of the tensors that the call stored, by node."""
        entries = self.fields.get("stored", ())
        handles = [Resident.from_wire(entry) for entry in entries]
        return Results(self._graph, [(entry["node"],) for entry in entries], handles)


class Gradients(Values):
    """Values and gradients."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values", "gradients")

    @cached_property
    def gradients(self) -> Results[Array]:
        """The gradients by node of `wrt`, each with the shape of its node.

        If `vjp` was called with `batched=True`, each has the axis K in front.
        """
        return self._arrays("gradients")

    @property
    def disconnected(self) -> list[Node]:
        """The nodes of `wrt` that have no differentiable path to the differentiated node. Their gradients are zero."""
        return [self._graph.find(node) for node in self.fields["disconnected"]]


class Batched(Gradients):
    """Values and gradients of examples, with a leading axis N unless reduced.

    There are only values if there is nothing to differentiate. In a graph of opset 2 whose `of` does not have exactly
    one element, gradients are Jacobians: the shape of `of` followed by the shape of the node.
    """

    def placed(self, separate_tensors: Mapping[str, Array]) -> Self:
        """Replace tensors by arrays, as for every result. Missing fields become empty lists."""
        self.fields.setdefault("gradients", [])
        self.fields.setdefault("disconnected", [])
        return super().placed(separate_tensors)


class Tangents(Values):
    """Values, and their directional derivatives along the tangents of leaves."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values", "tangents")

    @cached_property
    def tangents(self) -> Results[Array]:
        """The tangents by output, each with the shape of its output."""
        return self._arrays("tangents")


class Jacobian(Values):
    """Values and Jacobians."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values", "jacobian")

    @cached_property
    def jacobian(self) -> Results[Array]:
        """The blocks by pairs of output and node of `wrt`: the output's shape followed by the node's."""
        return self._arrays("jacobian")


class Hvp(Gradients):
    """Values, gradients, and Hessian-vector products."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values", "gradients", "hvp")

    @cached_property
    def hvp(self) -> Results[Array]:
        """The products by node of `wrt`, each with the shape of its node."""
        return self._arrays("hvp")


class NodeOffset(NamedTuple):
    """The rows and columns of a node in a matrix: `size` of them (the number of its elements), starting at `offset`."""

    offset: int
    size: int

    @property
    def slice(self) -> builtins.slice:
        """The rows, or columns, as an index for NumPy."""
        return builtins.slice(self.offset, self.offset + self.size)


class HessianMatrix(NamedTuple):
    """A Hessian as one square matrix over the elements of all nodes of `wrt`.

    Nodes are in the order of `wrt`, the elements of a node in row-major order. `offsets` has the place of each node:
    the block of nodes `a` and `b` is `array[offsets[a].slice, offsets[b].slice]`.
    """

    array: Array
    offsets: Results[NodeOffset]


class Hessian(Gradients):
    """Values, gradients and Hessians."""

    with_tensors: ClassVar[tuple[str, ...]] = ("values", "gradients", "hessian")

    def placed(self, separate_tensors: Mapping[str, Array]) -> Self:
        """Replace tensors by arrays, as every answer does, and read the matrix, which may be malformed."""
        super().placed(separate_tensors)
        if self.fields.get("matrix") is not None:
            _place(self.fields["matrix"], "matrix", separate_tensors)
        _ = self.matrix
        return self

    @cached_property
    def hessian(self) -> Results[Array]:
        """The blocks by pairs of nodes of `wrt`: the shape of the row's node followed by that of the column's.

        There are none with the layout "matrix".
        """
        return self._arrays("hessian")

    @cached_property
    def matrix(self) -> HessianMatrix | None:
        """All blocks as one matrix, or None unless the call had the layout "matrix"."""
        fields = self.fields.get("matrix")
        if fields is None:
            return None
        entries = fields["offsets"]
        if not isinstance(entries, list):
            raise MalformedAnswer("the offsets of the matrix are not a list")
        places = [NodeOffset(operator.index(entry["offset"]), operator.index(entry["size"])) for entry in entries]
        return HessianMatrix(fields["tensor"], Results(self._graph, [(entry["node"],) for entry in entries], places))


class Certificate(Answer):
    """The result of a gradient check: how far gradients are from central differences."""

    @property
    def passed(self) -> bool:
        """Whether every node was compared and is within the tolerance."""
        passed: bool = self.fields["passed"]
        return passed

    @cached_property
    def errors(self) -> Results[float]:
        """Relative errors by node, for the nodes that were compared."""
        entries = self.fields["errors"]
        return Results(self._graph, [(e["node"],) for e in entries], [e["relative_error"] for e in entries])

    @cached_property
    def uncertified(self) -> Results[str]:
        """Reasons by node, such as "kink" or "roundoff", for the nodes that were not compared. See docs/wire.md."""
        entries = self.fields["uncertified"]
        return Results(self._graph, [(e["node"],) for e in entries], [e["reason"] for e in entries])


class Forecast(Answer):
    """The dry run of a call: its estimates, in `fields` by the names on the wire."""

    @property
    def admitted(self) -> bool:
        """Whether the call is within the limits of the server."""
        admitted: bool = self.fields["admitted"]
        return admitted


class Derivative(Answer):
    """The gradient as a graph, which begins with the nodes of the original graph."""

    def placed(self, separate_tensors: Mapping[str, Array]) -> Self:
        """Read the graph, with the constants that came beside the JSON put into it."""
        graph_fields = self.fields["graph"]
        _fill(graph_fields["nodes"], separate_tensors, "")
        for index, function in enumerate(graph_fields.get("functions", ())):
            _fill(function["nodes"], separate_tensors, f"functions.{index}.")
        self.graph = Graph.from_wire(graph_fields)
        return self

    def find(self, node: NodeLike) -> Node:
        """Return the node of this graph that corresponds to a node of the original graph."""
        return self.graph.find(self._graph.find(node).id)

    @cached_property
    def gradients(self) -> Results[Node]:
        """The nodes that compute the gradients, by node of `wrt` in the original graph."""
        entries = self.fields["gradients"]
        gradient_nodes = [self.graph.find(entry["gradient_node"]) for entry in entries]
        return Results(self._graph, [(entry["node"],) for entry in entries], gradient_nodes)

    @property
    def disconnected(self) -> list[Node]:
        """The nodes of `wrt`, in the original graph, that have no differentiable path to the differentiated node."""
        return [self._graph.find(node) for node in self.fields["disconnected"]]


def _fill(nodes: Sequence[dict[str, Any]], separate_tensors: Mapping[str, Array], prefix: str) -> None:
    """Write constants that came beside the JSON into the nodes they belong to."""
    for node_id, node in enumerate(nodes):
        if f"{prefix}constants.{node_id}" in separate_tensors:
            node.setdefault("attrs", {})["value"] = separate_tensors[f"{prefix}constants.{node_id}"]
