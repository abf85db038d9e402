"""Fence around the state in memory: one look opens it, unless the server leaves the place meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.core.errors import Refusal
from service.store.fence import Fence


class LookJournal:
    """Journal whose looks succeed, with a callback during the look."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] = lambda: None

    def holds(self) -> bool:
        return False

    def look(self) -> None:
        self.meanwhile()


def pass_fence(*, leaves: bool) -> None:
    """Wait at a fence for a look; with `leaves`, the server leaves the place just after it."""

    async def scenario() -> None:
        journal, loop = LookJournal(), asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as executor:
            fence = Fence(journal, executor)  # type: ignore[arg-type]
            if leaves:
                journal.meanwhile = lambda: loop.call_soon_threadsafe(fence.leave)
            await fence.wait_until_current()

    asyncio.run(scenario())


def test_one_look_is_enough() -> None:
    pass_fence(leaves=False)


def test_waiter_is_refused_if_the_place_is_left_after_its_look() -> None:
    """The state in memory is dropped then, so an answer from it would be wrong."""
    with pytest.raises(Refusal, match="has just handed over"):
        pass_fence(leaves=True)
