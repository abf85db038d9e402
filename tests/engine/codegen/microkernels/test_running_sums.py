"""Running sums have the bits of sequential addition along any axis."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codegen.microkernels.ufunc_calls import running_sums
from engine.ir.tensor_type import Strided, TensorType
from tests.engine.codegen.microkernels.running import run_recipe

pytest.importorskip("llvmlite")


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (9,), (4, 5), (3, 1, 6)])
def test_running_sums_match_numpy_bitwise(shape: tuple[int, ...], dtype: str) -> None:
    x = (100 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    for axis in range(x.ndim):
        for view in (x, np.flip(x), np.repeat(x, 2, axis=-1)[..., ::2]):
            recipe = running_sums(TensorType.of(x), Strided(TensorType.of(x), view.strides), axis)
            assert recipe is not None
            expected = np.add.accumulate(view, axis=axis)
            assert run_recipe(recipe, [view], x.shape, dtype).tobytes() == expected.tobytes()


def test_sums_of_another_dtype_are_left_to_numpy() -> None:
    assert running_sums(TensorType((3,), np.dtype("int64")), TensorType((3,), np.dtype("int32")), 0) is None
