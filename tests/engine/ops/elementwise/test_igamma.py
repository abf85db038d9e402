"""igamma, igammac and their derivatives against their series in fifty digits, over the whole domain."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from engine.ir.errors import NotDifferentiable
from tests.engine.ops.derivatives import derivatives
from tests.engine.ops.run import run

mp = pytest.importorskip("mpmath")

Array = np.ndarray[Any, Any]
INF, NAN = math.inf, math.nan


def points() -> tuple[Array, Array]:
    """Shapes from 10⁻⁶ to 3,000; x anywhere, and near the mean."""
    rng = np.random.default_rng(1)
    a = np.concatenate([10 ** rng.uniform(-6, 3.3, 60), rng.uniform(0.1, 50, 40), 10 ** rng.uniform(1, 3.5, 20)])
    x = np.concatenate([10 ** rng.uniform(-6, 3, 60), rng.uniform(0.01, 80, 40), np.ones(20)])
    x[100:] = np.abs(a[100:] * (1 + rng.normal(size=20) / np.sqrt(a[100:]) * 2))
    return a, x


A, X = points()


@cache
def series(a: float, x: float) -> tuple[Any, Any, Any]:
    """P, Q and ∂P/∂a: P = xᵃ exp(−x) Σ xⁿ / Γ(a + n + 1) (DLMF 8.7.1), with positive terms only."""
    extra = max(0.0, x - a * math.log(x / a + 1))
    with mp.workdps(50 + int(extra / 2)):
        shape, point = mp.mpf(a), mp.mpf(x)
        term, slope, total, slopes, n = mp.mpf(1), mp.mpf(0), mp.mpf(0), mp.mpf(0), 0
        while n <= x or term * (1 + slope) > mp.eps * total:
            total, slopes, n = total + term, slopes + term * slope, n + 1
            term, slope = term * point / (shape + n), slope + 1 / (shape + n)
        before = mp.exp(shape * mp.log(point) - point - mp.loggamma(shape + 1))
        grad_a = before * ((mp.log(point) - mp.psi(0, shape + 1)) * total - slopes)
        return before * total, 1 - before * total, grad_a


def density(a: float, x: float) -> Any:
    with mp.workdps(50):
        return mp.exp((mp.mpf(a) - 1) * mp.log(x) - x - mp.loggamma(a))


def exact(function: Any) -> Array:
    return np.array([float(function(a, x)) for a, x in zip(A.tolist(), X.tolist(), strict=True)])


def assert_close(actual: Array, expected: Array, tolerance: float, scale: Any = 0) -> None:
    """Compare relative to `expected` or `scale`; tiny expected values need tiny actual ones."""
    large = np.abs(expected) > 1e-285
    off = np.abs(actual - expected)[large] / np.maximum(np.abs(expected), scale)[large]
    assert off.max() <= tolerance, np.column_stack([A[large], X[large], off])[np.argsort(-off)[:3]]
    np.testing.assert_allclose(actual[~large], expected[~large], atol=1e-280)


@pytest.mark.slow
@pytest.mark.parametrize(("op", "part"), [("igamma", 0), ("igammac", 1)])
def test_values(op: str, part: int) -> None:
    assert_close(run(op, A, X), exact(lambda a, x: series(a, x)[part]), 512 * 2.0**-52)


@pytest.mark.slow
@pytest.mark.parametrize(("op", "sign"), [("igamma", 1), ("igammac", -1)])
def test_derivatives(op: str, sign: int) -> None:
    grad_a, grad_x = exact(lambda a, x: series(a, x)[2]), exact(density)
    mixed = exact(lambda a, x: density(a, x) * (mp.log(x) - mp.psi(0, a)))
    grad_xx = exact(lambda a, x: density(a, x) * ((mp.mpf(a) - 1) / x - 1))
    _, first, second = derivatives(op, A, X, by=(0, 1))
    assert_close(sign * first, grad_a, 1e-12)
    assert_close(sign * second, mixed, 1e-12, grad_x)
    _, first, second = derivatives(op, A, X, by=(1, 1))
    assert_close(sign * first, grad_x, 1e-12)
    assert_close(sign * second, grad_xx, 1e-12, grad_x * (np.abs((A - 1) / X) + 1))
    assert_close(sign * derivatives(op, A, X, by=(1, 0))[2], mixed, 1e-12, grad_x)


def test_large_shapes_approach_the_normal_distribution() -> None:
    """At x = a: P = 1/2 + (1/3 + 1 / 540a + …) / √(2πa), ∂P/∂x = (1 − 1 / 12a + …) / √(2πa)."""
    a = np.array([1e6, 1e9, 1e12])
    near = 1 / np.sqrt(2 * np.pi * a)
    np.testing.assert_allclose(run("igamma", a, a), 0.5 + near * (1 / 3 + 1 / (540 * a)), 1e-13)
    np.testing.assert_allclose(derivatives("igamma", a, a, by=1)[1], near * (1 - 1 / (12 * a)), 1e-13)
    np.testing.assert_allclose(derivatives("igamma", a, a, by=0)[1], -near, 1e-6)


def test_second_derivative_with_respect_to_a_is_refused() -> None:
    for op in ("igamma", "igammac"):
        with pytest.raises(NotDifferentiable, match="no second derivative with respect to a"):
            derivatives(op, A, X, by=(0, 0))


def test_ends_of_the_domain() -> None:
    a = np.array([0.0, 0.0, 2.0, 2.0, INF, 2.0, -1.0, 1.0])
    x = np.array([0.0, 1.0, 0.0, INF, 3.0, -1.0, 1.0, NAN])
    np.testing.assert_array_equal(run("igamma", a, x), [NAN, 1, 0, 1, 0, NAN, NAN, NAN])
    np.testing.assert_array_equal(run("igammac", a, x), [NAN, 0, 1, 0, 1, NAN, NAN, NAN])
    shape, point = np.array([0.5, 1.0, 3.0, 3.0]), np.array([0.0, 0.0, 0.0, INF])
    np.testing.assert_array_equal(derivatives("igamma", shape, point, by=1)[1], [INF, 1, 0, 0])
    np.testing.assert_array_equal(derivatives("igamma", shape, point, by=0)[1], 0)
    np.testing.assert_allclose(derivatives("igamma", np.zeros(1), np.ones(1), by=0)[1], -0.21938393439552029)  # E₁(1)


@pytest.mark.parametrize("op", ["igamma", "igammac"])
def test_derivatives_are_nan_outside_the_domain(op: str) -> None:
    """Also at a = 1, where the power of a negative x is finite: neighbouring shapes must agree."""
    a = np.array([1.0, 1.0 - 2.0**-53, 2.0, -0.5, -2.5])
    x = np.array([-1.0, -1.0, -3.0, 1.5, 1.5])
    for by in (0, 1):
        np.testing.assert_array_equal(derivatives(op, a, x, by=by)[1], NAN)


def test_narrow_floats_are_rounded_once() -> None:
    a, x = A[A < 1e3].astype("float32"), X[A < 1e3].astype("float32")
    np.testing.assert_array_equal(
        run("igamma", a, x), run("igamma", a.astype(float), x.astype(float)).astype("float32")
    )


def test_derivatives_in_float32() -> None:
    near = (A > 0.1) & (A < 50) & (np.abs(X - A) < 3 * np.sqrt(A)) & (X > 0.1)
    a, x = A[near], X[near]
    narrow = derivatives("igamma", a.astype("float32"), x.astype("float32"), by=0)[1]
    np.testing.assert_allclose(narrow, derivatives("igamma", a, x, by=0)[1], 1e-4)
