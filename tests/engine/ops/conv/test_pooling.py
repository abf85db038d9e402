"""Pooling: windows are reduced along one axis and then the other, and the gradient goes to the first maximum."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import registry
from engine.ir.errors import BadAttribute, ShapeMismatch
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.conv.pooling import Pooling, pool_windows, reduce_windows, scatter_to_maxima
from tests.engine.ops.values import Array

RNG = np.random.default_rng(17)
RUN = RunContext(np)
POOL = registry().ops["max_pool2d"]
assert isinstance(POOL, Pooling)
PLACES = [
    {"kernel_size": (2, 3), "stride": (2, 3), "padding": (0, 0)},
    {"kernel_size": (3, 2), "stride": (1, 2), "padding": (1, 1)},
    {"kernel_size": (3, 3), "stride": (2, 1), "padding": (0, 1)},
    {"kernel_size": (1, 1), "stride": (2, 2), "padding": (0, 0)},
    {"kernel_size": (5, 6), "stride": (1, 1), "padding": (2, 3)},
]


def window_elements(place: dict[str, Any], h: int, w: int) -> list[tuple[tuple[int, int], list[tuple[int, int]]]]:
    """Each position, and the elements of its window in row-major order."""
    (a, b), (s, t), (p, q) = place["kernel_size"], place["stride"], place["padding"]
    result = []
    for i, j in product(range((h + 2 * p - a) // s + 1), range((w + 2 * q - b) // t + 1)):
        rows = [r for r in range(i * s - p, i * s - p + a) if 0 <= r < h]
        columns = [c for c in range(j * t - q, j * t - q + b) if 0 <= c < w]
        result.append(((i, j), [*product(rows, columns)]))
    return result


def pooled_shape(place: dict[str, Any], x: Array) -> tuple[int, ...]:
    (*_, (last, _)) = window_elements(place, *x.shape[-2:])
    return (*x.shape[:-2], last[0] + 1, last[1] + 1)


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize(("ufunc", "start"), [(np.maximum, -np.inf), (np.add, 0.0)], ids=["max", "sum"])
def test_windows_are_reduced(ufunc: Any, start: float, place: dict[str, Any]) -> None:
    x = RNG.integers(-9, -1, (2, 5, 6)).astype(float)
    out = np.full(pooled_shape(place, x), 77.0)
    reduce_windows(RUN, ufunc, x, out, pool_windows(**place), start)
    for (i, j), elements in window_elements(place, 5, 6):
        for n in range(2):
            assert out[n, i, j] == ufunc.reduce([x[n, r, c] for r, c in elements], initial=start)


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_gradient_goes_to_the_first_maximum(place: dict[str, Any], dtype: str, nan: bool) -> None:
    """First in row-major order, though the search goes by rows and then by columns; a NaN is a maximum."""
    x = RNG.integers(0, 3, (2, 5, 6)).astype(dtype)  # with many ties
    if nan:
        x[RNG.random(x.shape) < 0.2] = np.nan
    g = RNG.integers(1, 9, pooled_shape(place, x)).astype(dtype)
    expected, out = np.zeros(x.shape), np.full(x.shape, 7, dtype)
    for n, ((i, j), elements) in product(range(2), window_elements(place, 5, 6)):
        values = [float(x[n, r, c]) for r, c in elements]
        first = next((k for k, v in enumerate(values) if np.isnan(v)), None)
        r, c = elements[values.index(max(values)) if first is None else first]
        expected[n, r, c] += float(g[n, i, j])
    scatter_to_maxima(RUN, g, x, out, pool_windows(**place))
    np.testing.assert_array_equal(out, expected)


def test_infinite_cotangent_makes_no_nan_elsewhere() -> None:
    x, out = np.array([[1.0, 2.0], [3.0, 0.0]]), np.empty((2, 2))
    scatter_to_maxima(
        RUN, np.array([[np.inf]]), x, out, pool_windows(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))
    )
    assert out.tolist() == [[0.0, 0.0], [np.inf, 0.0]]


def canonical(x: tuple[int, ...], **attrs: Any) -> dict[str, Any]:
    stated = {"kernel_size": (2, 2), "stride": None, "padding": (0, 0), **attrs}
    return POOL.canonical(stated, TensorType(x, np.dtype("float32")))


def test_stride_defaults_to_the_kernel_size_and_is_shortened() -> None:
    assert canonical((6, 6))["stride"] == (2, 2)
    assert canonical((6, 6), stride=(3, 1))["stride"] == (3, 1)
    assert canonical((3, 3), stride=(900, 3))["stride"] == canonical((3, 3), stride=(2, 2))["stride"], "one window"


@pytest.mark.parametrize(
    ("x", "attrs", "said"),
    [
        ((6, 6), {"padding": (0, 2)}, r"padding must be at most half the kernel size \[2, 2\], but is \[0, 2\]"),
        ((6, 6), {"kernel_size": (2,), "stride": (1, 1)}, "kernel_size must hold one number for each"),
        ((6,), {}, r"operand 0 \(x\) must have two spatial axes at the end"),
        ((0, 6), {}, r"operand 0 \(x\) must have two spatial axes at the end"),
        ((6, 1), {}, r"the windows span \[2, 2\], more than the extents \[6, 1\]"),
    ],
)
def test_invalid_windows_are_refused(x: tuple[int, ...], attrs: dict[str, Any], said: str) -> None:
    with pytest.raises((BadAttribute, ShapeMismatch), match=said):
        canonical(x, **attrs)
    assert canonical((6, 6), padding=(1, 1))["padding"] == (1, 1)
