"""Exponentials of pieces: what each takes of squares is its own, and derivatives go along."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import TensorType
from engine.autodiff.vjp import vjp
from engine.ir.graph import Value
from engine.ir.run_context import RunContext
from engine.ops.linalg.matrix_exp import (
    ExponentialSlope,
    _halvings,
    exponential_flops,
    exponential_slope,
    exponentials,
    exponentials_bytes,
)
from tests.engine.ops.matrices import evaluate, real
from tests.engine.ops.run import Array

linalg = pytest.importorskip("scipy.linalg")
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


@pytest.mark.parametrize("directions", [0, 1])
def test_a_matrix_is_halved_until_what_the_polynomial_leaves_out_is_no_more_than_rounding(directions: int) -> None:
    """And not once more. With a direction, what its derivative leaves out counts as well."""
    norms = np.concatenate([np.linspace(0.01, 5, 500), 2.0 ** np.arange(9), [0.0]])
    x = np.zeros((len(norms), 2, 2))
    x[:, 1] = norms[:, None] / 2
    times, lost = _halvings(np, x, [x] * directions)
    assert not lost.any()

    def left_out(norm: float) -> float:
        return sum(norm**k / math.factorial(k) for k in range(19 - directions, 40))

    for norm, often in zip(norms.tolist(), times.tolist(), strict=True):
        assert left_out(norm / 2.0**often) <= 2.0**-53
        assert not often or left_out(norm / 2.0 ** (often - 1)) > 2.0**-55


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


def slopes(x: Array, g: Array) -> Array:
    """SciPy's, matrix by matrix."""
    return np.array([linalg.expm_frechet(a, b, compute_expm=False) for a, b in zip(x, g, strict=True)])


def test_the_slope_is_scipys_along_directions_of_any_size() -> None:
    """Of each matrix its own; of a direction of zeros, zeros."""
    x, g = real(4, 3, 3), real(4, 3, 3)
    sizes = np.array([1e250, 1.0, 1e-250, 0.0])[:, None, None]
    several = x[:, None], g[:, None]
    found, written = evaluate(lambda a, b: [exponential_slope(a, b), *ExponentialSlope().written_out(a, b)], *several)
    np.testing.assert_allclose(found[:, 0], slopes(x, g), 1e-12, 1e-14)
    np.testing.assert_allclose(written, found, 1e-12, 1e-14)
    (written,) = evaluate(lambda a, b: ExponentialSlope().written_out(a, b), x[0], g[0])
    np.testing.assert_allclose(written, found[0, 0], 1e-12, 1e-14)
    (scaled,) = evaluate(lambda a, b: [exponential_slope(a, b)], x, g * sizes)
    np.testing.assert_allclose(scaled, slopes(x, g) * sizes, 1e-11, 0)
    assert evaluate(lambda a, b: [exponential_slope(a, b)], x[:, :0, :0], g[:, :0, :0])[0].shape == (4, 0, 0)


def test_the_slope_s_derivatives_are_its_transpose_and_its_difference() -> None:
    x, g, h, way = (real(2, 3, 3) for _ in range(4))

    def gradients(a: Value, b: Value, c: Value) -> list[Value]:
        return [found for found in vjp(a.builder, [(exponential_slope(a, b), c)], [a, b]) if found is not None]

    by_x, by_g = (found[:, 0] for found in evaluate(gradients, x[:, None], g[:, None], h[:, None]))
    np.testing.assert_allclose(by_g, slopes(x.swapaxes(-1, -2), h), 1e-12, 1e-14)
    ahead, behind = (slopes(x + step * way, g) for step in (1e-5, -1e-5))
    difference = (h * (ahead - behind)).sum((-1, -2)) / 2e-5
    np.testing.assert_allclose((by_x * way).sum((-1, -2)), difference, 1e-7, 1e-8)


def test_work() -> None:
    assert exponential_flops((5, 3, 3)) == 5 * 18 * 27
    assert exponentials_bytes(TensorType((5, 0, 0), np.dtype(float)), 1) == 0
    one, twice = (exponentials_bytes(TensorType((400, 400), np.dtype(float)), directions) for directions in (0, 1))
    assert twice == 2 * one
