"""Register a graph, ask for its gradients, read a refusal: by what openapi-python-client made."""

from __future__ import annotations

import sys

from gradserve_generated import Client
from gradserve_generated.api.compute import gradients, gradients_of_graph
from gradserve_generated.api.graphs import register_graph
from gradserve_generated.models import (
    Feed,
    GradientsAnswer,
    GradientsRequest,
    Graph,
    GraphNode,
    Problem,
    RegisteredGradientsRequest,
    RegisteredGraph,
    RegisterGraphRequest,
    Tensor,
)


def feed(node: int, shape: list[int], data: list[float]) -> Feed:
    """Values of a leaf in float64."""
    return Feed(node=node, tensor=Tensor(dtype="float64", shape=shape, data=data))


graph = Graph(
    nodes=[
        GraphNode(op="input", name="x"),
        GraphNode(op="parameter", name="w"),
        GraphNode(op="input", name="y"),
        GraphNode(op="matmul", operands=[0, 1]),
        GraphNode(op="sub", operands=[3, 2]),
        GraphNode(op="square", operands=[4]),
        GraphNode(op="mean", operands=[5]),
    ]
)
feeds = [feed(0, [2, 2], [1, 2, 3, 4]), feed(1, [2], [1, 1]), feed(2, [2], [2, 8])]
wrong = Graph(nodes=[GraphNode(op="input"), GraphNode(op="matmul", operands=[0, 7])])

client = Client(base_url=sys.argv[1])
registered = register_graph.sync(client=client, body=RegisterGraphRequest(graph=graph))
assert isinstance(registered, RegisteredGraph)
answer = gradients_of_graph.sync(registered.graph_id, client=client, body=RegisteredGradientsRequest(feeds=feeds))
assert isinstance(answer, GradientsAnswer)
print("gradient", *(f"{number:g}" for number in answer.gradients[0].tensor.data or ()))

refused = gradients.sync(client=client, body=GradientsRequest(graph=wrong, feeds=[]))
assert isinstance(refused, Problem)
print("refused", refused.code, refused.node)
