"""Register a graph, ask for its gradients, read a refusal: by what OpenAPI Generator made for Python."""

from __future__ import annotations

import sys

from openapi_client import (
    ApiClient,
    ApiException,
    ComputeApi,
    Configuration,
    Feed,
    GradientsRequest,
    Graph,
    GraphNode,
    GraphsApi,
    RegisteredGradientsRequest,
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

client = ApiClient(Configuration(host=sys.argv[1]))
compute = ComputeApi(client)
registered = GraphsApi(client).register_graph(RegisterGraphRequest(graph=graph))
answer = compute.gradients_of_graph(registered.graph_id, RegisteredGradientsRequest(feeds=feeds))
print("gradient", *(f"{number:g}" for number in answer.gradients[0].tensor.data or ()))

try:
    compute.gradients(GradientsRequest(graph=wrong, feeds=[]))
except ApiException as refused:
    print("refused", refused.data.code, refused.data.node)
