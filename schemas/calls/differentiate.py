"""The gradient as a graph."""

from __future__ import annotations

from pydantic import with_config
from typing_extensions import TypedDict

from schemas.answer import Disconnected
from schemas.graph import CLOSED, Graph, NodeId
from schemas.request import TypesRequest


@with_config(CLOSED)
class DifferentiateRequest(TypesRequest):
    """A graph, the types of its leaves, and what to differentiate."""


class GradientNode(TypedDict):
    """Where the gradient with respect to a node is computed."""

    node: NodeId
    gradient_node: NodeId


class DifferentiateAnswer(TypedDict):
    """The graph that was sent, under the same node ids, and behind it the nodes of its gradient."""

    graph: Graph
    gradients: list[GradientNode]
    disconnected: Disconnected
