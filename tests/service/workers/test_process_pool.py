"""The pool of processes: every job gets one reply, by its deadline, and then nothing is held for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest

from service.core.errors import Refusal
from service.core.settings import Settings
from service.store.tables import TensorVersion
from service.workers.frames import INLINE
from service.workers.process_pool import ProcessPool
from service.workers.task import Estimate, NeedsGraph, NeedsTensors, Reply, Task, TooLong
from tests.service.workers.pools import code, job, running, settled
from tests.service.workers.puppets import Puppet, puppets

__all__ = ["puppets"]


@asynccontextmanager
async def pool_of(puppets: list[Puppet], workers: int = 1, **stated: Any) -> AsyncIterator[ProcessPool]:
    """A pool whose workers are all ready: the quick one, the general ones, and the spare."""
    settings = Settings(
        **{"device": "cpu", "workers": workers, "confine": "off", "cache_dir": None, "worker_bytes": 0, **stated}
    )
    pool = ProcessPool(settings, ["worker"])
    starting = asyncio.create_task(pool.start())
    await asyncio.sleep(0)
    for number in range(workers + 2):
        puppets[number].become_ready()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await starting
    try:
        yield pool
    finally:
        await pool.close(0.0)


def submit(pool: ProcessPool, task: Task | None = None, **stated: Any) -> tuple[Task, list[Reply]]:
    """Submit a job; return it with the list of its replies."""
    replies: list[Reply] = []
    submitted = job({}, **stated) if task is None else task
    pool.submit(submitted, replies.append)
    return submitted, replies


def codes(replies: list[Reply]) -> list[str | int]:
    return [reply.status if reply.status == 200 else code(reply) for reply in replies]


@running
async def test_short_job_goes_to_the_quick_worker(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        _, replies = submit(pool)
        (ticket,) = puppets[0].tickets
        assert (pool.busy, pool.stats().running, replies) == (True, 1, [])
        puppets[0].reply(ticket, b"answer")
        assert [reply.body for reply in replies] == [b"answer"]
        assert settled(pool)


@running
async def test_long_job_moves_on_and_reserves_memory_for_its_answer(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        _, replies = submit(pool)
        puppets[0].not_done(puppets[0].tickets[0], TooLong(Estimate(1.0, 0, 1000)))
        ticket = puppets[1].long
        assert ticket is not None
        assert (ticket.most_seconds, pool.stats().reserved) == (None, 1000)
        submit(pool, job(b"[]"))
        assert len(puppets[0].tickets) == 1, "short ones pass it"
        puppets[1].reply(ticket, seconds=1.0)
        puppets[0].reply(puppets[0].tickets[0])
        assert codes(replies) == [200]
        assert settled(pool)


@running
async def test_infeasible_long_job_is_refused_at_once(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        for timeout, expected in ((60.0, []), (5.0, ["queue_full"])):
            _, replies = submit(pool, job({"within": timeout}, timeout))
            puppets[0].not_done(puppets[0].tickets[0], TooLong(Estimate(4.0, 0, 0)))
            assert codes(replies) == expected


@running
async def test_missing_input_is_sent_with_the_job_but_not_twice(
    puppets: list[Puppet], caplog: pytest.LogCaptureFixture
) -> None:
    async with pool_of(puppets) as pool:
        for why in (NeedsGraph(), NeedsTensors(["w"])):
            _, replies = submit(pool, graph="g", graph_bytes=b"{}")
            (ticket,) = puppets[0].tickets
            puppets[0].not_done(ticket, why)
            assert puppets[0].tickets == [ticket]
            assert (ticket.needs_graph, [*ticket.tensor_names]) == ((True, []) if why == () else (False, ["w"]))
            puppets[0].not_done(ticket, why)
            assert codes(replies) == ["internal_error"]
        assert settled(pool)
    assert "a worker asked again for data that it already has" in caplog.text


@running
async def test_job_of_a_dead_worker_is_retried_once(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        _, guilty = submit(pool)
        _, innocent = submit(pool)
        first, second = puppets[0].tickets
        puppets[0].begin(first)
        puppets[0].end()
        assert puppets[1].long is first, "alone, as long ones are"
        assert puppets[2].tickets == [second], "the spare has taken its place"
        puppets[2].reply(second)
        puppets[1].begin(first)
        puppets[1].end()
        assert (codes(guilty), codes(innocent)) == (["worker_died"], [200])
        assert (settled(pool), pool.stats().restarts) == (True, {"died": 2})


@running
async def test_unblamed_job_is_not_retried_forever(puppets: list[Puppet]) -> None:
    async with pool_of(puppets, workers=1) as pool:
        _, replies = submit(pool)
        (ticket,) = puppets[0].tickets
        for deaths in range(1, 6):
            carrier = next(puppet for puppet in puppets if ticket in puppet.tickets)
            carrier.tickets = []
            pool.lost([ticket], None)
            assert (ticket.deaths, codes(replies)) == (deaths, [])
        pool.lost([ticket], None)
        assert codes(replies) == ["worker_died"]


@running
async def test_late_job_is_answered_before_its_worker_lets_go(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        submitted, replies = submit(pool)
        (ticket,) = puppets[0].tickets
        pool.expired(ticket)
        assert (codes(replies), puppets[0].stopped, pool.busy) == (["deadline_exceeded"], [ticket], True)
        puppets[0].skip(ticket)
        assert settled(pool)
        pool.cancel(submitted)
        assert codes(replies) == ["deadline_exceeded"]


@running
async def test_reply_to_a_cancelled_job_is_released(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        submitted, replies = submit(pool)
        (ticket,) = puppets[0].tickets
        pool.cancel(submitted)
        memory = mock.Mock()
        puppets[0].reply(ticket, memory=memory)
        assert replies == []
        memory.release.assert_called_once_with()
        assert settled(pool)


@running
async def test_full_pool_refuses_or_displaces_the_largest_caller(puppets: list[Puppet]) -> None:
    async with pool_of(puppets, queue=3) as pool:
        held = [submit(pool, tenant="greedy")[1] for _ in range(4)]
        assert codes(submit(pool, tenant="greedy")[1]) == ["queue_full"]
        assert submit(pool, tenant="modest")[1] == []
        assert [codes(replies) for replies in held] == [[], [], [], ["queue_full"]], "the last one gave way"
        assert pool.stats().displaced == 1


@running
async def test_draining_pool_finishes_its_jobs(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        _, replies = submit(pool)
        pool.drain()
        assert (pool.ready, codes(submit(pool)[1])) == (False, ["shutting_down"])
        with pytest.raises(Refusal):
            pool.allocate(10)
        closing = asyncio.create_task(pool.close(60.0))
        await asyncio.sleep(0)
        puppets[0].reply(puppets[0].tickets[0])
        assert await closing
        assert codes(replies) == [200]
        assert all(puppet.finished for puppet in puppets)


@running
async def test_unfinished_jobs_are_refused_at_close(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        _, replies = submit(pool)
        assert not await pool.close(0.0)
        assert codes(replies) == ["shutting_down"]


@running
async def test_large_body_is_in_shared_memory_until_the_reply(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        body = np.full(INLINE + 1, 7, np.uint8)
        submitted, _ = submit(pool, Task("forward", body, "id", 60.0, job({}).expires))
        (ticket,) = puppets[0].tickets
        assert ticket.memory is not None
        assert bytes(submitted.body) == body.tobytes() == bytes(ticket.memory.view)
        assert pool.stats().reserved == INLINE + 1
        puppets[0].reply(ticket)
        assert settled(pool)
        assert bytes(submitted.body) == b""


@running
async def test_new_version_is_announced_and_the_old_one_released(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        first, second = (TensorVersion("uint8", (3,), str(i), pool.allocate_tensor(3)) for i in range(2))
        pool.place("ns", "w", first)
        pool.place("ns", "w", second)
        assert (len(first.memory.view), pool.residents) == (0, {("ns", "w"): second})
        pool.place("ns", "w", None)
        assert (len(second.memory.view), pool.residents) == (0, {})
        assert [puppet.news for puppet in puppets] == [[("ns", "w")] * 3] * 3
