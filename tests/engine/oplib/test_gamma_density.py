"""The gamma distribution in nodes: densities and slopes by the shape against mpmath, and the identities of parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.oplib.gamma_density import LARGE_SHAPE, gamma_density, log_quotient, slope_by_shape, stirling_rest
from tests.engine.oplib.values import come_to

mp = pytest.importorskip("mpmath")

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


@pytest.mark.slow
def test_the_slope_is_the_difference_of_distribution_functions() -> None:
    a, x = shapes_and_places()
    with mp.workdps(400):  # tails are small beside 1, and differences are small beside tails
        h = mp.mpf(10) ** -20
        wanted = [
            float((mp.gammainc(s + h, 0, at, regularized=True) - mp.gammainc(s - h, 0, at, regularized=True)) / (2 * h))
            for s, at in zip(map(mp.mpf, a.tolist()), map(mp.mpf, x.tolist()), strict=True)
        ]
    np.testing.assert_allclose(come_to(slope_by_shape, a, x), wanted, rtol=1e-10, atol=1e-300)


def test_the_slope_is_0_at_both_ends() -> None:
    np.testing.assert_array_equal(come_to(slope_by_shape, np.array([2.0, 2.0]), np.array([0.0, np.inf])), [0.0, 0.0])


def test_a_quotient_next_to_1_keeps_its_digits() -> None:
    x = 1.0 + np.array([0.0, 1e-15, 1e-8, -0.3, 3.0, 1e6])
    with mp.workdps(40):
        wanted = [float(mp.log(mp.mpf(at))) for at in x.tolist()]
    np.testing.assert_allclose(come_to(log_quotient, x, np.ones_like(x)), wanted, rtol=2e-15)


def test_stirlings_rest_is_what_is_left_of_the_logarithm() -> None:
    a = np.array([LARGE_SHAPE, 17.5, 300.0])
    with mp.workdps(40):
        wanted = [
            float(mp.loggamma(s) - (s - 0.5) * mp.log(s) + s - mp.log(2 * mp.pi) / 2) for s in map(mp.mpf, a.tolist())
        ]
    np.testing.assert_allclose(come_to(stirling_rest, a), wanted, rtol=1e-14)
