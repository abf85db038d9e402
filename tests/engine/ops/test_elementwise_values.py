"""Elementwise ops against closed forms: value, first and second derivative, at ordinary and extreme points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.engine.ops.derivatives import derivatives
from tests.engine.ops.run import run

Function = Callable[[Any], Any]

RTOL, ATOL = 1e-7, 1e-9
SIZES = [1e-8, 1e-3, 0.1, 0.5, 0.9, 1.1, 2, 5, 10, 30]
HUGE = [100, 700, 745, 800, 1e10, 1e100, 1e160, 1e300]
REAL = np.array([s * x for x in SIZES for s in (1, -1)])
WIDE = np.array([s * x for x in SIZES + HUGE for s in (1, -1)])
POSITIVE = np.array([*SIZES, 1e10, 1e100, 1e-100])
INSIDE = np.array([s * x for x in (1e-10, 0.1, 0.5, 0.9, 0.999) for s in (1, -1)])
ABOVE_ONE = np.array([1 + 1e-6, 1.1, 2, 10, 1e10, 1e150])


def sigmoid(x: Any) -> Any:
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


def slope_of_sigmoid(x: Any) -> Any:
    return sigmoid(x) * sigmoid(-x)


def bell(x: Any) -> Any:
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def normal(x: Any) -> Any:
    return np.vectorize(math.erfc)(-x / math.sqrt(2)) / 2


SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717

FORMS: dict[str, tuple[np.ndarray[Any, Any], Function, Function, Function]] = {
    "neg": (WIDE, lambda x: -x, lambda x: -1 + 0 * x, lambda x: 0 * x),
    "abs": (WIDE, lambda x: np.where(x < 0, -x, x), np.sign, lambda x: 0 * x),
    "square": (REAL, lambda x: x**2, lambda x: 2 * x, lambda x: 2 + 0 * x),
    "reciprocal": (REAL, lambda x: x**-1, lambda x: -(x**-2), lambda x: 2 * x**-3),
    "sqrt": (POSITIVE, lambda x: x**0.5, lambda x: x**-0.5 / 2, lambda x: -(x**-1.5) / 4),
    "rsqrt": (POSITIVE, lambda x: x**-0.5, lambda x: -(x**-1.5) / 2, lambda x: x**-2.5 * 3 / 4),
    "exp": (REAL, np.exp, np.exp, np.exp),
    "expm1": (REAL, np.expm1, np.exp, np.exp),
    "log": (POSITIVE, np.log, lambda x: 1 / x, lambda x: -(x**-2)),
    "log2": (POSITIVE, np.log2, lambda x: 1 / x / math.log(2), lambda x: -(x**-2) / math.log(2)),
    "log1p": (POSITIVE, np.log1p, lambda x: 1 / (1 + x), lambda x: -((1 + x) ** -2)),
    "sin": (REAL, np.sin, np.cos, lambda x: -np.sin(x)),
    "cos": (REAL, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)),
    "tan": (REAL, np.tan, lambda x: np.cos(x) ** -2, lambda x: 2 * np.tan(x) * np.cos(x) ** -2),
    "asin": (INSIDE, np.arcsin, lambda x: (1 - x**2) ** -0.5, lambda x: x * (1 - x**2) ** -1.5),
    "acos": (INSIDE, np.arccos, lambda x: -((1 - x**2) ** -0.5), lambda x: -x * (1 - x**2) ** -1.5),
    "atan": (REAL, np.arctan, lambda x: 1 / (1 + x**2), lambda x: -2 * x / (1 + x**2) ** 2),
    "sinh": (REAL, np.sinh, np.cosh, np.sinh),
    "cosh": (REAL, np.cosh, np.sinh, np.cosh),
    "tanh": (WIDE, np.tanh, lambda x: np.cosh(x) ** -2, lambda x: -2 * np.tanh(x) * np.cosh(x) ** -2),
    "asinh": (REAL, np.arcsinh, lambda x: (x**2 + 1) ** -0.5, lambda x: -x * (x**2 + 1) ** -1.5),
    "acosh": (
        ABOVE_ONE,
        np.arccosh,
        lambda x: ((x - 1) * (x + 1)) ** -0.5,
        lambda x: -x * ((x - 1) * (x + 1)) ** -1.5,
    ),
    "atanh": (INSIDE, np.arctanh, lambda x: 1 / (1 - x**2), lambda x: 2 * x / (1 - x**2) ** 2),
    "sigmoid": (
        WIDE,
        sigmoid,
        slope_of_sigmoid,
        lambda x: slope_of_sigmoid(x) * (sigmoid(-x) - sigmoid(x)),
    ),
    "log_sigmoid": (
        WIDE,
        lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))),
        lambda x: sigmoid(-x),
        lambda x: -slope_of_sigmoid(x),
    ),
    "softplus": (WIDE, lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), sigmoid, slope_of_sigmoid),
    "erf": (
        WIDE,
        np.vectorize(math.erf),
        lambda x: 2 / math.sqrt(math.pi) * np.exp(-(x**2)),
        lambda x: -4 / math.sqrt(math.pi) * x * np.exp(-(x**2)),
    ),
    "erfc": (
        WIDE,
        np.vectorize(math.erfc),
        lambda x: -2 / math.sqrt(math.pi) * np.exp(-(x**2)),
        lambda x: 4 / math.sqrt(math.pi) * x * np.exp(-(x**2)),
    ),
    "relu": (WIDE, lambda x: np.where(x > 0, x, 0), lambda x: np.where(x > 0, 1, 0), lambda x: 0 * x),
    "leaky_relu": (
        WIDE,
        lambda x: np.where(x > 0, x, 0.01 * x),
        lambda x: np.where(x > 0, 1, 0.01),
        lambda x: 0 * x,
    ),
    "elu": (
        WIDE,
        lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        lambda x: np.exp(np.minimum(x, 0)),
        lambda x: np.where(x > 0, 0, np.exp(np.minimum(x, 0))),
    ),
    "selu": (
        WIDE,
        lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0))),
        lambda x: SELU_SCALE * np.where(x > 0, 1, SELU_ALPHA * np.exp(np.minimum(x, 0))),
        lambda x: SELU_SCALE * np.where(x > 0, 0, SELU_ALPHA * np.exp(np.minimum(x, 0))),
    ),
    "silu": (
        WIDE,
        lambda x: x * sigmoid(x),
        lambda x: sigmoid(x) + x * slope_of_sigmoid(x),
        lambda x: slope_of_sigmoid(x) * (2 + x * (sigmoid(-x) - sigmoid(x))),
    ),
    "gelu": (
        WIDE,
        lambda x: x * normal(x),
        lambda x: normal(x) + x * bell(x),
        lambda x: (2 - np.minimum(x**2, 1e9)) * bell(x),
    ),
}


@pytest.mark.parametrize("op", FORMS)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_value_and_two_derivatives(op: str) -> None:
    points, *forms = FORMS[op]
    for actual, form in zip(derivatives(op, points), forms, strict=True):
        np.testing.assert_allclose(actual, form(points), RTOL, ATOL)


@pytest.mark.parametrize("op", FORMS)
def test_0d_tensors(op: str) -> None:
    """0.5 is in every domain but that of acosh."""
    x = np.float64(1.5 if op == "acosh" else 0.5)
    for actual, form in zip(derivatives(op, x), FORMS[op][1:], strict=True):
        assert actual.shape == ()
        np.testing.assert_allclose(actual, form(x), RTOL)


def test_tanh_approximation_of_gelu_matches_its_formula() -> None:
    x = np.linspace(-12, 12, 97)
    c = math.sqrt(2 / math.pi)
    t = np.tanh(c * (x + 0.044715 * x**3))
    inner, bend = c * (1 + 0.134145 * x**2), c * 0.26829 * x
    second = (1 - t**2) * (inner - x * t * inner**2 + x * bend / 2)
    expected = (x / 2 * (1 + t), (1 + t) / 2 + x / 2 * (1 - t**2) * inner, second)
    for actual, form in zip(derivatives("gelu", x, approximate="tanh"), expected, strict=True):
        np.testing.assert_allclose(actual, form, RTOL, ATOL)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 2.5, 0.1])
def test_pow_scalar(exponent: float) -> None:
    x, p = POSITIVE[POSITIVE < 1e50], float(exponent)
    x = x[x > 1e-50]
    expected = x**p, p * x ** (p - 1), p * (p - 1) * x ** (p - 2)
    for actual, form in zip(derivatives("pow_scalar", x, exponent=exponent), expected, strict=True):
        np.testing.assert_allclose(actual, form, RTOL, ATOL)


A = np.array([0.3, 1.7, 2.5, 4.0, 1e-5, 30.0])
B = np.array([1.2, -0.4, 3.0, 2.0, 0.5, -1.5])
R = A**2 + B**2
PAIRS: dict[str, list[Any]] = {
    # value; d/da, d/db; d²/da², d²/dadb, d²/db²
    "add": [A + B, 1, 1, 0, 0, 0],
    "sub": [A - B, 1, -1, 0, 0, 0],
    "mul": [A * B, B, A, 0, 1, 0],
    "div": [A / B, 1 / B, -A / B**2, 0, -1 / B**2, 2 * A / B**3],
    "pow": [
        A**B,
        B * A ** (B - 1),
        A**B * np.log(A),
        B * (B - 1) * A ** (B - 2),
        A ** (B - 1) * (1 + B * np.log(A)),
        A**B * np.log(A) ** 2,
    ],
    "atan2": [
        np.arctan2(A, B),
        B / R,
        -A / R,
        -2 * A * B / R**2,
        (A**2 - B**2) / R**2,
        2 * A * B / R**2,
    ],
    "logaddexp": [
        np.log(np.exp(A) + np.exp(B)),
        sigmoid(A - B),
        sigmoid(B - A),
        slope_of_sigmoid(A - B),
        -slope_of_sigmoid(A - B),
        slope_of_sigmoid(A - B),
    ],
    "mod": [A - B * np.floor(A / B), 1, -np.floor(A / B), 0, 0, 0],
    "maximum": [np.where(A > B, A, B), A > B, B > A, 0, 0, 0],
    "minimum": [np.where(A < B, A, B), A < B, B < A, 0, 0, 0],
}


@pytest.mark.parametrize("op", PAIRS)
def test_binary_ops_to_second_order(op: str) -> None:
    value, da, db, daa, dab, dbb = PAIRS[op]
    for by, expected in (((0, 0), (value, da, daa)), ((0, 1), (value, da, dab)), ((1, 1), (value, db, dbb))):
        for actual, form in zip(derivatives(op, A, B, by=by), expected, strict=True):
            np.testing.assert_allclose(actual, form, RTOL, ATOL)


def test_scalar_ops() -> None:
    x = np.array([-2.0, 0.0, 3.0])
    np.testing.assert_array_equal(run("add_scalar", x, scalar=0.1), x + 0.1)
    np.testing.assert_array_equal(run("sub_scalar", x, scalar=0.1), x - 0.1)
    np.testing.assert_array_equal(run("mul_scalar", x, scalar=0.1), x * 0.1)
    np.testing.assert_array_equal(run("div_scalar", x, scalar=0.1), x / 0.1)
    np.testing.assert_array_equal(run("clamp", x, min=-1, max=2.5), [-1, 0, 2.5])
    np.testing.assert_allclose(run("log_eps", np.array([0.0, 1.0])), np.log([1e-5, 1 + 1e-5]), RTOL)


def test_rounding_and_sign() -> None:
    x = np.array([-2.5, -1.5, -0.5, -0.2, 0.5, 1.5, 2.5, 2.7])
    np.testing.assert_array_equal(run("floor", x), [-3, -2, -1, -1, 0, 1, 2, 2])
    np.testing.assert_array_equal(run("ceil", x), [-2, -1, 0, 0, 1, 2, 3, 3])
    np.testing.assert_array_equal(run("round", x), [-2, -2, 0, 0, 0, 2, 2, 3])
    np.testing.assert_array_equal(run("sign", x), [-1, -1, -1, -1, 1, 1, 1, 1])


def test_truth_tables() -> None:
    a, b = np.array([0.0, 0.0, 2.0, np.nan]), np.array([0, 1, 0, 1])
    np.testing.assert_array_equal(run("logical_and", a, b), [False, False, False, True])
    np.testing.assert_array_equal(run("logical_or", a, b), [False, True, True, True])
    np.testing.assert_array_equal(run("logical_not", a), [True, True, False, False])
    np.testing.assert_array_equal(run("is_finite", np.array([0, 1e308, np.inf, -np.inf, np.nan])), [1, 1, 0, 0, 0])


def test_comparisons() -> None:
    a, b = np.array([1.0, 2.0, 3.0, np.nan]), np.array([2.0, 2.0, 2.0, np.nan])
    assert run("equal", a, b).tolist() == [False, True, False, False]
    assert run("not_equal", a, b).tolist() == [True, False, True, True]
    assert run("greater", a, b).tolist() == [False, False, True, False]
    assert run("greater_equal", a, b).tolist() == [False, True, True, False]
    assert run("less", a, b).tolist() == [True, False, False, False]
    assert run("less_equal", a, b).tolist() == [True, True, False, False]
