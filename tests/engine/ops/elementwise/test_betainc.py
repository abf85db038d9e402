"""betainc and its first and second derivatives, against sixty digits, over the whole domain."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.engine.ops.derivatives import derivatives
from tests.engine.ops.run import run

mp = pytest.importorskip("mpmath")

Array = np.ndarray[Any, Any]
INF, NAN = math.inf, math.nan


def points() -> tuple[Array, Array, Array]:
    """Shapes from 10⁻⁴ to 300; x anywhere, near the mean, and near 0."""
    rng = np.random.default_rng(3)
    a, b = 10 ** rng.uniform(-4, 2.5, (2, 60))
    middle = a / (a + b) * (1 + 0.2 * rng.normal(size=60))
    spread = np.where(np.arange(60) < 20, rng.uniform(0, 1, 60), 10 ** rng.uniform(-12, 0, 60))
    return a, b, np.where(np.arange(60) < 40, np.clip(middle, 0.001, 0.999), spread)


A, B, X = points()


def distribution(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


@cache
def moved(i: int, steps_a: int, steps_b: int) -> Any:
    """The function with its shapes moved by some steps."""
    with mp.workdps(90):
        step = mp.mpf(10) ** -16
        return distribution(A[i].item() + steps_a * step, B[i].item() + steps_b * step, mp.mpf(X[i].item()))


def difference(i: int, weights: dict[tuple[int, int], int], order: int) -> float:
    """A central difference, with a relative error of 10⁻³²."""
    with mp.workdps(90):
        result = mp.fsum(weight * moved(i, *steps) for steps, weight in weights.items())
        return float(result * mp.mpf(10) ** (16 * order) / (4 if len(weights) == 4 else 2 if order == 1 else 1))


def density(i: int) -> Any:
    a, b, x = (mp.mpf(v[i].item()) for v in (A, B, X))
    return x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)


def exact(weights: dict[tuple[int, int], int], order: int) -> Array:
    return np.array([difference(i, weights, order) for i in range(len(A))])


FIRST_A, FIRST_B = {(1, 0): 1, (-1, 0): -1}, {(0, 1): 1, (0, -1): -1}
SECOND_A, SECOND_B = {(1, 0): 1, (0, 0): -2, (-1, 0): 1}, {(0, 1): 1, (0, 0): -2, (0, -1): 1}
MIXED = {(1, 1): 1, (1, -1): -1, (-1, 1): -1, (-1, -1): 1}


def assert_close(actual: Array, expected: Array, tolerance: float) -> None:
    large = np.abs(expected) > 1e-40  # below, differences have no digits left
    off = np.abs(actual - expected)[large] / np.abs(expected)[large]
    assert off.max() <= tolerance, np.column_stack([A[large], B[large], X[large], off])[np.argsort(-off)[:3]]
    assert (np.abs(actual[~large]) <= 1e-38).all()


def test_values() -> None:
    expected = np.array([float(moved(i, 0, 0)) for i in range(len(A))])
    np.testing.assert_allclose(run("betainc", A, B, X), expected, 256 * 2.0**-52)


@pytest.mark.parametrize(
    ("by", "first", "second"),
    [((0, 0), FIRST_A, SECOND_A), ((1, 1), FIRST_B, SECOND_B), ((0, 1), FIRST_A, MIXED), ((1, 0), FIRST_B, MIXED)],
    ids=str,
)
def test_derivatives_with_respect_to_shapes(by: tuple[int, int], first: Any, second: Any) -> None:
    """The guarantee is 1e-10; first derivatives keep one digit more."""
    _, actual_first, actual_second = derivatives("betainc", A, B, X, by=by)
    assert_close(actual_first, exact(first, 1), 1e-11)
    assert_close(actual_second, exact(second, 2), 1e-10)


def test_derivatives_with_respect_to_x() -> None:
    with mp.workdps(50):
        expected = [density(i) for i in range(len(A))]
        bends = [w * ((A[i] - 1) / mp.mpf(X[i]) - (B[i] - 1) / (1 - mp.mpf(X[i]))) for i, w in enumerate(expected)]
        sums = [mp.mpf(A[i]) + mp.mpf(B[i]) for i in range(len(A))]
        mixed = [w * (mp.log(X[i]) - mp.psi(0, A[i]) + mp.psi(0, sums[i])) for i, w in enumerate(expected)]
    grad_x, grad_xx, grad_ax = (np.array([float(w) for w in each]) for each in (expected, bends, mixed))
    _, first, second = derivatives("betainc", A, B, X, by=(2, 2))
    assert_close(first, grad_x, 1e-12)
    np.testing.assert_allclose(second, grad_xx, 1e-11)
    np.testing.assert_allclose(derivatives("betainc", A, B, X, by=(2, 0))[2], grad_ax, 1e-11)
    np.testing.assert_allclose(derivatives("betainc", A, B, X, by=(0, 2))[2], grad_ax, 1e-10)


def test_large_shapes_approach_the_normal_distribution() -> None:
    """At a = b and x = 1/2 the value is 1/2; ∂/∂x = 2 √(a / π) (1 − 1 / 8a + …), and ∂/∂a = −∂/∂x / 4a + …."""
    a, x = np.array([1e4, 1e8, 1e12]), np.full(3, 0.5)
    slope = 2 * np.sqrt(a / np.pi)
    np.testing.assert_allclose(run("betainc", a, a, x), 0.5, 1e-13)
    np.testing.assert_allclose(derivatives("betainc", a, a, x, by=2)[1], slope * (1 - 1 / (8 * a)), 1e-8)
    np.testing.assert_allclose(derivatives("betainc", a, a, x, by=0)[1], -slope / (4 * a), 1e-4)


def test_ends_of_the_domain() -> None:
    a, b = np.array([1.0, 2.0, 3.0, 2.0, 2.0, 2.0]), np.array([1.0, 3.0, 2.0, 2.0, 2.0, 2.0])
    x = np.array([0.0, 0.0, 1.0, -0.1, 1.1, NAN])
    np.testing.assert_array_equal(run("betainc", a, b, x), [0, 0, 1, NAN, NAN, NAN])
    np.testing.assert_array_equal(derivatives("betainc", a, b, x, by=2)[1][:3], [1, 0, 0])
    for by in (0, 1):
        np.testing.assert_array_equal(derivatives("betainc", a, b, x, by=by)[1][:3], 0)
    half = np.full(2, 0.5)
    np.testing.assert_array_equal(derivatives("betainc", half, half, np.array([0.0, 1.0]), by=2)[1], INF)


def test_derivatives_are_nan_outside_the_domain() -> None:
    """Also at a = b = 1, where the powers of x and 1 − x are 1: neighbouring shapes must agree."""
    a = np.array([1.0, 1.0 - 2.0**-53, 1.0, -0.5, 1.5])
    b = np.array([1.0, 1.0 - 2.0**-53, 1.0, 1.5, -2.5])
    x = np.array([11.8, 11.8, -1.0, 0.5, 0.5])
    for by in (0, 1, 2):
        np.testing.assert_array_equal(derivatives("betainc", a, b, x, by=by)[1], NAN)


def test_narrow_floats_are_rounded_once() -> None:
    narrow = [v.astype("float32") for v in (A, B, X)]
    wide = run("betainc", *(v.astype("float64") for v in narrow))
    np.testing.assert_array_equal(run("betainc", *narrow), wide.astype("float32"))
