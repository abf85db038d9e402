"""The wire: what a request, an answer and a problem look like, as pydantic validates and documents them.

    graph → resources → request → answer → calls
    document: all of them as JSON Schema

What may live here: the shape of messages, and their documentation. What may not: NumPy, the engine, HTTP, or any
meaning beyond shape. The names of ops, attributes, dtypes and calls are handed in as plain data (`Vocabulary`), so that
a new op or dtype is no change here, and a new call one file in `schemas/calls`.

Messages are TypedDicts, not model classes: an absent field stays absent where a class would invent a null, and a
graph of 100,000 nodes is validated in place.
"""

from __future__ import annotations

from schemas.answer import AttributeInfo, Catalogue, Health, NodeTensor, OpAlias, OpInfo, Problem, Stats
from schemas.document import Vocabulary, components
from schemas.graph import Graph, GraphFunction, GraphNode, Tensor
from schemas.request import Feed, NodeType, StoreEntry

__all__ = [
    "AttributeInfo",
    "Catalogue",
    "Feed",
    "Graph",
    "GraphFunction",
    "GraphNode",
    "Health",
    "NodeTensor",
    "NodeType",
    "OpAlias",
    "OpInfo",
    "Problem",
    "Stats",
    "StoreEntry",
    "Tensor",
    "Vocabulary",
    "components",
]
