"""Tensors that are described instead of sent, and ops that pass their operand through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import DTYPES, Compiler, EngineError, Limits, Program, Statement, TensorType, registry
from engine.ir.run_context import RunContext
from engine.ops.leaves import Constant
from tests.engine.ops.run import error, grads, run


@pytest.mark.parametrize("dtype", DTYPES)
def test_full_in_every_dtype(dtype: str) -> None:
    actual = run("full", shape=[2, 0, 3], fill=1.0, dtype=dtype)
    assert (actual.shape, actual.dtype) == ((2, 0, 3), dtype)
    actual = run("full", shape=[3], fill=1.0, dtype=dtype)
    np.testing.assert_array_equal(actual, np.ones(3, dtype))
    assert run("full").shape == ()


def test_full_rounds_to_the_float_dtype() -> None:
    assert run("full", fill=1e300, dtype="float16") == np.inf
    assert run("full", fill=0.1, dtype="float32") == np.float32(0.1)


RANGES = [
    {"stop": 5.0},
    {"start": 5.0, "stop": 0.0, "step": -2.0},
    {"start": 3.0, "stop": 1.0},
    {"stop": 1.0, "step": 0.3, "dtype": "float64"},
    {"start": 1.0, "stop": 2.0, "step": 0.1, "dtype": "float64"},
    {"start": -128.0, "stop": 128.0, "dtype": "int8"},
    {"start": 255.0, "stop": -1.0, "step": -1.0, "dtype": "uint8"},
    {"stop": 2.0, "dtype": "bool"},
    {"start": 2.0**53 - 2, "stop": 2.0**53 + 8},
    {"start": -(2.0**63), "stop": -(2.0**63) + 4096, "step": 1024.0},
    {"stop": 5e-324, "step": 1e300, "dtype": "float64"},
]


@pytest.mark.parametrize("attrs", RANGES, ids=str)
def test_arange_matches_numpy(attrs: dict[str, Any]) -> None:
    dtype = attrs.get("dtype", "int64")
    number = float if dtype == "float64" else int
    start, stop, step = (number(attrs.get(name, default)) for name, default in (("start", 0), ("stop", 0), ("step", 1)))
    expected = np.array([start + i * step for i in range(np.arange(*map(float, (start, stop, step))).size)], dtype)
    actual = run("arange", **attrs)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(actual, expected)


def test_empty_range_may_start_at_any_number() -> None:
    actual = run("arange", start=1e300, stop=0.0)
    assert (actual.shape, actual.dtype) == ((0,), "int64")


def test_integer_ranges_are_exact_beyond_2_53() -> None:
    actual = run("arange", start=2.0**53, stop=2.0**53 + 4)
    np.testing.assert_array_equal(actual, [2**53, 2**53 + 1, 2**53 + 2, 2**53 + 3])


@pytest.mark.parametrize("dtype", [">f8", ">i4", "<f2"])
def test_constants_of_any_byte_order(dtype: str) -> None:
    actual = run("constant", value=np.array([1, 2, 3], dtype))
    assert actual.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(actual, [1, 2, 3])


@pytest.mark.parametrize("op", ["identity", "copy_to_device"])
@pytest.mark.parametrize("shape", [(), (2, 0), (2, 3)])
def test_identity_ops_preserve_bits_and_gradients(op: str, shape: tuple[int, ...]) -> None:
    x = np.full(shape, np.nan)
    value, (gradient,) = grads(op, x, cotangent=np.full(shape, -0.0))
    np.testing.assert_array_equal(value, x)
    np.testing.assert_array_equal(np.signbit(gradient), np.ones(shape, bool))


def test_stop_gradient_has_zero_gradient() -> None:
    value, (gradient,) = grads("stop_gradient", np.array([1.0, np.inf]))
    np.testing.assert_array_equal(value, [1.0, np.inf])
    np.testing.assert_array_equal(gradient, [0.0, 0.0])


def test_cast_has_a_gradient_between_floats_only() -> None:
    x = np.array([1.7, -1.7, 0.0])
    value, (gradient,) = grads("cast", x.astype("float32"), dtype="float64", cotangent=[1.0, 2.0, 1e-60])
    assert (value.dtype, gradient.dtype) == ("float64", "float32")
    np.testing.assert_array_equal(gradient, [1, 2, 0])
    np.testing.assert_array_equal(run("cast", x, dtype="int8"), np.array([1, -1, 0], "int8"))
    np.testing.assert_array_equal(run("cast", x, dtype="bool"), [True, True, False])


def test_dense_constant_is_not_copied() -> None:
    op, run_context, value = Constant(), RunContext(np), np.arange(6.0).reshape(2, 3)
    assert op.tensor(run_context, TensorType.of(value), value=value) is value
    transposed = op.tensor(run_context, TensorType.of(value.T), value=value.T)
    assert transposed.flags.c_contiguous
    np.testing.assert_array_equal(transposed, value.T)


def feed_error(x: Any, **declared: Any) -> str | None:
    """Feed x to an input with these declarations, and return the error code, or None."""
    try:
        program = Program(registry(), [Statement(registry().ops["input"], (), declared)])
        Compiler(Limits()).forward(program, {0: TensorType.of(np.asarray(x))})
    except EngineError as refused:
        return refused.code
    return None


def test_feed_must_match_the_declaration_of_its_leaf() -> None:
    x = np.zeros((2, 3), "float32")
    matching: list[dict[str, Any]] = [{"shape": [2, 3]}, {"shape": [-1, 3]}, {"shape": [-1, -1]}, {"dtype": "float32"}]
    assert [feed_error(x, **declared) for declared in matching] == [None] * 4
    for shape in ([3, 3], [2], [2, -1, 3], [-1, 0]):
        assert feed_error(x, shape=shape) == "shape_mismatch"
    assert feed_error(x, shape=[-2, 3]) == "bad_attribute"
    assert feed_error(x, dtype="float64") == "dtype_mismatch"
    assert (feed_error(x, zero_d=True), feed_error(1.0, zero_d=True)) == ("shape_mismatch", None)


WRONG = [
    ("full", {"fill": 0.5, "dtype": "int32"},
     "attribute fill must be a whole number that int32 can represent, but is 0.5"),
    ("full", {"fill": -1.0, "dtype": "uint8"},
     "attribute fill must be a whole number that uint8 can represent, but is -1"),
    ("full", {"fill": 2.0, "dtype": "bool"}, "attribute fill must be a whole number that bool can represent, but is 2"),
    ("full", {"fill": 2.0**63, "dtype": "int64"},
     "attribute fill must be a whole number that int64 can represent, but is 9.22337e+18"),
    ("full", {"shape": [2, -1]}, "attribute shape must be whole numbers of at least 0, but is [2, -1]"),
    ("arange", {}, "attribute stop is required"),
    ("arange", {"stop": 1.0, "step": 0.0}, "attribute step must not be 0"),
    ("arange", {"stop": 1e300, "step": 1e-300}, "the range from start to stop by step is too long to count"),
    ("arange", {"start": -1.7e308, "stop": 1.7e308}, "the range from start to stop by step is too long to count"),
    ("arange", {"stop": 1.0, "step": 0.25},
     "attributes start and step must be whole numbers, as dtype is int64, but are 0 and 0.25"),
    ("arange", {"stop": 300.0, "dtype": "uint8"},
     "the range must lie between 0 and 255, as dtype is uint8, but is 0 to 300 by 1"),
    ("arange", {"stop": 257.0, "dtype": "uint8"},
     "the range must lie between 0 and 255, as dtype is uint8, but is 0 to 257 by 1"),
    ("arange", {"stop": 258.0, "step": 2.0, "dtype": "uint8"},
     "the range must lie between 0 and 255, as dtype is uint8, but is 0 to 258 by 2"),
    ("arange", {"start": 2.0**63, "stop": 2.0**63 + 4096},
     ("the range must lie between -9223372036854775808 and 9223372036854775807, as dtype is int64, "
      "but is 9.22337e+18 to 9.22337e+18 by 1")),
    ("arange", {"stop": 1.0, "step": 2.0**63},
     ("the range must lie between -9223372036854775808 and 9223372036854775807, as dtype is int64, "
      "but is 0 to 1 by 9.22337e+18")),
    ("constant", {"value": np.array([1], "uint16")},
     f"attribute value must be a tensor of dtype {', '.join(DTYPES)}, but is uint16"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attrs", "sentence"), WRONG)
def test_invalid_attributes_are_refused(op: str, attrs: dict[str, Any], sentence: str) -> None:
    refused = error(op, **attrs)
    assert (refused.code, refused.detail) == ("bad_attribute", f"node 0 ({op}): {sentence}")


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("full", {"shape": [2**62, 2**62]}),
        ("full", {"shape": [0, 2**62]}),
        ("full", {"shape": [1] * 40}),
        ("arange", {"stop": 1e18}),
        ("arange", {"stop": 1e308, "dtype": "float32"}),
    ],
)
def test_too_large_tensor_is_refused_before_allocation(op: str, attrs: dict[str, Any]) -> None:
    assert error(op, **attrs).code == "over_budget"
