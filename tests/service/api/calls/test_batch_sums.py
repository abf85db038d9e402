"""`batch` with `reduce`: sums over examples over HTTP."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import Client
from tests.reference.client import array
from tests.service.api.safetensors_support import BINARY, answered, body
from tests.service.support import Json, feed, node, problem, request

RNG = np.random.default_rng(8)
X, Y, W = RNG.standard_normal((50, 3)), RNG.standard_normal(50), RNG.standard_normal(3)


def fed(i: int, values: Any) -> Json:
    return feed(i, list(np.shape(values)), np.ravel(values).tolist())


#: (x · w − y)², summed over 50 examples
SUM = request(
    node("parameter"),
    node("input"),
    node("input"),
    node("mul", 0, 1),
    node("sum", 3),
    node("sub", 4, 2),
    node("square", 5),
    feeds=[fed(0, W), fed(1, X), fed(2, Y)],
    mapped=[1, 2],
    reduce="sum",
)
TYPES = [{"node": i, "dtype": "float64", "shape": list(a.shape)} for i, a in enumerate((W, X, Y))]
PLANNED = {key: value for key, value in SUM.items() if key != "feeds"} | {"call": "batch", "types": TYPES}
R = X @ W - Y


def ask(client: Client, path: str = "/v1/batch", **more: Any) -> Json:
    answer = client.post(path, json=SUM | more)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def numbers(answer: Json, kind: str) -> list[np.ndarray[Any, Any]]:
    return [array(entry["tensor"]) for entry in answer[kind]]


@pytest.mark.parametrize("block", [1, 7, 16, 50, 64, None])
@pytest.mark.parametrize(("reduce", "divisor"), [("sum", 1), ("mean", 50)])
def test_values_and_gradients_equal_the_full_sum(client: Client, block: int | None, reduce: str, divisor: int) -> None:
    answer = ask(client, reduce=reduce, **({} if block is None else {"block": block}))
    assert set(answer) == {"values", "gradients", "disconnected", "stats"}
    np.testing.assert_allclose(numbers(answer, "values")[0], np.sum(R**2) / divisor, 1e-12)
    np.testing.assert_allclose(numbers(answer, "gradients")[0], 2 * R @ X / divisor, 1e-12)


def test_reduce_none_is_the_default(client: Client) -> None:
    """Includes a second request, which is read from the cache."""
    for _ in range(2):
        assert numbers(ask(client, reduce="none"), "values")[0].shape == (50,)
    without = {key: value for key, value in SUM.items() if key != "reduce"}
    plain = client.post("/v1/batch", json=without).json()
    assert plain["gradients"] == ask(client, reduce="none")["gradients"]


def test_repeated_request_with_other_numbers(client: Client) -> None:
    for scale in (1.0, 2.0, 3.0):
        answer = ask(client, feeds=[fed(0, scale * W), fed(1, X), fed(2, Y)], block=8)
        np.testing.assert_allclose(numbers(answer, "values")[0], np.sum((scale * X @ W - Y) ** 2), 1e-12)


def test_several_outputs_and_no_gradients(client: Client) -> None:
    answer = ask(client, outputs=[4, 3, 0], block=8)
    expected = [np.sum(X @ W), W * X.sum(0), 50 * W]
    for actual, reference in zip(numbers(answer, "values"), expected, strict=True):
        np.testing.assert_allclose(actual, reference, 1e-12)
    body = request(node("input"), node("sum", 0), feeds=[fed(0, X)], mapped=[0], reduce="mean")
    alone = client.post("/v1/batch", json=body).json()
    assert set(alone) == {"values", "stats"}
    np.testing.assert_allclose(numbers(alone, "values")[0], X.sum() / 50, 1e-12)


def test_registered_graph_in_safetensors(client: Client) -> None:
    graph_id = client.post("/v1/graphs", json={"graph": SUM["graph"]}).json()["graph_id"]
    rest = {key: value for key, value in SUM.items() if key not in ("graph", "feeds")}
    sent = body(rest | {"block": 8}, {"feeds.0": W, "feeds.1": X, "feeds.2": Y})
    answer = client.post(f"/v1/graphs/{graph_id}/batch", content=sent, headers=BINARY)
    _, tensors = answered(answer)
    np.testing.assert_array_equal(tensors["gradients.0"], numbers(ask(client, block=8), "gradients")[0])


def test_stored_value_is_the_reduced_one(client: Client) -> None:
    ask(client, store=[{"node": 4, "tensor_id": "products"}], reduce="mean", block=8)
    stored = client.get("/v1/tensors/products").json()["tensor"]
    np.testing.assert_allclose(array(stored), np.sum(X @ W) / 50, 1e-12)


def test_diagnose_finds_an_overflow_in_any_block(client: Client) -> None:
    x = X.copy()
    x[41, 1] = 1e200
    stats = ask(client, feeds=[fed(0, W), fed(1, x), fed(2, Y)], block=8, diagnose=True)["stats"]
    assert (stats["first_nonfinite"]["node"], stats["first_nonfinite"]["op"]) == (6, "square")
    assert "first_nonfinite" not in ask(client, block=8, diagnose=True)["stats"]


@pytest.mark.slow
def test_plan_reports_blocks_and_the_peak_of_one_block(client: Client) -> None:
    def planned(**more: Any) -> Json:
        return dict(client.post("/v1/plan", json=PLANNED | more).json())

    whole, eight = planned(), planned(block=8)
    assert (whole["block"], whole["blocks"]) == (64, 1)
    assert (eight["block"], eight["blocks"]) == (8, 7)
    assert eight["peak_bytes"] == ask(client, block=8)["stats"]["peak_bytes"] < whole["peak_bytes"]
    assert eight["admitted"]
    assert eight["forward_flops"] == pytest.approx(whole["forward_flops"], rel=0.2)
    assert {"block", "blocks"}.isdisjoint(planned(reduce="none"))


def test_plan_counts_the_flops_of_all_blocks(make_client: Any) -> None:
    small = make_client(max_flops=300)
    answer = small.post("/v1/plan", json=PLANNED | {"block": 1}).json()
    assert not answer["admitted"]
    problem(small.post("/v1/batch", json=SUM | {"block": 1}), 413, "over_budget")


@pytest.mark.parametrize(
    ("changed", "code", "pointer", "sentence"),
    [
        ({"reduce": "max"}, "invalid_field", "/reduce", "reduce must be one of none, sum, mean, but is “max”"),
        ({"block": 0}, "invalid_field", "/block", "block must be at least 1, but is 0"),
        ({"block": -3}, "invalid_field", "/block", "block must be at least 1, but is -3"),
        (
            {"block": 2.5},
            "invalid_field",
            "/block",
            "block must be a whole number, but is a number with a decimal point",
        ),
        (
            {"reduce": "none", "block": 8},
            "invalid_field",
            "/block",
            "block must be absent unless reduce is sum or mean, but is 8",
        ),
        (
            {"wrt": [0, 1]},
            "invalid_field",
            "/wrt/1",
            (
                "node 1 (input): wrt names this node, which differs between examples: a sum over them has no gradient "
                "with respect to it"
            ),
        ),
        (
            {"wrt": [4]},
            "invalid_field",
            "/wrt/0",
            (
                "node 4 (sum): wrt names this node, which differs between examples: a sum over them has no gradient "
                "with respect to it"
            ),
        ),
    ],
)
@pytest.mark.parametrize("path", ["/v1/batch", "/v1/plan"])
def test_invalid_reduce_block_or_wrt_is_refused(
    client: Client, path: str, changed: Json, code: str, pointer: str, sentence: str
) -> None:
    asked = SUM if path == "/v1/batch" else PLANNED
    report = problem(client.post(path, json=asked | changed), 422, code)
    assert (report["pointer"], report["detail"]) == (pointer, sentence)


def test_sum_of_integers_is_refused(client: Client) -> None:
    nodes = [*SUM["graph"]["nodes"], node("argmax", 1, axis=0)]
    body = SUM | {"graph": {"nodes": nodes}, "of": 6, "outputs": [6, 7]}
    report = problem(client.post("/v1/batch", json=body), 422, "dtype_mismatch")
    assert report["detail"].startswith("node 7 (argmax): is int64, but only floats can be summed over examples")


def test_block_over_the_budget_names_a_block_that_fits(client: Client) -> None:
    """The refusal names a block that fits `memory_budget`, and the call succeeds with it."""
    body = SUM | {"memory_budget": 1500, "block": 32}
    report = problem(client.post("/v1/batch", json=body), 413, "over_budget")
    assert report["got"] == "a block of 32"
    named = int(report["expected"].removeprefix("a block of at most "))
    answer = ask(client, memory_budget=1500, block=named)
    assert answer["stats"]["peak_bytes"] <= 1500
    np.testing.assert_allclose(numbers(answer, "values")[0], np.sum(R**2), 1e-12)


def test_mapped_leaf_needs_a_feed(client: Client) -> None:
    problem(client.post("/v1/batch", json=SUM | {"feeds": SUM["feeds"][:2]}), 422, "missing_feed")
