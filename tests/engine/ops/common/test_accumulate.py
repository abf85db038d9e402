"""Accumulation in a wide enough dtype, and division by a count."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.common.numerics import (
    ONE_BLOCK,
    SMALLEST_BLOCK,
    accumulate,
    accumulation_buffer,
    accumulation_buffer_bytes,
    accumulator,
    atomic_accumulator,
    divide,
    partial_sums_bytes,
    reduced_elements,
)
from tests.engine.ops.values import come_to

HOST = RunContext(np)


@pytest.mark.parametrize(
    ("dtype", "wide", "atomic"),
    [("float16", "float32", "float32"), ("float64", "float64", "float64"), ("uint8", "uint8", "int32"),
     ("int16", "int16", "int32"), ("int64", "int64", "int64"), ("bool", "bool", "int32")],
)  # fmt: skip
def test_accumulator_dtypes(dtype: str, wide: str, atomic: str) -> None:
    out = TensorType((3,), np.dtype(dtype))
    assert (accumulator(out), atomic_accumulator(out)) == (wide, atomic)
    memory = np.empty(3, dtype)
    buffer = accumulation_buffer(np, memory)
    assert (buffer is memory) == (dtype == wide)
    assert accumulation_buffer_bytes(out) == (0 if buffer is memory else buffer.nbytes)


def test_float16_sum_is_rounded_once() -> None:
    """2,048 and 4,096 times 1/2: in float16 each addition would be lost."""
    x = np.full(4097, 0.5, np.float16)
    x[0] = 2048
    actual = accumulate(HOST, x, out=np.empty((), np.float16), axes=(0,), keepdims=False)
    assert (actual.dtype, actual.item()) == ("float32", 4096.0)
    out = np.empty((), np.float32)
    assert accumulate(HOST, x.astype("float32"), out=out, axes=(0,), keepdims=False) is out


def test_element_and_byte_counts() -> None:
    assert [reduced_elements((2, 3, 5), axes) for axes in ((), (1,), (0, 2), (0, 1, 2))] == [1, 3, 10, 30]
    assert [partial_sums_bytes(n) for n in (0, ONE_BLOCK, ONE_BLOCK + 1)] == [
        0,
        0,
        8 * (ONE_BLOCK // SMALLEST_BLOCK + 1),
    ]


def test_float16_division_by_a_count_beyond_its_range() -> None:
    g = np.array([1.0, 60_000.0], np.float16)
    actual = come_to(lambda g: divide(g, 70_000), g)
    assert actual.dtype == "float16"
    np.testing.assert_array_equal(actual, (g.astype("float64") / 70_000).astype("float16"))
    np.testing.assert_array_equal(come_to(lambda g: divide(g, 3), g.astype("float64")), g.astype("float64") / 3)
