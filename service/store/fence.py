"""Fence: check that the state in memory is current, at a place that other servers may have taken over."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from service.core.errors import Refusal
from service.store.journal import Journal, StateLost

_logger = logging.getLogger("gradserve")


class Fence:
    """Fence around the state in memory, for one event loop; always open if the place is exclusively this server's.

    One look at the place serves all that wait for it.
    """

    def __init__(
        self, journal: Journal, executor: Executor | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._journal = journal
        self._executor = executor or ThreadPoolExecutor(1, "gradserve-look")
        self._clock = clock
        self._at_work: asyncio.Task[None] | None = None
        self._to_come: asyncio.Task[None] | None = None
        self.looks = 0
        #: refusal of everything about the state, once another server has it
        self.lost: Refusal | None = None

    @property
    def open(self) -> bool:
        """True if memory is known to be current without a look."""
        return self._journal.holds()

    async def passed(self, expires: float = float("inf")) -> None:
        """Return once memory is known to have been current at some moment after the call.

        Raises Refusal (not_ready) if it is not, and at `expires` if that is not known.
        """
        if self.lost is not None:
            raise self.lost
        if self._journal.holds():
            return
        left = expires - self._clock()
        if self._to_come is None:  # a look that began before the call may have seen an older state
            self._to_come = asyncio.get_running_loop().create_task(self._look(self._at_work))
            self._to_come.add_done_callback(consume_exception)
        try:
            async with asyncio.timeout(None if left == float("inf") else left):
                await asyncio.shield(self._to_come)
        except TimeoutError:
            raise unseen() from None
        if self.lost is not None:  # since the look
            raise self.lost

    def lose(self, reason: StateLost) -> Refusal:
        """Answer nothing more; return the refusal that is answered instead."""
        if self.lost is None:
            _logger.error("nothing of the state is answered or kept any more: %s", reason)
            detail = "another server has taken over the place where this one kept its state; it answers nothing of it"
            self.lost = Refusal("not_ready", detail, retry_after=5)
        return self.lost

    def leave(self) -> None:
        """Answer nothing more, not even what was looked at before: this server gives up the state in memory."""
        if self.lost is None:
            detail = "this server has just left the part of the state that this is about to others; send it again"
            self.lost = Refusal("not_ready", detail, retry_after=1)

    def close(self) -> None:
        """Look no more."""
        self._executor.shutdown(wait=False)

    async def _look(self, previous: asyncio.Task[None] | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        self._at_work, self._to_come = self._to_come, None
        if self.lost is not None:
            raise self.lost
        if self._journal.holds():  # by the look before, or by a commit
            return
        self.looks += 1
        try:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._journal.look)
        except StateLost as lost:
            raise self.lose(lost) from None
        except OSError as error:
            _logger.warning("it cannot be seen whether another server has taken over the state: %s", error)
            raise unseen() from None


def consume_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a done task, so that asyncio does not log it if nobody waits for it."""
    if not task.cancelled():
        task.exception()


def unseen() -> Refusal:
    """Return the refusal if the place cannot be looked at."""
    detail = "the place where the server keeps its state does not answer, so what it knows of it may be out of date"
    return Refusal("not_ready", detail, retry_after=1)
