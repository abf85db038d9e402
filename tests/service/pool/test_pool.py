"""A reply that is awaited: it comes when the pool says so, and who does not wait any more has the work stopped."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import cast

import pytest

from service.pool.pool import Done, Pool, awaited
from service.pool.process_pool import ProcessPool
from service.transport.job import Job, Reply
from service.wire.media import JSON
from tests.service.pool.pools import running
from tests.service.thread_pool import ThreadPool

REPLY = Reply(200, JSON, [b"{}"])


class Noted:
    """A pool that answers when the test says so."""

    def __init__(self, at_once: bool = False) -> None:
        self.at_once = at_once
        self.submitted: list[tuple[Job, Done]] = []
        self.cancelled: list[Job] = []

    def submit(self, job: Job, done: Done) -> None:
        self.submitted.append((job, done))
        if self.at_once:
            done(REPLY)

    def cancel(self, job: Job) -> None:
        self.cancelled.append(job)


def job() -> Job:
    return Job("forward", b"{}", "id", 1.0, time.monotonic() + 1.0)


def waiting(pool: Noted, asked: Job) -> asyncio.Task[Reply]:
    return asyncio.create_task(awaited(cast("Pool", pool), asked))


@pytest.mark.parametrize("at_once", [True, False])
@running
async def test_the_reply_is_what_the_pool_gives(at_once: bool) -> None:
    pool, asked = Noted(at_once), job()
    task = waiting(pool, asked)
    await asyncio.sleep(0)
    ((submitted, done),) = pool.submitted
    assert submitted is asked
    if not at_once:
        assert not task.done()
        done(REPLY)
    assert await task is REPLY
    assert pool.cancelled == []


@running
async def test_who_is_cancelled_has_the_work_stopped() -> None:
    pool, asked = Noted(), job()
    task = waiting(pool, asked)
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert pool.cancelled == [asked]


@running
async def test_a_reply_that_comes_as_one_leaves_is_let_be() -> None:
    """The pool has called back before it heard that nobody waits."""
    pool, asked = Noted(), job()
    task = waiting(pool, asked)
    await asyncio.sleep(0)
    ((_, done),) = pool.submitted
    task.cancel()
    await asyncio.sleep(0)
    done(REPLY)
    assert task.cancelled()


@pytest.mark.parametrize("kind", [ProcessPool, ThreadPool])
def test_every_pool_has_what_the_front_asks_of_one(kind: type) -> None:
    asked = [name for name, what in vars(Pool).items() if not name.startswith("_") and callable(what)]
    assert {"submit", "cancel", "place", "allocate", "allocate_tensor", "stats", "drain"} <= {*asked}
    assert [name for name in (*asked, "ready", "busy") if not hasattr(kind, name)] == []
