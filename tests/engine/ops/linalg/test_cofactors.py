"""Cofactors: products of others, and what they are written out as."""

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


def test_products_of_others() -> None:
    s = np.array([[2.0, 3.0, 5.0], [7.0, 0.0, 2.0], [0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(cofactors._products_of_others(np, s), [[15, 10, 6], [0, 14, 0], [0, 0, 0]])
    assert cofactors._products_of_others(np, np.array([[4.0]])) == 1


@pytest.mark.parametrize("is_complex", [False, True])
def test_they_are_written_out_by_the_inverse(is_complex: bool) -> None:
    x = regular(2, 3, 3) + (1j * regular(2, 3, 3) if is_complex else 0)
    found, written = evaluate(lambda a: [cofactors.cofactors(a), *Cofactors().written_out(a)], x)
    np.testing.assert_allclose(found, written, 1e-12, 1e-13)
    wanted = np.linalg.det(x)[:, None, None] * np.linalg.inv(x).swapaxes(-1, -2)
    np.testing.assert_allclose(found, wanted, 1e-12, 1e-13)


def test_their_derivative_is_the_difference() -> None:
    """Of several matrices, along a direction."""
    x, g, way = regular(2, 3, 3), regular(2, 3, 3)[::-1], np.cos(np.arange(18.0)).reshape(2, 3, 3)

    def gradient(a: Value, c: Value) -> list[Value]:
        return [found for found in vjp(a.builder, [(cofactors.cofactors(a), c)], [a]) if found is not None]

    def total(at: Array) -> Array:
        return (g * np.linalg.det(at)[:, None, None] * np.linalg.inv(at).swapaxes(-1, -2)).sum((-1, -2))

    (found,) = evaluate(gradient, x, g)
    difference = (total(x + 1e-5 * way) - total(x - 1e-5 * way)) / 2e-5
    np.testing.assert_allclose((found * way).sum((-1, -2)), difference, 1e-7)
