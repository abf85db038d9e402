"""Elementwise ops where formulas break: ties, kinks, zeros, infinities, NaN, and limits of narrow dtypes."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from engine.ops.elementwise.arithmetic import _float_mod
from tests.engine.ops.derivatives import derivatives
from tests.engine.ops.run import ON_GPU, grads, run

INF, NAN = math.inf, math.nan


# Powers


@pytest.mark.parametrize(
    ("exponent", "value", "slope", "curvature"),
    [(0, 1, 0, 0), (1, 0, 1, 0), (2, 0, 0, 2), (3, 0, 0, 0), (4, 0, 0, 0), (1.5, 0, 0, INF), (0.5, 0, INF, -INF)],
)
@pytest.mark.parametrize("spelling", ["pow_scalar", "pow"])
def test_powers_at_zero(spelling: str, exponent: float, value: float, slope: float, curvature: float) -> None:
    """Never 0 · x⁻¹; an attribute and an operand as exponent give the same numbers."""
    attribute = derivatives(spelling, np.zeros(1), exponent=exponent)
    operand = derivatives("pow", np.zeros(1), np.full(1, float(exponent)))
    for actual in (attribute, operand):
        np.testing.assert_array_equal(np.concatenate(actual), [value, slope, curvature])


def test_gradient_of_powers_of_infinity_wrt_exponent() -> None:
    _, (_, by_exponent) = grads("pow", np.full(5, INF), np.array([-2.0, -0.5, 0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(by_exponent, [0, 0, INF, INF, INF])


def test_integer_power_of_a_negative_number() -> None:
    np.testing.assert_allclose(np.concatenate(derivatives("pow_scalar", np.array([-2.0]), exponent=3)), [-8, 12, -12])
    np.testing.assert_allclose(np.concatenate(derivatives("pow", np.array([-2.0]), np.array([3.0]))), [-8, 12, -12])
    np.testing.assert_allclose(np.concatenate(derivatives("pow", np.array([-2.0]), np.array([3]))), [-8, 12, -12])


def test_third_derivative_of_a_cube_at_zero() -> None:
    for actual in (
        derivatives("pow_scalar", np.zeros(1), by=(0, 0, 0, 0), exponent=3),
        derivatives("pow", np.zeros(1), np.full(1, 3.0), by=(0, 0, 0, 0)),
    ):
        np.testing.assert_array_equal(np.concatenate(actual), [0, 0, 0, 6, 0])


def test_gradient_of_powers_of_zero_wrt_exponent() -> None:
    _, (_, by_exponent) = grads("pow", np.zeros(4), np.array([0.0, 0.5, 1.0, 2.0]))
    np.testing.assert_array_equal(by_exponent, 0)
    value, first, second = derivatives("pow", np.zeros(2), np.array([0.0, 2.0]), by=(1, 1))
    np.testing.assert_array_equal([value, first, second], [[1, 0], [0, 0], [0, 0]])


def test_mixed_derivative_of_pow_at_exponent_zero() -> None:
    """d²(aᵇ)/da db = aᵇ⁻¹ (1 + b log a), which is 1/a at b = 0: masking at b = 0 alone would drop it."""
    *_, mixed = derivatives("pow", np.array([4.0]), np.array([0.0]), by=(0, 1))
    np.testing.assert_allclose(mixed, 0.25)


@pytest.mark.parametrize("by", [*product((0, 1), repeat=2), *product((0, 1), repeat=3)], ids=str)
def test_derivatives_of_zero_to_the_zeroth_are_zero(by: tuple[int, ...]) -> None:
    """They are undefined: 0⁰ counts as a constant."""
    value, *slopes = derivatives("pow", np.zeros(1), np.zeros(1), by=by)
    np.testing.assert_array_equal(value, 1)
    np.testing.assert_array_equal(slopes, np.zeros((len(by), 1)))


def test_pow_scalar_of_infinity_and_nan() -> None:
    x = np.array([INF, NAN, -INF])
    np.testing.assert_array_equal(run("pow_scalar", x, exponent=0), [1, 1, 1])
    np.testing.assert_array_equal(run("pow_scalar", x, exponent=3), [INF, NAN, -INF])
    np.testing.assert_array_equal(run("pow_scalar", x, exponent=-2), [0, NAN, 0])


def test_roots_at_zero() -> None:
    np.testing.assert_array_equal(np.concatenate(derivatives("sqrt", np.zeros(1), by=0)), [0, INF])
    np.testing.assert_array_equal(np.concatenate(derivatives("rsqrt", np.zeros(1), by=0)), [INF, -INF])


# Choices


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_equal_operands_get_half_the_gradient_each(op: str) -> None:
    same = np.array([1.0, 0.0, -INF])
    value, (da, db) = grads(op, same, same, cotangent=[2.0, 4.0, 6.0])
    np.testing.assert_array_equal(value, same)
    np.testing.assert_array_equal([da, db], [[1, 2, 3], [1, 2, 3]])


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_nan_operand_gets_the_gradient(op: str) -> None:
    value, (da, db) = grads(op, np.array([NAN, 1.0]), np.array([1.0, NAN]))
    assert np.isnan(value).all()
    np.testing.assert_array_equal([da, db], np.eye(2))


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_infinite_cotangent_reaches_the_chosen_operand_only(op: str) -> None:
    _, (da, db) = grads(op, np.array([1.0]), np.array([2.0]), cotangent=[INF])
    assert sorted([*da, *db]) == [0, INF]


def test_ties_are_summed_over_broadcast_axes() -> None:
    _, (da, db) = grads("maximum", np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(da, [[0.5, 0.5], [0, 1]])
    np.testing.assert_array_equal(db, [1.5, 0.5])


def test_clamp_at_and_beyond_its_bounds() -> None:
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, NAN, INF])
    value, slope, curvature = derivatives("clamp", x, min=-1, max=1)
    np.testing.assert_array_equal(value, [-1, -1, 0, 1, 1, NAN, 1])
    np.testing.assert_array_equal(slope, [0, 1, 1, 1, 0, 1, 0])
    np.testing.assert_array_equal(curvature, 0)


@pytest.mark.parametrize(
    ("attrs", "value", "slope"),
    [
        ({}, [-2, 0, 2], [1, 1, 1]),
        ({"min": 0}, [0, 0, 2], [0, 1, 1]),
        ({"max": 0}, [-2, 0, 0], [1, 1, 0]),
        ({"min": 1, "max": -1}, [-1, -1, -1], [0, 0, 0]),
    ],
)
def test_clamp_with_missing_or_crossed_bounds(attrs: dict[str, float], value: list[float], slope: list[float]) -> None:
    actual, (gradient,) = grads("clamp", np.array([-2.0, 0.0, 2.0]), **attrs)
    np.testing.assert_array_equal(actual, value)
    np.testing.assert_array_equal(gradient, slope)


def test_clamp_bounds_beyond_the_dtype() -> None:
    np.testing.assert_array_equal(run("clamp", np.array([7.0], "float16"), min=-1e300, max=1e300), [7])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_clamp_preserves_an_integer_dtype_that_holds_the_bounds(dtype: str) -> None:
    x, lowest, highest = np.array([0, 5, 100], dtype), float(np.iinfo(dtype).min), float(np.iinfo("int8").max)
    for attrs, value in (({"min": 2, "max": 50}, [2, 5, 50]), ({"min": lowest, "max": highest}, x), ({}, x)):
        actual = run("clamp", x, **attrs)
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, value)


@pytest.mark.parametrize(
    ("attrs", "value"),
    [
        ({"max": 4.5}, [0, 4.5, 4.5]),
        ({"max": 300}, [0, 5, 100]),
        ({"min": 300}, [300] * 3),
        ({"min": -1e300}, [0, 5, 100]),
    ],
)
def test_clamp_beyond_the_integer_range_gives_float64(attrs: dict[str, float], value: list[float]) -> None:
    for dtype in ("int8", "uint8"):
        actual = run("clamp", np.array([0, 5, 100], dtype), **attrs)
        assert actual.dtype == "float64"
        np.testing.assert_array_equal(actual, value)


def test_clamp_does_not_round_large_integers() -> None:
    x = np.array([2**62 + 1, -(2**62) - 1])
    assert run("clamp", x, min=-(2.0**62), max=2.0**63 - 1024).tolist() == [2**62 + 1, -(2**62)]
    assert run("clamp", x, max=2.0**63).dtype == "float64"


def test_where_ignores_the_branch_not_chosen() -> None:
    cond = np.array([True, False])
    value, (on_true, on_false) = grads("where", cond, np.array([1.0, NAN]), np.array([INF, 2.0]), cotangent=[INF, 3])
    np.testing.assert_array_equal(value, [1, 2])
    np.testing.assert_array_equal(on_true, [INF, 0])
    np.testing.assert_array_equal(on_false, [0, 3])


def test_where_accepts_numbers_as_conditions() -> None:
    for cond in (np.array([0, 2]), np.array([0.0, NAN]), np.array([-0.0, -1.0])):
        np.testing.assert_array_equal(run("where", cond, np.array([1.0, 1.0]), np.array([2.0, 2.0])), [2, 1])


# Kinks


def test_abs_and_sign_at_zero() -> None:
    x = np.array([0.0, -0.0, -3.0, -INF])
    value, slope, curvature = derivatives("abs", x)
    np.testing.assert_array_equal(value, [0, 0, 3, INF])
    np.testing.assert_array_equal(slope, [0, 0, -1, -1])
    np.testing.assert_array_equal(curvature, 0)
    np.testing.assert_array_equal(run("sign", np.array([0.0, -0.0, NAN, -INF])), [0, 0, NAN, -1])


@pytest.mark.parametrize("at_zero", [0, 1, 0.25])
def test_relu_at_zero(at_zero: float) -> None:
    value, slope, curvature = derivatives("relu", np.array([-1.0, -0.0, 0.0, 1e-300, INF]), at_zero=at_zero)
    np.testing.assert_array_equal(value, [0, 0, 0, 1e-300, INF])
    np.testing.assert_array_equal(slope, [0, at_zero, at_zero, 1, 1])
    np.testing.assert_array_equal(curvature, 0)


def test_relu_of_nan_is_nan() -> None:
    assert np.isnan(run("relu", np.array([NAN]))).all()


def test_leaky_relu_elu_and_selu_at_zero() -> None:
    """Derivatives at 0 are one-sided, from below."""
    zero = np.zeros(1)
    np.testing.assert_array_equal(np.concatenate(derivatives("leaky_relu", zero, alpha=0.25)), [0, 0.25, 0])
    np.testing.assert_array_equal(np.concatenate(derivatives("elu", zero, alpha=0.5)), [0, 0.5, 0.5])
    product = 1.0507009873554805 * 1.6732632423543772
    np.testing.assert_allclose(np.concatenate(derivatives("selu", zero)), [0, product, product])


def test_smooth_activations_at_zero() -> None:
    zero, quarter = np.zeros(1), 0.25
    np.testing.assert_allclose(np.concatenate(derivatives("silu", zero)), [0, 0.5, 0.5])
    for approximate in ("none", "tanh"):
        actual = np.concatenate(derivatives("gelu", zero, approximate=approximate))
        np.testing.assert_allclose(actual, [0, 0.5, math.sqrt(2 / math.pi)])
    np.testing.assert_allclose(np.concatenate(derivatives("softplus", zero)), [math.log(2), 0.5, quarter])
    np.testing.assert_allclose(np.concatenate(derivatives("log_sigmoid", zero)), [-math.log(2), 0.5, -quarter])


# Tails


def test_sigmoid_is_accurate_in_its_tails() -> None:
    np.testing.assert_allclose(run("sigmoid", np.array([-700.0, -40.0])), np.exp([-700.0, -40.0]), 1e-15)
    np.testing.assert_array_equal(run("sigmoid", np.array([-800.0, 800.0, -INF, INF])), [0, 1, 0, 1])
    assert run("sigmoid", np.array([-744.0]))[0] == np.exp(-744.0) > 0


@pytest.mark.skipif(ON_GPU, reason="subnormal float32 results become zero there")
@pytest.mark.parametrize(("dtype", "x"), [("float32", -100.0), ("float16", -12.0)])
def test_sigmoid_reaches_subnormal_numbers(dtype: str, x: float) -> None:
    assert run("sigmoid", np.array([x], dtype))[0] == np.exp(np.array(x, dtype)) > 0


def test_log_sigmoid_and_softplus_in_their_tails() -> None:
    x = np.array([-800.0, 800.0])
    np.testing.assert_array_equal(run("softplus", x), [0, 800])
    np.testing.assert_array_equal(run("log_sigmoid", x), [-800, 0])
    np.testing.assert_allclose(run("softplus", np.array([-700.0])), np.exp(-700.0), 1e-15)
    np.testing.assert_allclose(run("log_sigmoid", np.array([700.0])), -np.exp(-700.0), 1e-15)


def test_gelu_is_accurate_in_its_left_tail() -> None:
    for x in (-10.0, -30.0, -36.0):
        np.testing.assert_allclose(run("gelu", np.array([x])), x * math.erfc(-x / math.sqrt(2)) / 2, 1e-12)
    expected = -10 / (1 + math.exp(math.sqrt(8 / math.pi) * (10 + 44.715)))
    np.testing.assert_allclose(run("gelu", np.array([-10.0]), approximate="tanh"), expected, 1e-13)


def test_log1p_and_expm1_near_zero() -> None:
    np.testing.assert_allclose(run("log1p", np.array([1e-20])), 1e-20, 1e-15)
    np.testing.assert_allclose(run("expm1", np.array([1e-20])), 1e-20, 1e-15)
    *_, slope = derivatives("expm1", np.array([-700.0]), by=0)
    np.testing.assert_allclose(slope, np.exp(-700.0), 1e-15)


def test_logaddexp_of_infinities() -> None:
    a, b = np.array([-INF, -INF, 0.0, INF, 1000.0]), np.array([-INF, 2.0, -INF, 2.0, -1000.0])
    value, (da, db) = grads("logaddexp", a, b)
    np.testing.assert_array_equal(value, [-INF, 2, 0, INF, 1000])
    np.testing.assert_array_equal([da, db], [[0, 0, 1, 1, 1], [0, 1, 0, 0, 0]])
    *_, second = derivatives("logaddexp", a[:3], b[:3], by=(0, 0))
    np.testing.assert_array_equal(second, 0)


@pytest.mark.parametrize(("by", "curvature"), [((0, 0), 0.25), ((0, 1), -0.25), ((1, 1), 0.25)])
def test_second_derivatives_of_logaddexp_at_ties(by: tuple[int, int], curvature: float) -> None:
    """Newton's method on a logistic loss starts at such a tie."""
    equal = np.array([0.0, 1.0, -700.0, 1e300])
    *_, second = derivatives("logaddexp", equal, equal, by=by)
    np.testing.assert_array_equal(second, curvature)


