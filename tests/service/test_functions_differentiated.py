"""Gradients of graphs with functions as graphs with functions: sent again, they give the same values."""

from __future__ import annotations

import numpy as np
import pytest

from engine import registry
from tests.conftest import Client
from tests.service.support import Json, feed, node, tensor
from tests.service.with_functions import IN, P, function, result, values

STEP = function([4, 3], IN, IN, node("mul", 0, 1), node("sin", 2), node("add", 1, 3))
NEXT = function([4], *STEP["nodes"])
NEAR = function([5], IN, IN, node("abs", 1), node("sum", 2), node("full", fill=3.0), node("less", 3, 4))
WHILE = function([3], IN, IN, node("while", 0, 1, condition=0, body=1, carries=1, max_steps=3), result(2))
NOISE = function(
    [5], IN, IN, IN, node("random_normal", 2, shape=[3], dtype="float64"), node("mul", 0, 3), node("add", 1, 4)
)
EACH = function([4, 3], IN, IN, node("mul", 0, 1), node("tanh", 2), node("square", 3))
#: functions of c [] and x [3], and nodes after these leaves, the last of which is a scalar
ROUND_TRIPS: dict[str, tuple[list[Json], list[Json]]] = {
    "scan": ([STEP], [node("scan", 1, 0, body=0, carries=1, length=4, reverse=True), result(2), result(2, 1)]),
    "sequences": (
        [function([3, 2], IN, IN, node("mul", 0, 1), node("add", 0, 2))],
        [node("scan", 1, 0, body=0, carries=1, sequences=1), result(2), result(2, 1)],
    ),
    "while": ([NEAR, NEXT], [node("while", 1, 0, condition=0, body=1, carries=1, max_steps=9), result(2), result(2)]),
    "map": ([EACH], [node("map", 1, 0, body=0, sequences=1, at_once=2), result(2), result(2, 1)]),
    "cond": (
        [function([2], IN, IN, node("mul", 0, 1)), function([2], IN, IN, node("sub", 0, 1))],
        [node("less", 1, 1), node("cond", 2, 0, 1, then=0, otherwise=1), result(3), result(3)],
    ),
    "an own derivative": (
        [function([1], IN, node("round", 0)), function([2], IN, IN, IN)],
        [node("mul", 0, 1), node("call", 2, body=0, derivative=1), result(3), result(3)],
    ),
    "a fixed point": (
        [function([4], IN, IN, node("cos", 1), node("mul", 0, 2), node("mul_scalar", 3, scalar=0.5))],
        [node("fixed_point", 1, 0, body=0, carries=1, tolerance=1e-14, max_steps=200), result(2), result(2)],
    ),
    "a while in a scan": (
        [NEAR, NEXT, WHILE],
        [node("scan", 1, 0, body=2, carries=1, length=3), result(2), result(2)],
    ),
    "random numbers in a scan": (
        [NOISE],
        [
            node("constant", value=tensor([4, 2], list(range(8)), "uint32")),
            node("scan", 1, 0, 2, body=0, carries=1, sequences=1), result(3), result(3),
        ],
    ),
}  # fmt: skip
LEAF_TYPES = [{"node": 0, "dtype": "float64", "shape": [3]}, {"node": 1, "dtype": "float64", "shape": []}]
LEAF_FEEDS = [feed(0, [3], [0.3, -0.5, 0.8]), feed(1, [], [0.7])]


def summed(after_leaves: list[Json]) -> list[Json]:
    """Build the nodes of a graph of two parameters whose scalar result depends on the last two of these nodes."""
    last = len(after_leaves) + 1
    return [
        P, P, *after_leaves,
        node("sum", last - 1), node("square", last), node("sum", last + 2), node("add", last + 1, last + 3),
    ]  # fmt: skip


def differentiated(client: Client, graph: Json) -> tuple[Json, list[int]]:
    """Return the gradient of a graph as a graph, and the gradient nodes in it."""
    answer = client.post("/v1/differentiate", json={"graph": graph, "types": LEAF_TYPES})
    assert answer.status_code == 200, answer.text
    gradient_graph = answer.json()["graph"]
    parts = (gradient_graph, *gradient_graph["functions"])
    assert {each["op"] for part in parts for each in part["nodes"]} <= set(registry().ops)
    return gradient_graph, [each["gradient_node"] for each in answer.json()["gradients"]]


@pytest.mark.parametrize("case", ROUND_TRIPS)
def test_gradient_graph_matches_the_gradients_call(client: Client, case: str) -> None:
    functions, after_leaves = ROUND_TRIPS[case]
    graph: Json = {"opset": 2, "nodes": summed(after_leaves), "functions": functions}
    gradient_graph, gradient_nodes = differentiated(client, graph)
    count = len(graph["nodes"])
    assert (gradient_graph["opset"], gradient_graph["nodes"][:count]) == (2, graph["nodes"])
    assert gradient_graph["functions"][: len(functions)] == functions
    inputs = [
        each for f in gradient_graph["functions"][len(functions) :] for each in f["nodes"] if each["op"] == "input"
    ]
    assert all(
        "dtype" in each["attrs"] and ("shape" in each["attrs"]) != ("zero_d" in each["attrs"]) for each in inputs
    )
    direct = values(client, {"graph": graph, "feeds": LEAF_FEEDS}, "gradients")
    again = values(client, {"graph": gradient_graph, "feeds": LEAF_FEEDS, "outputs": gradient_nodes})
    for x, y in zip(direct, again, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", ROUND_TRIPS)
def test_gradient_graph_can_be_differentiated_again(client: Client, case: str) -> None:
    """Compare with a nested `grad` node."""
    functions, after_leaves = ROUND_TRIPS[case]
    nodes = summed(after_leaves)
    count = len(nodes)
    nested = [*nodes, node("grad", count - 1, 0), node("square", count), node("sum", count + 1)]
    graph = {"opset": 2, "nodes": nodes, "functions": functions}
    gradient_graph, (x_gradient, _) = differentiated(client, graph)
    last = len(gradient_graph["nodes"])
    twice_over, gradient_nodes = differentiated(
        client, gradient_graph | {"nodes": [*gradient_graph["nodes"], node("square", x_gradient), node("sum", last)]}
    )
    direct = values(client, {"graph": graph | {"nodes": nested}, "feeds": LEAF_FEEDS}, "gradients")
    again = values(client, {"graph": twice_over, "feeds": LEAF_FEEDS, "outputs": gradient_nodes})
    for x, y in zip(direct, again, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-10, atol=1e-12)
