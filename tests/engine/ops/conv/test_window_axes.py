"""Pooling over any number of axes: loops over windows are the reference, for every placing."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.ir.errors import BadAttribute, ShapeMismatch
from engine.ops.conv.windows import adaptive_ranges, tap_positions
from tests.contract.cases import run_graph
from tests.engine.ops.run import grads, run

Array = np.ndarray[Any, Any]


def spans(n: int, size: int, stride: int, padding: int, dilation: int, ceiling: bool) -> list[range]:
    """The positions of each window's taps, including those in the padding."""
    room = n + 2 * padding - dilation * (size - 1) - 1
    count = (math.ceil(room / stride) if ceiling else room // stride) + 1
    starts = [i * stride - padding for i in range(count)]
    return [range(s, s + dilation * size, dilation) for s in starts if not ceiling or s < n]


def pooled(x: Array, kind: str, windows: list[list[range]], padding: list[int]) -> tuple[Array, Array]:
    """The value, and the gradient of its sum."""
    value, gradient = np.empty([len(each) for each in windows]), np.zeros(x.shape)
    for index in np.ndindex(value.shape):
        taps = list(product(*(each[i] for each, i in zip(windows, index, strict=True))))
        inside = [t for t in taps if all(0 <= p < n for p, n in zip(t, x.shape, strict=True))]
        if kind == "max":
            first = max(inside, key=lambda t: x[t])
            value[index] = x[first]
            gradient[first] += 1
        else:
            counted = [t for t in taps if all(p < n + m for p, n, m in zip(t, x.shape, padding, strict=True))]
            value[index] = sum(x[t] for t in inside) / len(counted)
            for t in inside:
                gradient[t] += 1 / len(counted)
    return value, gradient


PLACED = [*product([1, 2, 3], [1, 2, 3], [0, 1], [1, 2], [False, True])]


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_on_one_axis(kind: str) -> None:
    x = np.round(np.random.default_rng(0).normal(size=9), 0)  # with ties
    for size, stride, padding, dilation, ceiling in PLACED:
        if 2 * padding > size or (kind == "avg" and dilation > 1):
            continue
        windows = [spans(9, size, stride, padding, dilation, ceiling)]
        extra = {"dilation": [dilation]} if kind == "max" else {}
        attrs = {"kernel_size": [size], "stride": [stride], "padding": [padding], "ceiling": ceiling, **extra}
        value, (gradient,) = grads(f"{kind}_pool1d", x, **attrs)
        for actual, expected in zip((value, gradient), pooled(x, kind, windows, [padding]), strict=True):
            np.testing.assert_allclose(actual, expected, 1e-12, err_msg=str(attrs))


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling_on_three_axes(kind: str) -> None:
    x = np.round(np.random.default_rng(0).normal(size=(4, 5, 6)), 0)
    size, stride, padding = [2, 3, 2], [1, 2, 3], [1, 0, 1]
    windows = [spans(*numbers, 1, True) for numbers in zip(x.shape, size, stride, padding, strict=True)]
    attrs = {"kernel_size": size, "stride": stride, "padding": padding, "ceiling": True}
    value, (gradient,) = grads(f"{kind}_pool3d", x, **attrs)
    for actual, expected in zip((value, gradient), pooled(x, kind, windows, padding), strict=True):
        np.testing.assert_allclose(actual, expected, 1e-12)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 9, 13])
def test_adaptive_windows(kind: str, size: int) -> None:
    x = np.round(np.random.default_rng(0).normal(size=(9, 4)), 0)
    ends = [[(i * n // s, -((i + 1) * n // -s)) for i in range(s)] for n, s in zip(x.shape, (size, 3), strict=True)]
    value, (gradient,) = grads(f"adaptive_{kind}_pool", x, sizes=[size, 3])
    windows = [[range(*each) for each in axis] for axis in ends]
    for actual, expected in zip((value, gradient), pooled(x, kind, windows, [0, 0]), strict=True):
        np.testing.assert_allclose(actual, expected, 1e-12)
    builder = Builder(registry())
    actual = run_graph(builder.graph(list(adaptive_ranges(builder.full((), 0.0, "float64"), 9, size))), {})
    np.testing.assert_array_equal(np.hstack(actual), ends[0])


def test_integers_and_nan() -> None:
    x = np.array([[1, 9, -4, -4]], "int8")
    np.testing.assert_array_equal(run("max_pool1d", x, kernel_size=[2], padding=[1]), [[1, 9, -4]])
    assert run("avg_pool1d", x, kernel_size=[2]).dtype == "float64"
    value, (gradient,) = grads("max_pool1d", np.array([1.0, math.nan, math.nan, 5.0]), kernel_size=[4])
    assert math.isnan(value[0])
    np.testing.assert_array_equal(gradient, [0, 1, 0, 0])


def test_invalid_windows_are_refused() -> None:
    x = np.zeros((2, 5))
    with pytest.raises(BadAttribute, match="padding must be at most half the kernel size"):
        run("max_pool1d", x, kernel_size=[3], padding=[2])
    with pytest.raises(BadAttribute, match="dilation must hold one number for the spatial axis"):
        run("max_pool1d", x, kernel_size=[3], dilation=[1, 1])
    with pytest.raises(ShapeMismatch, match=r"room for windows of \[7\]"):
        run("max_pool1d", x, kernel_size=[3], dilation=[3])
    with pytest.raises(ShapeMismatch, match="3 spatial axes at the end"):
        run("avg_pool3d", x, kernel_size=[1, 1, 1])
    with pytest.raises(BadAttribute, match="sizes must have 1 to 2 entries, but has 3 entries"):
        run("adaptive_avg_pool", x, sizes=[1, 1, 1])


@pytest.mark.parametrize(
    ("count", "taps", "stride", "dilation"), [(4, 3, 2, 1), (1, 3, 2, 3), (3, 1, 1, 2), (2, 4, 5, 4)]
)
def test_tap_positions(count: int, taps: int, stride: int, dilation: int) -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((9,), np.dtype(float)), 0)
    positions = tap_positions(x, count, taps, stride, dilation)
    (actual,) = run_graph(builder.graph([positions]), {0: np.zeros(9)})
    np.testing.assert_array_equal(actual, stride * np.arange(count)[:, None] + dilation * np.arange(taps))
