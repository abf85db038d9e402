"""Losses against closed forms: tails, extremes, all shapes, and error messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.run import Array, error, grads, run

RNG = np.random.default_rng(0)


def combined(losses: Array, reduction: str) -> Any:
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()


def log_softmax(x: Array) -> Array:
    shifted = np.asarray(x, "longdouble") - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("rows", [(), (1,), (4,), (2, 3)], ids=str)
def test_cross_entropy_of_indices_matches_one_hot_targets(rows: tuple[int, ...], reduction: str) -> None:
    logits, index = 5 * RNG.normal(size=(*rows, 4)), RNG.integers(0, 4, rows)
    hot = np.eye(4)[index]
    expected = combined(-(hot * log_softmax(logits)).sum(axis=-1), reduction)
    value, (by_index,) = grads("cross_entropy", logits, index, reduction=reduction)
    value_of_one_hot, (by_distribution, by_targets) = grads("cross_entropy", logits, hot, reduction=reduction)
    count = max(int(np.prod(rows)), 1) if reduction == "mean" else 1
    np.testing.assert_allclose(value, expected.astype("float64"), 1e-12, 1e-14)
    np.testing.assert_allclose(value_of_one_hot, value, 1e-14)
    slope = (np.exp(log_softmax(logits)) - hot) / count
    np.testing.assert_allclose(by_index, slope.astype("float64"), 1e-12, 1e-14)
    np.testing.assert_allclose(by_distribution, by_index, 1e-13, 1e-15)
    np.testing.assert_allclose(by_targets, (-log_softmax(logits) / count).astype("float64"), 1e-12, 1e-14)


def test_cross_entropy_at_extreme_logits_is_exact() -> None:
    logits = np.array([[1e4, -1e4], [1e4, -1e4], [-1e4, -1e4], [30.0, 0.0]])
    value, (slope,) = grads("cross_entropy", logits, np.array([0, 1, 0, 0]), reduction="none")
    np.testing.assert_allclose(value, [0, 2e4, np.log(2), np.log1p(np.exp(-30))], 1e-15, 1e-16)
    tail = np.exp(-30) / (1 + np.exp(-30))
    np.testing.assert_allclose(slope, [[0, 0], [1, -1], [-0.5, 0.5], [-tail, tail]], 1e-15, 1e-15)


def test_cross_entropy_with_a_logit_of_minus_infinity() -> None:
    value, (slope,) = grads("cross_entropy", np.array([[0.0, -np.inf, 0.0]]), np.array([2]))
    np.testing.assert_allclose(value, np.log(2))
    np.testing.assert_allclose(slope, [[0.5, 0, -0.5]])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_class_indices_of_any_integer_dtype(dtype: str) -> None:
    logits = np.log([[1.0, 3.0]])
    np.testing.assert_allclose(run("cross_entropy", logits, np.array([1], dtype)), np.log(4 / 3))


def test_cross_entropy_of_no_rows() -> None:
    logits, index = np.ones((0, 3)), np.ones(0, "int64")
    assert np.isnan(run("cross_entropy", logits, index))
    assert run("cross_entropy", logits, index, reduction="sum") == 0
    assert run("cross_entropy", logits, index, reduction="none").shape == (0,)


@pytest.mark.parametrize("index", [-1, 3])
def test_class_indices_out_of_range_are_refused(index: int) -> None:
    refused = error("cross_entropy", np.ones((2, 3)), np.array([0, index]))
    assert (refused.code, refused.node, refused.operand) == ("index_out_of_range", 2, 1)
    assert "in [0, 3)" in refused.detail


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)], ids=str)
def test_mse_loss(shape: tuple[int, ...], reduction: str) -> None:
    if reduction == "mean" and 0 in shape:
        assert np.isnan(run("mse_loss", np.ones(shape), np.ones(shape)))
        return
    x, y = RNG.normal(size=shape), RNG.normal(size=shape)
    value, (dx, dy) = grads("mse_loss", x, y, reduction=reduction)
    np.testing.assert_allclose(value, combined((x - y) ** 2, reduction), 1e-14)
    np.testing.assert_allclose(dx, 2 * (x - y) / (x.size if reduction == "mean" else 1), 1e-14)
    np.testing.assert_allclose(dy, -dx)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_bce_with_logits(reduction: str) -> None:
    x, y = 5 * RNG.normal(size=(3, 4)), RNG.uniform(size=(3, 4))
    count = x.size if reduction == "mean" else 1
    sigma = 1 / (1 + np.exp(-x))
    value, (dx, dy) = grads("bce_with_logits", x, y, reduction=reduction)
    np.testing.assert_allclose(
        value, combined(y * np.logaddexp(0, -x) + (1 - y) * np.logaddexp(0, x), reduction), 1e-13
    )
    np.testing.assert_allclose(dx, (sigma - y) / count, 1e-12, 1e-14)
    np.testing.assert_allclose(dy, -x / count, 1e-12)


def test_bce_is_accurate_in_both_tails() -> None:
    x, y = np.array([40.0, -40, 1e4, -1e4, 1e4, -1e4]), np.array([1.0, 0, 1, 0, 0, 1])
    value, (dx, _) = grads("bce_with_logits", x, y, reduction="none")
    tail = np.exp(-40.0)
    np.testing.assert_allclose(value, [tail, tail, 0, 0, 1e4, 1e4], 1e-15)
    np.testing.assert_allclose(dx, [-tail, tail, 0, 0, 1, -1], 1e-15)


def test_float16_intermediates_do_not_overflow() -> None:
    x, y = np.full(4, 1000, "float16"), np.full(4, 800, "float16")
    assert run("mse_loss", x, y).dtype == np.float16
    assert run("mse_loss", x, y) == np.float16(40000)
    rows = np.zeros((5000, 2), "float16")
    np.testing.assert_allclose(run("cross_entropy", rows, np.zeros(5000, "int64"), reduction="sum"), 3466)


LOGITS = np.ones((2, 3))


@pytest.mark.parametrize(
    ("name", "operands", "attrs", "code", "sentence"),
    [
        (
            "cross_entropy",
            (np.ones(()), np.ones((), "int64")),
            {},
            "shape_mismatch",
            "operand 0 (logits) must have an axis of classes, but has shape []",
        ),
        (
            "cross_entropy",
            (LOGITS.astype("int64"), np.ones(2, "int64")),
            {},
            "dtype_mismatch",
            "operand 0 (logits) must be of dtype float16, float32, float64, but is int64",
        ),
        (
            "cross_entropy",
            (LOGITS, np.ones(2, bool)),
            {},
            "dtype_mismatch",
            (
                "operand 1 (targets) must be of dtype int8, uint8, int16, int32, uint32, int64, float16, float32, "
                "float64, but is bool"
            ),
        ),
        (
            "cross_entropy",
            (LOGITS, np.ones((2, 3), "int64")),
            {},
            "shape_mismatch",
            "operand 1 (targets) must have shape [2], one class index for each row of logits, but has shape [2, 3]",
        ),
        (
            "cross_entropy",
            (LOGITS, np.ones(2)),
            {},
            "shape_mismatch",
            "operand 1 (targets) must have shape [2, 3], one distribution for each row of logits, but has shape [2]",
        ),
        (
            "cross_entropy",
            (LOGITS, LOGITS),
            {"reduction": "max"},
            "bad_attribute",
            "attribute reduction must be one of mean, sum, none, but is “max”",
        ),
        (
            "mse_loss",
            (LOGITS, np.ones(3)),
            {},
            "shape_mismatch",
            "operand 1 (y) must have shape [2, 3], that of x, but has shape [3]",
        ),
        (
            "bce_with_logits",
            (LOGITS, np.ones((2, 3), "int64")),
            {},
            "dtype_mismatch",
            "operand 1 (y) must be of dtype float16, float32, float64, but is int64",
        ),
    ],
)
def test_invalid_operands_are_refused(
    name: str, operands: tuple[Array, ...], attrs: dict[str, Any], code: str, sentence: str
) -> None:
    refused = error(name, *operands, **attrs)
    assert refused.code == code
    assert refused.detail == f"node 2 ({name}): {sentence}"
