"""Cumulative ops over an axis, from either end: NumPy is the reference, for values and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.autodiff.vmap import vmap
from engine.ops.reduce.cumulative import shifted
from tests.contract.cases import run_graph
from tests.engine.ops.run import grads, run
from tests.engine.ops.values import come_to

Array = np.ndarray[Any, Any]
REFERENCE: dict[str, Callable[[Array], Any]] = {
    "cumsum": np.sum,
    "cumprod": np.prod,
    "cummax": np.max,
    "cummin": np.min,
    "cumlogsumexp": lambda x: np.log(np.sum(np.exp(x))),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("op", REFERENCE)
def test_each_entry_reduces_all_up_to_it(op: str, reverse: bool) -> None:
    x = np.random.default_rng(0).normal(size=(3, 40))
    parts = [x[:, i:] if reverse else x[:, : i + 1] for i in range(40)]
    expected = np.stack([[REFERENCE[op](row) for row in part] for part in parts], 1)
    np.testing.assert_allclose(run(op, x, axis=1, reverse=reverse), expected, 1e-12)
    np.testing.assert_allclose(run(op, x.T, axis=0, reverse=reverse), expected.T, 1e-12)


@pytest.mark.parametrize("op", ["cummax", "cummin"])
def test_nan_wins_and_takes_the_gradient(op: str) -> None:
    x = np.array([1.0, math.nan, 5.0, math.nan, -7.0])
    value, (gradient,) = grads(op, x, axis=0, cotangent=[1, 2, 4, 8, 16])
    np.testing.assert_array_equal(value, [1.0, *[math.nan] * 4])
    np.testing.assert_array_equal(gradient, [1, 30, 0, 0, 0])


def test_integer_result_dtypes() -> None:
    x = np.array([3, 1, 4], "int8")
    for op, expected in {"cummax": "int8", "cummin": "int8", "cumprod": "int64", "cumlogsumexp": "float64"}.items():
        assert run(op, x, axis=0).dtype == expected
    np.testing.assert_array_equal(run("cumprod", np.array([100, 100, 100], "int8"), axis=0), [100, 10**4, 10**6])
    np.testing.assert_array_equal(run("cummax", np.array([False, True, False]), axis=0), [False, True, True])


def test_cumlogsumexp_stays_in_range_and_shares_infinities() -> None:
    x = np.array([-math.inf, 1000.0, 1000.0, -1000.0, math.inf, 3.0, math.inf])
    value, (gradient,) = grads("cumlogsumexp", x, axis=0)
    doubled = 1000 + math.log(2)
    np.testing.assert_allclose(value, [-math.inf, 1000.0, doubled, doubled, *[math.inf] * 3], 1e-15)
    np.testing.assert_allclose(gradient, [0, 1 + 0.5 + 0.5, 0.5 + 0.5, 0, 1 + 1 + 0.5, 0, 0.5], 1e-12)
    _, (zeros,) = grads("cumlogsumexp", np.full(3, -math.inf), axis=0)
    np.testing.assert_array_equal(zeros, [0, 0, 0])


def test_gradient_of_cumprod_with_several_zeros() -> None:
    x = np.array([2.0, 0.0, 3.0, 0.0, 5.0])
    _, (gradient,) = grads("cumprod", x, axis=0)
    np.testing.assert_array_equal(gradient, [1, 2 + 2 * 3, 0, 0, 0])


@pytest.mark.parametrize(("by", "expected"), [(1, [9, 1, 2]), (-1, [2, 3, 9]), (2, [9, 9, 1]), (5, [9] * 3)])
def test_shifted_fills_the_gap(by: int, expected: list[float]) -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((3,), np.dtype("float64")), 0)
    actual = run_graph(builder.graph([shifted(x, 0, by, fill=9.0)]), {0: np.array([1.0, 2.0, 3.0])})[0]
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("by", [-9, -2, -1, 0, 1, 2, 9])
@pytest.mark.parametrize("axis", range(3))
def test_shifted_fills_with_zeros_by_default(axis: int, by: int) -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 4))
    moved = np.moveaxis(np.zeros(x.shape), axis, 0)
    for i, row in enumerate(np.moveaxis(x, axis, 0)):
        if 0 <= i + by < len(moved):
            moved[i + by] = row
    np.testing.assert_array_equal(come_to(lambda v: shifted(v, axis, by), x), np.moveaxis(moved, 0, axis))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_batching_shifts_the_axis(axis: int, reverse: bool) -> None:
    x = np.random.default_rng(4).normal(size=(5, 2, 3))
    builder = Builder(registry())
    value = builder.leaf(TensorType((2, 3), x.dtype), "x")
    graph = vmap(builder.graph([value.cumsum(axis=axis, reverse=reverse)]), {"x"}, 5)
    (actual,) = run_graph(graph, {"x": x})
    flipped = np.flip(x, axis + 1) if reverse else x
    expected = np.cumsum(flipped, axis + 1)
    np.testing.assert_allclose(actual, np.flip(expected, axis + 1) if reverse else expected, 1e-14)
