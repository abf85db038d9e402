"""The calls gradients and forward over HTTP."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Client
from tests.service.support import SQUARES, feed, node, problem, request, tensor

EXAMPLE = {
    "graph": {
        "opset": 1,
        "nodes": [
            {"op": "input"},
            {"op": "parameter", "name": "w"},
            {"op": "parameter", "name": "b"},
            {"op": "input"},
            {"op": "matmul", "operands": [0, 1]},
            {"op": "add", "operands": [4, 2]},
            {"op": "relu", "operands": [5]},
            {"op": "sub", "operands": [6, 3]},
            {"op": "square", "operands": [7]},
            {"op": "mean", "operands": [8]},
        ],
    },
    "of": 9,
    "wrt": [1, 2],
    "outputs": [6, 9],
    "feeds": [
        feed(0, [2, 2], [1, 2, 3, 4]),
        feed(1, [2, 1], [1, 1]),
        feed(2, [1], [0.5]),
        feed(3, [2, 1], [0, 0]),
    ],
}


def test_example_is_answered_byte_for_byte(client: Client) -> None:
    answer = client.post("/v1/gradients", json=EXAMPLE)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    expected = (
        b'{"values":[{"node":6,"tensor":{"dtype":"float64","shape":[2,1],"data":[3.5,7.5]}},'
        b'{"node":9,"tensor":{"dtype":"float64","shape":[],"data":[34.25]}}],'
        b'"gradients":[{"node":1,"tensor":{"dtype":"float64","shape":[2,1],"data":[26.0,37.0]}},'
        b'{"node":2,"tensor":{"dtype":"float64","shape":[1],"data":[11.0]}}],'
        b'"disconnected":[],"stats":{"device":"cpu",'
    )
    assert answer.content.startswith(expected)


def test_stats_of_an_answer(client: Client) -> None:
    body = request(node("input", shape=[7]), node("sum", 0), feeds=[feed(0, [7], [1] * 7)])
    first, second = (client.post("/v1/forward", json=body).json()["stats"] for _ in range(2))
    assert set(first) == {
        "device", "plan_cached", "execute_ms", "tier", "peak_bytes", "recomputed_flops", "graph_id",
        "opset", "dtype",
        "versions",
    }  # fmt: skip
    assert first["recomputed_flops"] == 0
    assert (first["plan_cached"], second["plan_cached"]) == (False, True)
    assert first["peak_bytes"] >= 7 * 8
    assert first["execute_ms"] >= 0


def test_default_fields(client: Client) -> None:
    """`of` is the last node, `wrt` all parameters, `outputs` is `[of]`, empty lists as absent ones."""
    plain = client.post("/v1/gradients", json=SQUARES).json()
    spelled = client.post("/v1/gradients", json=SQUARES | {"of": 2, "wrt": [0], "outputs": [2]}).json()
    empty = client.post("/v1/gradients", json=SQUARES | {"wrt": [], "outputs": []}).json()
    for answer in (plain, spelled, empty):
        assert answer["values"] == [{"node": 2, "tensor": tensor([], [5.0])}]
        assert answer["gradients"] == [{"node": 0, "tensor": tensor([2], [2.0, 4.0])}]


def test_forward_returns_the_last_node_by_default(client: Client) -> None:
    answer = client.post("/v1/forward", json=SQUARES).json()
    assert set(answer) == {"values", "stats"}
    assert answer["values"] == [{"node": 2, "tensor": tensor([], [5.0])}]


def test_values_are_in_the_order_of_outputs(client: Client) -> None:
    answer = client.post("/v1/forward", json=SQUARES | {"outputs": [2, 0]}).json()
    assert [value["node"] for value in answer["values"]] == [2, 0]


def test_cotangent_of_an_inner_node(client: Client) -> None:
    body = SQUARES | {"of": 1, "cotangent": tensor([2], [1, 10])}
    assert client.post("/v1/gradients", json=body).json()["gradients"] == [
        {"node": 0, "tensor": tensor([2], [2.0, 40.0])}
    ]


def test_disconnected_node_has_zero_gradient_and_is_listed(client: Client) -> None:
    body = request(
        node("parameter"), node("parameter"), node("sum", 0), feeds=[feed(0, [2], [1, 2]), feed(1, [1], [3])]
    )
    answer = client.post("/v1/gradients", json=body).json()
    assert answer["disconnected"] == [1]
    assert answer["gradients"][1] == {"node": 1, "tensor": tensor([1], [0.0])}


def test_identical_nodes_stay_distinct(client: Client) -> None:
    """x, 1 = square(0), 2 = square(0), y = 1 · 2: dy/d1 is x², not 2x²."""
    body = request(
        node("input"), node("square", 0), node("square", 0), node("mul", 1, 2), wrt=[1], feeds=[feed(0, [], [3])]
    )
    assert client.post("/v1/gradients", json=body).json()["gradients"][0]["tensor"]["data"] == [9.0]


def test_nested_grad_nodes(client: Client) -> None:
    """d²(x³)/dx² = 6x, by a nested grad node; and its derivative is 6."""
    cube = [node("input"), node("square", 0), node("mul", 1, 0), node("grad", 2, 0), node("grad", 3, 0)]
    answer = client.post("/v1/gradients", json=request(*cube, wrt=[0], feeds=[feed(0, [], [2])])).json()
    assert answer["values"][0]["tensor"]["data"] == [12.0]
    assert answer["gradients"][0]["tensor"]["data"] == [6.0]


@pytest.mark.parametrize("spelling", ["square", "SQUARE", "Square"])
def test_op_names_ignore_case(client: Client, spelling: str) -> None:
    body = request(node("input"), node(spelling, 0), feeds=[feed(0, [], [3])])
    assert client.post("/v1/forward", json=body).json()["values"][0]["tensor"]["data"] == [9.0]


class TestEmptyLists:
    """Empty lists: some clients send [] for each list that they leave unset."""

    @pytest.mark.parametrize("op", ["full", "reshape", "broadcast_to"])
    @pytest.mark.parametrize("attrs", [{}, {"shape": []}])
    def test_empty_shape_means_0d(self, client: Client, op: str, attrs: dict[str, object]) -> None:
        x = node("full", shape=[1] if op == "reshape" else [])
        body = request(x, {"op": op, "operands": [] if op == "full" else [0], "attrs": attrs})
        answer = client.post("/v1/forward", json=body)
        assert answer.json()["values"][0]["tensor"]["shape"] == [], answer.text

    def test_empty_shape_of_a_leaf_declares_no_shape(self, client: Client) -> None:
        body = request(node("input", shape=[]), feeds=[feed(0, [2], [1, 2])])
        assert client.post("/v1/forward", json=body).status_code == 200

    def test_zero_d_declares_a_0d_leaf(self, client: Client) -> None:
        body = request(node("input", zero_d=True), feeds=[feed(0, [2], [1, 2])])
        problem(client.post("/v1/forward", json=body), 422, "shape_mismatch")

    def test_empty_axes_mean_all_axes(self, client: Client) -> None:
        body = request(node("full", shape=[2, 3], fill=1), node("sum", 0, axes=[]))
        assert client.post("/v1/forward", json=body).json()["values"][0]["tensor"] == tensor([], [6.0])

    def test_empty_shape_of_a_feed_means_0d(self, client: Client) -> None:
        body = request(node("input"), feeds=[feed(0, [], [1])])
        assert client.post("/v1/forward", json=body).json()["values"][0]["tensor"]["shape"] == []

    def test_empty_functions_are_accepted(self, client: Client) -> None:
        body = {"graph": {"nodes": [node("full")], "functions": []}}
        assert client.post("/v1/forward", json=body).status_code == 200


def test_constant_in_the_graph(client: Client) -> None:
    value = tensor([2], [1, 2], "int32")
    body = request(node("constant", value=value), node("identity", 0))
    assert client.post("/v1/forward", json=body).json()["values"][0]["tensor"] == value


def test_node_names_do_not_affect_the_plan_cache(client: Client) -> None:
    named = json.loads(json.dumps(SQUARES))
    named["graph"]["nodes"][1]["name"] = "a name of its own"
    client.post("/v1/gradients", json=SQUARES)
    assert client.post("/v1/gradients", json=named).json()["stats"]["plan_cached"] is True


def test_feeds_may_be_absent(client: Client) -> None:
    assert client.post("/v1/forward", json={"graph": {"nodes": [node("full")]}}).status_code == 200


@pytest.mark.slow
def test_long_chain(client: Client) -> None:
    """No code recurses over the depth of a graph."""
    chain = [node("parameter"), *(node("tanh", i) for i in range(3000)), node("sum", 3000)]
    answer = client.post("/v1/gradients", json=request(*chain, feeds=[feed(0, [2], [0.5, -0.5])]))
    assert answer.status_code == 200, answer.text


def test_required_list_may_be_empty(client: Client) -> None:
    """For a 0-d tensor, the lists of `pad` and `update_slice` are empty."""
    padded = request(node("input"), node("pad", 0, pad_width=[]), feeds=[feed(0, [], [3])])
    assert client.post("/v1/forward", json=padded).json()["values"][0]["tensor"]["data"] == [3]
    leaves = [node("input"), node("input")]
    updated = request(*leaves, node("update_slice", 0, 1, starts=[]), feeds=[feed(0, [], [3]), feed(1, [], [4])])
    assert client.post("/v1/forward", json=updated).json()["values"][0]["tensor"]["data"] == [4]


@pytest.mark.parametrize(
    ("shape", "attrs"),
    [([2**40, 2**40], {"op": "reshape", "shape": [-1]}), ([2**62, 0], {"op": "tile", "repeats": [2**62, 1]})],
)
def test_plan_refuses_extents_beyond_64_bits(client: Client, shape: list[int], attrs: dict[str, object]) -> None:
    """A plan has no limit on bytes, so an extent may be the product of several."""
    named = {name: value for name, value in attrs.items() if name != "op"}
    body = {"graph": {"nodes": [node("input"), node(str(attrs["op"]), 0, **named)]}}
    types = [{"node": 0, "dtype": "float64", "shape": shape}]
    report = problem(client.post("/v1/plan", json=body | {"types": types}), 413, "over_budget")
    assert report["node"] == 1
    assert report["detail"] == f"node 1 ({attrs['op']}) has an extent beyond 64 bits"
