"""i0e, i1e, i0, i1 and their derivatives against forty digits, over the whole domain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.engine.ops.derivatives import derivatives
from tests.engine.ops.run import run

mp = pytest.importorskip("mpmath")
exactly = pytest.importorskip("tests.engine.ops.exactly")

INF, NAN, EPS = math.inf, math.nan, 2.0**-52
OPS = ("i0e", "i1e", "i0", "i1")
RNG = np.random.default_rng(5)
X = np.concatenate(
    [
        RNG.uniform(-12, 12, 200),
        RNG.uniform(-8.1, -7.9, 50),
        10.0 ** RNG.uniform(-3, 2.85, 150),
        10.0 ** RNG.uniform(-300, -3, 30),
        [7.999999999999999, 8.0, 8.000000000000002, 709.9, 713.9, -713.98, 5e-324, 0.0],
    ]
)
BOUNDS = {"i0e": 4, "i1e": 4, "i0": 5, "i1": 5}


def scaled(order: int, x: Any) -> Any:
    """exp(−|x|) Iₙ(x); from 10⁵ on by its asymptotic series (DLMF 10.40.1)."""
    if abs(x) < 1e5:
        return mp.exp(-abs(x)) * mp.besseli(order, x)
    terms = [(-1) ** k * mp.fprod(4 * order**2 - (2 * i - 1) ** 2 for i in range(1, k + 1)) for k in range(6)]
    total = mp.fsum(t / (mp.factorial(k) * (8 * abs(x)) ** k) for k, t in enumerate(terms))
    return mp.sign(x) ** order * total / mp.sqrt(2 * mp.pi * abs(x))


def exact(op: str, x: Any) -> Any:
    order = int(op[1])
    if op.endswith("e"):
        return scaled(order, x)
    return mp.besseli(order, x) if abs(x) < 1e4 else mp.inf * mp.sign(x) ** order


def by_recurrence(op: str, x: Any) -> tuple[Any, Any]:
    """The first and second derivatives, from Iₙ′ = (Iₙ₋₁ + Iₙ₊₁) / 2 (DLMF 10.29.1)."""
    with mp.workdps(80):
        values = [mp.besseli(n, x) for n in range(4)]
        i0, i1, i2, i3 = values
        flat = ((i0, i1, (i0 + i2) / 2), (i1, (i0 + i2) / 2, (3 * i1 + i3) / 4))[int(op[1])]
        if not op.endswith("e"):
            return flat[1], flat[2]
        sign, shrunk = mp.sign(x), mp.exp(-abs(x))
        return shrunk * (flat[1] - sign * flat[0]), shrunk * (flat[2] - 2 * sign * flat[1] + sign**2 * flat[0])


@pytest.mark.parametrize("op", OPS)
def test_values(op: str) -> None:
    x = np.concatenate([X, 10.0 ** RNG.uniform(3, 300, 50)])
    errors = exactly.units(run(op, x), lambda t: exact(op, t), x)
    assert errors.max() <= BOUNDS[op], exactly.worst(errors, x)


@pytest.mark.parametrize("op", OPS)
def test_values_in_float32(op: str) -> None:
    x = np.concatenate([X[np.abs(X) < 1e30], 10.0 ** RNG.uniform(3, 30, 20)]).astype("float32")
    errors = exactly.units(run(op, x), lambda t: exact(op, t), x)
    assert errors.max() <= BOUNDS[op], exactly.worst(errors, x)


@pytest.mark.parametrize("op", OPS)
def test_derivatives(op: str) -> None:
    """The errors are relative, except near zeros, where they are relative to the terms."""
    x = X[np.abs(X) < 700]
    _, first, second = derivatives(op, x)
    expected = np.array([[float(d) for d in by_recurrence(op, mp.mpf(t))] for t in x.tolist()]).T
    np.testing.assert_allclose(first, expected[0], 64 * EPS, 64 * EPS * (op == "i1e"))
    size = np.abs(x)
    parts = np.maximum(1, size) ** -2.5 if op.endswith("e") else np.minimum(1, size)
    assert (np.abs(second - expected[1]) <= 128 * EPS * (np.abs(expected[1]) + parts)).all()


def test_second_derivative_of_i1_near_zero() -> None:
    """I₁″(x) = 3x/8 + 5x³/96 + …: dividing by x twice would lose all digits."""
    x = np.array([1e-300, 1e-9, -1e-5, 1e-3])
    np.testing.assert_allclose(derivatives("i1", x)[2], 3 * x / 8 + 5 * x**3 / 96, 1e-12)
    np.testing.assert_allclose(derivatives("i1", np.zeros(1), by=(0, 0, 0))[3], 3 / 8)


def test_second_derivatives_of_i0e_and_i1e_at_zero() -> None:
    """The two sides differ; at 0, the formula uses sign(0) = 0, as in PyTorch and JAX."""
    x = np.array([-5e-324, 0.0, 5e-324])
    np.testing.assert_array_equal(derivatives("i0e", x)[2], [1.5, 0.5, 1.5])
    np.testing.assert_array_equal(derivatives("i1e", x)[2], [1, 0, -1])


def test_zero_infinities_and_nan() -> None:
    x = np.array([0.0, -0.0, INF, -INF, NAN, 800.0, -800.0])
    np.testing.assert_array_equal(run("i0", x), [1, 1, INF, INF, NAN, INF, INF])
    np.testing.assert_array_equal(run("i1", x), [0, 0, INF, -INF, NAN, INF, -INF])
    np.testing.assert_array_equal(run("i0e", x)[:5], [1, 1, 0, 0, NAN])
    np.testing.assert_array_equal(run("i1e", x)[:5], [0, 0, 0, 0, NAN])
    assert np.signbit(run("i1", x[:2])).tolist() == np.signbit(run("i1e", x[:2])).tolist() == [False, True]
    np.testing.assert_array_equal(derivatives("i0", x, by=0)[1], [0, 0, INF, -INF, NAN, INF, -INF])
    np.testing.assert_array_equal(derivatives("i1", x, by=0)[1], [0.5, 0.5, INF, INF, NAN, INF, INF])
    np.testing.assert_array_equal(derivatives("i0e", x, by=0)[1][:5], [0, 0, 0, 0, NAN])
    np.testing.assert_array_equal(derivatives("i1e", x, by=0)[1][:5], [0.5, 0.5, 0, 0, NAN])


def test_i1_derivatives_near_the_end_of_the_series() -> None:
    """First and second derivatives, against SciPy."""
    ivp = pytest.importorskip("scipy.special").ivp
    x = np.array([-1.25, -0.9, 0.25, 0.75, 1.0, 1.5])
    value, first, second = (ivp(1, x, order) for order in range(3))
    for actual, expected in zip(derivatives("i1", x), (value, first, second), strict=True):
        np.testing.assert_allclose(actual, expected, 1e-14)
    sign, shrunk = np.sign(x), np.exp(-np.abs(x))
    scaled_ones = value, first - sign * value, second - 2 * sign * first + value
    for actual, expected in zip(derivatives("i1e", x), scaled_ones, strict=True):
        np.testing.assert_allclose(actual, shrunk * expected, 1e-13, 1e-15)
