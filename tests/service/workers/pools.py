"""Pools of worker processes for tests, and helpers that send them jobs."""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import orjson

from service.core.settings import Settings
from service.workers.pool import run_task
from service.workers.process_pool import ProcessPool
from service.workers.task import Reply, Task

COMMAND = (sys.executable, "-m", "tests.service.workers.trial_child")
_T = TypeVar("_T")


@asynccontextmanager
async def processes(workers: int = 2, **stated: Any):
    """A pool whose processes are all ready."""
    pool = ProcessPool(Settings(**{"device": "cpu", "workers": workers, "log_level": "error", **stated}), COMMAND)
    await pool.start()
    try:
        await whole(pool)
        yield pool
    finally:
        await pool.close(0)


async def whole(pool: ProcessPool) -> None:
    """Wait until every worker is there, the spare included."""
    await until(lambda: pool._supervisor.spare is not None and len(pool._supervisor.general) == pool._settings.workers)


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that other processes bring about."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  another process changes it
            await asyncio.sleep(0.002)


def job(instructions: dict[str, Any] | bytes, timeout: float = 60.0, **stated: Any) -> Task:
    """A job with these instructions for the worker."""
    body = instructions if isinstance(instructions, bytes) else orjson.dumps(instructions)
    return Task("forward", body, "test", timeout, time.monotonic() + timeout, **stated)


async def ask(pool: ProcessPool, instructions: dict[str, Any] | bytes, seconds: float = 60.0, **stated: Any) -> Reply:
    """The reply to a job with these instructions."""
    return await run_task(pool, job(instructions, seconds, **stated))


def code(reply: Reply) -> str:
    """The error code of a problem reply."""
    problem: dict[str, Any] = orjson.loads(reply.body)
    assert problem["status"] == reply.status
    return str(problem["code"])


def settled(pool: ProcessPool) -> bool:
    """Whether no job and no memory is held."""
    stats = pool.stats()
    return not pool.busy and not stats.reserved and not stats.running and not any(stats.queued.values())


def running(coroutine: Callable[..., Coroutine[Any, Any, _T]]) -> Callable[..., _T]:
    """Run an async test on an event loop of its own."""

    def test(*arguments: Any, **named: Any) -> _T:
        return asyncio.run(coroutine(*arguments, **named))

    return functools.wraps(coroutine)(test)


async def together(*awaitables: Awaitable[_T], **stated: bool) -> list[_T]:
    """Gather the results of these awaitables."""
    return list(await asyncio.gather(*awaitables, **stated))
