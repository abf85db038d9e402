"""Rows of resident tensors as feeds, and gradients that are kept: as if these had come, and those had gone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.api.calls import calls, computing_calls
from service.api.media import SAFETENSORS
from tests.service.api.safetensors_support import body as packed
from tests.service.support import SQUARES, Json, feed, node, request
from tests.service.workers.test_resident_calls import Kept, answer, ask, refused, resident, without_stats

ROLES = ("feeds", "cotangents", "tangents", "vectors")
X = np.arange(20.0).reshape(10, 2)
W = {"graph": SQUARES["graph"]}
#: those of the calls that make gradients
DIFFERENTIATING = ["gradients", "vjp", "hvp", "hessian", "batch"]


def rows(i: int, name: str, *span: Any) -> Json:
    return resident(i, name) | {"rows": list(span)}


@pytest.mark.parametrize("name", sorted(computing_calls()))
def test_rows_are_as_good_as_a_tensor_that_comes(name: str) -> None:
    """In every role; also when the request comes again with other rows."""
    body = next(iter(calls()[name].examples.values()))
    roles = [role for role in ROLES if role in body]
    kept, named, sent = Kept(), dict(body), dict(body)
    for start in (0, 2, 1):
        for role in roles:
            stated = [(entry["node"], entry["tensor"]) for entry in body[role]]
            if any(not one["shape"] for _, one in stated):
                continue
            arrays = {i: np.array(t["data"], t["dtype"]).reshape(t["shape"]) * (start + 1) for i, t in stated}
            sent[role] = [feed(i, list(a.shape), a.ravel().tolist()) for i, a in arrays.items()]
            named[role] = [rows(i, f"{role}.{i}", start, start + a.shape[0]) for i, a in arrays.items()]
            for i, a in arrays.items():
                around = np.full((start, *a.shape[1:]), np.nan), np.full((5, *a.shape[1:]), np.nan)
                kept.put(f"{role}.{i}", np.concatenate([around[0], a, around[1]]))
        assert without_stats(ask(named, kept, name)) == without_stats(ask(sent, kept, name))


def test_rows_are_a_view_and_the_plan_is_the_same_for_any_that_are_as_many() -> None:
    kept, graph = Kept(x=X), {"graph": SQUARES["graph"]}
    for start in range(8):
        found = answer(ask(graph | {"feeds": [rows(0, "x", start, start + 3)]}, kept))
        assert found["values"][0]["tensor"]["data"] == [np.sum(X[start : start + 3] ** 2)]
        assert found["stats"]["plan_cached"] is (start > 0)
    whole = answer(ask(graph | {"feeds": [resident(0, "x")]}, kept))
    assert whole["values"][0]["tensor"]["data"] == [np.sum(X**2)]


def test_the_known_request_is_found_by_the_number_of_rows() -> None:
    """As many rows of a tensor, and a whole one of that extent, are different requests."""
    kept = Kept(x=X, y=X[:3] + 100)
    graph = {"graph": SQUARES["graph"]}
    for _ in range(2):
        part = answer(ask(graph | {"feeds": [rows(0, "x", 4, 7)]}, kept))
        whole = answer(ask(graph | {"feeds": [resident(0, "y")]}, kept))
        assert part["values"][0]["tensor"]["data"] == [np.sum(X[4:7] ** 2)]
        assert whole["values"][0]["tensor"]["data"] == [np.sum((X[:3] + 100) ** 2)]
    for count in (3, 10):
        assert ask(graph | {"feeds": [rows(0, "x", 0, count)]}, kept).status == 200
        refused(ask(graph | {"feeds": [resident(0, "x") | {"rows": count}]}, kept), 422, "invalid_field")


def test_a_tensor_that_has_become_shorter_is_looked_at_again() -> None:
    kept, body = Kept(x=X), W | {"feeds": [rows(0, "x", 6, 9)]}
    assert [ask(body, kept).status for _ in range(2)] == [200, 200]
    kept.put("x", X[:8])
    report = refused(ask(body, kept), 422, "invalid_field")
    assert report["pointer"] == "/feeds/0/rows"


def test_beside_safetensors() -> None:
    body = request(node("parameter"), node("input"), node("mul", 0, 1), node("sum", 2), feeds=[rows(1, "x", 3, 5)])
    reply = ask(packed(body, {"feeds.0": np.ones((2, 2))}), Kept(x=X), body_type=SAFETENSORS)
    assert answer(reply)["values"][0]["tensor"]["data"] == [X[3:5].sum()]


def test_no_rows_are_an_empty_tensor() -> None:
    found = answer(ask(W | {"feeds": [rows(0, "x", 10, 10)]}, Kept(x=X)))
    assert found["values"][0]["tensor"]["data"] == [0.0]


@pytest.mark.parametrize(
    ("span", "pointer", "wanted"),
    [
        ([1], "/feeds/0/rows", "must be two whole numbers, start and stop, but is 1 of them"),
        ([1, 2, 3], "/feeds/0/rows", "must be two whole numbers, start and stop, but is 3 of them"),
        ([1, 11], "/feeds/0/rows", "must be within 0 to 10, the start no greater than the stop, but is [1, 11]"),
        ([-1, 2], "/feeds/0/rows", "must be within 0 to 10, the start no greater than the stop, but is [-1, 2]"),
        ([3, 2], "/feeds/0/rows", "must be within 0 to 10, the start no greater than the stop, but is [3, 2]"),
        ([0, 1.5], "/feeds/0/rows/1", "must be a whole number, but is a number with a decimal point"),
        (["0", 1], "/feeds/0/rows/0", "must be a whole number, but is a string"),
        (None, "/feeds/0/rows", "must be a list, but is null"),
    ],
)
def test_rows_that_are_none(span: Any, pointer: str, wanted: str) -> None:
    """The first time, and after requests that are answered."""
    kept = Kept(x=X)
    for _ in range(2):
        report = refused(ask(W | {"feeds": [resident(0, "x") | {"rows": span}]}, kept), 422, "invalid_field")
        assert report["pointer"] == pointer
        assert wanted in report["detail"]
        assert report["node"] == 0
        assert ask(W | {"feeds": [rows(0, "x", 1, 2)]}, kept).status == 200


def test_rows_of_what_has_none() -> None:
    report = refused(ask(W | {"feeds": [rows(0, "w", 0, 1)]}, Kept(w=3.0)), 422, "invalid_field")
    assert report["detail"] == "node 0: feeds[0].rows must be absent for a tensor that is 0-d, but is [0, 1]"
    beside = feed(0, [2], [1, 2]) | {"rows": [0, 1]}
    report = refused(ask(W | {"feeds": [beside]}), 422, "invalid_field")
    assert report["pointer"] == "/feeds/0/rows"
    assert report["detail"] == "node 0: feeds[0].rows must be absent beside a tensor, but is [0, 1]"


def keeping(i: int, name: str = "g", **more: Any) -> Json:
    return {"node": i, "gradient": True, "tensor_id": name, **more}


@pytest.mark.parametrize("name", DIFFERENTIATING)
def test_a_gradient_is_kept_as_it_is_answered(name: str) -> None:
    """The first time, and when the request is known."""
    body = next(iter(calls()[name].examples.values()))
    for _ in range(2):
        kept = Kept()
        reply = ask(body | {"store": [keeping(0)]}, kept, name)
        told = answer(reply)
        kept.commit(reply)
        entry = next(one for one in told["gradients"] if one["node"] == 0)
        assert kept.array("g").ravel().tolist() == entry["tensor"]["data"]
        assert list(kept.array("g").shape) == entry["tensor"]["shape"]
        stored = told["stored"][0]
        assert stored == {"node": 0, "tensor_id": "g", "etag": stored["etag"], "durable": True}


def test_value_and_gradient_of_one_node_in_any_order() -> None:
    body, kept = SQUARES | {"outputs": [2]}, Kept()
    store = [keeping(0), {"node": 0, "tensor_id": "w"}, keeping(0, "again"), {"node": 1, "tensor_id": "s"}]
    for _ in range(2):
        reply = ask(body | {"store": store}, kept, "gradients")
        assert [one["tensor_id"] for one in answer(reply)["stored"]] == ["g", "w", "again", "s"]
        kept.commit(reply)
        found = {name: kept.array(name).tolist() for name in ("g", "w", "again", "s")}
        assert found == {"g": [2.0, 4.0], "w": [1.0, 2.0], "again": [2.0, 4.0], "s": [1.0, 4.0]}


@pytest.mark.parametrize(("reduce", "divisor"), [("sum", 1.0), ("mean", 6.0)])
def test_the_gradient_of_a_sum_over_rows(reduce: str, divisor: float) -> None:
    """A step's gradient, with parameters and data that stay with the server."""
    w = np.array([0.5, -1.0])
    body = request(
        node("parameter"), node("input"), node("mul", 0, 1), node("sum", 2), node("square", 3),
        feeds=[resident(0, "w"), rows(1, "x", 2, 8)], mapped=[1], reduce=reduce, block=4, store=[keeping(0)],
    )  # fmt: skip
    kept = Kept(w=w, x=X)
    kept.commit(ask(body, kept, "batch"))
    expected = 2 * (X[2:8] @ w) @ X[2:8] / divisor
    np.testing.assert_allclose(kept.array("g"), expected, 1e-14)


@pytest.mark.parametrize(
    ("call", "changed", "why"),
    [
        ("forward", {}, "no gradients come of this call"),
        ("jacobian", {"outputs": [1]}, "no gradients come of this call"),
        ("batch", {"graph": {"nodes": [node("input"), *SQUARES["graph"]["nodes"][1:]]}, "mapped": [0]}, "no gradients"),
        ("gradients", {"store": [keeping(1)]}, "there is one by each node of wrt alone"),
    ],
)
def test_a_gradient_that_is_not_made_is_not_kept(call: str, changed: Json, why: str) -> None:
    body = SQUARES | {"store": [keeping(0)]} | changed
    report = refused(ask(body, Kept(), call), 422, "invalid_field")
    assert report["pointer"] == "/store/0/gradient"
    assert why in report["detail"]


def test_a_word_in_its_place() -> None:
    body = SQUARES | {"store": [keeping(0) | {"gradient": "yes"}]}
    report = refused(ask(body, call="gradients"), 422, "invalid_field")
    assert report["detail"] == "node 0: store[0].gradient must be true or false, but is a string"
