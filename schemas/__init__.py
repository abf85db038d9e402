"""Messages on the wire: requests, responses and problem reports, validated and documented by pydantic.

    graph → resources → request → answer → calls
    document: all messages as JSON Schema

This package defines the shape of messages and documents them. It knows nothing of NumPy, the engine, HTTP, or any
meaning beyond shape. Names of ops, attributes, dtypes and calls are passed in as plain data (`Vocabulary`). A new op or
dtype therefore needs no change here, and a new call needs one file in `schemas/calls`.

Messages are TypedDicts, not model classes: an absent field stays absent, whereas a class would add a null, and a graph
of 100,000 nodes is validated in place.
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
