"""The fence around what is in memory: who has looked waits for nothing more, unless all of it has gone meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.core.errors import Refusal
from service.store.fence import Fence


class Looking:
    """A journal at which a look finds that nobody else has written; something happens meanwhile."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] = lambda: None

    def holds(self) -> bool:
        return False

    def look(self) -> None:
        self.meanwhile()


def passed(*, leaves: bool) -> None:
    """Pass a fence by a look, which ends just before the place is left, or not."""

    async def scenario() -> None:
        journal, loop = Looking(), asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as executor:
            fence = Fence(journal, executor)  # type: ignore[arg-type]
            if leaves:
                journal.meanwhile = lambda: loop.call_soon_threadsafe(fence.leave)
            await fence.wait_until_current()

    asyncio.run(scenario())


def test_a_look_is_enough() -> None:
    passed(leaves=False)


def test_who_looked_before_the_place_was_left_is_told_nothing() -> None:
    """What is in memory goes with it: they would find that there is nothing."""
    with pytest.raises(Refusal, match="has just left"):
        passed(leaves=True)
