"""Divided differences without cancellation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.autodiff.vjp import vjp
from engine.ir.graph import Value
from engine.ops.linalg import symmetric_function as symmetric_slope
from tests.engine.ops.matrices import evaluate, real

linalg = pytest.importorskip("scipy.linalg")
Array = np.ndarray[Any, Any]

W = np.array([[1.0, 1.0 + 2**-40, 1.5, 3.0, 1e9, 0.3, 0.1]])


def test_divided_differences_of_sqrt_and_log() -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for function in ("sqrt", "log"):
            apply = getattr(mpmath, function)
            actual = symmetric_slope._divided_differences(np, W, function)[0]
            for i, a in enumerate(map(mpmath.mpf, W[0])):
                for j, b in enumerate(map(mpmath.mpf, W[0])):
                    expected = mpmath.diff(apply, a) if i == j else (apply(a) - apply(b)) / (a - b)
                    assert abs(actual[i, j] / expected - 1) < 1e-15


def symmetric(x: Array) -> Array:
    return x + x.swapaxes(-1, -2)


def with_eigenvalues(*values: float) -> Array:
    """Return a matrix with these eigenvalues."""
    rotation, _ = np.linalg.qr(real(len(values), len(values)))
    return symmetric(rotation * np.array(values) @ rotation.T / 2)


#: eigenvalues that are close, far apart, and equal
X = np.stack([with_eigenvalues(1.0, 1.2, 30.0), with_eigenvalues(0.5, 2.0, 2.1), 2 * np.eye(3)])


def root_slope(x: Array, e: Array) -> Array:
    """Solve r y + y r = e for y, where r = √x."""
    return np.array([linalg.solve_sylvester(linalg.sqrtm(a), linalg.sqrtm(a), b) for a, b in zip(x, e, strict=True)])


@pytest.mark.parametrize("function", ["sqrt", "log"])
def test_slope_inverts_the_slope_of_the_inverse_function(function: str) -> None:
    """Also decomposed; on matrices with one batch axis, with two, and on an empty batch."""
    e = symmetric(real(3, 3, 3))

    def write(a: Value, b: Value) -> list[Value]:
        result = symmetric_slope.symmetric_slope(a, b, function)
        return [result, *result.node.op.written_out(a, b, function=function)]

    actual, decomposed = evaluate(write, X, e)
    np.testing.assert_allclose(decomposed, actual, 1e-11, 1e-13)
    if function == "sqrt":
        np.testing.assert_allclose(actual, root_slope(X, e), 1e-11, 1e-13)
    else:
        recovered = [linalg.expm_frechet(linalg.logm(a), y, compute_expm=False) for a, y in zip(X, actual, strict=True)]
        np.testing.assert_allclose(recovered, e, 1e-11, 1e-12)
    for each in evaluate(write, X[:, None], e[:, None]):
        np.testing.assert_allclose(each[:, 0], actual, 1e-11, 1e-13)
    (empty,) = evaluate(lambda a, b: [symmetric_slope.symmetric_slope(a, b, function)], X[:0], e[:0])
    assert empty.shape == (0, 3, 3)


@pytest.mark.parametrize("function", ["sqrt", "log"])
def test_derivatives_of_the_slope(function: str) -> None:
    e, h, direction = (symmetric(real(3, 3, 3)) for _ in range(3))

    def slope(a: Value, b: Value) -> list[Value]:
        return [symmetric_slope.symmetric_slope(a, b, function)]

    def gradients(a: Value, b: Value, c: Value) -> list[Value]:
        return [derivative for derivative in vjp(a.builder, [(slope(a, b)[0], c)], [a, b]) if derivative is not None]

    by_x, by_e = evaluate(gradients, X, e, h)
    np.testing.assert_allclose(by_e, evaluate(slope, X, h)[0], 1e-12, 1e-13)
    ahead, behind = (evaluate(slope, X + step * direction, e)[0] for step in (1e-5, -1e-5))
    difference = (h * (ahead - behind)).sum((-1, -2)) / 2e-5
    np.testing.assert_allclose((by_x * direction).sum((-1, -2)), difference, 1e-7, 1e-8)


@pytest.mark.parametrize("function", ["sqrt", "rsqrt", "exp", "log"])
def test_function_slope_matches_finite_differences(function: str) -> None:
    """Slope of v f(w) vᵀ."""
    e = symmetric(real(3, 3, 3))
    apply: Any = {"rsqrt": lambda w: w**-0.5}.get(function) or getattr(np, function)

    def value(x: Array) -> Array:
        w, v = np.linalg.eigh(x)
        return (v * apply(w)[..., None, :]) @ v.swapaxes(-1, -2)

    x = X / 8
    difference = (value(x + 1e-5 * e) - value(x - 1e-5 * e)) / 2e-5
    (actual,) = evaluate(lambda *values: [symmetric_slope.function_slope(*values, function)], x, value(x), e)
    np.testing.assert_allclose(actual, difference, 1e-6, 1e-7 * np.abs(difference).max())
