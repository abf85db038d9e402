"""Graphs that the server keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gradserve_client.graph import Graph
from gradserve_client.requests import Request

NOTHING: Final[Mapping[str, Any]] = {}


class Registered:
    """A graph that the server keeps, and that stands wherever a call takes a graph: it is not sent again.

    It is registered by the first call that needs it, unless it is already, and once more by one that finds it
    forgotten. It is the graph as it was: nodes that are appended later are not part of it.
    """

    def __init__(self, graph: Graph, registration: Request, fields: Mapping[str, Any] = NOTHING) -> None:
        self.graph = graph
        self.registration = registration
        #: what the server answered, by the names on the wire; empty as long as it was not asked
        self.fields = fields

    @property
    def graph_id(self) -> str:
        """The hash of the graph; empty as long as the server was not asked."""
        graph_id: str = self.fields.get("graph_id", "")
        return graph_id

    def __repr__(self) -> str:
        return f"<graph {self.graph_id[:12]}…, registered>" if self.fields else "<graph, to be registered>"


@dataclass(frozen=True)
class GraphSummary:
    """A graph that the server keeps, without itself."""

    graph_id: str
    description: str
    node_count: int

    @classmethod
    def from_wire(cls, stated: Mapping[str, Any]) -> GraphSummary:
        """What a listing says of a graph."""
        return cls(stated["graph_id"], stated.get("description", ""), stated["node_count"])
