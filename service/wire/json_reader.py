"""Requests in JSON: if the graph of a request was seen before, only the rest is parsed.

The text of the graph is found, without parsing it, by where it begins and ends. Its hash is the name under which
`Programs` has the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final, TypeVar

from service.errors import Refusal
from service.wire.apart import node_texts, take_apart
from service.wire.graph_source import Programs
from service.wire.json_codec import BYTES_OF_A_PART, elements, parse_json
from service.wire.long_lists import WithoutLists
from service.wire.message import Message

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
        apart = take_apart(text)
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
