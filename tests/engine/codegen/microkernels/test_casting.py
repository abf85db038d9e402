"""Casts are bitwise equal to NumPy's astype."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codegen.microkernels.axis_kernels import cast
from engine.ir.tensor_type import COMPLEX, REALS, Strided, TensorType
from tests.engine.codegen.microkernels.running import Array, run_recipe

pytest.importorskip("llvmlite")

CAST_DTYPES = [dtype for dtype in REALS if dtype != "float16"]
NUMBERS = [
    0,
    1,
    -1,
    2.5,
    -2.5,
    3.999999,
    -100.7,
    127,
    200,
    65537.5,
    2**31 - 1,
    -(2**31),
    2**53 + 2,
    -(2**53) - 2,
    1e-30,
]


def numbers(dtype: str) -> Array:
    """Return the numbers that a dtype can hold, with its least and its largest integer."""
    held = [x for x in NUMBERS if dtype[0] != "u" or x >= 0]
    if np.dtype(dtype).kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        held = [*(int(x) for x in held if low <= x <= high), low, high]
    return np.array(held, dtype)


@pytest.mark.parametrize("to", CAST_DTYPES)
@pytest.mark.parametrize("of", CAST_DTYPES)
def test_casts_between_all_dtypes(of: str, to: str) -> None:
    x = numbers(of)
    if np.dtype(of).kind == "f" and np.dtype(to).kind in "iu":
        bounds = np.iinfo(to)
        x = x[(x >= float(bounds.min)) & (x < float(bounds.max))]
    recipe = cast(TensorType(x.shape, np.dtype(to)), TensorType.of(x))
    assert recipe is not None
    assert run_recipe(recipe, [x], x.shape, to).tobytes() == x.astype(to).tobytes()


def test_casts_of_nan_and_infinity() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0])
    for to in ("bool", "float32", "float64"):
        recipe = cast(TensorType(x.shape, np.dtype(to)), TensorType.of(x))
        assert recipe is not None
        np.testing.assert_array_equal(run_recipe(recipe, [x], x.shape, to), x.astype(to))


def test_strided_operand_is_read_in_place() -> None:
    x = np.arange(60).reshape(3, 4, 5)[::2, :, ::-2].swapaxes(0, 2)
    recipe = cast(TensorType(x.shape, np.dtype("float32")), Strided(TensorType.of(x), x.strides))
    assert recipe is not None
    assert np.array_equal(run_recipe(recipe, [x], x.shape, "float32", order=lambda n: reversed(range(n))), x)


def test_float16_is_left_to_numpy() -> None:
    half, single = TensorType((3,), np.dtype("float16")), TensorType((3,), np.dtype("float32"))
    assert cast(half, single) is None
    assert cast(single, half) is None


@pytest.mark.parametrize("to", COMPLEX)
@pytest.mark.parametrize("of", ["float32", "float64", *COMPLEX])
def test_complex_numbers_are_left_to_numpy(of: str, to: str) -> None:
    assert cast(TensorType((3,), np.dtype(to)), TensorType((3,), np.dtype(of))) is None
