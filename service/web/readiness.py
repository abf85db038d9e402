"""Readiness: a server gets work done, found out by giving it some; and its state is its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from service.errors import Refusal, stopping
from service.pool.pool import Pool, awaited
from service.transport.job import Job, Reply

#: a forward pass of one step, which nothing folds away: through admission, a worker, and the device
_STEP: Final = (
    b'{"graph":{"nodes":[{"op":"input"},{"op":"exp","operands":[0]}]},'
    b'"feeds":[{"node":0,"tensor":{"dtype":"float64","shape":[2],"data":[0.0,1.0]}}]}'
)
#: seconds for which one answer stands for all that ask, and that a step may take
FRESH: Final = 1.0
PATIENCE: Final = 2.0
#: refused or late for want of a free worker: the server is busy, and not out of order
_BUSY: Final = (503, 504)


class Readiness:
    """Readiness of the workers, asked for at most once in `FRESH` seconds, however often somebody wants to know."""

    def __init__(self, pool: Pool, current: Callable[[float], Awaitable[None]]) -> None:
        """`current` returns where the state is the server's, until a time at most. Raises Refusal."""
        self._pool = pool
        self._current = current
        self._proved = float("-inf")
        self._asking: asyncio.Task[Reply] | None = None

    async def check(self) -> None:
        """Return where work is taken and done. Raises Refusal: shutting_down, not_ready."""
        if not self._pool.ready:
            raise stopping()
        await self._current(time.monotonic() + PATIENCE)
        if time.monotonic() - self._proved < FRESH:
            return
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        reply = await asyncio.shield(self._asking)
        if reply.status == 200:
            self._proved = time.monotonic()
        elif reply.status not in _BUSY or not self._pool.busy:
            raise no_answer()

    async def _ask(self) -> Reply:
        now = time.monotonic()
        reply = await awaited(self._pool, Job("forward", _STEP, "readiness", PATIENCE, now + PATIENCE))
        reply.give_back()
        return reply


def no_answer() -> Refusal:
    """The report of workers that compute nothing."""
    return Refusal("not_ready", "the workers do not answer; the log says why", retry_after=5)
