"""The gamma distribution in graph nodes: densities, shape derivatives and helper functions against mpmath."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.autodiff.vjp import vjp
from engine.ir.graph import Value
from engine.ops.elementwise.base import power_series
from engine.ops.elementwise.incomplete import (
    _DIGAMMA,
    LARGE_SHAPE,
    _exp_rest,
    gamma_density,
    igamma_partial_a,
    log_quotient,
    stirling_rest,
)
from tests.engine.ops.values import come_to, written

mp = pytest.importorskip("mpmath")
special = pytest.importorskip("scipy.special")

Array = np.ndarray[Any, Any]


def shapes_and_points() -> tuple[Array, Array]:
    """Shapes on both sides of the threshold of Stirling's series, and points below, at and above the mean."""
    rng = np.random.default_rng(7)
    a = np.concatenate([rng.uniform(0.05, 30, 40), rng.uniform(10, 2000, 20), [LARGE_SHAPE, LARGE_SHAPE, 1.0]])
    x = a * rng.uniform(0.3, 2.0, a.shape)
    x[-3:] = LARGE_SHAPE, 9.0, 0.5
    return a, x


def test_density_matches_mpmath() -> None:
    a, x = shapes_and_points()
    with mp.workdps(40):
        pairs = [(mp.mpf(s), mp.mpf(point)) for s, point in zip(a.tolist(), x.tolist(), strict=True)]
        expected = [float(mp.exp((s - 1) * mp.log(point) - point - mp.loggamma(s))) for s, point in pairs]
    np.testing.assert_allclose(come_to(gamma_density, a, x), expected, rtol=1e-12)


def test_density_at_both_ends() -> None:
    a, x = np.array([0.5, 1.0, 2.0, 50.0, 2.0]), np.array([0.0, 0.0, 0.0, 0.0, np.inf])
    np.testing.assert_array_equal(come_to(gamma_density, a, x), [np.inf, 1.0, 0.0, 0.0, 0.0])


def test_slope_matches_the_series() -> None:
    """P(a, x) = Σ xᵏ⁺ᵃ exp(−x) / Γ(a + k + 1), k from 0 (DLMF 8.7.1), differentiated term by term."""
    a, x = np.meshgrid(
        [0.02, 0.7, 1.0, 1.25, 3.3, 9.9, 10.0, 11.0, 45.0],
        [1e-8, 0.02, 0.5, 1.0, 1.1, 2.499, 2.5, 2.501, 3.5, 4.0, 10.0, 30.0],
    )
    k = np.arange(400.0)
    each = a[..., None] + k
    logs = np.log(x)[..., None]
    terms = np.exp(each * logs - x[..., None] - special.gammaln(each + 1)) * (logs - special.digamma(each + 1))
    expected, lost = terms.sum(-1), np.abs(terms).sum(-1)
    actual = come_to(igamma_partial_a, a, x)
    assert (np.abs(actual - expected) <= 2e-13 * np.abs(expected) + 1e-13 * lost).all()


def test_digamma_series_matches_mpmath() -> None:
    """log a − ψ(a) − 1 / 2a, from a = 10 on to thirteen digits."""
    a = np.array([LARGE_SHAPE, 17.5, 100.0])
    with mp.workdps(40):
        expected = [float((mp.log(s) - mp.digamma(s) - 1 / (2 * s)) * s**2) for s in map(mp.mpf, a.tolist())]
    actual = come_to(lambda v: power_series(_DIGAMMA, v.reciprocal().square()), a)
    np.testing.assert_allclose(actual, expected, rtol=1e-13)


@pytest.mark.slow
def test_slope_matches_finite_differences() -> None:
    a, x = shapes_and_points()
    with mp.workdps(400):  # tails are small beside 1, and differences are small beside tails
        h = mp.mpf(10) ** -20
        expected = [
            float(
                (mp.gammainc(s + h, 0, point, regularized=True) - mp.gammainc(s - h, 0, point, regularized=True))
                / (2 * h)
            )
            for s, point in zip(map(mp.mpf, a.tolist()), map(mp.mpf, x.tolist()), strict=True)
        ]
    np.testing.assert_allclose(come_to(igamma_partial_a, a, x), expected, rtol=1e-10, atol=1e-300)


def test_slope_is_zero_at_both_ends() -> None:
    np.testing.assert_array_equal(come_to(igamma_partial_a, np.array([2.0, 2.0]), np.array([0.0, np.inf])), [0.0, 0.0])


def test_log_quotient_near_1_keeps_its_digits() -> None:
    x = 1.0 + np.array([0.0, 1e-15, 1e-8, -0.3, 3.0, 1e6])
    with mp.workdps(40):
        expected = [float(mp.log(mp.mpf(point))) for point in x.tolist()]
    np.testing.assert_allclose(come_to(log_quotient, x, np.ones_like(x)), expected, rtol=2e-15)
    a = np.full_like(x, 3.7)
    x = a * x
    with mp.workdps(40):
        expected = [float(mp.log(mp.mpf(point) / mp.mpf(3.7))) for point in x.tolist()]
    np.testing.assert_allclose(come_to(log_quotient, x, a), expected, rtol=2e-15)


def test_exp_rest_near_zero_keeps_its_digits() -> None:
    """The function is exp(z) − 1 − z."""
    z = np.array([-30.0, -1.4, -0.51, -0.49, -1e-9, 0.0, 1e-5, 0.3, 0.5, 0.7, 1.4, 20.0])
    with mp.workdps(40):
        expected = [float(mp.expm1(point) - point) for point in map(mp.mpf, z.tolist())]
    np.testing.assert_allclose(come_to(_exp_rest, z), expected, rtol=5e-15)


def test_derivatives_of_the_slope_are_zero_at_zero() -> None:
    """They are not NaN, as the derivative of a logarithm of 0 would be."""

    def gradients(a: Value, x: Value) -> list[Value]:
        y = igamma_partial_a(a, x)
        return [g for g in vjp(a.builder, [(y, y.full_like(1.0))], [a, x]) if g is not None]

    grad_a, grad_x = written(gradients, np.array([2.0, 3.5]), np.zeros(2))[1]
    np.testing.assert_array_equal((grad_a, grad_x), np.zeros((2, 2)))


def test_slope_is_zero_if_the_density_underflows() -> None:
    a = np.array([1e308, 1e300, 1e6, 2.0, 1e3])
    np.testing.assert_array_equal(come_to(igamma_partial_a, a, np.array([5.0, 2.0, 10.0, 1e300, 1e250])), np.zeros(5))


def test_stirling_rest_matches_mpmath() -> None:
    a = np.array([LARGE_SHAPE, 17.5, 300.0])
    with mp.workdps(40):
        expected = [
            float(mp.loggamma(s) - (s - 0.5) * mp.log(s) + s - mp.log(2 * mp.pi) / 2) for s in map(mp.mpf, a.tolist())
        ]
    np.testing.assert_allclose(come_to(stirling_rest, a), expected, rtol=1e-14)
