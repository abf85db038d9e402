"""A graph to draw: its nodes as in a request, and its id."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from engine import Graph
from engine.ir.graph import Node

Json = dict[str, Any]

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
_ID: Final = re.compile(r' data-graph-id="([0-9a-f]{64})"')


@dataclass(frozen=True)
class Drawn:
    """A graph, its caption, and the path of its picture under docs/, without `.svg`."""

    place: str
    title: str
    graph: Json

    @property
    def path(self) -> Path:
        """File of its picture."""
        return DOCS / f"{self.place}.svg"

    @property
    def graph_id(self) -> str:
        """SHA-256 of the graph's canonical text, as in `graph_id`, but with names and the caption."""
        text = json.dumps([self.title, shortened(self.graph)], sort_keys=True, separators=(",", ":"))
        return sha256(text.encode()).hexdigest()

    @property
    def message(self) -> Json:
        """Input of the drawing program."""
        return {"title": self.title, "graph": shortened(self.graph), "id": self.graph_id}


def id_in(picture: str) -> str:
    """Return the id of the graph that a picture shows, or "" if it has none."""
    match = _ID.search(picture)
    return match[1] if match else ""


def shortened(value: Any) -> Any:
    """Return the value without the elements of tensors, which are not drawn."""
    if isinstance(value, Mapping):
        is_tensor = "dtype" in value and "shape" in value and ("data" in value or "data_b64" in value)
        return {k: shortened(v) for k, v in value.items() if not (is_tensor and k in ("data", "data_b64"))}
    return [shortened(each) for each in value] if isinstance(value, list | tuple) else value


def of_nodes(graph: Graph, names: Mapping[Any, str]) -> Json:
    """Return a graph of the engine as in a request. `names` maps the feeds of leaves to their names."""
    return {"nodes": [_node(node, names) for node in graph.nodes]}


def _node(node: Node, names: Mapping[Any, str]) -> Json:
    if node.is_leaf:
        return {"op": node.op.name, "name": names.get(node.attrs["feed"], str(node.attrs["feed"]))}
    attrs = dict(_attributes(node))
    members = {"op": node.op.name, "operands": list(node.operands), "attrs": attrs}
    return {name: part for name, part in members.items() if part}


def _attributes(node: Node) -> Iterable[tuple[str, Any]]:
    for name, value in node.attrs.items():
        attr = node.op.attrs[name]
        if value is None or (type(value) is type(attr.default) and value == attr.default):
            continue
        if hasattr(value, "ravel"):
            yield name, {"dtype": value.dtype.name, "shape": list(value.shape)}
        else:
            yield name, attr.definition.printed(value)
