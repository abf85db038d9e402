"""The gamma distribution in nodes: densities and slopes by the shape against mpmath, and the identities of parts."""

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


def shapes_and_places() -> tuple[Array, Array]:
    """Shapes on both sides of where Stirling's series begins, and places before, at and behind the middle."""
    rng = np.random.default_rng(7)
    a = np.concatenate([rng.uniform(0.05, 30, 40), rng.uniform(10, 2000, 20), [LARGE_SHAPE, LARGE_SHAPE, 1.0]])
    x = a * rng.uniform(0.3, 2.0, a.shape)
    x[-3:] = LARGE_SHAPE, 9.0, 0.5
    return a, x


def test_the_density_is_that_of_mpmath() -> None:
    a, x = shapes_and_places()
    with mp.workdps(40):
        pairs = [(mp.mpf(s), mp.mpf(at)) for s, at in zip(a.tolist(), x.tolist(), strict=True)]
        wanted = [float(mp.exp((s - 1) * mp.log(at) - at - mp.loggamma(s))) for s, at in pairs]
    np.testing.assert_allclose(come_to(gamma_density, a, x), wanted, rtol=1e-12)


def test_the_density_at_the_ends() -> None:
    a, x = np.array([0.5, 1.0, 2.0, 50.0, 2.0]), np.array([0.0, 0.0, 0.0, 0.0, np.inf])
    np.testing.assert_array_equal(come_to(gamma_density, a, x), [np.inf, 1.0, 0.0, 0.0, 0.0])


def test_the_slope_is_the_sum_of_what_distributions_are_apart() -> None:
    """P(a, x) = Σ xᵏ⁺ᵃ exp(−x) / Γ(a + k + 1), k from 0 (DLMF 8.7.1), differentiated term by term."""
    a, x = np.meshgrid(
        [0.02, 0.7, 1.0, 1.25, 3.3, 9.9, 10.0, 11.0, 45.0],
        [1e-8, 0.02, 0.5, 1.0, 1.1, 2.499, 2.5, 2.501, 3.5, 4.0, 10.0, 30.0],
    )
    k = np.arange(400.0)
    each = a[..., None] + k
    logs = np.log(x)[..., None]
    terms = np.exp(each * logs - x[..., None] - special.gammaln(each + 1)) * (logs - special.digamma(each + 1))
    wanted, lost = terms.sum(-1), np.abs(terms).sum(-1)
    found = come_to(igamma_partial_a, a, x)
    assert (np.abs(found - wanted) <= 2e-13 * np.abs(wanted) + 1e-13 * lost).all()


def test_the_series_of_the_digamma_function_is_what_is_left_of_the_logarithm() -> None:
    """Of log a − ψ(a), when 1 / 2a is taken away: from a = 10 on to the thirteenth digit."""
    a = np.array([LARGE_SHAPE, 17.5, 100.0])
    with mp.workdps(40):
        wanted = [float((mp.log(s) - mp.digamma(s) - 1 / (2 * s)) * s**2) for s in map(mp.mpf, a.tolist())]
    found = come_to(lambda v: power_series(_DIGAMMA, v.reciprocal().square()), a)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.slow
def test_the_slope_is_the_difference_of_distribution_functions() -> None:
    a, x = shapes_and_places()
    with mp.workdps(400):  # tails are small beside 1, and differences are small beside tails
        h = mp.mpf(10) ** -20
        wanted = [
            float((mp.gammainc(s + h, 0, at, regularized=True) - mp.gammainc(s - h, 0, at, regularized=True)) / (2 * h))
            for s, at in zip(map(mp.mpf, a.tolist()), map(mp.mpf, x.tolist()), strict=True)
        ]
    np.testing.assert_allclose(come_to(igamma_partial_a, a, x), wanted, rtol=1e-10, atol=1e-300)


def test_the_slope_is_0_at_both_ends() -> None:
    np.testing.assert_array_equal(come_to(igamma_partial_a, np.array([2.0, 2.0]), np.array([0.0, np.inf])), [0.0, 0.0])


def test_a_quotient_next_to_1_keeps_its_digits() -> None:
    x = 1.0 + np.array([0.0, 1e-15, 1e-8, -0.3, 3.0, 1e6])
    with mp.workdps(40):
        wanted = [float(mp.log(mp.mpf(at))) for at in x.tolist()]
    np.testing.assert_allclose(come_to(log_quotient, x, np.ones_like(x)), wanted, rtol=2e-15)
    a = np.full_like(x, 3.7)
    x = a * x
    with mp.workdps(40):
        wanted = [float(mp.log(mp.mpf(at) / mp.mpf(3.7))) for at in x.tolist()]
    np.testing.assert_allclose(come_to(log_quotient, x, a), wanted, rtol=2e-15)


def test_what_is_left_of_an_exponential() -> None:
    """exp(z) − 1 − z keeps its digits next to 0."""
    z = np.array([-30.0, -1.4, -0.51, -0.49, -1e-9, 0.0, 1e-5, 0.3, 0.5, 0.7, 1.4, 20.0])
    with mp.workdps(40):
        wanted = [float(mp.expm1(at) - at) for at in map(mp.mpf, z.tolist())]
    np.testing.assert_allclose(come_to(_exp_rest, z), wanted, rtol=5e-15)


def test_where_the_slope_is_0_it_does_not_change() -> None:
    """Nor is a derivative NaN, as that of a logarithm of 0 would be."""

    def changes(a: Value, x: Value) -> list[Value]:
        y = igamma_partial_a(a, x)
        return [g for g in vjp(a.builder, [(y, y.full_like(1.0))], [a, x]) if g is not None]

    by_a, by_x = written(changes, np.array([2.0, 3.5]), np.zeros(2))[1]
    np.testing.assert_array_equal((by_a, by_x), np.zeros((2, 2)))


def test_the_slope_is_0_where_no_density_is_left() -> None:
    a = np.array([1e308, 1e300, 1e6, 2.0, 1e3])
    np.testing.assert_array_equal(come_to(igamma_partial_a, a, np.array([5.0, 2.0, 10.0, 1e300, 1e250])), np.zeros(5))


def test_stirlings_rest_is_what_is_left_of_the_logarithm() -> None:
    a = np.array([LARGE_SHAPE, 17.5, 300.0])
    with mp.workdps(40):
        wanted = [
            float(mp.loggamma(s) - (s - 0.5) * mp.log(s) + s - mp.log(2 * mp.pi) / 2) for s in map(mp.mpf, a.tolist())
        ]
    np.testing.assert_allclose(come_to(stirling_rest, a), wanted, rtol=1e-14)
