"""A reply that is awaited: it comes when the pool says so, and who does not wait any more has the work stopped."""

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


class Noted:
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


def waiting(pool: Noted, asked: Task) -> asyncio.Task[Reply]:
    return asyncio.create_task(run_task(cast("Pool", pool), asked))


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
