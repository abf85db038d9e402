"""`batch` of a node with several elements: per-example Jacobians over HTTP."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import Client
from tests.reference.client import array
from tests.service.api.safetensors_support import BINARY, answered, body
from tests.service.support import Json, feed, node, problem

RNG = np.random.default_rng(11)
W, X = RNG.standard_normal((3, 2)), RNG.standard_normal((5, 3))
NODES = [node("parameter"), node("input"), node("matmul", 1, 0), node("tanh", 2), node("parameter")]


def fed(i: int, values: Any) -> Json:
    return feed(i, list(np.shape(values)), np.ravel(values).tolist())


def graph(opset: int | None = 2) -> Json:
    return {"nodes": NODES} | ({} if opset is None else {"opset": opset})


LAYER = {"graph": graph(), "feeds": [fed(0, W), fed(1, X)], "mapped": [1], "of": 3, "wrt": [0, 1]}
TYPES = [{"node": i, "dtype": "float64", "shape": list(a.shape)} for i, a in enumerate((W, X))]
PLANNED = {key: value for key, value in LAYER.items() if key != "feeds"} | {"call": "batch", "types": TYPES}


def ask(client: Client, **more: Any) -> Json:
    answer = client.post("/v1/batch", json=LAYER | more)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def gradients(answer: Json) -> dict[int, np.ndarray[Any, Any]]:
    return {entry["node"]: array(entry["tensor"]) for entry in answer["gradients"]}


def one_at_a_time(client: Client, wrt: list[int]) -> dict[int, np.ndarray[Any, Any]]:
    """Ask `/v1/jacobian` for each example separately and stack the answers."""
    rows: dict[int, list[np.ndarray[Any, Any]]] = {i: [] for i in wrt}
    for x in X:
        asked = {"graph": graph(), "feeds": [fed(0, W), fed(1, x)], "outputs": [3], "wrt": wrt}
        for block in client.post("/v1/jacobian", json=asked).json()["jacobian"]:
            rows[block["wrt"]].append(array(block["tensor"]))
    return {i: np.stack(blocks) for i, blocks in rows.items()}


def test_batch_equals_per_example_jacobians(client: Client) -> None:
    """Includes a second request, which is read from the cache."""
    expected = one_at_a_time(client, [0, 1])
    for _ in range(2):
        answer = ask(client)
        assert set(answer) == {"values", "gradients", "disconnected", "stats"}
        actual = gradients(answer)
        assert (actual[0].shape, actual[1].shape) == ((5, 2, 3, 2), (5, 2, 3))
        for i, block in expected.items():
            np.testing.assert_allclose(actual[i], block, 1e-12, 1e-15)


@pytest.mark.parametrize("block", [1, 2, 5, None])
@pytest.mark.parametrize(("reduce", "divisor"), [("sum", 1), ("mean", 5)])
def test_reduce_gives_the_sum_or_mean_of_jacobians(
    client: Client, block: int | None, reduce: str, divisor: int
) -> None:
    answer = ask(client, wrt=[0], reduce=reduce, **({} if block is None else {"block": block}))
    expected = one_at_a_time(client, [0])[0].sum(axis=0) / divisor
    np.testing.assert_allclose(gradients(answer)[0], expected, 1e-12, 1e-15)


def test_jacobians_in_safetensors(client: Client) -> None:
    rest = {key: value for key, value in LAYER.items() if key != "feeds"}
    metadata, tensors = answered(
        client.post("/v1/batch", content=body(rest, {"feeds.0": W, "feeds.1": X}), headers=BINARY)
    )
    assert metadata["disconnected"] == []
    np.testing.assert_array_equal(tensors["gradients.1"], gradients(ask(client))[1])


def test_stored_and_disconnected_jacobians(client: Client) -> None:
    feeds = [*LAYER["feeds"], fed(4, [1.0, 2.0])]
    store = [{"node": 1, "gradient": True, "tensor_id": "jacobians"}]
    answer = ask(client, feeds=feeds, wrt=[1, 4], store=store)
    np.testing.assert_array_equal(array(client.get("/v1/tensors/jacobians").json()["tensor"]), gradients(answer)[1])
    np.testing.assert_array_equal(gradients(answer)[4], np.zeros((5, 2, 2)))
    assert answer["disconnected"] == [4]


@pytest.mark.parametrize("reduce", ["none", "mean"])
def test_plan_matches_the_peak_memory(client: Client, reduce: str) -> None:
    asked = {"reduce": reduce, "wrt": [0]}
    plan = client.post("/v1/plan", json=PLANNED | asked).json()
    answer = ask(client, **asked)
    assert plan["admitted"]
    assert plan["peak_bytes"] == answer["stats"]["peak_bytes"]
    assert plan["backward_flops"] > 0
    fewer = client.post("/v1/plan", json=PLANNED | asked | {"graph": graph(), "of": 3, "outputs": [2]}).json()
    assert fewer["response_bytes"] == plan["response_bytes"]


def test_request_over_the_budget_is_refused(client: Client) -> None:
    """300 Jacobians of 100 by 100 numbers are 24 MB; two are within a MiB."""
    nodes = [node("input"), node("tanh", 0)]
    types = [{"node": 0, "dtype": "float64", "shape": [300, 100]}]
    asked = {"graph": {"nodes": nodes, "opset": 2}, "mapped": [0], "wrt": [0], "memory_budget": 1 << 20}
    assert not client.post("/v1/plan", json=asked | {"types": types, "call": "batch"}).json()["admitted"]
    problem(client.post("/v1/batch", json=asked | {"feeds": [fed(0, np.zeros((300, 100)))]}), 413, "over_budget")
    assert client.post("/v1/batch", json=asked | {"feeds": [fed(0, np.zeros((2, 100)))]}).status_code == 200


@pytest.mark.parametrize("opset", [None, 1])
@pytest.mark.parametrize("reduce", ["none", "sum"])
def test_opset_1_is_refused_with_a_hint_at_opset_2(client: Client, opset: int | None, reduce: str) -> None:
    asked = LAYER | {"graph": graph(opset), "wrt": [0], "reduce": reduce}
    report = problem(client.post("/v1/batch", json=asked), 422, "non_scalar_output")
    assert report["pointer"] == "/of"
    assert report["detail"] == (
        'node 3 (tanh): has shape [2], but batch computes Jacobians only since opset 2: add "opset": 2 to the graph, '
        "which uses opset 1, or reduce this node to one element (sum, mean)"
    )


def test_reduced_jacobian_with_respect_to_a_mapped_leaf_is_refused(client: Client) -> None:
    report = problem(client.post("/v1/batch", json=LAYER | {"reduce": "sum"}), 422, "invalid_field")
    assert report["detail"].startswith("node 1 (input): wrt names this node, which differs between examples")
