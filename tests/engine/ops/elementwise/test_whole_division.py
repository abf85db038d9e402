"""Integer division: Python's operators are the reference, and exact fractions for C's truncation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.engine.ops.run import grads, run

A = np.arange(-13, 14)
B = np.array([-5, -3, -1, 1, 2, 7])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
def test_every_sign_matches_python_and_c(dtype: str) -> None:
    a, b = A.astype(dtype)[:, None], B.astype(dtype)
    floored = [[x // y for y in B.tolist()] for x in A.tolist()]
    truncated = [[math.trunc(Fraction(x, y)) for y in B.tolist()] for x in A.tolist()]
    np.testing.assert_array_equal(run("floor_div", a, b), np.array(floored, dtype))
    np.testing.assert_array_equal(run("trunc_div", a, b), np.array(truncated, dtype))
    np.testing.assert_array_equal(run("rem", a, b), a - b * np.array(truncated, dtype))
    np.testing.assert_array_equal(run("mod", a, b), a - b * np.array(floored, dtype))
    assert run("trunc_div", a, b).dtype == run("rem", a, b).dtype == dtype


def test_large_integers_are_exact() -> None:
    pairs = [(2**63 - 1, 10), (-(2**63), 10), (-(2**63) + 1, -7)]
    a, b = np.array(pairs).T
    np.testing.assert_array_equal(run("trunc_div", a, b), [math.trunc(Fraction(x, y)) for x, y in pairs])
    np.testing.assert_array_equal(run("floor_div", a, b), [x // y for x, y in pairs])


@pytest.mark.parametrize("op", ["floor_div", "trunc_div", "rem"])
def test_division_by_zero(op: str) -> None:
    np.testing.assert_array_equal(run(op, np.array([3, 0, -3]), np.array(0)), [0, 0, 0])
    actual = run(op, np.array([3.0, 0.0, -3.0]), np.array(0.0))
    expected = [math.nan] * 3 if op == "rem" else [math.inf, math.nan, -math.inf]
    np.testing.assert_array_equal(actual, expected)


def test_gradients_of_rem() -> None:
    """rem is a − b · t with t = trunc(a / b): the gradient is 1 for a, and −t for b."""
    a, b = np.array([7.5, -7.5, 7.5, -7.5, 0.5]), np.array([2.0, 2.0, -2.0, -2.0, 2.0])
    _, (grad_a, grad_b) = grads("rem", a, b)
    np.testing.assert_array_equal(grad_a, np.ones(5))
    np.testing.assert_array_equal(grad_b, [-3.0, 3.0, 3.0, -3.0, 0.0])
