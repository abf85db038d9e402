"""The beta distribution in graph nodes: densities and shape derivatives against mpmath, and both ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.autodiff.vjp import vjp
from engine.ir.graph import Value
from engine.ops.elementwise.incomplete import _stable_log, _times_log, beta_density, betainc_partial_a
from tests.engine.ops.values import come_to, written

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")

Array = np.ndarray[Any, Any]
Formula = Callable[[Value, Value, Value], Value]


def shapes_and_points() -> tuple[Array, Array, Array]:
    """Shapes of which none, one or both are large, and points near the mean and away from it."""
    rng = np.random.default_rng(11)
    a = np.concatenate([rng.uniform(0.1, 9, 20), rng.uniform(10, 400, 20), rng.uniform(0.1, 9, 10)])
    b = np.concatenate([rng.uniform(0.1, 9, 20), rng.uniform(10, 400, 20), rng.uniform(10, 400, 10)])
    x = np.clip(a / (a + b) * rng.uniform(0.5, 1.5, a.shape), 0.001, 0.999)
    return a, b, x


#: distribution functions for b = 1 and b = 2 are xᵃ and (a + 1) xᵃ − a xᵃ⁺¹
SHAPES, POINTS = np.array([0.05, 0.7, 1.0, 3.5, 40.0]), np.array([1e-9, 0.03, 0.4, 0.75, 0.98])


def slope(a: Value, b: Value, x: Value) -> Value:
    return betainc_partial_a(a, b, x, 1.0 - x)


def numbers(*arrays: Array) -> list[tuple[Any, ...]]:
    return [tuple(map(mp.mpf, each)) for each in zip(*(array.tolist() for array in arrays), strict=True)]


def test_density_matches_mpmath() -> None:
    arrays = shapes_and_points()
    with mp.workdps(40):
        expected = [float(x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)) for a, b, x in numbers(*arrays)]
    np.testing.assert_allclose(come_to(beta_density, *arrays), expected, rtol=1e-12)


def test_density_of_huge_shapes() -> None:
    """The largest density is √(a / π) · 2 for equal shapes, and elsewhere it is 0, even if a + b overflows."""
    most = np.finfo(np.float64).max / 4
    a, x = np.array([most, 4 * most, 4 * most, np.inf]), np.array([0.5, 0.25, 0.5, 0.25])
    actual = come_to(beta_density, a, a, x)
    np.testing.assert_allclose(actual, [2 * np.sqrt(most / np.pi), 0.0, 2 * np.sqrt(most / np.pi), 0.0], 1e-12)


def test_slope_matches_closed_forms() -> None:
    a, x = np.meshgrid(SHAPES, POINTS)
    log, ones = np.log(x), np.ones(a.shape)
    np.testing.assert_allclose(come_to(slope, a, ones, x), x**a * log, rtol=1e-12)
    expected = x**a * (1 - x + (1 + a * (1 - x)) * log)
    lost = np.abs(x**a * log) * 1e-14  # from the difference of nearly equal numbers
    actual = come_to(slope, a, 2 * ones, x)
    assert (np.abs(actual - expected) <= 1e-12 * np.abs(expected) + lost).all()


def test_slopes_of_large_shapes_satisfy_the_recurrence() -> None:
    """Iₓ(a, b) − Iₓ(a + 1, b) = xᵃ (1 − x)ᵇ / (a B(a, b)), differentiated with respect to a (DLMF 8.17.20)."""
    a, b = np.array([4e5, 1.2e5, 6e5, 5e3, 30.0]), np.array([5e3, 2.6e5, 17.0, 4e5, 70.0])
    mean, deviation = a / (a + b), np.sqrt(a * b / (a + b + 1)) / (a + b)
    for off in (-2.0, -0.7, 0.1, 0.9, 2.0):
        x = mean + off * deviation
        term = np.exp(a * np.log(x) + b * np.log1p(-x) - special.betaln(a, b)) / a
        expected = term * (np.log(x) - special.digamma(a) - 1 / a + special.digamma(a + b))
        slopes = come_to(slope, a, b, x), come_to(slope, a + 1, b, x)
        lost = 1e-9 * np.abs(slopes[0]) + 1e-8 * np.abs(expected)
        assert (np.abs(slopes[0] - slopes[1] - expected) <= lost).all()


@pytest.mark.slow
def test_slope_matches_finite_differences() -> None:
    arrays = shapes_and_points()
    with mp.workdps(400):  # tails are small beside 1, and differences are small beside tails
        h = mp.mpf(10) ** -20
        expected = [
            float(
                (mp.betainc(a + h, b, 0, x, regularized=True) - mp.betainc(a - h, b, 0, x, regularized=True)) / (2 * h)
            )
            for a, b, x in numbers(*arrays)
        ]
    np.testing.assert_allclose(come_to(slope, *arrays), expected, rtol=1e-10)


def test_slope_is_zero_at_both_ends() -> None:
    a, x = np.array([2.0, 2.0]), np.array([0.0, 1.0])
    np.testing.assert_array_equal(come_to(slope, a, a, x), [0.0, 0.0])


def derivatives(write: Formula, *arrays: Array) -> list[Array]:
    """The derivatives of a function of a, b and x, with respect to a and x."""

    def gradients(a: Value, b: Value, x: Value) -> list[Value]:
        y = write(a, b, x)
        return [g for g in vjp(a.builder, [(y, y.full_like(1.0))], [a, x]) if g is not None]

    grad_a, grad_x = written(gradients, *arrays)[1]
    return [grad_a, grad_x]


def test_derivatives_of_the_slope_are_zero_at_both_ends() -> None:
    """They are not NaN, as the derivative of a logarithm of 0 would be."""
    a, x = np.array([2.0, 2.0]), np.array([0.0, 1.0])
    np.testing.assert_array_equal(derivatives(slope, a, a, x), np.zeros((2, 2)))


def test_density_derivatives_match_its_log_derivatives() -> None:
    """On both sides of the threshold for large shapes."""
    a, b, x = shapes_and_points()
    density = come_to(beta_density, a, b, x)
    grad_a, grad_x = derivatives(beta_density, a, b, x)
    expected = density * (np.log(x) - special.digamma(a) + special.digamma(a + b))
    np.testing.assert_allclose(grad_a, expected, 1e-10, 1e-12 * np.abs(density * np.log(x)).max())
    terms = (a - 1) / x, (b - 1) / (1 - x)
    lost = 1e-11 * density * (np.abs(terms[0]) + np.abs(terms[1]))
    assert (np.abs(grad_x - density * (terms[0] - terms[1])) <= lost).all()


def test_density_of_large_shapes_is_zero_at_both_ends() -> None:
    a = np.array([20.0, 20.0])
    np.testing.assert_array_equal(come_to(beta_density, a, 2 * a, np.array([0.0, 1.0])), [0.0, 0.0])


def test_logarithms_near_1_use_the_complement() -> None:
    """1 − x has digits that x has lost: log(x) would be off by a tenth, or 0."""
    rest, x = np.array([1e-15, 3e-18, 0.5, 0.75]), np.array([1.0 - 1e-15, 1.0, 0.5, 0.25])
    expected = np.log1p(-rest)
    np.testing.assert_allclose(come_to(_stable_log, x, rest), expected, rtol=1e-15)
    np.testing.assert_allclose(come_to(_times_log, np.full(4, 3.0), x, rest), 3.0 * expected, rtol=1e-15)
