"""Requests in JSON: the text of a graph that is in the cache is not parsed again.

msgspec finds the text of the graph in the request without building objects, by its beginning and end:

    {"graph": {"nodes": [ … 100,000 nodes … ]}, "feeds": [ … ]}
    {"graph": {"nodes":[]}, "feeds": [ … ]}                          the rest, with a stub, which is parsed

The hash of the graph's text is the key of its program in `Programs`. On a miss, the nodes are counted in the text
before they are parsed. If anything is wrong with one of the parts, the request is parsed as a whole, so that errors are
always reported by one parser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np

from engine import HostArray
from service.api.graphs import GraphSource, Programs
from service.api.json_codec import BYTES_OF_A_PART, ExtractedLists, elements, parse_json
from service.api.tensors import NodePlace
from service.core.errors import Refusal

#: graph in the rest of a request
STUB: Final = b'{"nodes":[]}'
#: most bytes of a request that is always read in parts. A longer one with few objects is mostly numbers: finding its
#: graph takes longer than parsing it
SHORT: Final = 1 << 16


class SplitRequest(NamedTuple):
    """Text of a graph, and text of the request with `STUB` in its place."""

    graph: bytes
    rest: bytes


class _Outer(msgspec.Struct):
    """A request, of which only the text of the graph is read."""

    graph: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Function(msgspec.Struct):
    """A function, of which only the text of the nodes is read."""

    nodes: msgspec.Raw


class _Inner(_Function):
    """A graph, of which only the texts of the nodes and the functions are read."""

    functions: msgspec.Raw = msgspec.Raw(b"[]")


_REQUEST: Final = msgspec.json.Decoder(_Outer)
_GRAPH: Final = msgspec.json.Decoder(_Inner)
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_FUNCTION: Final = msgspec.json.Decoder(_Function)

_T = TypeVar("_T")

#: the tensors of a request in JSON alone
NO_TENSORS: Final[Mapping[tuple[str, NodePlace], HostArray]] = MappingProxyType({})


def split_graph(body: bytes) -> SplitRequest | None:
    """Split a request in JSON; return None if it has no graph, or is not JSON."""
    request = _decoded(_REQUEST, body)
    graph = None if request is None else request.graph
    if not isinstance(graph, msgspec.Raw):
        return None
    text = bytes(graph)
    start = _address(graph) - _address(body)
    return SplitRequest(text, b"".join((body[:start], STUB, body[start + len(text) :])))


class NodeTexts(NamedTuple):
    """Texts of the nodes of a graph, and of each of its functions; empty for a function without nodes."""

    own: bytes
    inside: Iterator[bytes]


def node_texts(graph: bytes) -> NodeTexts | None:
    """Find the nodes of a graph, and those of its functions; return None if the graph has no nodes of its own."""
    outer = _decoded(_GRAPH, graph)
    if outer is None:
        return None
    functions = (_decoded(_FUNCTION, text) for text in _decoded(_LIST, outer.functions) or ())
    return NodeTexts(bytes(outer.nodes), (b"" if f is None else bytes(f.nodes) for f in functions))


def _decoded(decoder: msgspec.json.Decoder[_T], text: bytes | msgspec.Raw) -> _T | None:
    """Decode a text; return None if it has another form, or is not JSON."""
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _address(buffer: bytes | msgspec.Raw) -> int:
    # By address: a search for the text could find another copy of it in the request.
    address: int = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0]
    return address


class Message(NamedTuple):
    """A parsed request from JSON or safetensors: its JSON, and the tensors beside it, by (role, node).

    If `source` is set, it is the graph, and the body has an empty one in its place. `versions` are the etags that
    resident tensors must have, by name, if another server has sent the request.
    """

    body: Mapping[str, Any]
    tensors: Mapping[tuple[str, NodePlace], HostArray] = NO_TENSORS
    source: GraphSource | None = None
    versions: Mapping[str, str] = MappingProxyType({})

    def of_role(self, role: str) -> dict[int, HostArray]:
        """Return the tensors of one role for nodes of the graph, by node."""
        return {place.node: array for place, array in self.placed(role).items() if place.function is None}

    def placed(self, role: str) -> dict[NodePlace, HostArray]:
        """Return the tensors of one role, by place."""
        return {place: array for (other, place), array in self.tensors.items() if other == role}


class JsonReader:
    """Reader of requests with at most `depth` levels, and with graphs of at most `max_nodes` nodes."""

    def __init__(self, programs: Programs, depth: int, max_nodes: int) -> None:
        self.depth = depth
        self._programs = programs
        self._max_nodes = max_nodes

    def read_request(self, text: bytes, subject: str = "the body") -> Message:
        """Read a request; errors call it `subject`. Raises Refusal, as `parse_json` does, and too_many_nodes."""
        return self._without_lists(text) or self._in_parts(text) or Message(parse_json(text, self.depth, subject))

    def _without_lists(self, text: bytes) -> Message | None:
        """Read a request with long lists of numbers; return None if it has none, or if anything is wrong with it."""
        extracted = ExtractedLists.extract(text)
        if extracted is None:
            return None
        text_without_lists = extracted.text
        request = _none_if_refused(
            lambda: self._in_parts(text_without_lists) or Message(parse_json(text_without_lists, self.depth))
        )
        return request if request is not None and extracted.put_into(request.body) else None

    def _in_parts(self, text: bytes) -> Message | None:
        """Read the graph and the rest of a request; return None if that does not pay, or if a part is invalid."""
        if len(text) > SHORT and text.count(b"{") * BYTES_OF_A_PART < len(text):
            return None
        split = split_graph(text)
        if split is None or (fields := _none_if_refused(lambda: parse_json(split.rest, self.depth))) is None:
            return None
        name = blake2b(split.graph, digest_size=32).digest()
        source = self._programs.cached(name)
        if source is None:
            self._admit_nodes(split.graph)
            source = self._programs.source(name, split.graph)
            if _none_if_refused(lambda: source.graph) is None:
                return None
        return Message(fields, source=source)

    def _admit_nodes(self, graph: bytes) -> None:
        """Raise Refusal for a graph that is too long, before perhaps a million nodes are created."""
        if graph.count(b",") < self._max_nodes:
            return
        texts = node_texts(graph)
        if texts is not None:
            admit_nodes(_length(texts.own), self._max_nodes, map(_length, texts.inside))


def _length(nodes: bytes) -> int:
    """Count the nodes in the text of a list; 0 if it is not a list."""
    return elements(nodes) if nodes.startswith(b"[") else 0


def admit_nodes(own_count: int, limit: int, function_counts: Iterable[int] = ()) -> None:
    """Raise Refusal (too_many_nodes) for a graph that is too long: its own nodes, and those of its functions.

    A function counts as at least one node, which bounds the number of functions. Counting stops at the limit.
    """
    if own_count > limit:
        raise _too_many_nodes_refusal(own_count, limit, f"the graph has {own_count} nodes")
    count = own_count
    for nodes in function_counts:
        count += max(nodes, 1)
        if count > limit:
            raise _too_many_nodes_refusal(count, limit, f"the graph and its functions have at least {count} nodes")


def _too_many_nodes_refusal(count: int, limit: int, description: str) -> Refusal:
    detail = f"{description}, and the limit is {limit}"
    return Refusal("too_many_nodes", detail, expected=f"at most {limit} nodes", got=f"{count} nodes")


def _none_if_refused(part: Callable[[], _T]) -> _T | None:
    try:
        return part()
    except Refusal:
        return None
