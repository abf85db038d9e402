"""Resident tensors as jobs read them: arrays on the bytes themselves, in native byte order, and read-only."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.tensor_type import DTYPES
from service.workers.residents import array_of


@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (1, 6, 1)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bytes_are_row_major_and_little_endian(dtype: str, shape: tuple[int, ...]) -> None:
    expected = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    data = expected.astype(expected.dtype.newbyteorder("<")).tobytes()
    array = array_of(data, dtype, shape)
    assert (array.dtype, array.shape) == (np.dtype(dtype), shape)
    assert array.dtype.isnative
    np.testing.assert_array_equal(array, expected)


def test_array_is_read_only() -> None:
    memory = bytearray(16)
    array = array_of(memoryview(memory), "float64", (2,))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1.0


def test_array_is_not_copied() -> None:
    memory = bytearray(16)
    array = array_of(memoryview(memory), "float64", (2,))
    assert np.shares_memory(array, np.frombuffer(memory, np.uint8))
    memory[:8] = np.float64(2.5).tobytes()
    assert array.tolist() == [2.5, 0.0]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 2)], ids=str)
def test_empty_array_has_its_shape(shape: tuple[int, ...]) -> None:
    array = array_of(b"", "float32", shape)
    assert (array.shape, array.dtype) == (shape, np.dtype("float32"))
