"""Result dtypes of the elementwise ops, including integer operands, and errors for invalid use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.run import error, grads, run

INT8, UINT8, INT32, INT64 = (np.array([1, 2, 3], d) for d in ("int8", "uint8", "int32", "int64"))
HALF, SINGLE, DOUBLE = (np.array([1, 2, 3], d) for d in ("float16", "float32", "float64"))
TRUE = np.array([True, True, False])


EACH_PAIR = pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (INT8, INT8, "int8"),
        (INT8, UINT8, "int16"),  # in a graph of opset 1, int32
        (INT32, INT64, "int64"),
        (INT64, SINGLE, "float64"),
        (INT8, HALF, "float16"),
        (HALF, SINGLE, "float32"),
        (TRUE, UINT8, "uint8"),
    ],
)


@EACH_PAIR
@pytest.mark.parametrize("op", ["add", "mul", "maximum", "minimum", "mod", "pow"])
def test_binary_ops_promote_like_numpy(op: str, a: Any, b: Any, expected: str) -> None:
    assert run(op, a, b).dtype == expected


@EACH_PAIR
def test_branches_of_where_promote_like_numpy(a: Any, b: Any, expected: str) -> None:
    assert run("where", TRUE, a, b).dtype == run("where", DOUBLE, b, a).dtype == expected


@pytest.mark.parametrize(
    ("x", "expected"), [(INT8, "float16"), (INT64, "float64"), (HALF, "float16"), (TRUE, "float16")]
)
@pytest.mark.parametrize(
    "op",
    ["exp", "sqrt", "rsqrt", "sin", "sigmoid", "softplus", "log_sigmoid", "erf", "erfc", "elu", "selu", "silu", "gelu"],
)
def test_real_functions_return_floats(op: str, x: Any, expected: str) -> None:
    result = run(op, x)
    assert result.dtype == expected
    np.testing.assert_allclose(result, run(op, x.astype("float64")), 2e-3)


@pytest.mark.parametrize("x", [INT8, UINT8, INT64, TRUE])
def test_scalar_ops_convert_integers_to_float64(x: Any) -> None:
    for op, attrs in (
        ("add_scalar", {"scalar": 1}),
        ("pow_scalar", {"exponent": 3}),
        ("pow_scalar", {"exponent": 2}),
        ("clamp", {"min": 0.5}),
        ("leaky_relu", {}),
        ("reciprocal", {}),
        ("log_eps", {}),
    ):
        result = run(op, x, **attrs)
        assert result.dtype == "float64", op
        np.testing.assert_array_equal(result, run(op, x.astype("float64"), **attrs))


@pytest.mark.parametrize("x", [HALF, SINGLE, DOUBLE])
def test_scalar_ops_do_not_widen_floats(x: Any) -> None:
    assert run("add_scalar", x, scalar=1e-300).dtype == x.dtype
    assert run("pow_scalar", x, exponent=0.1).dtype == x.dtype
    assert run("clamp", x, min=0.1).dtype == x.dtype


@pytest.mark.parametrize("op", ["floor", "ceil", "round", "abs", "relu", "square", "neg", "sign"])
@pytest.mark.parametrize("x", [INT8, INT32, INT64, HALF, SINGLE])
def test_functions_that_preserve_the_dtype(op: str, x: Any) -> None:
    result = run(op, x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, run(op, x.astype("float64")))


def test_large_integers_are_not_rounded() -> None:
    large = np.array([2**53 + 1, -(2**53) - 1])
    for op in ("floor", "ceil", "round", "relu"):
        assert run(op, large)[0] == 2**53 + 1
    np.testing.assert_array_equal(run("maximum", large, large - 1), large)


def test_powers_of_integers_never_fail() -> None:
    a = np.array([2, -2, 1, -1, -1, 0, 3, 0, 7, -128], "int64")
    b = np.array([-1, -1, -5, -5, -4, -1, 4, 0, 0, -1], "int64")
    np.testing.assert_array_equal(run("pow", a, b), [0, 0, 1, -1, 1, 0, 81, 1, 1, 0])
    lowest = np.iinfo("int64").min
    np.testing.assert_array_equal(run("pow", np.array([-1, 2, 1]), np.array([lowest, lowest, lowest])), [1, 0, 1])
    np.testing.assert_array_equal(run("pow", np.array([2], "int8"), np.array([9], "int8")), [0])
    np.testing.assert_array_equal(run("pow", np.array([3]), np.array([200])), [(3**200 + 2**63) % 2**64 - 2**63])
    np.testing.assert_array_equal(run("pow", np.array([-100], "int8"), np.array([2], "uint8")), [10_000])
    np.testing.assert_array_equal(run("pow", np.array([100], "uint8"), np.array([2], "int8")), [10_000])
    np.testing.assert_array_equal(run("pow", TRUE, np.array([True, False, False])), [1, 1, 1])


def test_cubes_of_integers_are_computed_in_float64() -> None:
    np.testing.assert_array_equal(run("pow_scalar", np.array([100], "int8"), exponent=3), [1e6])
    np.testing.assert_array_equal(run("pow_scalar", np.array([2**40]), exponent=3), [2.0**120])


def test_integers_modulo_zero_are_zero() -> None:
    np.testing.assert_array_equal(run("mod", np.array([5, -5, 5]), np.array([0, 3, -3])), [0, 1, -1])


def test_only_float_operands_have_gradients() -> None:
    value, (da,) = grads("pow", np.array([2.0, 3.0]), np.array([3, 2]))
    np.testing.assert_allclose(value, [8, 9], 4e-16)
    np.testing.assert_allclose(da, [12, 6], 4e-16)
    _, (db,) = grads("pow", np.array([2, 0]), np.array([3.0, 1.0]))
    np.testing.assert_allclose(db, [8 * np.log(2), 0])
    _, (da,) = grads("maximum", np.array([1.0, 2.0], "float32"), np.array([1, 1]))
    np.testing.assert_array_equal(da, [0.5, 1])
    assert da.dtype == "float32"


# Errors


def test_pow_without_exponent_is_refused() -> None:
    refused = error("pow", DOUBLE)
    assert refused.code == "operand_count"
    assert refused.detail == (
        "node 1 (pow): takes 2 operands (a, b), or one and the attribute exponent, but got only one operand"
    )


def test_pow_with_two_exponents_is_refused() -> None:
    refused = error("pow", DOUBLE, DOUBLE, exponent=2)
    assert refused.code == "bad_attribute"
    assert refused.detail == "node 2 (pow): attribute exponent cannot be combined with operand b"


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    refused = error("maximum", np.ones((2, 3)), np.ones(4))
    assert refused.code == "shape_mismatch"
    assert refused.detail == (
        "node 2 (maximum): shapes [2, 3] and [4] do not broadcast: "
        "their extents at axis -1 differ and none of them is 1"
    )


@pytest.mark.parametrize("op", ["neg", "sign"])
def test_neg_and_sign_of_bool_are_refused(op: str) -> None:
    refused = error(op, TRUE)
    assert refused.code == "dtype_mismatch"
    assert refused.detail == f"node 1 ({op}): is not defined for bool"


def test_relu_of_bool_is_refused() -> None:
    refused = error("relu", TRUE)
    assert refused.code == "dtype_mismatch"
    assert refused.operand == 0
    assert refused.detail == (
        "node 1 (relu): operand 0 (x) must be of dtype "
        "int8, uint8, int16, int32, uint32, int64, float16, float32, float64, but is bool"
    )


def test_unknown_approximation_is_refused() -> None:
    refused = error("gelu", DOUBLE, approximate="erf")
    assert refused.code == "bad_attribute"
    assert refused.detail == "node 1 (gelu): attribute approximate must be one of none, tanh, but is “erf”"
