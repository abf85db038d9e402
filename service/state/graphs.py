"""The graphs that callers have registered, as bytes: whoever computes reads them, and the front never does."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import orjson

from engine import printable
from service.errors import Refusal
from service.state.table import Quota, Share, Table

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
        """The bytes that keeping it takes."""
        return OVERHEAD + len(self.record) + len(self.summary)


class GraphStore(Table[Registered]):
    """Registered graphs by namespace and id."""

    plural = "graphs"

    def __init__(self, quota: Quota, share: Share | None = None) -> None:
        super().__init__(quota, lambda graph: graph.nbytes, share)

    def get(self, namespace: str, graph_id: str) -> Registered:
        """The graph of this id. Raises Refusal: not_found."""
        found = self.find((namespace, graph_id))
        if found is None:
            raise no_graph(graph_id)
        return found


def no_graph(graph_id: str, pointer: str | None = None) -> Refusal:
    """The report for a graph that is not there."""
    shown = printable(graph_id)
    detail = f"there is no graph “{shown}”; POST /v1/graphs registers one, and GET /v1/graphs lists those that are kept"
    return Refusal("not_found", detail, expected="the id of a registered graph", got=shown, pointer=pointer)
