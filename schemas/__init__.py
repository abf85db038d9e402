"""The wire: what a request, an answer and a problem look like, as pydantic validates and documents them.

    scalars → tensor → graph, resident → request, answer → calls
                                                          catalogue, problem
    document: all of them as JSON Schema

What may live here: the shape of messages, and their documentation. What may not: NumPy, the engine, HTTP, or any
meaning beyond shape. The names of ops, attributes, dtypes and calls are handed in as plain data (`Vocabulary`), so that
a new op or dtype is no change here, and a new call one file in `schemas/calls`.

Messages are TypedDicts, not model classes: an absent field stays absent where a class would invent a null, and a
graph of 100,000 nodes is validated in place.

Files:
    calls/      The messages of the calls: a file for each call, with its request and, where no other call has the same,
                its answer
    answer      What answers have in common. Nothing here is ever validated: the server writes it
    catalogue   The op catalogue, as clients and porting tools read it
    document    The messages as JSON Schema: the components of the OpenAPI document
    graph       A computation graph on the wire: a list of nodes, each referring to earlier ones by index
    listings    What a server keeps, page by page
    models      Models: registered graphs with names for what goes in and comes out, as they are put and as they are
                answered
    precision   How products and convolutions read float32 operands on a GPU: as a request asks for it, and as an answer
                tells it
    problem     What went wrong, by RFC 9457, with the fields that say where in a graph
    registered  Graphs that a server keeps, and requests that name one in place of sending it
    request     What requests have in common. Unknown fields are refused: a misspelt option must not be ignored
    resident    Tensors that stay with the server, under a name: as a request speaks of them, and as an answer does
    scalars     Numbers with a stated width, and the ways in which a message may be open to what a later release has
    tensor      A tensor on the wire
"""

from __future__ import annotations

from schemas.answer import Health, NodeTensor, Stats
from schemas.catalogue import AttributeInfo, Catalogue, OpAlias, OpInfo
from schemas.document import Vocabulary, components
from schemas.graph import Graph, GraphFunction, GraphNode
from schemas.problem import Problem
from schemas.request import Feed, NodeType, StoreEntry
from schemas.tensor import Tensor

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
