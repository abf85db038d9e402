"""Split a request into its graph and the rest, by the position of the graph's text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec
import numpy as np

#: what stands in the place of the graph in the rest
STUB: Final = b'{"nodes":[]}'


class Apart(NamedTuple):
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


def take_apart(body: bytes) -> Apart | None:
    """Split a request in JSON; None if it has no graph, or is not JSON."""
    request = _decoded(_REQUEST, body)
    graph = None if request is None else request.graph
    if not isinstance(graph, msgspec.Raw):
        return None
    text = bytes(graph)
    start = _address(graph) - _address(body)
    return Apart(text, b"".join((body[:start], STUB, body[start + len(text) :])))


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
