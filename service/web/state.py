"""State that the routes share: created once, read by every request."""

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
from service.workers.pool import Pool, run_task
from service.workers.task import Reply, Task

#: forward pass of one step that no pass folds away, so that it goes through admission, a worker, and the device
_PROBE: Final = (
    b'{"graph":{"nodes":[{"op":"input"},{"op":"exp","operands":[0]}]},'
    b'"feeds":[{"node":0,"tensor":{"dtype":"float64","shape":[2],"data":[0.0,1.0]}}]}'
)
#: seconds for which a successful probe is valid, and seconds that a probe may take
FRESH: Final = 1.0
PATIENCE: Final = 2.0
#: statuses of a probe that found no free worker: the server is busy, not broken
_BUSY_STATUSES: Final = (503, 504)


class Readiness:
    """Readiness check: a worker computes something, and the state belongs to this server.

    The worker is asked at most once in `FRESH` seconds, however often the check is called.
    """

    def __init__(self, pool: Pool, wait_until_current: Callable[[float], Awaitable[None]]) -> None:
        """`wait_until_current` returns if the state is this server's, at the latest at a given time. Raises Refusal."""
        self._pool = pool
        self._current = wait_until_current
        self._proved_at = float("-inf")
        self._probe_task: asyncio.Task[Reply] | None = None

    async def check(self) -> None:
        """Return if the server is ready. Raises Refusal: shutting_down, not_ready."""
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
        reply = await run_task(self._pool, Task("forward", _PROBE, "readiness", PATIENCE, now + PATIENCE))
        reply.release()
        return reply


def no_answer() -> Refusal:
    """Return the refusal for workers that do not answer."""
    return Refusal("not_ready", "the worker processes do not respond; the log has the reason", retry_after=5)


@dataclass(frozen=True)
class State:
    """Settings, workers, store, and what the server publishes about itself."""

    settings: Settings
    pool: Pool
    store: StateStore
    catalogue: OpCatalogue
    documents: Mapping[str, bytes]
    readiness: Readiness
    metrics: Exposition


def state_of(request: Request) -> State:
    """Return the application's state."""
    state: State = request.app.state.service
    return state


def store_of(request: Request) -> StoreService:
    """Return the store of a request: the server's, or the one that middleware has chosen for the request."""
    store = getattr(request.state, "store", None)
    return cast("StoreService", state_of(request).store if store is None else store)


async def wait_until_current(request: Request) -> None:
    """Wait until the store is known to be current. Raises Refusal (not_ready), at the request's deadline at latest."""
    await store_of(request).commits.fence.wait_until_current(request.state.expires)


def condition_of(request: Request) -> Condition:
    """Parse If-Match and If-None-Match. Raises Refusal: invalid_field."""
    headers = request.headers
    return header_condition(headers.getlist("if-match"), headers.getlist("if-none-match"))
