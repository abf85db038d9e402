"""Running sums have the bits of one addition after the other, along any axis."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codegen.microkernels.ufunc_calls import running_sums
from engine.ir.tensor_type import Strided, TensorType
from tests.engine.codegen.microkernels.running import run_recipe

pytest.importorskip("llvmlite")


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (9,), (4, 5), (3, 1, 6)])
def test_each_sum_is_the_one_before_and_the_next_element(shape: tuple[int, ...], dtype: str) -> None:
    x = (100 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    for axis in range(x.ndim):
        for lies in (x, np.flip(x), np.repeat(x, 2, axis=-1)[..., ::2]):
            made = running_sums(TensorType.of(x), Strided(TensorType.of(x), lies.strides), axis)
            assert made is not None
            wanted = np.add.accumulate(lies, axis=axis)
            assert run_recipe(made, [lies], x.shape, dtype).tobytes() == wanted.tobytes()


def test_sums_of_another_dtype_are_left_to_numpy() -> None:
    assert running_sums(TensorType((3,), np.dtype("int64")), TensorType((3,), np.dtype("int32")), 0) is None
