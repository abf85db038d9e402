"""Ufuncs called by machine code give the bits of calls from Python, in any dtype and layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.codegen.kernels.array_functions import library
from engine.codegen.microkernels.recipe import Recipe
from engine.codegen.microkernels.ufunc_calls import SO_FAR, UfuncCall, ufunc_calls
from engine.ir.tensor_type import Strided, TensorType
from tests.engine.codegen.microkernels.running import Array, run_recipe

pytest.importorskip("llvmlite")


def strided(x: Array) -> TensorType:
    return Strided(TensorType.of(x), x.strides)


def recipe(calls: list[UfuncCall], dtype: Any, shape: tuple[int, ...], *operands: Array) -> Recipe | None:
    return ufunc_calls(calls, TensorType(shape, np.dtype(dtype)), [strided(x) for x in operands])


def assert_matches_python(ufunc: Any, *operands: Array, number: float | None = None, **how: Any) -> None:
    """Assert that a call has the bits of a call from Python."""
    expected = ufunc(*operands) if number is None else ufunc(*operands, operands[0].dtype.type(number))
    calls = [UfuncCall(ufunc, tuple(range(len(operands))), number)]
    compiled = recipe(calls, expected.dtype, expected.shape, *operands)
    assert compiled is not None
    assert run_recipe(compiled, operands, expected.shape, expected.dtype, **how).tobytes() == expected.tobytes()


def numbers(dtype: str, *shape: int) -> Array:
    drawn = np.random.default_rng(len(shape)).uniform(-50, 50, shape)
    return np.asarray(drawn > 0 if dtype == "bool" else drawn.astype(dtype))


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()),
    ((7,), (7,)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((4, 1, 3), (1, 5, 1)),
    ((2, 9000), (2, 1)),
    ((10_000,), (10_000,)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "float32", "float64"])
def test_operands_broadcast_in_every_dtype(dtype: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    for ufunc in (np.add, np.multiply, np.less, np.not_equal, np.maximum):
        assert_matches_python(ufunc, numbers(dtype, *a), numbers(dtype, *b))


def test_items_run_in_any_order() -> None:
    x = numbers("float64", 3, 9000)
    assert_matches_python(np.arctan2, x, x[::-1], order=lambda count: reversed(range(count)))
    assert_matches_python(np.arctan2, x, x[::-1], threads=3)


def test_strided_operand_is_read_in_place() -> None:
    x = numbers("float64", 6, 8)
    assert_matches_python(np.arctan, x.T)
    assert_matches_python(np.subtract, x[::2, ::-3], x[1::2, ::3])
    assert_matches_python(np.hypot, np.broadcast_to(x[:, :1], (6, 8)), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constant_operand(dtype: str) -> None:
    assert_matches_python(np.power, np.abs(numbers(dtype, 5, 3)), number=2.7)


def test_calls_can_be_chained() -> None:
    x = np.array([[0.5, -0.0, np.nan], [-0.3, 1.0, -1.0]])
    calls = [UfuncCall(library(np).erfinv, (0,)), UfuncCall(np.copysign, (SO_FAR, 0))]
    compiled = recipe(calls, x.dtype, x.shape, x)
    assert compiled is not None
    expected = np.copysign(library(np).erfinv(x), x)
    assert run_recipe(compiled, [x], x.shape, x.dtype).tobytes() == expected.tobytes()


def test_batches_of_matrices() -> None:
    functions: Any = np.linalg._umath_linalg  # type: ignore[attr-defined]
    a, b = numbers("float64", 3, 1, 4, 4), numbers("float64", 5, 4, 2)
    a[1] = 0
    compiled = recipe([UfuncCall(functions.solve, (0, 1), core=(4, 2))], a.dtype, (3, 5, 4, 2), a, b)
    assert compiled is not None
    with np.errstate(all="ignore"):
        expected = functions.solve(a, b)
    assert np.isnan(expected[1]).all()
    np.testing.assert_array_equal(run_recipe(compiled, [a, b], (3, 5, 4, 2), a.dtype), expected)
    symmetric = UfuncCall(np.add, (0, 0), transposed=True)
    compiled = recipe([symmetric], a.dtype, a.shape, a)
    assert compiled is not None
    assert np.array_equal(run_recipe(compiled, [a], a.shape, a.dtype), a + a.swapaxes(-1, -2))


def test_operands_are_not_cast() -> None:
    whole, real = numbers("int64", 3), numbers("float64", 3)
    assert recipe([UfuncCall(np.add, (0, 1))], "float64", (3,), whole, real) is None
    assert recipe([UfuncCall(np.sin, (0,))], "float64", (3,), whole) is None
