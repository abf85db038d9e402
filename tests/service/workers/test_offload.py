"""Where work on bytes is done: on the event loop where they are few, else on a thread beside it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from service.workers.memory import BYTES_ON_LOOP, offload


def test_few_bytes_are_done_with_at_once() -> None:
    async def done() -> list[int]:
        where: list[int] = []
        assert offload(asyncio.get_running_loop(), BYTES_ON_LOOP, lambda: where.append(threading.get_ident())) is None
        return where

    assert asyncio.run(done()) == [threading.get_ident()]


def test_many_bytes_leave_the_loop_free() -> None:
    async def done() -> int:
        turn = threading.Event()
        working = offload(asyncio.get_running_loop(), BYTES_ON_LOOP + 1, lambda: (turn.wait(30), threading.get_ident()))
        assert working is not None
        assert not working.done()
        turn.set()  # which the loop could not do, if it did the work
        awaited, thread = await working  # type: ignore[misc]
        assert awaited
        return int(thread)

    assert asyncio.run(done()) != threading.get_ident()


@pytest.mark.parametrize("nbytes", [BYTES_ON_LOOP, BYTES_ON_LOOP + 1])
def test_what_the_work_raises_is_not_lost(nbytes: int) -> None:
    def fails() -> None:
        raise OSError("no")

    async def done() -> None:
        working = offload(asyncio.get_running_loop(), nbytes, fails)
        assert working is not None
        await working

    with pytest.raises(OSError, match="no"):
        asyncio.run(done())
