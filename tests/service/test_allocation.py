"""Releasing memory: repeated releases count once, and existing views stay valid."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

import pytest

from service.core.allocation import Allocation, GrowingAllocation, MemoryHolder
from service.web.tasks import BodyBuffer
from service.workers.claims import Claims
from service.workers.memory import COPIED, BodyMemory, HeapAllocation, TensorMemory
from service.workers.task import Reply

NBYTES: Final = 2 * COPIED
KINDS: Final[dict[str, Callable[[asyncio.AbstractEventLoop], Allocation]]] = {
    "heap": lambda loop: HeapAllocation(NBYTES),
    "body": lambda loop: BodyMemory(loop, lambda number: None).allocate(NBYTES, Claims(1 << 30).claim("")),
    "small tensor": lambda loop: TensorMemory(loop).allocate(COPIED),
    "tensor": lambda loop: TensorMemory(loop).allocate(NBYTES),
}


@pytest.mark.parametrize("kind", KINDS)
def test_release_is_idempotent(kind: str) -> None:
    async def measure_lengths() -> tuple[int, list[int]]:
        memory = KINDS[kind](asyncio.get_running_loop())
        memory.view[:1] = b"x"
        before, after = len(memory.view), list[int]()
        for _ in range(2):
            memory.release()
            after.append(len(memory.view))
        return before, after

    assert asyncio.run(measure_lengths()) == (COPIED if kind == "small tensor" else NBYTES, [0, 0])


def upload(memory: Allocation) -> MemoryHolder:
    """A received body in this memory."""
    body = BodyBuffer(lambda nbytes, tenant: cast("GrowingAllocation", memory), NBYTES, "")
    body.memory = cast("GrowingAllocation", memory)
    return body


@pytest.mark.parametrize("hold", [lambda memory: Reply(200, "", [], memory=memory), upload], ids=["reply", "body"])
def test_holder_releases_its_memory(hold: Callable[[Allocation], MemoryHolder]) -> None:
    memory = HeapAllocation(NBYTES)
    holder = hold(memory)
    for _ in range(2):
        holder.release()
        assert not len(memory.view)
    hold(HeapAllocation(0)).release()


def test_view_stays_valid_after_release() -> None:
    """A tensor's memory is freed with its last view."""

    async def read_view() -> bytes:
        memory = TensorMemory(asyncio.get_running_loop()).allocate(NBYTES)
        memory.view[:3] = b"old"
        view = memory.view[:3]
        memory.release()
        return bytes(view)

    assert asyncio.run(read_view()) == b"old"