@pytest.mark.parametrize("x", [800.0, 1e10, 1e160, 1e300])
@pytest.mark.parametrize(
    "op", ["sigmoid", "log_sigmoid", "softplus", "elu", "selu", "silu", "gelu", "tanh", "erf", "erfc", "atan"]
)
def test_derivatives_of_extreme_arguments_are_not_nan(op: str, x: float) -> None:
    assert not np.isnan(derivatives(op, np.array([x, -x]))).any()


ALL_HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)
FINITE_HALVES = ALL_HALVES[np.isfinite(ALL_HALVES)]


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        *((op, {}) for op in ("sigmoid", "log_sigmoid", "softplus", "elu", "selu", "silu", "gelu", "tanh", "sinh")),
        *((op, {}) for op in ("erf", "erfc", "asinh", "atan", "square", "abs", "relu", "leaky_relu", "exp", "expm1")),
        ("gelu", {"approximate": "tanh"}),
    ],
)
def test_all_finite_float16_numbers(op: str, attrs: dict[str, str]) -> None:
    """Value and two derivatives: no NaN, and values as exact as float16 can be."""
    narrow = derivatives(op, FINITE_HALVES, **attrs)
    wide = derivatives(op, FINITE_HALVES.astype(np.float64), **attrs)
    for actual in narrow:
        assert actual.dtype == np.float16
        assert not np.isnan(actual).any()
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(narrow[0], wide[0].astype(np.float16), 1e-2, 1e-6)


