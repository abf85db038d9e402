"""Awaiting a reply of a pool: it arrives when the pool gives it, and cancellation stops the work."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import cast

import pytest

from service.api.media import JSON
from service.workers.pool import Done, Pool, run_task
from service.workers.process_pool import ProcessPool
from service.workers.task import Reply, Task
from tests.service.thread_pool import ThreadPool
from tests.service.workers.pools import running

REPLY = Reply(200, JSON, [b"{}"])


class FakePool:
    """A pool that answers when the test says so."""

    def __init__(self, at_once: bool = False) -> None:
        self.at_once = at_once
        self.submitted: list[tuple[Task, Done]] = []
        self.cancelled: list[Task] = []

    def submit(self, job: Task, done: Done) -> None:
        self.submitted.append((job, done))
        if self.at_once:
            done(REPLY)

    def cancel(self, job: Task) -> None:
        self.cancelled.append(job)


def job() -> Task:
    return Task("forward", b"{}", "id", 1.0, time.monotonic() + 1.0)


def start_waiting(pool: FakePool, request: Task) -> asyncio.Task[Reply]:
    return asyncio.create_task(run_task(cast("Pool", pool), request))


@pytest.mark.parametrize("at_once", [True, False])
@running
async def test_reply_is_that_of_the_pool(at_once: bool) -> None:
    pool, request = FakePool(at_once), job()
    task = start_waiting(pool, request)
    await asyncio.sleep(0)
    ((submitted, done),) = pool.submitted
    assert submitted is request
    if not at_once:
        assert not task.done()
        done(REPLY)
    assert await task is REPLY
    assert pool.cancelled == []


@running
async def test_cancellation_stops_the_work() -> None:
    pool, request = FakePool(), job()
    task = start_waiting(pool, request)
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert pool.cancelled == [request]


@running
async def test_reply_during_cancellation_is_ignored() -> None:
    """The pool replies before it learns of the cancellation."""
    pool, request = FakePool(), job()
    task = start_waiting(pool, request)
    await asyncio.sleep(0)
    ((_, done),) = pool.submitted
    task.cancel()
    await asyncio.sleep(0)
    done(REPLY)
    assert task.cancelled()


@pytest.mark.parametrize("kind", [ProcessPool, ThreadPool])
def test_every_pool_implements_the_protocol(kind: type) -> None:
    methods = [name for name, member in vars(Pool).items() if not name.startswith("_") and callable(member)]
    assert {"submit", "cancel", "place", "allocate", "allocate_tensor", "stats", "drain"} <= {*methods}
    assert [name for name in (*methods, "ready", "busy") if not hasattr(kind, name)] == []
