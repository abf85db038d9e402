"""Graphs that the server keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gradserve_client.graph import Graph
from gradserve_client.requests import Request


class Registered:
    """A graph that the server keeps, and that stands wherever a call takes a graph: it is not sent again.

    Where the server has forgotten it, it is registered once more, as it was. Nodes that are appended to `graph` later
    are not part of it.
    """

    def __init__(self, graph: Graph, registration: Request, fields: Mapping[str, Any]) -> None:
        self.graph = graph
        self.registration = registration
        self.fields = fields
        self.graph_id: str = fields["graph_id"]

    def __repr__(self) -> str:
        return f"<graph {self.graph_id[:12]}…, registered>"


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
