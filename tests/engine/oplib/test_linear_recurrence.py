"""Linear recurrences: a loop is the reference, for short slices and long ones, and for what is written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.oplib.linear_recurrence import recurrence, recurrence_back
from tests.contract.cases import run_graph

Array = np.ndarray[Any, Any]
SHAPES = [((5,), 0), ((1,), 0), ((0,), 0), ((9_000,), 0), ((3, 7), 1), ((40, 30), 0), ((2, 60, 3), 1), ((0, 4), 0)]


def looped(a: Array, b: Array, axis: int) -> Array:
    """h[i] = a[i] · h[i − 1] + b[i]."""
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    h = b.copy()
    for i in range(1, len(h)):
        h[i] = a[i] * h[i - 1] + b[i]
    return np.moveaxis(h, 0, axis)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_it_is_a_loop(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, shape).astype(dtype) for _ in range(2))
    builder = Builder(registry())
    x, y = (builder.leaf(TensorType.of(v), i) for i, v in enumerate((a, b)))
    h = recurrence(x, y, axis)
    (public,) = h.node.op.written_out(x, y, axis=axis)
    assert not [node for node in builder.nodes if node.op.internal and node is not h.node]
    found, said, back = run_graph(builder.graph([h, public, recurrence_back(x, y, axis)]), {0: a, 1: b})
    expected = looped(a.astype("float64"), b.astype("float64"), axis)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(found, expected, tolerance, tolerance)
    np.testing.assert_allclose(said, expected, tolerance, tolerance)
    moved = np.roll(np.flip(a, axis), 1, axis).astype("float64")  # the first factor is not read
    np.testing.assert_allclose(
        back, np.flip(looped(moved, np.flip(b, axis).astype("float64"), axis), axis), tolerance, tolerance
    )


def test_what_is_not_read_may_be_anything() -> None:
    builder = Builder(registry())
    x, y = (builder.leaf(TensorType((3,), np.dtype("float64")), i) for i in range(2))
    feeds = {0: np.array([np.nan, 2.0, np.inf]), 1: np.array([1.0, 1.0, -1.0])}
    (found,) = run_graph(builder.graph([recurrence(x, y, 0)]), feeds)
    np.testing.assert_array_equal(found, [1.0, 3.0, np.inf])
