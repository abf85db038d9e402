"""Register a graph, request its gradients, and read an error, with the client that openapi-python-client made."""

from __future__ import annotations

import sys
from typing import Any

from gradserve_generated import Client
from gradserve_generated.api.compute import gradients, gradients_of_graph
from gradserve_generated.api.graphs import register_graph
from gradserve_generated.models import (
    Attrs,
    Feed,
    GradientsAnswer,
    GradientsRequest,
    Graph,
    GraphFunction,
    GraphNode,
    Problem,
    RegisteredGradientsRequest,
    RegisteredGraph,
    RegisterGraphRequest,
    Tensor,
)


def feed(node: int, shape: list[int], data: list[float]) -> Feed:
    """Return a float64 feed of a leaf."""
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
decay = Graph(
    opset=2,
    functions=[
        GraphFunction(
            name="euler",
            outputs=[4, 4],
            nodes=[
                GraphNode(op="input", name="k"),
                GraphNode(op="input", name="y"),
                GraphNode(op="mul", operands=[0, 1]),
                GraphNode(op="mul_scalar", operands=[2], attrs=Attrs(scalar=-0.5)),
                GraphNode(op="add", operands=[1, 3]),
            ],
        )
    ],
    nodes=[
        GraphNode(op="parameter", name="k"),
        GraphNode(op="input", name="y0"),
        GraphNode(op="scan", operands=[0, 1], attrs=Attrs(body=0, carries=1, length=4)),
        GraphNode(op="get_output", operands=[2], attrs=Attrs(index=1)),
        GraphNode(op="sum", operands=[3]),
    ],
)
start = [feed(0, [], [1]), feed(1, [], [16])]

client = Client(base_url=sys.argv[1])
registered = register_graph.sync(client=client, body=RegisterGraphRequest(graph=graph))
assert isinstance(registered, RegisteredGraph)
answer = gradients_of_graph.sync(registered.graph_id, client=client, body=RegisteredGradientsRequest(feeds=feeds))
assert isinstance(answer, GradientsAnswer)
print("gradient", *(f"{number:g}" for number in answer.gradients[0].tensor.data or ()))

# The types have no None, but the server treats null as absent.
none: Any = None
graph.nodes[6].name = none
graph.nodes[6]["attrs"] = none
feeds[2] = Feed(node=2, tensor=Tensor(dtype="float64", shape=[2], data=[2, 8], data_b64=none))
same = gradients.sync(client=client, body=GradientsRequest(graph=graph, feeds=feeds, of=none, wrt=none))
assert isinstance(same, GradientsAnswer)
print("nulls", *(f"{number:g}" for number in same.gradients[0].tensor.data or ()))

loop = gradients.sync(client=client, body=GradientsRequest(graph=decay, feeds=start))
assert isinstance(loop, GradientsAnswer)
results = (each.tensor.data or () for each in (loop.values[0], loop.gradients[0]))
print("functions", *(f"{number:g}" for data in results for number in data))

refused = gradients.sync(client=client, body=GradientsRequest(graph=wrong, feeds=[]))
assert isinstance(refused, Problem)
print("refused", refused.code, refused.node)
