"""Offloading: work on few bytes runs on the event loop, work on many bytes on a thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from service.workers.memory import BYTES_ON_LOOP, offload


def test_few_bytes_are_handled_on_the_loop() -> None:
    async def run_offloaded() -> list[int]:
        threads: list[int] = []
        assert offload(asyncio.get_running_loop(), BYTES_ON_LOOP, lambda: threads.append(threading.get_ident())) is None
        return threads

    assert asyncio.run(run_offloaded()) == [threading.get_ident()]


def test_many_bytes_are_handled_on_a_thread() -> None:
    async def run_offloaded() -> int:
        turn = threading.Event()
        working = offload(asyncio.get_running_loop(), BYTES_ON_LOOP + 1, lambda: (turn.wait(30), threading.get_ident()))
        assert working is not None
        assert not working.done()
        turn.set()  # the loop could not do this if it did the work
        awaited, thread = await working  # type: ignore[misc]
        assert awaited
        return int(thread)

    assert asyncio.run(run_offloaded()) != threading.get_ident()


@pytest.mark.parametrize("nbytes", [BYTES_ON_LOOP, BYTES_ON_LOOP + 1])
def test_exception_of_the_work_is_raised(nbytes: int) -> None:
    def fails() -> None:
        raise OSError("no")

    async def run_offloaded() -> None:
        working = offload(asyncio.get_running_loop(), nbytes, fails)
        assert working is not None
        await working

    with pytest.raises(OSError, match="no"):
        asyncio.run(run_offloaded())
