"""The beta distribution in nodes: densities and slopes by a shape against mpmath, and both ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.graph.ir import Value
from engine.oplib.beta_density import beta_density, slope_by_first
from tests.engine.oplib.values import come_to

mp = pytest.importorskip("mpmath")

Array = np.ndarray[Any, Any]


def shapes_and_places() -> tuple[Array, Array, Array]:
    """Shapes of which none, one or both are large, and places next to the mean and away from it."""
    rng = np.random.default_rng(11)
    a = np.concatenate([rng.uniform(0.1, 9, 20), rng.uniform(10, 400, 20), rng.uniform(0.1, 9, 10)])
    b = np.concatenate([rng.uniform(0.1, 9, 20), rng.uniform(10, 400, 20), rng.uniform(10, 400, 10)])
    x = np.clip(a / (a + b) * rng.uniform(0.5, 1.5, a.shape), 0.001, 0.999)
    return a, b, x


def slope(a: Value, b: Value, x: Value) -> Value:
    return slope_by_first(a, b, x, 1.0 - x)


def numbers(*arrays: Array) -> list[tuple[Any, ...]]:
    return [tuple(map(mp.mpf, each)) for each in zip(*(array.tolist() for array in arrays), strict=True)]


def test_the_density_is_that_of_mpmath() -> None:
    arrays = shapes_and_places()
    with mp.workdps(40):
        wanted = [float(x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)) for a, b, x in numbers(*arrays)]
    np.testing.assert_allclose(come_to(beta_density, *arrays), wanted, rtol=1e-12)


@pytest.mark.slow
def test_the_slope_is_the_difference_of_distribution_functions() -> None:
    arrays = shapes_and_places()
    with mp.workdps(400):  # tails are small beside 1, and differences are small beside tails
        h = mp.mpf(10) ** -20
        wanted = [
            float(
                (mp.betainc(a + h, b, 0, x, regularized=True) - mp.betainc(a - h, b, 0, x, regularized=True)) / (2 * h)
            )
            for a, b, x in numbers(*arrays)
        ]
    np.testing.assert_allclose(come_to(slope, *arrays), wanted, rtol=1e-10)


def test_the_slope_is_0_at_both_ends() -> None:
    a, x = np.array([2.0, 2.0]), np.array([0.0, 1.0])
    np.testing.assert_array_equal(come_to(slope, a, a, x), [0.0, 0.0])
