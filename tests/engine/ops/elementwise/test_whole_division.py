"""Whole quotients: Python's own are the reference, and C's by way of exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.engine.ops.run import grads, run

A = np.arange(-13, 14)
B = np.array([-5, -3, -1, 1, 2, 7])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
def test_every_sign_is_pythons_and_cs(dtype: str) -> None:
    a, b = A.astype(dtype)[:, None], B.astype(dtype)
    down = [[x // y for y in B.tolist()] for x in A.tolist()]
    towards_0 = [[math.trunc(Fraction(x, y)) for y in B.tolist()] for x in A.tolist()]
    np.testing.assert_array_equal(run("floor_div", a, b), np.array(down, dtype))
    np.testing.assert_array_equal(run("trunc_div", a, b), np.array(towards_0, dtype))
    np.testing.assert_array_equal(run("rem", a, b), a - b * np.array(towards_0, dtype))
    np.testing.assert_array_equal(run("mod", a, b), a - b * np.array(down, dtype))
    assert run("trunc_div", a, b).dtype == run("rem", a, b).dtype == dtype


def test_large_ones_lose_no_digit() -> None:
    pairs = [(2**63 - 1, 10), (-(2**63), 10), (-(2**63) + 1, -7)]
    a, b = np.array(pairs).T
    np.testing.assert_array_equal(run("trunc_div", a, b), [math.trunc(Fraction(x, y)) for x, y in pairs])
    np.testing.assert_array_equal(run("floor_div", a, b), [x // y for x, y in pairs])


@pytest.mark.parametrize("op", ["floor_div", "trunc_div", "rem"])
def test_by_zero(op: str) -> None:
    np.testing.assert_array_equal(run(op, np.array([3, 0, -3]), np.array(0)), [0, 0, 0])
    found = run(op, np.array([3.0, 0.0, -3.0]), np.array(0.0))
    expected = [math.nan] * 3 if op == "rem" else [math.inf, math.nan, -math.inf]
    np.testing.assert_array_equal(found, expected)


def test_a_remainder_has_the_slopes_of_its_pieces() -> None:
    """a − b · t, where t is a / b without its fraction: 1 by a, −t by b."""
    a, b = np.array([7.5, -7.5, 7.5, -7.5, 0.5]), np.array([2.0, 2.0, -2.0, -2.0, 2.0])
    _, (by_a, by_b) = grads("rem", a, b)
    np.testing.assert_array_equal(by_a, np.ones(5))
    np.testing.assert_array_equal(by_b, [-3.0, 3.0, 3.0, -3.0, 0.0])
