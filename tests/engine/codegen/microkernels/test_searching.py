"""argmax and argmin match NumPy: the first of equal elements, and the first NaN."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from engine.codegen.microkernels.axis_kernels import arg_extremum
from engine.ir.tensor_type import Strided, TensorType
from tests.engine.codegen.microkernels.running import Array, run_recipe

pytest.importorskip("llvmlite")


def run_arg_extremum(x: Array, axis: int, function: Literal["argmax", "argmin"]) -> Array:
    recipe = arg_extremum(Strided(TensorType.of(x), x.strides), axis, function)
    assert recipe is not None
    return run_recipe(recipe, [x], tuple(np.delete(x.shape, axis)), "int64")


@pytest.mark.parametrize("function", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64", "float32", "float64"])
def test_every_dtype_along_every_axis(dtype: str, function: Literal["argmax", "argmin"]) -> None:
    """A few different numbers, so that there are ties; some have the upper bit set."""
    drawn = np.random.default_rng(0).integers(-2, 3, (4, 5, 6))
    x = drawn.astype(dtype)
    for axis in range(3):
        assert np.array_equal(run_arg_extremum(x, axis, function), getattr(np, function)(x, axis=axis))
        assert np.array_equal(run_arg_extremum(x.T[::-1], axis, function), getattr(np, function)(x.T[::-1], axis=axis))


@pytest.mark.parametrize("function", ["argmax", "argmin"])
def test_first_nan_is_the_extremum(function: Literal["argmax", "argmin"]) -> None:
    nan, inf = np.nan, np.inf
    rows = [
        [1, nan, inf, nan],
        [nan, 1, 2, -inf],
        [-inf, inf, nan, nan],
        [0.0, -0.0, 0.0, -0.0],
        [inf, inf, -inf, -inf],
    ]
    for dtype in ("float32", "float64"):
        x = np.array(rows, dtype)
        assert np.array_equal(run_arg_extremum(x, 1, function), getattr(np, function)(x, axis=1))


def test_float16_is_left_to_numpy() -> None:
    assert arg_extremum(TensorType((3,), np.dtype("float16")), 0, "argmax") is None
