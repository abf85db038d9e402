"""Cofactors: the exclusive products they use, and their decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.autodiff.vjp import vjp
from engine.ir.graph import Value
from engine.ops.linalg import lu as cofactors
from engine.ops.linalg.lu import Cofactors
from tests.engine.ops.matrices import evaluate, regular

Array = np.ndarray[Any, Any]


def test_exclusive_products() -> None:
    s = np.array([[2.0, 3.0, 5.0], [7.0, 0.0, 2.0], [0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(cofactors._products_of_others(np, s), [[15, 10, 6], [0, 14, 0], [0, 0, 0]])
    assert cofactors._products_of_others(np, np.array([[4.0]])) == 1


@pytest.mark.parametrize("is_complex", [False, True])
def test_decomposition_uses_the_inverse(is_complex: bool) -> None:
    x = regular(2, 3, 3) + (1j * regular(2, 3, 3) if is_complex else 0)
    actual, decomposed = evaluate(lambda a: [cofactors.cofactors(a), *Cofactors().written_out(a)], x)
    np.testing.assert_allclose(actual, decomposed, 1e-12, 1e-13)
    expected = np.linalg.det(x)[:, None, None] * np.linalg.inv(x).swapaxes(-1, -2)
    np.testing.assert_allclose(actual, expected, 1e-12, 1e-13)


def test_derivative_matches_finite_differences() -> None:
    """Derivatives of several matrices along a direction."""
    x, g, direction = regular(2, 3, 3), regular(2, 3, 3)[::-1], np.cos(np.arange(18.0)).reshape(2, 3, 3)

    def gradient(a: Value, c: Value) -> list[Value]:
        return [
            derivative for derivative in vjp(a.builder, [(cofactors.cofactors(a), c)], [a]) if derivative is not None
        ]

    def total(matrix: Array) -> Array:
        return (g * np.linalg.det(matrix)[:, None, None] * np.linalg.inv(matrix).swapaxes(-1, -2)).sum((-1, -2))

    (actual,) = evaluate(gradient, x, g)
    difference = (total(x + 1e-5 * direction) - total(x - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose((actual * direction).sum((-1, -2)), difference, 1e-7)
