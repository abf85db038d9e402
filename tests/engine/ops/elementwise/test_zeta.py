"""zeta and its derivatives against forty digits, at its poles and between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.engine.ops.derivatives import derivatives
from tests.engine.ops.run import run

mp = pytest.importorskip("mpmath")
exactly = pytest.importorskip("tests.engine.ops.exactly")

Array = np.ndarray[Any, Any]
INF, NAN = math.inf, math.nan


def points() -> tuple[Array, Array]:
    """Points near the pole in s, and far from it; q from 10⁻³ to 10⁵."""
    rng = np.random.default_rng(2)
    s = np.concatenate([1 + 10 ** rng.uniform(-6, 2, 40), rng.uniform(1.05, 12, 30)])
    q = np.concatenate([10 ** rng.uniform(-3, 5, 40), rng.uniform(0.1, 40, 30)])
    inside = s * np.abs(np.log(q)) < 600
    return s[inside], q[inside]


S, Q = points()
with mp.workdps(60):
    #: Bernoulli's numbers B₂ₖ over (2k)!
    WEIGHTS = [mp.bernoulli(2 * k) / mp.factorial(2 * k) for k in range(1, 25)]


def exact(s: Any, q: Any, order: int = 0) -> Any:
    """ζ and its derivatives with respect to s, by the Euler–Maclaurin formula in many digits."""
    with mp.workdps(60):
        s, q = mp.mpf(s), mp.mpf(q)

        def value(z: Any) -> Any:
            w = q + 60
            head = mp.fsum((q + k) ** -z for k in range(60))
            tail = w ** (1 - z) / (z - 1) + w**-z / 2
            weights = [mp.bernoulli(2 * k) / mp.factorial(2 * k) for k in range(1, 25)]
            return (
                head + tail + mp.fsum(b * mp.rf(z, 2 * k - 1) * w ** (1 - z - 2 * k) for k, b in enumerate(weights, 1))
            )

        step = (s - 1) * mp.mpf(10) ** -15
        if order == 0:
            return value(s)
        if order == 1:
            return (value(s + step) - value(s - step)) / (2 * step)
        return (value(s + step) - 2 * value(s) + value(s - step)) / step**2


def first_term(order: int) -> Array:
    """The size of the first term of a derivative, whose logarithm may be negative; all other terms are positive."""
    return np.abs(np.log(Q)) ** order * Q**-S


def test_values() -> None:
    errors = exactly.units(run("zeta", S, Q), exact, S, Q)
    assert errors.max() <= 8, exactly.worst(errors, S, Q)


def test_derivatives_with_respect_to_q() -> None:
    _, first, second = derivatives("zeta", S, Q, by=(1, 1))
    for actual, order in ((first, 1), (second, 2)):
        factor = (-1) ** order * np.prod([S + i for i in range(order)], axis=0)
        expected = [float(exact(s + order, q)) for s, q in zip(S.tolist(), Q.tolist(), strict=True)]
        np.testing.assert_allclose(actual, factor * expected, 1e-12)


@pytest.mark.slow
def test_derivatives_with_respect_to_s() -> None:
    _, first, second = derivatives("zeta", S, Q, by=(0, 0))
    for actual, order in ((first, 1), (second, 2)):
        expected = np.array([float(exact(s, q, order)) for s, q in zip(S.tolist(), Q.tolist(), strict=True)])
        off = np.abs(actual - expected) / (np.abs(expected) + first_term(order))
        assert off.max() <= 1e-12, np.column_stack([S, Q, off, expected])[np.argsort(-off)[:4]]


@pytest.mark.slow
def test_mixed_derivatives() -> None:
    """∂²ζ/∂s∂q = −ζ(s + 1, q) − s ζ′(s + 1, q), in either order; with s first, 1 / (s − 1) cancels."""
    pairs = [*zip(S.tolist(), Q.tolist(), strict=True)]
    values = [(float(exact(s + 1, q)), float(exact(s + 1, q, 1))) for s, q in pairs]
    expected = np.array([-y - s * slope for (s, _), (y, slope) in zip(pairs, values, strict=True)])
    for by, lost in (((0, 1), 2.0**-51 / (S - 1)), ((1, 0), 0.0)):
        off = np.abs(derivatives("zeta", S, Q, by=by)[2] - expected) / (np.abs(expected) + S * first_term(1) / Q)
        assert (off <= 1e-12 + lost).all(), np.column_stack([S, Q, off, expected])[np.argsort(-off)[:4]]


def test_integer_exponents_match_polygamma() -> None:
    q = np.array([0.25, 3.5, -0.25, -1.5, -29.4, -1e9 - 0.25])
    for n, factorial in ((1, 1.0), (2, 2.0), (5, 120.0)):
        expected = run("polygamma", q, order=n) * (-1) ** (n + 1) / factorial
        np.testing.assert_allclose(run("zeta", np.full(6, n + 1.0), q), expected, 1e-14)


def test_poles_infinities_and_nan() -> None:
    s = np.array([1.0, 0.5, 2.0, 2.0, 2.5, 2.0, 3.0, 0.5, NAN, 2.0, 2.0])
    q = np.array([1.0, 1.0, 0.0, -3.0, -0.5, -1e17, -1e300, -2.0, 1.0, NAN, INF])
    np.testing.assert_array_equal(run("zeta", s, q), [INF, NAN, INF, INF, NAN, INF, INF, NAN, NAN, NAN, 0])
    assert derivatives("zeta", s[:1], q[:1], by=0)[1] == -INF
    assert derivatives("zeta", s[2:3], q[2:3], by=1)[1] == -INF
    for by in (0, 1):
        np.testing.assert_allclose(derivatives("zeta", s[-1:], q[-1:], by=by)[1], 0, atol=1e-300)


def test_narrow_floats_are_rounded_once() -> None:
    s, q = S.astype("float32"), Q.astype("float32")
    with np.errstate(over="ignore"):
        expected = run("zeta", s.astype("float64"), q.astype("float64")).astype("float32")
    np.testing.assert_array_equal(run("zeta", s, q), expected)


def test_negative_q_adds_terms_up_to_positive_q() -> None:
    special = pytest.importorskip("scipy.special")
    s, q = (a.ravel() for a in np.meshgrid([2.0, 3.0, 4.0], [-0.3, -0.5, -1.7, -2.5, -6.25]))
    reference = special.zeta(s, q + 7) + sum((q + k) ** -s for k in range(7))
    np.testing.assert_allclose(run("zeta", s, q), reference, 1e-13)
    whole = np.array([0.0, -1.0, -2.0])
    for exponent, expected in ((2.0, INF), (1.5, INF), (1.0, INF), (0.5, NAN)):
        np.testing.assert_array_equal(run("zeta", np.full(3, exponent), whole), [expected] * 3)
    np.testing.assert_array_equal(
        run("zeta", np.array([2.5, 2.5]), np.array([-0.5, 0.5])), [NAN, special.zeta(2.5, 0.5)]
    )


def test_derivative_with_respect_to_s_matches_mpmath() -> None:
    s, q = np.array([1.5, 2.0, 4.0, 9.0, 25.0]), np.array([0.5, 1.0, 3.0, 9.0, 20.0])
    with mp.workdps(40):
        expected = [float(mp.zeta(mp.mpf(a), mp.mpf(b), 1)) for a, b in zip(s.tolist(), q.tolist(), strict=True)]
    _, actual = derivatives("zeta", s, q, by=(0,))
    np.testing.assert_allclose(actual, expected, 1e-13)


def test_derivative_with_respect_to_s_with_a_long_tail() -> None:
    """The reference has two thousand terms; the rest is less than 1e-100 of the sum."""
    s, q = 120.0, 150.0
    with mp.workdps(60):
        expected = -mp.fsum(mp.log(mp.mpf(q) + k) * (mp.mpf(q) + k) ** -mp.mpf(s) for k in range(2000))
    _, actual = derivatives("zeta", np.array([s]), np.array([q]), by=(0,))
    np.testing.assert_allclose(actual, [float(expected)], 1e-12)


def test_derivative_with_respect_to_s_without_a_tail() -> None:
    _, actual = derivatives("zeta", np.array([300.0, 1e200]), np.array([1.0, 1.0]), by=(0,))
    np.testing.assert_allclose(actual, [-math.log(2) * 2.0**-300, 0.0], 1e-12)
