"""Matrix exponentials of chunks: each matrix has its own number of squarings; derivatives are propagated alongside."""

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
def test_polynomial_has_taylor_coefficients(degree: int) -> None:
    """Powers of a shift matrix do not overlap: the first row holds the coefficients."""
    size = 0.5
    (y,) = exponentials(RUN, size * np.eye(20, k=1)[None])
    np.testing.assert_allclose(y[0, 0, degree], size**degree / math.factorial(degree), 1e-14 if degree < 19 else 1)


def test_each_matrix_is_scaled_by_its_own_norm() -> None:
    x = np.array([[[1.0]], [[-200.0]], [[0.0]], [[np.nan]], [[1.090863719290036]], [[5.371920351148152]], [[np.inf]]])
    (actual,) = exponentials(RUN, x)
    np.testing.assert_allclose(actual[:, 0, 0], np.where(np.isfinite(x), np.exp(x), np.nan)[:, 0, 0], 1e-13)


@pytest.mark.parametrize("directions", [0, 1])
def test_halvings_bring_truncation_error_down_to_rounding(directions: int) -> None:
    """Truncation is below rounding, with the fewest halvings. With a direction, its derivative counts too."""
    norms = np.concatenate([np.linspace(0.01, 5, 500), 2.0 ** np.arange(9), [0.0]])
    x = np.zeros((len(norms), 2, 2))
    x[:, 1] = norms[:, None] / 2
    halvings, overflowed = _halvings(np, x, [x] * directions)
    assert not overflowed.any()

    def truncation_error(norm: float) -> float:
        return sum(norm**k / math.factorial(k) for k in range(19 - directions, 40))

    for norm, count in zip(norms.tolist(), halvings.tolist(), strict=True):
        assert truncation_error(norm / 2.0**count) <= 2.0**-53
        assert not count or truncation_error(norm / 2.0 ** (count - 1)) > 2.0**-55


@pytest.mark.parametrize("make", [real, complex_numbers])
@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_results_do_not_depend_on_other_matrices(n: int, make: Callable[..., Any]) -> None:
    """Bit for bit, for norms from 0.01 to 80, with a direction each."""
    x, g = make(9, n, n) * 3.0 ** np.arange(-4, 5)[:, None, None], make(9, n, n)
    actual = exponentials(RUN, x, g)
    for i in range(9):
        np.testing.assert_array_equal(exponentials(RUN, x[i : i + 1], g[i : i + 1]), actual[:, i : i + 1])


@pytest.mark.parametrize("size", [0.01, 1.0, 20.0])
def test_directional_derivatives_match_block_exponential(size: float) -> None:
    """The derivative is the upper right block of the exponential of a block matrix, which needs no product rule."""
    x, g, h = size * real(3, 4, 4) / 4, real(3, 4, 4), real(3, 4, 4)
    y, by_g, by_h = exponentials(RUN, x, g, h)
    for actual, direction in ((by_g, g), (by_h, h)):
        (block,) = exponentials(RUN, np.block([[x, direction], [np.zeros_like(x), x]]))
        close(actual, block[:, :4, 4:])
        close(y, block[:, :4, :4])


def close(actual: Array, expected: Array) -> None:
    """Compare relative to the largest number."""
    np.testing.assert_allclose(actual, expected, 0, 1e-13 * np.abs(expected).max())


def test_non_finite_direction_affects_its_matrix_only() -> None:
    x, g = real(3, 2, 2), real(3, 2, 2)
    g[1, 0, 0] = np.inf
    actual = exponentials(RUN, x, g)
    assert np.isnan(actual[:, 1]).all()
    np.testing.assert_array_equal(actual[:, [0, 2]], exponentials(RUN, x[[0, 2]], g[[0, 2]]))


def test_operands_are_not_modified() -> None:
    x, g = 9 * real(2, 3, 3), real(2, 3, 3)
    before = x.copy(), g.copy()
    exponentials(RUN, x, g)
    np.testing.assert_array_equal((x, g), before)


def frechet_derivatives(x: Array, g: Array) -> Array:
    """Return SciPy's Fréchet derivatives, matrix by matrix."""
    return np.array([linalg.expm_frechet(a, b, compute_expm=False) for a, b in zip(x, g, strict=True)])


def test_frechet_derivative_matches_scipy_at_any_scale() -> None:
    """Each matrix has its own scale; a zero direction gives zeros."""
    x, g = real(4, 3, 3), real(4, 3, 3)
    sizes = np.array([1e250, 1.0, 1e-250, 0.0])[:, None, None]
    several = x[:, None], g[:, None]
    actual, decomposed = evaluate(
        lambda a, b: [exponential_slope(a, b), *ExponentialSlope().written_out(a, b)], *several
    )
    np.testing.assert_allclose(actual[:, 0], frechet_derivatives(x, g), 1e-12, 1e-14)
    np.testing.assert_allclose(decomposed, actual, 1e-12, 1e-14)
    (decomposed,) = evaluate(lambda a, b: ExponentialSlope().written_out(a, b), x[0], g[0])
    np.testing.assert_allclose(decomposed, actual[0, 0], 1e-12, 1e-14)
    (scaled,) = evaluate(lambda a, b: [exponential_slope(a, b)], x, g * sizes)
    np.testing.assert_allclose(scaled, frechet_derivatives(x, g) * sizes, 1e-11, 0)
    assert evaluate(lambda a, b: [exponential_slope(a, b)], x[:, :0, :0], g[:, :0, :0])[0].shape == (4, 0, 0)


def test_derivatives_of_the_frechet_derivative() -> None:
    x, g, h, direction = (real(2, 3, 3) for _ in range(4))

    def gradients(a: Value, b: Value, c: Value) -> list[Value]:
        return [
            derivative
            for derivative in vjp(a.builder, [(exponential_slope(a, b), c)], [a, b])
            if derivative is not None
        ]

    by_x, by_g = (gradient[:, 0] for gradient in evaluate(gradients, x[:, None], g[:, None], h[:, None]))
    np.testing.assert_allclose(by_g, frechet_derivatives(x.swapaxes(-1, -2), h), 1e-12, 1e-14)
    ahead, behind = (frechet_derivatives(x + step * direction, g) for step in (1e-5, -1e-5))
    difference = (h * (ahead - behind)).sum((-1, -2)) / 2e-5
    np.testing.assert_allclose((by_x * direction).sum((-1, -2)), difference, 1e-7, 1e-8)


def test_flops_and_workspace() -> None:
    assert exponential_flops((5, 3, 3)) == 5 * 18 * 27
    assert exponentials_bytes(TensorType((5, 0, 0), np.dtype(float)), 1) == 0
    one, twice = (exponentials_bytes(TensorType((400, 400), np.dtype(float)), directions) for directions in (0, 1))
    assert twice == 2 * one