# Angles and remainders


def test_atan2_does_not_overflow_or_underflow() -> None:
    for size in (1e-200, 1e-160, 1e160, 1e200):
        _, (da, db) = grads("atan2", np.array([3 * size]), np.array([4 * size]))
        np.testing.assert_allclose([da, db], [[4 / size / 25], [-3 / size / 25]], 1e-14)
    _, (da, db) = grads("atan2", np.array([300.0], "float16"), np.array([400.0], "float16"))
    np.testing.assert_allclose([da, db], [[0.0016], [-0.0012]], 2e-3)


def test_atan2_in_all_quadrants() -> None:
    a, b = np.array([0.0, 1.0, 0.0, -1.0, -2.0]), np.array([1.0, 0.0, -1.0, 0.0, -2.0])
    value, (da, db) = grads("atan2", a, b)
    np.testing.assert_allclose(value, [0, np.pi / 2, np.pi, -np.pi / 2, -3 * np.pi / 4])
    np.testing.assert_allclose(da, [1, 0, -1, 0, -0.25])
    np.testing.assert_allclose(db, [0, -1, 0, 1, 0.25])


def test_mod_has_the_sign_of_the_divisor() -> None:
    a, b = np.array([5.0, -5.0, 5.0, -5.0, 6.0]), np.array([3.0, 3.0, -3.0, -3.0, 3.0])
    value, (da, db) = grads("mod", a, b)
    np.testing.assert_array_equal(value, [2, 1, -1, -2, 0])
    np.testing.assert_array_equal(da, 1)
    np.testing.assert_array_equal(db, [-1, 2, 2, -1, -2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mod_based_on_fmod_matches_numpy(dtype: str) -> None:
    """The kernel used for CuPy, run on NumPy: the same bits."""
    a, b = np.meshgrid([-7.5, -6, -1, -0.5, 0, 0.5, 1, 1.1, 6, 7.5], [-3, -2.5, -1, -0.1, 0.1, 0.7, 1, 2.5, 3])
    a, b = a.astype(dtype), b.astype(dtype)
    out = np.empty_like(a)
    _float_mod(np, a, b, out)
    np.testing.assert_array_equal(out, np.mod(a, b))


def test_mod_derivative_is_the_exact_quotient() -> None:
    """0.1 in binary is more than a tenth: it fits into 1 nine times, though 1 / 0.1 rounds to 10."""
    value, (_, db) = grads("mod", np.array([1.0]), np.array([0.1]))
    np.testing.assert_allclose(value, 0.1)
    np.testing.assert_array_equal(db, -9)


def test_division_by_zero_and_by_the_smallest_subnormal() -> None:
    np.testing.assert_array_equal(run("div", np.array([1.0, -1.0, 0.0]), np.zeros(3)), [INF, -INF, NAN])
    tiny = 5e-324
    _, (da, _) = grads("div", np.array([tiny]), np.array([tiny]), cotangent=[tiny])
    np.testing.assert_array_equal(da, 1)


@pytest.mark.parametrize("op", ["log", "log2"])
def test_logarithms_at_the_edge_of_their_domain(op: str) -> None:
    np.testing.assert_array_equal(run(op, np.array([0.0, -1.0, INF])), [-INF, NAN, INF])
    assert grads(op, np.zeros(1))[1][0] == INF


def test_inverse_functions_at_the_edges_of_their_domains() -> None:
    assert np.isposinf(derivatives("asin", np.array([1.0, -1.0]), by=0)[1]).all()
    assert np.isneginf(derivatives("acos", np.array([1.0, -1.0]), by=0)[1]).all()
    assert np.isposinf(derivatives("acosh", np.array([1.0]), by=0)[1]).all()
    assert np.isposinf(derivatives("atanh", np.array([1.0, -1.0]), by=0)[1]).all()
    for op, outside in (("asin", 1.5), ("acos", -1.5), ("acosh", 0.5), ("atanh", 1.5), ("sqrt", -1.0), ("rsqrt", -1.0)):
        assert np.isnan(run(op, np.array([outside]))).all()


# Broadcasting


@pytest.mark.parametrize("op", ["add", "mul", "div", "pow", "maximum", "atan2", "logaddexp", "mod"])
def test_gradients_of_broadcast_operands_are_summed(op: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 2, (4, 1, 3)), rng.uniform(3, 4, (2, 1))
    g = rng.uniform(-1, 1, (4, 2, 3))
    _, (da, db) = grads(op, a, b, cotangent=g)
    _, (whole_a, whole_b) = grads(op, np.broadcast_to(a, g.shape), np.broadcast_to(b, g.shape), cotangent=g)
    np.testing.assert_allclose(da, whole_a.sum(1, keepdims=True), 1e-12)
    np.testing.assert_allclose(db, whole_b.sum((0, 2))[:, None], 1e-12)


@pytest.mark.parametrize("op", ["add", "pow", "maximum", "where"])
def test_broadcasting_with_an_empty_operand(op: str) -> None:
    empty, row = np.ones((0, 3)), np.ones(3)
    operands = (np.ones(3, bool), empty, row) if op == "where" else (empty, row)
    value, (for_empty, for_row) = grads(op, *operands)
    assert value.shape == for_empty.shape == (0, 3)
    np.testing.assert_array_equal(for_row, np.zeros(3))
