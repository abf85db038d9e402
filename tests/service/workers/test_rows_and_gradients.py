"""Rows of resident tensors as feeds, and stored gradients: as if the rows were sent and the gradients returned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.api.calls import calls, computing_calls
from service.api.media import SAFETENSORS
from tests.service.api.safetensors_support import body as packed
from tests.service.support import SQUARES, Json, feed, node, request
from tests.service.workers.test_resident_calls import Residents, answer, ask, refused, resident, without_stats

ROLES = ("feeds", "cotangents", "tangents", "vectors")
X = np.arange(20.0).reshape(10, 2)
W = {"graph": SQUARES["graph"]}
#: calls that compute gradients
DIFFERENTIATING = ["gradients", "vjp", "hvp", "hessian", "batch"]


def rows(i: int, name: str, *span: Any) -> Json:
    return resident(i, name) | {"rows": list(span)}


@pytest.mark.parametrize("name", sorted(computing_calls()))
def test_resident_rows_equal_a_sent_tensor(name: str) -> None:
    """Test every role; a repeated request names other rows."""
    body = next(iter(calls()[name].examples.values()))
    roles = [role for role in ROLES if role in body]
    residents, named, sent = Residents(), dict(body), dict(body)
    for start in (0, 2, 1):
        for role in roles:
            tensors = [(entry["node"], entry["tensor"]) for entry in body[role]]
            if any(not one["shape"] for _, one in tensors):
                continue
            arrays = {i: np.array(t["data"], t["dtype"]).reshape(t["shape"]) * (start + 1) for i, t in tensors}
            sent[role] = [feed(i, list(a.shape), a.ravel().tolist()) for i, a in arrays.items()]
            named[role] = [rows(i, f"{role}.{i}", start, start + a.shape[0]) for i, a in arrays.items()]
            for i, a in arrays.items():
                padding = np.full((start, *a.shape[1:]), np.nan), np.full((5, *a.shape[1:]), np.nan)
                residents.put(f"{role}.{i}", np.concatenate([padding[0], a, padding[1]]))
        assert without_stats(ask(named, residents, name)) == without_stats(ask(sent, residents, name))


def test_plan_is_shared_by_equal_numbers_of_rows() -> None:
    residents, graph = Residents(x=X), {"graph": SQUARES["graph"]}
    for start in range(8):
        content = answer(ask(graph | {"feeds": [rows(0, "x", start, start + 3)]}, residents))
        assert content["values"][0]["tensor"]["data"] == [np.sum(X[start : start + 3] ** 2)]
        assert content["stats"]["plan_cached"] is (start > 0)
    whole = answer(ask(graph | {"feeds": [resident(0, "x")]}, residents))
    assert whole["values"][0]["tensor"]["data"] == [np.sum(X**2)]


def test_cached_requests_distinguish_rows_from_whole_tensors() -> None:
    """The same number of rows of one tensor and of a whole other tensor are different requests."""
    residents = Residents(x=X, y=X[:3] + 100)
    graph = {"graph": SQUARES["graph"]}
    for _ in range(2):
        part = answer(ask(graph | {"feeds": [rows(0, "x", 4, 7)]}, residents))
        whole = answer(ask(graph | {"feeds": [resident(0, "y")]}, residents))
        assert part["values"][0]["tensor"]["data"] == [np.sum(X[4:7] ** 2)]
        assert whole["values"][0]["tensor"]["data"] == [np.sum((X[:3] + 100) ** 2)]
    for count in (3, 10):
        assert ask(graph | {"feeds": [rows(0, "x", 0, count)]}, residents).status == 200
        refused(ask(graph | {"feeds": [resident(0, "x") | {"rows": count}]}, residents), 422, "invalid_field")


def test_rows_are_checked_again_after_the_tensor_shrinks() -> None:
    residents, body = Residents(x=X), W | {"feeds": [rows(0, "x", 6, 9)]}
    assert [ask(body, residents).status for _ in range(2)] == [200, 200]
    residents.put("x", X[:8])
    report = refused(ask(body, residents), 422, "invalid_field")
    assert report["pointer"] == "/feeds/0/rows"


def test_rows_with_a_safetensors_body() -> None:
    body = request(node("parameter"), node("input"), node("mul", 0, 1), node("sum", 2), feeds=[rows(1, "x", 3, 5)])
    reply = ask(packed(body, {"feeds.0": np.ones((2, 2))}), Residents(x=X), body_type=SAFETENSORS)
    assert answer(reply)["values"][0]["tensor"]["data"] == [X[3:5].sum()]


def test_empty_row_range_is_an_empty_tensor() -> None:
    content = answer(ask(W | {"feeds": [rows(0, "x", 10, 10)]}, Residents(x=X)))
    assert content["values"][0]["tensor"]["data"] == [0.0]


@pytest.mark.parametrize(
    ("span", "pointer", "wanted"),
    [
        ([1], "/feeds/0/rows", "must be two whole numbers, start and stop, but is a list of 1"),
        ([1, 2, 3], "/feeds/0/rows", "must be two whole numbers, start and stop, but is a list of 3"),
        ([1, 11], "/feeds/0/rows", "must be within 0 to 10, with start at most stop, but is [1, 11]"),
        ([-1, 2], "/feeds/0/rows", "must be within 0 to 10, with start at most stop, but is [-1, 2]"),
        ([3, 2], "/feeds/0/rows", "must be within 0 to 10, with start at most stop, but is [3, 2]"),
        ([0, 1.5], "/feeds/0/rows/1", "must be a whole number, but is a number with a decimal point"),
        (["0", 1], "/feeds/0/rows/0", "must be a whole number, but is a string"),
        (1, "/feeds/0/rows", "must be a list, but is a whole number"),
    ],
)
def test_invalid_rows_are_refused(span: Any, pointer: str, wanted: str) -> None:
    """Send it twice: first alone, then after a valid request."""
    residents = Residents(x=X)
    for _ in range(2):
        report = refused(ask(W | {"feeds": [resident(0, "x") | {"rows": span}]}, residents), 422, "invalid_field")
        assert report["pointer"] == pointer
        assert wanted in report["detail"]
        assert report["node"] == 0
        assert ask(W | {"feeds": [rows(0, "x", 1, 2)]}, residents).status == 200


def test_rows_of_a_scalar_or_a_sent_tensor_are_refused() -> None:
    report = refused(ask(W | {"feeds": [rows(0, "w", 0, 1)]}, Residents(w=3.0)), 422, "invalid_field")
    assert report["detail"] == "node 0: feeds[0].rows must be absent for a 0-d tensor, but is [0, 1]"
    sent_tensor = feed(0, [2], [1, 2]) | {"rows": [0, 1]}
    report = refused(ask(W | {"feeds": [sent_tensor]}), 422, "invalid_field")
    assert report["pointer"] == "/feeds/0/rows"
    assert report["detail"] == "node 0: feeds[0].rows must be absent if tensor is given, but is [0, 1]"


def store_gradient(i: int, name: str = "g", **more: Any) -> Json:
    return {"node": i, "gradient": True, "tensor_id": name, **more}


@pytest.mark.parametrize("name", DIFFERENTIATING)
def test_stored_gradient_equals_the_answered_one(name: str) -> None:
    """Send it twice: the second request is cached."""
    body = next(iter(calls()[name].examples.values()))
    for _ in range(2):
        residents = Residents()
        reply = ask(body | {"store": [store_gradient(0)]}, residents, name)
        content = answer(reply)
        residents.commit(reply)
        entry = next(one for one in content["gradients"] if one["node"] == 0)
        assert residents.array("g").ravel().tolist() == entry["tensor"]["data"]
        assert list(residents.array("g").shape) == entry["tensor"]["shape"]
        stored = content["stored"][0]
        assert stored == {"node": 0, "tensor_id": "g", "etag": stored["etag"], "durable": True}


def test_value_and_gradient_of_a_node_are_stored_in_any_order() -> None:
    body, residents = SQUARES | {"outputs": [2]}, Residents()
    store = [
        store_gradient(0),
        {"node": 0, "tensor_id": "w"},
        store_gradient(0, "again"),
        {"node": 1, "tensor_id": "s"},
    ]
    for _ in range(2):
        reply = ask(body | {"store": store}, residents, "gradients")
        assert [one["tensor_id"] for one in answer(reply)["stored"]] == ["g", "w", "again", "s"]
        residents.commit(reply)
        values = {name: residents.array(name).tolist() for name in ("g", "w", "again", "s")}
        assert values == {"g": [2.0, 4.0], "w": [1.0, 2.0], "again": [2.0, 4.0], "s": [1.0, 4.0]}


@pytest.mark.parametrize(("reduce", "divisor"), [("sum", 1.0), ("mean", 6.0)])
def test_gradient_of_a_sum_over_rows(reduce: str, divisor: float) -> None:
    """The gradient of a training step, with parameters and data on the server."""
    w = np.array([0.5, -1.0])
    body = request(
        node("parameter"), node("input"), node("mul", 0, 1), node("sum", 2), node("square", 3),
        feeds=[resident(0, "w"), rows(1, "x", 2, 8)], mapped=[1], reduce=reduce, block=4, store=[store_gradient(0)],
    )  # fmt: skip
    residents = Residents(w=w, x=X)
    residents.commit(ask(body, residents, "batch"))
    expected = 2 * (X[2:8] @ w) @ X[2:8] / divisor
    np.testing.assert_allclose(residents.array("g"), expected, 1e-14)


@pytest.mark.parametrize(
    ("call", "changed", "why"),
    [
        ("forward", {}, "this call computes no gradients"),
        ("jacobian", {"outputs": [1]}, "this call computes no gradients"),
        ("batch", {"graph": {"nodes": [node("input"), *SQUARES["graph"]["nodes"][1:]]}, "mapped": [0]}, "no gradients"),
        (
            "gradients",
            {"store": [store_gradient(1)]},
            "the call computes gradients only with respect to the nodes in wrt",
        ),
    ],
)
def test_storing_an_uncomputed_gradient_is_refused(call: str, changed: Json, why: str) -> None:
    body = SQUARES | {"store": [store_gradient(0)]} | changed
    report = refused(ask(body, Residents(), call), 422, "invalid_field")
    assert report["pointer"] == "/store/0/gradient"
    assert why in report["detail"]


def test_gradient_field_must_be_boolean() -> None:
    body = SQUARES | {"store": [store_gradient(0) | {"gradient": "yes"}]}
    report = refused(ask(body, call="gradients"), 422, "invalid_field")
    assert report["detail"] == "node 0: store[0].gradient must be true or false, but is a string"
