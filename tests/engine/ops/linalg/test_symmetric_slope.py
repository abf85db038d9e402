"""Divided differences in forms that cancel nothing."""

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


def test_of_roots_and_logarithms() -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for function in ("sqrt", "log"):
            apply = getattr(mpmath, function)
            found = symmetric_slope._divided_differences(np, W, function)[0]
            for i, a in enumerate(map(mpmath.mpf, W[0])):
                for j, b in enumerate(map(mpmath.mpf, W[0])):
                    wanted = mpmath.diff(apply, a) if i == j else (apply(a) - apply(b)) / (a - b)
                    assert abs(found[i, j] / wanted - 1) < 1e-15


def symmetric(x: Array) -> Array:
    return x + x.swapaxes(-1, -2)


def of_values(*values: float) -> Array:
    """A matrix with these eigenvalues."""
    turned, _ = np.linalg.qr(real(len(values), len(values)))
    return symmetric(turned * np.array(values) @ turned.T / 2)


#: eigenvalues that are close, far apart, and equal
X = np.stack([of_values(1.0, 1.2, 30.0), of_values(0.5, 2.0, 2.1), 2 * np.eye(3)])


def root_slope(x: Array, e: Array) -> Array:
    """r y + y r = e, r = √x."""
    return np.array([linalg.solve_sylvester(linalg.sqrtm(a), linalg.sqrtm(a), b) for a, b in zip(x, e, strict=True)])


@pytest.mark.parametrize("function", ["sqrt", "log"])
def test_the_slope_is_the_inverse_function_s_turned_round(function: str) -> None:
    """Also written out; of matrices along one axis, along two, and of none."""
    e = symmetric(real(3, 3, 3))

    def write(a: Value, b: Value) -> list[Value]:
        made = symmetric_slope.symmetric_slope(a, b, function)
        return [made, *made.node.op.written_out(a, b, function=function)]

    found, written = evaluate(write, X, e)
    np.testing.assert_allclose(written, found, 1e-11, 1e-13)
    if function == "sqrt":
        np.testing.assert_allclose(found, root_slope(X, e), 1e-11, 1e-13)
    else:
        again = [linalg.expm_frechet(linalg.logm(a), y, compute_expm=False) for a, y in zip(X, found, strict=True)]
        np.testing.assert_allclose(again, e, 1e-11, 1e-12)
    for each in evaluate(write, X[:, None], e[:, None]):
        np.testing.assert_allclose(each[:, 0], found, 1e-11, 1e-13)
    (empty,) = evaluate(lambda a, b: [symmetric_slope.symmetric_slope(a, b, function)], X[:0], e[:0])
    assert empty.shape == (0, 3, 3)


@pytest.mark.parametrize("function", ["sqrt", "log"])
def test_its_derivatives_are_itself_and_its_difference(function: str) -> None:
    e, h, way = (symmetric(real(3, 3, 3)) for _ in range(3))

    def slope(a: Value, b: Value) -> list[Value]:
        return [symmetric_slope.symmetric_slope(a, b, function)]

    def gradients(a: Value, b: Value, c: Value) -> list[Value]:
        return [found for found in vjp(a.builder, [(slope(a, b)[0], c)], [a, b]) if found is not None]

    by_x, by_e = evaluate(gradients, X, e, h)
    np.testing.assert_allclose(by_e, evaluate(slope, X, h)[0], 1e-12, 1e-13)
    ahead, behind = (evaluate(slope, X + step * way, e)[0] for step in (1e-5, -1e-5))
    difference = (h * (ahead - behind)).sum((-1, -2)) / 2e-5
    np.testing.assert_allclose((by_x * way).sum((-1, -2)), difference, 1e-7, 1e-8)


@pytest.mark.parametrize("function", ["sqrt", "rsqrt", "exp", "log"])
def test_functions_slopes_are_differences(function: str) -> None:
    """Of v f(w) vᵀ."""
    e = symmetric(real(3, 3, 3))
    apply: Any = {"rsqrt": lambda w: w**-0.5}.get(function) or getattr(np, function)

    def value(x: Array) -> Array:
        w, v = np.linalg.eigh(x)
        return (v * apply(w)[..., None, :]) @ v.swapaxes(-1, -2)

    x = X / 8
    difference = (value(x + 1e-5 * e) - value(x - 1e-5 * e)) / 2e-5
    (found,) = evaluate(lambda *values: [symmetric_slope.function_slope(*values, function)], x, value(x), e)
    np.testing.assert_allclose(found, difference, 1e-6, 1e-7 * np.abs(difference).max())
