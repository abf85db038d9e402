"""Exponentials of pieces: what each takes of squares is its own, and derivatives go along."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import TensorType
from engine.graph.run_context import RunContext
from engine.oplib.exponentials import exponential_flops, exponentials, exponentials_bytes
from tests.engine.ops.matrices import real
from tests.engine.ops.run import Array

RUN = RunContext(np)


def complex_numbers(*shape: int) -> Array:
    return real(*shape) + 1j * real(*shape)


@pytest.mark.parametrize("degree", range(20))
def test_the_polynomial_is_taylors(degree: int) -> None:
    """Of a matrix that moves each component one place on, powers do not mix: the first row has the coefficients."""
    size = 0.5
    (y,) = exponentials(RUN, size * np.eye(20, k=1)[None])
    np.testing.assert_allclose(y[0, 0, degree], size**degree / math.factorial(degree), 1e-14 if degree < 19 else 1)


def test_each_matrix_is_scaled_by_its_own_norm() -> None:
    x = np.array([[[1.0]], [[-200.0]], [[0.0]], [[np.nan]], [[1.090863719290036]], [[5.371920351148152]], [[np.inf]]])
    (found,) = exponentials(RUN, x)
    np.testing.assert_allclose(found[:, 0, 0], np.where(np.isfinite(x), np.exp(x), np.nan)[:, 0, 0], 1e-13)


@pytest.mark.parametrize("make", [real, complex_numbers])
@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_none_depends_on_which_others_are_there(n: int, make: Callable[..., Any]) -> None:
    """Of norms from 0.01 to 80, with a direction each: to the bit."""
    x, g = make(9, n, n) * 3.0 ** np.arange(-4, 5)[:, None, None], make(9, n, n)
    found = exponentials(RUN, x, g)
    for i in range(9):
        np.testing.assert_array_equal(exponentials(RUN, x[i : i + 1], g[i : i + 1]), found[:, i : i + 1])


@pytest.mark.parametrize("size", [0.01, 1.0, 20.0])
def test_directions_go_along(size: float) -> None:
    """As the upper right block of the exponential of a block twice as large, which knows no rule of the product."""
    x, g, h = size * real(3, 4, 4) / 4, real(3, 4, 4), real(3, 4, 4)
    y, by_g, by_h = exponentials(RUN, x, g, h)
    for found, direction in ((by_g, g), (by_h, h)):
        (block,) = exponentials(RUN, np.block([[x, direction], [np.zeros_like(x), x]]))
        close(found, block[:, :4, 4:])
        close(y, block[:, :4, :4])


def close(found: Array, wanted: Array) -> None:
    """Beside the largest number of any."""
    np.testing.assert_allclose(found, wanted, 0, 1e-13 * np.abs(wanted).max())


def test_a_direction_that_is_not_finite_spoils_its_matrix_alone() -> None:
    x, g = real(3, 2, 2), real(3, 2, 2)
    g[1, 0, 0] = np.inf
    found = exponentials(RUN, x, g)
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[:, [0, 2]], exponentials(RUN, x[[0, 2]], g[[0, 2]]))


def test_operands_are_left_as_they_are() -> None:
    x, g = 9 * real(2, 3, 3), real(2, 3, 3)
    before = x.copy(), g.copy()
    exponentials(RUN, x, g)
    np.testing.assert_array_equal((x, g), before)


def test_work() -> None:
    assert exponential_flops((5, 3, 3)) == 5 * 18 * 27
    assert exponentials_bytes(TensorType((5, 0, 0), np.dtype(float)), 1) == 0
    one, twice = (exponentials_bytes(TensorType((400, 400), np.dtype(float)), directions) for directions in (0, 1))
    assert twice == 2 * one
