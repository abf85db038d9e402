"""Resident tensors as jobs read them: the array that the bytes are, of the machine's order, and nobody's to write."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.tensor_type import DTYPES
from service.workers.residents import array_of


@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (1, 6, 1)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bytes_are_row_major_and_little_endian(dtype: str, shape: tuple[int, ...]) -> None:
    wanted = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    data = wanted.astype(wanted.dtype.newbyteorder("<")).tobytes()
    found = array_of(data, dtype, shape)
    assert (found.dtype, found.shape) == (np.dtype(dtype), shape)
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, wanted)


def test_a_job_cannot_write_into_what_others_read() -> None:
    memory = bytearray(16)
    found = array_of(memoryview(memory), "float64", (2,))
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1.0


def test_nothing_is_copied() -> None:
    memory = bytearray(16)
    found = array_of(memoryview(memory), "float64", (2,))
    assert np.shares_memory(found, np.frombuffer(memory, np.uint8))
    memory[:8] = np.float64(2.5).tobytes()
    assert found.tolist() == [2.5, 0.0]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 2)], ids=str)
def test_one_without_elements_has_its_shape(shape: tuple[int, ...]) -> None:
    found = array_of(b"", "float32", shape)
    assert (found.shape, found.dtype) == (shape, np.dtype("float32"))
