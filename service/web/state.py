"""State that the routes share: made once, read by every request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from starlette.requests import Request

from service.core.errors import Refusal, stopping
from service.core.settings import Settings
from service.observe.exposition import Exposition
from service.observe.store import StateStore, StoreService
from service.store.changes import Condition, header_condition
from service.web.pages.catalogue import OpCatalogue
from service.workers.pool import Pool, awaited
from service.workers.task import Reply, Task

#: a forward pass of one step, which nothing folds away: through admission, a worker, and the device
_PROBE: Final = (
    b'{"graph":{"nodes":[{"op":"input"},{"op":"exp","operands":[0]}]},'
    b'"feeds":[{"node":0,"tensor":{"dtype":"float64","shape":[2],"data":[0.0,1.0]}}]}'
)
#: seconds for which one answer stands for all that ask, and that a step may take
FRESH: Final = 1.0
PATIENCE: Final = 2.0
#: refused or late for want of a free worker: the server is busy, and not out of order
_BUSY_STATUSES: Final = (503, 504)


class Readiness:
    """Readiness: a worker gets work done, and the state is the server's own.

    A worker is asked at most once in `FRESH` seconds, however often somebody wants to know.
    """

    def __init__(self, pool: Pool, wait_until_current: Callable[[float], Awaitable[None]]) -> None:
        """`current` returns where the state is the server's, until a time at most. Raises Refusal."""
        self._pool = pool
        self._current = wait_until_current
        self._proved_at = float("-inf")
        self._probe_task: asyncio.Task[Reply] | None = None

    async def check(self) -> None:
        """Return where work is taken and done. Raises Refusal: shutting_down, not_ready."""
        if not self._pool.ready:
            raise stopping()
        await self._current(time.monotonic() + PATIENCE)
        if time.monotonic() - self._proved_at < FRESH:
            return
        if self._probe_task is None or self._probe_task.done():
            self._probe_task = asyncio.create_task(self._probe())
        reply = await asyncio.shield(self._probe_task)
        if reply.status == 200:
            self._proved_at = time.monotonic()
        elif reply.status not in _BUSY_STATUSES or not self._pool.busy:
            raise no_answer()

    async def _probe(self) -> Reply:
        now = time.monotonic()
        reply = await awaited(self._pool, Task("forward", _PROBE, "readiness", PATIENCE, now + PATIENCE))
        reply.give_back()
        return reply


def no_answer() -> Refusal:
    """Return the report of workers that compute nothing."""
    return Refusal("not_ready", "the workers do not answer; the log says why", retry_after=5)


@dataclass(frozen=True)
class State:
    """The settings, the workers, what is kept for callers, and what the server says about itself."""

    settings: Settings
    pool: Pool
    store: StateStore
    catalogue: OpCatalogue
    documents: Mapping[str, bytes]
    readiness: Readiness
    metrics: Exposition


def state_of(request: Request) -> State:
    """Return the state that the application was given."""
    state: State = request.app.state.service
    return state


def store_of(request: Request) -> StoreService:
    """Return the store of a request: the server's, or one that was found for the request."""
    store = getattr(request.state, "store", None)
    return cast("StoreService", state_of(request).store if store is None else store)


async def wait_until_current(request: Request, seconds: float | None = None) -> None:
    """Return where what is kept here is what there is, in as many seconds from the arrival as the request has.

    Raises Refusal: not_ready.
    """
    await store_of(request).commits.fence.passed(deadline_of(request, seconds))


def condition_of(request: Request) -> Condition:
    """Read the condition of the head on the version that is there. Raises Refusal: invalid_field."""
    headers = request.headers
    return header_condition(headers.getlist("if-match"), headers.getlist("if-none-match"))


def deadline_of(request: Request, seconds: float | None = None) -> float:
    """Return when the time of a request is up, on the monotonic clock: after these seconds, or those of the server."""
    arrived: float = request.state.arrived
    return arrived + (state_of(request).settings.timeout_ms / 1000 if seconds is None else seconds)
