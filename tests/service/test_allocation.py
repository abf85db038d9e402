"""What all memory does that is given back: once, however often it is asked for, and nobody sees it afterwards."""

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
def test_it_is_given_back_once(kind: str) -> None:
    async def told() -> tuple[int, list[int]]:
        memory = KINDS[kind](asyncio.get_running_loop())
        memory.view[:1] = b"x"
        before, after = len(memory.view), list[int]()
        for _ in range(2):
            memory.release()
            after.append(len(memory.view))
        return before, after

    assert asyncio.run(told()) == (COPIED if kind == "small tensor" else NBYTES, [0, 0])


def upload(memory: Allocation) -> MemoryHolder:
    """A body that was received into this memory."""
    body = BodyBuffer(lambda nbytes, tenant: cast("GrowingAllocation", memory), NBYTES, "")
    body.memory = cast("GrowingAllocation", memory)
    return body


@pytest.mark.parametrize("hold", [lambda memory: Reply(200, "", [], memory=memory), upload], ids=["reply", "body"])
def test_who_holds_memory_gives_it_back(hold: Callable[[Allocation], MemoryHolder]) -> None:
    memory = HeapAllocation(NBYTES)
    holder = hold(memory)
    for _ in range(2):
        holder.release()
        assert not len(memory.view)
    hold(HeapAllocation(0)).release()


def test_a_view_stays_what_it_was() -> None:
    """A tensor's memory goes with the last who looks at it."""

    async def seen() -> bytes:
        memory = TensorMemory(asyncio.get_running_loop()).allocate(NBYTES)
        memory.view[:3] = b"old"
        view = memory.view[:3]
        memory.release()
        return bytes(view)

    assert asyncio.run(seen()) == b"old"
