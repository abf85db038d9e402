"""sinc and its derivatives against forty digits, at its zeros and at its ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.engine.ops.derivatives import derivatives
from tests.engine.ops.run import run

mp = pytest.importorskip("mpmath")
exactly = pytest.importorskip("tests.engine.ops.exactly")

INF, NAN = math.inf, math.nan
WHOLE = np.arange(-5.0, 6.0)
X = np.concatenate(
    [
        np.random.default_rng(0).uniform(-6, 6, 400),
        *(WHOLE + step for step in (-1e-9, 1e-9)),
        [1e-300, -1e-8, 1e-3, 0.4999999, 0.5, -0.5, 0.5000001, 1e10 + 0.25, 2.0**52 + 0.5, 2.0**53 + 2],
    ]
)


def slope(x: Any) -> Any:
    return (mp.cospi(x) - mp.sincpi(x)) / x if abs(x) > 1e-6 else x * (-(mp.pi**2) / 3 + mp.pi**4 * x**2 / 30)


def bend(x: Any) -> Any:
    near = -(mp.pi**2) / 3 + mp.pi**4 * x**2 / 10
    return -(mp.pi**2) * mp.sincpi(x) - 2 * slope(x) / x if abs(x) > 1e-6 else near


@pytest.mark.parametrize(("dtype", "bound"), [("float64", 4), ("float32", 4), ("float16", 0.51)])
def test_accuracy_near_the_zeros(dtype: str, bound: float) -> None:
    x = X[np.abs(X) < 1e4].astype(dtype)
    errors = exactly.units(run("sinc", x), mp.sincpi, x)
    assert errors.max() <= bound, exactly.worst(errors, x)


def test_zero_at_integers_and_huge_arguments() -> None:
    x = np.array([*WHOLE, 2.0**53 + 2, 1e300, INF, -INF, NAN])
    np.testing.assert_array_equal(run("sinc", x), [*(WHOLE == 0), 0, 0, 0, 0, NAN])
    np.testing.assert_array_equal(np.array(derivatives("sinc", np.array([INF, -INF, NAN])))[1:, :2], 0)


def test_derivatives() -> None:
    """The errors are relative to the terms: cos πx / x, and π sin πx / x."""
    _, first, second = derivatives("sinc", X)
    with mp.workdps(40):
        expected = np.array([[float(f(mp.mpf(x))) for f in (slope, bend)] for x in X.tolist()]).T
    scale = np.minimum(1, 1 / np.abs(X))
    assert (np.abs(first - expected[0]) <= 8 * 2.0**-52 * np.minimum(np.abs(X), scale) + 5e-324).all()
    assert (np.abs(second - expected[1]) <= 64 * 2.0**-52 * scale).all()


def test_higher_derivatives_at_integers() -> None:
    """sinc‴(n) = (−1)ⁿ (6 / n³ − π² / n), sinc⁗(0) = π⁴ / 5."""
    n = np.array([1.0, -2.0, 3.0])
    third = derivatives("sinc", n, by=(0, 0, 0))[3]
    np.testing.assert_allclose(third, (-1) ** n * (6 / n**3 - math.pi**2 / n), 1e-13)
    np.testing.assert_allclose(derivatives("sinc", np.zeros(1), by=(0,) * 4)[4], math.pi**4 / 5, 1e-14)
