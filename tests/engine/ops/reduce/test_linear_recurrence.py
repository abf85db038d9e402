"""Linear recurrences: a loop is the reference, for short slices and long ones, and for the decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.autodiff.vjp import vjp
from engine.autodiff.vmap import vmap
from engine.ops.reduce.cumulative import recurrence, recurrence_back
from tests.contract.cases import run_graph

Array = np.ndarray[Any, Any]
SHAPES = [
    ((5,), 0),
    ((1,), 0),
    ((0,), 0),
    ((9_000,), 0),
    ((3, 7), 1),
    ((2, 9_000), 1),
    ((40, 30), 0),
    ((2, 60, 3), 1),
    ((0, 4), 0),
]


def looped(a: Array, b: Array, axis: int) -> Array:
    """h[i] = a[i] · h[i − 1] + b[i]."""
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    h = b.copy()
    for i in range(1, len(h)):
        h[i] = a[i] * h[i - 1] + b[i]
    return np.moveaxis(h, 0, axis)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_recurrence_matches_a_loop(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, shape).astype(dtype) for _ in range(2))
    builder = Builder(registry())
    x, y = (builder.leaf(TensorType.of(v), i) for i, v in enumerate((a, b)))
    h = recurrence(x, y, axis)
    (decomposition,) = h.node.op.written_out(x, y, axis=axis)
    assert not [node for node in builder.nodes if node.op.internal and node is not h.node]
    actual, decomposed, back = run_graph(builder.graph([h, decomposition, recurrence_back(x, y, axis)]), {0: a, 1: b})
    expected = looped(a.astype("float64"), b.astype("float64"), axis)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(actual, expected, tolerance, tolerance)
    np.testing.assert_allclose(decomposed, expected, tolerance, tolerance)
    moved = np.roll(np.flip(a, axis), 1, axis).astype("float64")  # the first factor is not read
    np.testing.assert_allclose(
        back, np.flip(looped(moved, np.flip(b, axis).astype("float64"), axis), axis), tolerance, tolerance
    )


def test_first_factor_is_ignored() -> None:
    builder = Builder(registry())
    x, y = (builder.leaf(TensorType((3,), np.dtype("float64")), i) for i in range(2))
    feeds = {0: np.array([np.nan, 2.0, np.inf]), 1: np.array([1.0, 1.0, -1.0])}
    (actual,) = run_graph(builder.graph([recurrence(x, y, 0)]), feeds)
    np.testing.assert_array_equal(actual, [1.0, 3.0, np.inf])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_are_sums_over_paths(dtype: str) -> None:
    """h[i] = Σ a[j + 1] ⋯ a[i] b[j]: ∂/∂b are products of factors; ∂/∂a also has the previous h."""
    rng = np.random.default_rng(1)
    a, b, g = (rng.normal(size=6) + (1j * rng.normal(size=6) if dtype == "complex128" else 0) for _ in range(3))
    builder = Builder(registry())
    x, y, c = (builder.leaf(TensorType.of(v), i) for i, v in enumerate((a, b, g)))
    gradients = [gradient for gradient in vjp(builder, [(recurrence(x, y, 0), c)], [x, y]) if gradient is not None]
    grad_a, grad_b = run_graph(builder.graph(gradients), {0: a, 1: b, 2: g})
    paths = np.array([[np.prod(a[j + 1 : i + 1]) if j <= i else 0 for j in range(6)] for i in range(6)])
    np.testing.assert_allclose(grad_b, paths.conj().T @ g, 1e-12)
    before = np.concatenate([[0], (paths @ b)[:-1]])
    np.testing.assert_allclose(grad_a, (paths.conj().T @ g) * before.conj(), 1e-12, 1e-13)


@pytest.mark.parametrize("axis", [0, 1])
def test_batch_matches_single_examples(axis: int) -> None:
    """The examples share their factors."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(3, 5)), rng.normal(size=(4, 3, 5))
    builder = Builder(registry())
    x, y = (builder.leaf(TensorType((3, 5), np.dtype("float64")), name) for name in ("a", "b"))
    (actual,) = run_graph(vmap(builder.graph([recurrence(x, y, axis)]), {"b"}, 4), {"a": a, "b": b})
    np.testing.assert_allclose(actual, [looped(a, each, axis) for each in b], 1e-13)
