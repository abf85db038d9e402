"""Messages of `differentiate`: the gradient as a graph."""

from __future__ import annotations

from pydantic import with_config
from typing_extensions import TypedDict

from schemas.answer import Disconnected
from schemas.graph import CLOSED, Graph, NodeId
from schemas.request import TypesRequest


@with_config(CLOSED)
class DifferentiateRequest(TypesRequest):
    """A graph, the types of its leaves, and the gradients to compute."""


class GradientNode(TypedDict):
    """A node, and the node that computes the gradient with respect to it."""

    node: NodeId
    gradient_node: NodeId


class DifferentiateAnswer(TypedDict):
    """The graph of the request with the same node ids, followed by the nodes of its gradients."""

    graph: Graph
    gradients: list[GradientNode]
    disconnected: Disconnected
