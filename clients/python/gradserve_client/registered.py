"""Registered graphs: graphs that are stored on the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gradserve_client.graph import Graph
from gradserve_client.requests import Request

NOTHING: Final[Mapping[str, Any]] = {}


class Registered:
    """A graph that is stored on the server. Calls accept it in place of a graph, and do not send it again.

    The first call registers it if `register` has not, and a call registers it again if the server no longer has it. It
    is the graph as it was: nodes that are appended later are not part of it.
    """

    def __init__(self, graph: Graph, registration: Request, fields: Mapping[str, Any] = NOTHING) -> None:
        self.graph = graph
        self.node_count = len(graph)
        self.registration = registration
        #: the server's response, by the names on the wire; empty until the graph is registered
        self.fields = fields

    @property
    def graph_id(self) -> str:
        """The hash of the graph; empty until the graph is registered."""
        graph_id: str = self.fields.get("graph_id", "")
        return graph_id

    def __repr__(self) -> str:
        return f"<graph {self.graph_id[:12]}…, registered>" if self.fields else "<graph, to be registered>"


@dataclass(frozen=True)
class GraphSummary:
    """The metadata of a registered graph."""

    graph_id: str
    description: str
    node_count: int

    @classmethod
    def from_wire(cls, entry: Mapping[str, Any]) -> GraphSummary:
        """Read an entry of a listing."""
        return cls(entry["graph_id"], entry.get("description", ""), entry["node_count"])
