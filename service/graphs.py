"""The graphs that callers have registered, as bytes: whoever computes reads them, and the front never does.

In memory, and gone with the server. What keeps them elsewhere has these four methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import orjson

from engine import printable
from service.errors import Refusal

#: bytes that a graph takes beside its record
OVERHEAD: Final = 1000
#: between what tells of a graph and the graph: in a string, a quotation mark would have a backslash before it
_BEFORE_THE_GRAPH: Final = b',"graph":'


@dataclass(frozen=True, slots=True)
class Registered:
    """A graph that is kept: its `record` is the JSON that it is answered with, and `summary` that without the graph.

    `key` is what workers know it by. It stands for the record to the letter, where the id does not: two graphs of one
    id may name their nodes differently, and messages name them.
    """

    graph_id: str
    key: str
    record: bytes
    summary: bytes

    @classmethod
    def of(cls, record: bytes) -> Registered:
        """The graph that a worker has made this record of."""
        summary = record.partition(_BEFORE_THE_GRAPH)[0] + b"}"
        return cls(orjson.loads(summary)["graph_id"], blake2b(record, digest_size=32).hexdigest(), record, summary)

    @property
    def nbytes(self) -> int:
        """What keeping it takes."""
        return OVERHEAD + len(self.record) + len(self.summary)


class GraphStore:
    """Registered graphs by id, at most `most` of them, of at most `most_bytes` in all. For one thread."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: dict[str, Registered] = {}
        self._held = 0

    def put(self, graph: Registered) -> tuple[Registered, bool]:
        """Keep a graph. The one that is kept under its id, and whether that is new: the first to come stands.

        Raises Refusal: store_full.
        """
        if (known := self._kept.get(graph.graph_id)) is not None:
            return known, False
        if len(self._kept) >= self._most:
            raise _full(f"{self._most} graphs", f"at most {self._most} graphs")
        if self._held + graph.nbytes > self._most_bytes:
            raise _full(f"graphs of {self._held} bytes", f"at most {self._most_bytes} bytes", f"{graph.nbytes} bytes")
        self._kept[graph.graph_id] = graph
        self._held += graph.nbytes
        return graph, True

    def get(self, graph_id: str) -> Registered:
        """The graph of this id. Raises Refusal: not_found."""
        found = self._kept.get(graph_id)
        if found is None:
            raise _unknown(graph_id)
        return found

    def __contains__(self, graph_id: str) -> bool:
        """Whether a graph of this id is kept."""
        return graph_id in self._kept

    def delete(self, graph_id: str) -> Registered:
        """Forget a graph, and answer with it; who computes with it goes on. Raises Refusal: not_found."""
        gone = self._kept.pop(graph_id, None)
        if gone is None:
            raise _unknown(graph_id)
        self._held -= gone.nbytes
        return gone

    def __iter__(self) -> Iterator[Registered]:
        """All of them, in the order in which they came."""
        return iter(self._kept.values())


def _unknown(graph_id: str) -> Refusal:
    shown = printable(graph_id)
    detail = f"there is no graph “{shown}”; POST /v1/graphs registers one, and GET /v1/graphs lists those that are kept"
    return Refusal("not_found", detail, expected="the id of a registered graph", got=shown)


def _full(held: str, expected: str, needed: str | None = None) -> Refusal:
    more = f", and this one takes {needed}" if needed else ""
    detail = f"the server keeps {held} already, of {expected}{more}; delete one that is no longer needed"
    return Refusal("store_full", detail, expected=expected, got=needed or "one more")
