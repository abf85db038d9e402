"""Fence around what is in memory, at a place that other servers may have taken over meanwhile."""

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
    """Fence, looked at once for all that wait. For one event loop; always open where the place is this server's."""

    def __init__(
        self, journal: Journal, executor: Executor | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._journal = journal
        self._executor = executor or ThreadPoolExecutor(1, "gradserve-look")
        self._clock = clock
        self._at_work: asyncio.Task[None] | None = None
        self._to_come: asyncio.Task[None] | None = None
        self.looks = 0
        #: why nothing of the state is answered or kept any more
        self.lost: Refusal | None = None

    @property
    def open(self) -> bool:
        """True if memory is known to be current without a look."""
        return self._journal.holds()

    async def passed(self, expires: float = float("inf")) -> None:
        """Return where what is in memory is what there is, at some moment from the call on; not later than `expires`.

        Raises Refusal: not_ready.
        """
        if self.lost is not None:
            raise self.lost
        if self._journal.holds():
            return
        left = expires - self._clock()
        try:
            async with asyncio.timeout(None if left == float("inf") else left):
                await asyncio.shield(self._look())
        except TimeoutError:
            raise unseen() from None
        if self.lost is not None:  # since the look: what is in memory may be gone
            raise self.lost

    def lose(self, reason: StateLost) -> Refusal:
        """Answer nothing more; what is said instead."""
        if self.lost is None:
            _logger.error("nothing of the state is answered or kept any more: %s", reason)
            detail = "another server has taken over the place where this one kept its state; it answers nothing of it"
            self.lost = Refusal("not_ready", detail, retry_after=5)
        return self.lost

    def leave(self) -> None:
        """Answer nothing more, also of what was looked at before: what is in memory goes."""
        if self.lost is None:
            detail = "this server has just left the part of the state that this is about to others; send it again"
            self.lost = Refusal("not_ready", detail, retry_after=1)

    def close(self) -> None:
        """Look no more."""
        self._executor.shutdown(wait=False)

    def _look(self) -> asyncio.Task[None]:
        """The look that begins next: one that began before somebody came may have seen an older state."""
        if self._to_come is None:
            self._to_come = asyncio.get_running_loop().create_task(self._looked(self._at_work))
            self._to_come.add_done_callback(consume_exception)
        return self._to_come

    async def _looked(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
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
    """A task is done, and nobody may wait any more for what it raises."""
    if not task.cancelled():
        task.exception()


def unseen() -> Refusal:
    """The report of a place that cannot be looked at."""
    detail = "the place where the server keeps its state does not answer, so what it knows of it may be out of date"
    return Refusal("not_ready", detail, retry_after=1)
