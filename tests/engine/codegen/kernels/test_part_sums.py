"""Sums of parts: accurate to a few roundings, and always in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.codegen.kernels.compiled import (
    LANES,
    NativeKernel,
    bind_native,
    compile_kernel,
    native_kernel,
    part_sum_kernel,
    part_sum_space,
)
from engine.codegen.kernels.program import KernelBuilder, Level, Space
from engine.codegen.native.native_call import NativeCall

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
DTYPES = ["float32", "float64"]


def kernel(dtype: str, kind: str) -> NativeKernel:
    loop = part_sum_kernel(dtype, kind)
    return native_kernel(loop, LANES, compile_kernel(loop, LANES))


def sum_parts(parts: Array) -> Array:
    kind = "columns" if parts.ndim == 2 else "total"
    result = np.full(parts.shape[1:], 7, parts.dtype)
    ((call, _),) = bind_native(
        kernel(parts.dtype.name, kind),
        part_sum_kernel(parts.dtype.name, kind),
        part_sum_space(parts),
        [parts],
        [result],
    )
    call()
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (2,), (15,), (17,), (1000,), (1, 1), (3, 5), (40, 33), (1, 64), (7, 0)])
def test_sums_match_float64(shape: tuple[int, ...], dtype: str) -> None:
    parts = np.random.default_rng(0).normal(size=shape).astype(dtype)
    actual, expected = sum_parts(parts), parts.astype(np.float64).sum(axis=0)
    assert (actual.dtype, actual.shape) == (parts.dtype, shape[1:])
    np.testing.assert_allclose(actual, expected, rtol=0, atol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_are_added_in_block_order(dtype: str) -> None:
    parts = np.random.default_rng(0).normal(size=(50, 21)).astype(dtype)
    expected = np.zeros(21, dtype)
    for part in parts:
        expected += part
    assert sum_parts(parts).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_totals_are_added_in_lanes_and_then_halves(dtype: str) -> None:
    parts = np.random.default_rng(0).normal(size=100).astype(dtype)
    lanes = np.zeros(LANES, dtype)
    for first in range(0, 100, LANES):
        lanes[: len(parts[first : first + LANES])] += parts[first : first + LANES]
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    assert sum_parts(parts).tobytes() == lanes[0].tobytes()


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_propagate(special: float) -> None:
    parts = np.ones((20, 5), np.float32)
    parts[11, 3] = special
    np.testing.assert_array_equal(sum_parts(parts), parts.sum(axis=0))
    np.testing.assert_array_equal(sum_parts(parts[:, 3].copy()), np.float32(special))


@pytest.mark.parametrize("dtype", DTYPES)
def test_bound_loop_adds_parts_with_native_calls(dtype: str) -> None:
    builder = KernelBuilder(dtype)
    x = builder.load(Level.ELEMENT)
    builder.store("columns", x)
    builder.store("total", x.row_sum())
    loop, shape = builder.build(), (9, 35)
    values = np.random.default_rng(0).normal(size=shape).astype(dtype)
    results = [np.zeros(35, dtype), np.zeros((), dtype)]
    calls = bind_native(
        native_kernel(loop, 16, compile_kernel(loop, 16)),
        loop,
        Space((9,), 35, 315, 2, ((35,), (), ())),
        [values],
        results,
        sums={kind: kernel(dtype, kind) for kind in ("columns", "total")},
    )
    assert [type(function) for function, _ in calls] == [NativeCall] * 3
    for _ in range(2):
        for function, arguments in calls:
            function(*arguments)
        for result, expected in zip(results, (values.sum(axis=0), values.sum()), strict=True):
            np.testing.assert_allclose(result, expected, rtol=0, atol=100 * np.finfo(dtype).eps)


def test_no_rows() -> None:
    loop = part_sum_kernel("float32", "columns")
    result = np.full(5, 7, np.float32)
    calls = bind_native(
        kernel("float32", "columns"),
        loop,
        Space((0,), 5, 0, 2, ((5,), ())),
        [np.empty((0, 5), np.float32)],
        [result],
        sums={"columns": kernel("float32", "columns")},
    )
    for function, arguments in calls:
        function(*arguments)
    assert not result.any()
