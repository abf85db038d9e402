"""Memory of resident tensors: small ones are this process's own, large ones have a buffer each, never used again."""

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
def test_what_is_large_lies_where_workers_see_it(memory: TensorMemory, nbytes: int, shared: bool) -> None:
    found = memory.allocate(nbytes)
    assert isinstance(found, TensorAllocation if shared else HeapAllocation)
    assert len(found.view) == nbytes
    found.release()
    assert len(found.view) == 0


def test_each_version_has_a_buffer_of_its_own_with_a_number_that_no_body_has(memory: TensorMemory) -> None:
    numbers = []
    for _ in range(3):
        found = memory.allocate(COPIED + 1)
        assert isinstance(found, TensorAllocation)
        assert found.buffer is not None
        numbers.append(found.buffer.number)
        found.release()
    assert len({*numbers}) == 3
    assert min(numbers) >= 1 << 32


def test_it_goes_back_to_the_system_once_with_its_last_reader(memory: TensorMemory) -> None:
    found = memory.allocate(COPIED + 1)
    assert isinstance(found, TensorAllocation)
    buffer, reader = found.buffer, found.view
    assert buffer is not None
    reader[:2] = b"ab"
    found.release()
    found.release()
    assert found.buffer is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(buffer.fd)
    assert bytes(reader[:2]) == b"ab"
    reader.release()


def test_a_system_without_memory_is_a_refusal(memory: TensorMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(tensor_memory, "sealed_memory", fails)
    assert isinstance(memory.allocate(COPIED), HeapAllocation)
    with pytest.raises(Refusal, match="resident tensor of 16385 bytes: Cannot allocate memory") as refused:
        memory.allocate(COPIED + 1)
    assert (refused.value.code, refused.value.got) == ("store_full", "16385 bytes")
