"""The graph of a request apart from the rest of it, found by where its text begins and ends."""

from __future__ import annotations

from typing import Final, NamedTuple

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


class _Inner(msgspec.Struct):
    """A graph, of which only the nodes are looked at."""

    nodes: msgspec.Raw


_REQUEST: Final = msgspec.json.Decoder(_Outer)
_GRAPH: Final = msgspec.json.Decoder(_Inner)


def take_apart(body: bytes) -> Apart | None:
    """The two parts of a request in JSON; None where there is no graph to be found, be it that all of it is no JSON."""
    try:
        graph = _REQUEST.decode(body).graph
    except (msgspec.MsgspecError, RecursionError):
        return None
    if not isinstance(graph, msgspec.Raw):
        return None
    text = bytes(graph)
    start = _address(graph) - _address(body)
    return Apart(text, b"".join((body[:start], STUB, body[start + len(text) :])))


def nodes_text(graph: bytes) -> bytes | None:
    """The list of nodes in the text of a graph; None where there is none to be found."""
    try:
        return bytes(_GRAPH.decode(graph).nodes)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _address(buffer: bytes | msgspec.Raw) -> int:
    # Not by looking for the text: it may stand in the request twice.
    found: int = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0]
    return found
