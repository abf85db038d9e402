"""Gradients of graphs with functions, as graphs with functions: sent again, they say the same."""

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
#: functions of c [] and x [3], and nodes behind these leaves whose last is a scalar
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


def summed(behind: list[Json]) -> list[Json]:
    """The nodes of a graph of two parameters that ends in one number, by way of the last two of these."""
    last = len(behind) + 1
    return [
        P, P, *behind,
        node("sum", last - 1), node("square", last), node("sum", last + 2), node("add", last + 1, last + 3),
    ]  # fmt: skip


def differentiated(client: Client, graph: Json) -> tuple[Json, list[int]]:
    """The gradient of a graph as a graph, and the nodes that it is."""
    told = client.post("/v1/differentiate", json={"graph": graph, "types": LEAF_TYPES})
    assert told.status_code == 200, told.text
    written = told.json()["graph"]
    parts = (written, *written["functions"])
    assert {each["op"] for part in parts for each in part["nodes"]} <= set(registry().ops)
    return written, [each["gradient_node"] for each in told.json()["gradients"]]


@pytest.mark.parametrize("case", ROUND_TRIPS)
def test_a_gradient_with_functions_says_the_same_when_it_is_sent_again(client: Client, case: str) -> None:
    functions, behind = ROUND_TRIPS[case]
    graph: Json = {"opset": 2, "nodes": summed(behind), "functions": functions}
    written, where = differentiated(client, graph)
    count = len(graph["nodes"])
    assert (written["opset"], written["nodes"][:count]) == (2, graph["nodes"])
    assert written["functions"][: len(functions)] == functions
    inputs = [each for f in written["functions"][len(functions) :] for each in f["nodes"] if each["op"] == "input"]
    assert all(
        "dtype" in each["attrs"] and ("shape" in each["attrs"]) != ("zero_d" in each["attrs"]) for each in inputs
    )
    direct = values(client, {"graph": graph, "feeds": LEAF_FEEDS}, "gradients")
    again = values(client, {"graph": written, "feeds": LEAF_FEEDS, "outputs": where})
    for x, y in zip(direct, again, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", ROUND_TRIPS)
def test_a_gradient_with_functions_may_be_differentiated_again(client: Client, case: str) -> None:
    """As a nested `grad` node is."""
    functions, behind = ROUND_TRIPS[case]
    nodes = summed(behind)
    count = len(nodes)
    nested = [*nodes, node("grad", count - 1, 0), node("square", count), node("sum", count + 1)]
    graph = {"opset": 2, "nodes": nodes, "functions": functions}
    written, (by_x, _) = differentiated(client, graph)
    last = len(written["nodes"])
    twice_over, where = differentiated(
        client, written | {"nodes": [*written["nodes"], node("square", by_x), node("sum", last)]}
    )
    direct = values(client, {"graph": graph | {"nodes": nested}, "feeds": LEAF_FEEDS}, "gradients")
    again = values(client, {"graph": twice_over, "feeds": LEAF_FEEDS, "outputs": where})
    for x, y in zip(direct, again, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-10, atol=1e-12)
