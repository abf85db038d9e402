"""Exponentials of pieces: what each takes of squares is its own."""

from __future__ import annotations

import numpy as np

from engine import TensorType
from engine.graph.run_context import RunContext
from engine.oplib.exponentials import exponential_flops, exponentials, exponentials_bytes


def test_each_matrix_is_scaled_by_its_own_norm() -> None:
    x = np.array([[[1.0]], [[-200.0]], [[0.0]], [[np.nan]], [[5.371920351148152]], [[np.inf]]])
    found = exponentials(RunContext(np), x.copy())
    np.testing.assert_allclose(found[:, 0, 0], np.where(np.isfinite(x), np.exp(x), np.nan)[:, 0, 0], 1e-13)
    for i in range(5):
        np.testing.assert_array_equal(exponentials(RunContext(np), x[i : i + 1].copy()), found[i : i + 1])


def test_work() -> None:
    assert exponential_flops((5, 3, 3)) == 5 * 24 * 27
    assert exponentials_bytes(TensorType((5, 0, 0), np.dtype(float)), 0, 3) == 0
    one, twice = (exponentials_bytes(TensorType((400, 400), np.dtype(float)), n, 0) for n in (400, 800))
    assert twice == 4 * one
