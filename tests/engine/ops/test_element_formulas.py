"""Formulas of ops, as fused kernels read them, built anew for each test, against closed forms, infinities and zeros.

The engine caches a formula for the whole process once it is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import registry
from engine.codegen.kernels.blocks import WholeArrayKernel
from engine.codegen.kernels.program import KernelBuilder, Level
from engine.ir.run_context import RunContext
from engine.ops.elementwise.base import Elementwise
from engine.ops.reduce.sums import Rowwise

Array = np.ndarray[Any, Any]
INF, NAN = math.inf, math.nan
POINTS = np.array([-INF, -700.0, -40.0, -2.5, -1.0, -1e-3, -0.0, 0.0, 1e-3, 0.5, 1.0, 3.0, 40.0, 700.0, INF, NAN])


def run_kernel(builder: KernelBuilder, arrays: list[Array], shape: tuple[int, ...]) -> Array:
    """Run the kernel and return its result."""
    result: Array = np.empty(shape, builder.dtype)
    with np.errstate(all="ignore"):
        WholeArrayKernel(builder.build(), np.dtype(builder.dtype)).fill(RunContext(np), arrays, [result])
    return result


def by_formula(name: str, *arrays: Array, **attrs: Any) -> Array | None:
    """Return an op's values by its formula; None if it has none."""
    op = registry().ops[name]
    assert isinstance(op, Elementwise)
    builder = KernelBuilder(next(a.dtype.name for a in arrays if a.dtype.kind == "f"))
    scalar = op.write_scalar(
        [builder.load(Level.ELEMENT, "bool" if a.dtype.kind == "b" else "float") for a in arrays], attrs
    )
    if scalar is None:
        return None
    builder.store("element", scalar)
    return run_kernel(builder, list(arrays), arrays[0].shape)


def row_by_formula(name: str, x: list[float], **attrs: Any) -> list[float]:
    """Return an op's values for one row, by its formula."""
    op, row = registry().ops[name], np.array([x])
    assert isinstance(op, Rowwise)
    builder = KernelBuilder("float64")
    scalar = op.row_scalar(builder.load(Level.ELEMENT), len(x), attrs)
    builder.store("row" if scalar.level == Level.ROW else "element", scalar)
    values: list[float] = run_kernel(builder, [row], (1, 1 if scalar.level == Level.ROW else len(x)))[0].tolist()
    return values


def vectorized(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return np.vectorize(function, otypes=[np.float64])


def logistic(x: Array) -> Array:
    return np.where(x > 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


def softplus(x: Array) -> Array:
    return np.where(x > 30, x, np.log1p(np.exp(x)))


FORMS: list[tuple[str, dict[str, Any], Callable[[Array], Array]]] = [
    *(("pow_scalar", {"exponent": n}, lambda x, n=n: x**n) for n in (0, 0.5, 1, 2, 3, 4)),
    ("pow_scalar", {"exponent": -1}, lambda x: 1 / x),
    ("pow_scalar", {"exponent": -2}, lambda x: 1 / (x * x)),
    ("pow_scalar", {"exponent": -0.5}, lambda x: np.where(x == 0, INF, 1 / np.sqrt(x))),  # also for −0
    ("reciprocal", {}, lambda x: 1 / x),
    ("rsqrt", {}, lambda x: 1 / np.sqrt(x)),
    ("square", {}, lambda x: x * x),
    ("sigmoid", {}, logistic),
    ("softplus", {}, softplus),
    ("log_sigmoid", {}, lambda x: -softplus(-x)),
    ("erf", {}, vectorized(math.erf)),
    ("erfc", {}, vectorized(math.erfc)),
    ("sign", {}, np.sign),
    ("relu", {"at_zero": 0.5}, lambda x: np.where(x < 0, 0.0, x)),
    ("leaky_relu", {"alpha": 0.25}, lambda x: np.where(x > 0, x, x * 0.25)),
    ("leaky_relu", {"alpha": -2.0}, lambda x: np.where(x > 0, x, x * -2.0)),
    ("elu", {"alpha": 0.5}, lambda x: np.where(x > 0, x, np.expm1(x) * 0.5)),
    ("elu", {"alpha": -2.0}, lambda x: np.where(x > 0, x, np.expm1(x) * -2.0)),
    ("add_scalar", {"scalar": 3.0}, lambda x: x + 3),
    ("sub_scalar", {"scalar": 3.0}, lambda x: x - 3),
    ("mul_scalar", {"scalar": 3.0}, lambda x: x * 3),
    ("div_scalar", {"scalar": 3.0}, lambda x: x / 3),
]


@pytest.mark.parametrize(("name", "attrs", "form"), FORMS, ids=[f"{n}-{a}" for n, a, _ in FORMS])
def test_formula_matches_closed_form(name: str, attrs: dict[str, Any], form: Callable[[Array], Array]) -> None:
    actual = by_formula(name, POINTS, **attrs)
    with np.errstate(all="ignore"):
        expected = form(POINTS)
    assert actual is not None
    np.testing.assert_allclose(actual, expected, 1e-14, 1e-300)


@pytest.mark.parametrize("op", ["elu", "leaky_relu"])
def test_zero_takes_the_negative_branch(op: str) -> None:
    actual = by_formula(op, np.array([0.0]), alpha=-2.0)
    assert actual is not None
    assert np.signbit(actual[0])


def test_general_power_has_no_formula() -> None:
    for exponent in (-3, -1.5, 1.5, 2.5, 5):
        assert by_formula("pow_scalar", POINTS, exponent=exponent) is None


def test_logaddexp_formula() -> None:
    a, b = (np.ravel(x) for x in np.meshgrid(POINTS, POINTS))
    actual = by_formula("logaddexp", a, b)
    with np.errstate(all="ignore"):
        expected = np.logaddexp(a, b)
    assert actual is not None
    np.testing.assert_allclose(actual, expected, 1e-14)


def test_where_accepts_bool_and_float_branches() -> None:
    flags = np.signbit(POINTS)
    for pair in ((POINTS, flags), (flags, POINTS), (POINTS, -POINTS)):
        actual = by_formula("where", flags, *pair)
        assert actual is not None
        np.testing.assert_array_equal(actual, np.where(flags, *pair))


def test_softmax_and_logsumexp_rows() -> None:
    x = [math.log(1), math.log(2), math.log(5)]
    np.testing.assert_allclose(row_by_formula("softmax", x), [1 / 8, 2 / 8, 5 / 8], 1e-14)
    np.testing.assert_allclose(row_by_formula("log_softmax", x), np.log([1 / 8, 2 / 8, 5 / 8]), 1e-14)
    np.testing.assert_allclose(row_by_formula("logsumexp", x), [math.log(8)], 1e-14)
    assert row_by_formula("logsumexp", [-INF, -INF]) == [-INF]
    assert row_by_formula("logsumexp", [INF, 1.0]) == [INF]


def test_mean_and_variance_rows() -> None:
    x = [1.0, 2.0, 6.0, 7.0]
    assert row_by_formula("var", x, ddof=0) == [6.5]
    assert row_by_formula("var", x, ddof=1) == [26 / 3]
    assert row_by_formula("mean", x) == [4.0]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(row_by_formula("var", [1.0, 3.0], ddof=2), [INF])
        np.testing.assert_array_equal(row_by_formula("var", [1.0, 3.0], ddof=3), [INF])
        np.testing.assert_array_equal(row_by_formula("var", [1.0], ddof=1), [NAN])
