"""Cofactors: products of others, and what they are written out as."""

from __future__ import annotations

import numpy as np

from engine.oplib import cofactors
from engine.oplib.cofactors import Cofactors
from tests.engine.ops.matrices import evaluate, regular


def test_products_of_others() -> None:
    s = np.array([[2.0, 3.0, 5.0], [7.0, 0.0, 2.0], [0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(cofactors._products_of_others(np, s), [[15, 10, 6], [0, 14, 0], [0, 0, 0]])
    assert cofactors._products_of_others(np, np.array([[4.0]])) == 1


def test_they_are_written_out_by_the_inverse() -> None:
    x = regular(2, 3, 3)
    found, written = evaluate(lambda a: [cofactors.cofactors(a), *Cofactors().written_out(a)], x)
    np.testing.assert_allclose(found, written, 1e-12, 1e-13)
    wanted = np.linalg.det(x)[:, None, None] * np.linalg.inv(x).swapaxes(-1, -2)
    np.testing.assert_allclose(found, wanted, 1e-12, 1e-13)
