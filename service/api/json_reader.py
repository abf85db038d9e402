"""Requests in JSON: if the graph of a request was seen before, only the rest is parsed.

The text of the graph is found, without parsing it, by where it begins and ends. Its hash is the name under which
`Programs` has the program.
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
from service.api.json_codec import BYTES_OF_A_PART, WithoutLists, elements, parse_json
from service.api.validation import NodePlace
from service.core.errors import Refusal

# Split a request into its graph and the rest, by the position of the graph's text.

#: what stands in the place of the graph in the rest
STUB: Final = b'{"nodes":[]}'


class SplitRequest(NamedTuple):
    """The text of a graph, and that of the request with `STUB` in its place."""

    graph: bytes
    rest: bytes


class _Outer(msgspec.Struct):
    """A request, of which only the graph is looked at, and that only for where it ends."""

    graph: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Function(msgspec.Struct):
    """A function, of which only the nodes are looked at."""

    nodes: msgspec.Raw


class _Inner(_Function):
    """A graph, of which only the nodes and the functions are looked at."""

    functions: msgspec.Raw = msgspec.Raw(b"[]")


_REQUEST: Final = msgspec.json.Decoder(_Outer)
_GRAPH: Final = msgspec.json.Decoder(_Inner)
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_FUNCTION: Final = msgspec.json.Decoder(_Function)

_Found = TypeVar("_Found")


def split_graph(body: bytes) -> SplitRequest | None:
    """Split a request in JSON; None if it has no graph, or is not JSON."""
    request = _decoded(_REQUEST, body)
    graph = None if request is None else request.graph
    if not isinstance(graph, msgspec.Raw):
        return None
    text = bytes(graph)
    start = _address(graph) - _address(body)
    return SplitRequest(text, b"".join((body[:start], STUB, body[start + len(text) :])))


class NodeTexts(NamedTuple):
    """Texts that stand for the nodes in that of a graph, and in each of its functions; nothing where that has none."""

    own: bytes
    inside: Iterator[bytes]


def node_texts(graph: bytes) -> NodeTexts | None:
    """Find the nodes of a graph, and those of its functions; None if the graph has no nodes of its own."""
    found = _decoded(_GRAPH, graph)
    if found is None:
        return None
    functions = (_decoded(_FUNCTION, text) for text in _decoded(_LIST, found.functions) or ())
    return NodeTexts(bytes(found.nodes), (b"" if f is None else bytes(f.nodes) for f in functions))


def _decoded(decoder: msgspec.json.Decoder[_Found], text: bytes | msgspec.Raw) -> _Found | None:
    """Decode a text; None if it holds something else, or is not JSON."""
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _address(buffer: bytes | msgspec.Raw) -> int:
    # Not by looking for the text: it may stand in the request twice.
    found: int = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0]
    return found


# A request once it is parsed, from JSON or safetensors.

#: of a request in JSON alone
NO_TENSORS: Final[Mapping[tuple[str, NodePlace], HostArray]] = MappingProxyType({})


class Message(NamedTuple):
    """The JSON of a request, and the tensors that came beside it, by (role, node).

    With a `source`, that is the graph, and the field of the body has an empty one in its place. `versions` are the
    etags that resident tensors have to have, by name, where another server says so.
    """

    body: Mapping[str, Any]
    tensors: Mapping[tuple[str, NodePlace], HostArray] = NO_TENSORS
    source: GraphSource | None = None
    versions: Mapping[str, str] = MappingProxyType({})

    def of_role(self, role: str) -> dict[int, HostArray]:
        """The tensors of one role for nodes of the graph, by node."""
        return {place.node: array for place, array in self.placed(role).items() if place.function is None}

    def placed(self, role: str) -> dict[NodePlace, HostArray]:
        """The tensors of one role, by place."""
        return {place: array for (other, place), array in self.tensors.items() if other == role}


#: bytes up to which a request is always read in parts; of one that is longer, most are numbers where it has few
#: objects, and to find its graph takes longer than to read that
SHORT: Final = 1 << 16

_Part = TypeVar("_Part")


class JsonReader:
    """Reader of JSON of at most so many levels, and graphs of at most so many nodes."""

    def __init__(self, programs: Programs, depth: int, max_nodes: int) -> None:
        self.depth = depth
        self._programs = programs
        self._max_nodes = max_nodes

    def read_request(self, text: bytes, what: str = "the body") -> Message:
        """The request that `text` holds; `what` it is called in reports.

        What is wrong with a request is said of it as a whole: where there is anything wrong with one of its parts, it
        is parsed once more as a whole. Raises Refusal, as `parse_json` does, and too_many_nodes.
        """
        return self._without_lists(text) or self._in_parts(text) or Message(parse_json(text, self.depth, what))

    def _without_lists(self, text: bytes) -> Message | None:
        """The request, where it has long lists of numbers, and nothing is wrong with it."""
        without = WithoutLists.of(text)
        if without is None:
            return None
        rest = without.text
        request = _or_none(lambda: self._in_parts(rest) or Message(parse_json(rest, self.depth)))
        return request if request is not None and without.put_into(request.body) else None

    def _in_parts(self, text: bytes) -> Message | None:
        """The request, where it pays to look for its parts, and both are as they should be."""
        if len(text) > SHORT and text.count(b"{") * BYTES_OF_A_PART < len(text):
            return None
        apart = split_graph(text)
        if apart is None or (fields := _or_none(lambda: parse_json(apart.rest, self.depth))) is None:
            return None
        name = blake2b(apart.graph, digest_size=32).digest()
        source = self._programs.known(name)
        if source is None:
            self._admit_nodes(apart.graph)
            source = self._programs.source(name, apart.graph)
            if _or_none(lambda: source.graph) is None:
                return None
        return Message(fields, source=source)

    def _admit_nodes(self, graph: bytes) -> None:
        """Refuse a graph that is too long before a million nodes are made of it."""
        if graph.count(b",") < self._max_nodes:
            return
        texts = node_texts(graph)
        if texts is not None:
            admit_nodes(_length(texts.own), self._max_nodes, map(_length, texts.inside))


def _length(nodes: bytes) -> int:
    """Count the nodes in the text of a list; 0 if it is not a list."""
    return elements(nodes) if nodes.startswith(b"[") else 0


def admit_nodes(own: int, most: int, inside: Iterable[int] = ()) -> None:
    """Raise Refusal (too_many_nodes) for a graph that is too long: its own nodes, and those of its functions.

    A function counts as one node at least, so that there are not too many, either. Those that come when the limit is
    passed are not looked at.
    """
    if own > most:
        raise _too_many(own, most, f"the graph has {own} nodes")
    count = own
    for nodes in inside:
        count += max(nodes, 1)
        if count > most:
            raise _too_many(count, most, f"the graph and its functions have {count} nodes or more")


def _too_many(count: int, most: int, has: str) -> Refusal:
    detail = f"{has}, and the limit is {most}"
    return Refusal("too_many_nodes", detail, expected=f"at most {most} nodes", got=f"{count} nodes")


def _or_none(part: Callable[[], _Part]) -> _Part | None:
    try:
        return part()
    except Refusal:
        return None
