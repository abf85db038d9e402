"""Sums and scans of short rows match NumPy, in every memory layout."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.common import numerics as rows
from engine.ops.common.numerics import (
    LONGEST_MULTIPLIED,
    LONGEST_TRANSPOSED,
    axis_first,
    axis_first_elements,
    bind_sum,
    sum_into,
)

CASES = [
    ((5, 7), (1,)), ((5, 7), (0,)), ((5, 7), (0, 1)), ((3, 4, 5), (1,)), ((3, 4, 5), (1, 2)), ((3, 4, 5), (0, 2)),
    ((4, LONGEST_MULTIPLIED), (1,)), ((4, LONGEST_MULTIPLIED + 1), (1,)),
    ((6, LONGEST_TRANSPOSED), (0,)), ((0, 3), (1,)), ((3, 0), (1,)), ((3,), ()),
]  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "new"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_sums_match_numpy(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, device: str) -> None:
    x = np.random.default_rng(1).integers(-9, 9, shape).astype(dtype)
    for keepdims in (False, True):
        expected = x.sum(axis=axes, keepdims=keepdims)
        for array in (x, np.repeat(x, 2, axis=-1)[..., ::2]):
            out = np.full(expected.shape, 77, dtype)
            sum_into(RunContext(np, device=device), array, out=out, axes=axes, keepdims=keepdims)
            np.testing.assert_array_equal(out, expected)


def test_short_sums_use_matmul() -> None:
    """NumPy restarts its inner loop for each row of a reduction."""
    host, x = RunContext(np), np.ones((6, 4))
    assert bind_sum(host, x, out=np.empty(6), axes=(1,), keepdims=False)[0] is np.matmul
    assert bind_sum(host, x, out=np.empty(4), axes=(0,), keepdims=False)[0] is np.matmul
    assert bind_sum(host, x.astype("int64"), out=np.empty(6, "int64"), axes=(1,), keepdims=False)[0] is not np.matmul
    wide = np.ones((2, LONGEST_MULTIPLIED + 1))
    assert bind_sum(host, wide, out=np.empty(2), axes=(1,), keepdims=False)[0] is not np.matmul


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("device", ["cpu", "new"])
def test_axis_first_chunks_write_to_the_output(axis: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CHUNK_ELEMENTS", 20)  # several chunks
    x = np.random.default_rng(2).normal(size=(7, 6, 5))
    out = np.empty_like(x)
    chunks = 0
    for part, result in axis_first(RunContext(np, device=device), x, out, axis):
        assert part.shape == result.shape
        result[...] = np.cumsum(part, axis=0)
        chunks += 1
    np.testing.assert_array_equal(out, np.cumsum(x, axis=axis))
    short = axis == 2 and device == "cpu"
    assert (chunks > 1) == short
    assert (axis_first_elements(TensorType.of(x), axis) > 0) == (axis == 2)
