"""Memory of resident tensors: small ones are on the heap, large ones have a buffer each that is never reused."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator

import pytest

from service.core.errors import Refusal
from service.workers import memory as tensor_memory
from service.workers.memory import COPIED, HeapAllocation, TensorAllocation, TensorMemory


@pytest.fixture
def memory() -> Iterator[TensorMemory]:
    loop = asyncio.new_event_loop()
    yield TensorMemory(loop)
    loop.close()


@pytest.mark.parametrize(("nbytes", "shared"), [(0, False), (1, False), (COPIED, False), (COPIED + 1, True)])
def test_large_tensors_are_in_shared_memory(memory: TensorMemory, nbytes: int, shared: bool) -> None:
    allocation = memory.allocate(nbytes)
    assert isinstance(allocation, TensorAllocation if shared else HeapAllocation)
    assert len(allocation.view) == nbytes
    allocation.release()
    assert len(allocation.view) == 0


def test_buffer_numbers_are_unique_and_distinct_from_bodies(memory: TensorMemory) -> None:
    numbers = []
    for _ in range(3):
        allocation = memory.allocate(COPIED + 1)
        assert isinstance(allocation, TensorAllocation)
        assert allocation.buffer is not None
        numbers.append(allocation.buffer.number)
        allocation.release()
    assert len({*numbers}) == 3
    assert min(numbers) >= 1 << 32


def test_buffer_is_closed_once_and_readers_stay_valid(memory: TensorMemory) -> None:
    allocation = memory.allocate(COPIED + 1)
    assert isinstance(allocation, TensorAllocation)
    buffer, reader = allocation.buffer, allocation.view
    assert buffer is not None
    reader[:2] = b"ab"
    allocation.release()
    allocation.release()
    assert allocation.buffer is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(buffer.fd)
    assert bytes(reader[:2]) == b"ab"
    reader.release()


def test_system_without_memory_is_a_refusal(memory: TensorMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(tensor_memory, "sealed_memory", fails)
    assert isinstance(memory.allocate(COPIED), HeapAllocation)
    with pytest.raises(Refusal, match="resident tensor of 16385 bytes: Cannot allocate memory") as refused:
        memory.allocate(COPIED + 1)
    assert (refused.value.code, refused.value.got) == ("store_full", "16385 bytes")
