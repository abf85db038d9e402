"""Register a graph, request its gradients, and read an error, with OpenAPI Generator's client for Python."""

from __future__ import annotations

import sys

from openapi_client import (
    ApiClient,
    ApiException,
    Attrs,
    ComputeApi,
    Configuration,
    Feed,
    GradientsAnswer,
    GradientsRequest,
    Graph,
    GraphFunction,
    GraphNode,
    GraphsApi,
    RegisteredGradientsRequest,
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

client = ApiClient(Configuration(host=sys.argv[1]))
compute = ComputeApi(client)
registered = GraphsApi(client).register_graph(RegisterGraphRequest(graph=graph))
answer = compute.gradients_of_graph(registered.graph_id, RegisteredGradientsRequest(feeds=feeds))
print("gradient", *(f"{number:g}" for number in answer.gradients[0].tensor.data or ()))

# The models omit None, so the nulls are set in a dictionary.
body = GradientsRequest(graph=graph, feeds=feeds).to_dict() | {"of": None, "wrt": None}
body["graph"]["nodes"][6] |= {"attrs": None, "name": None}
body["feeds"][0]["tensor"]["data_b64"] = None
response = client.call_api("POST", f"{sys.argv[1]}/v1/gradients", {"Content-Type": "application/json"}, body)
same = GradientsAnswer.from_json(response.read())
print("nulls", *(f"{number:g}" for number in same.gradients[0].tensor.data or ()))

loop = compute.gradients(GradientsRequest(graph=decay, feeds=start))
results = (each.tensor.data or [] for each in (loop.values[0], loop.gradients[0]))
print("functions", *(f"{number:g}" for data in results for number in data))

try:
    compute.gradients(GradientsRequest(graph=wrong, feeds=[]))
except ApiException as refused:
    print("refused", refused.data.code, refused.data.node)
