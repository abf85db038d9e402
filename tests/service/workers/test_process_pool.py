"""The pool of processes: every job has one reply, by its end or its deadline, and then nothing is held for it."""

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
    """A pool of which all workers are ready: quick, general ones, and the spare."""
    settings = Settings(
        **{"device": "cpu", "workers": workers, "confine": "off", "cache_dir": None, "worker_bytes": 0, **stated}
    )
    pool = ProcessPool(settings, ["worker"])
    starting = asyncio.create_task(pool.start())
    await asyncio.sleep(0)
    for number in range(workers + 2):
        puppets[number].come()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await starting
    try:
        yield pool
    finally:
        await pool.close(0.0)


def asked(pool: ProcessPool, what: Task | None = None, **stated: Any) -> tuple[Task, list[Reply]]:
    """A job that was submitted, and its replies."""
    replies: list[Reply] = []
    made = job({}, **stated) if what is None else what
    pool.submit(made, replies.append)
    return made, replies


def codes(replies: list[Reply]) -> list[str | int]:
    return [reply.status if reply.status == 200 else code(reply) for reply in replies]


@running
async def test_a_short_job_goes_to_the_quick_worker_and_its_reply_to_who_asked(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        _, replies = asked(pool)
        (ticket,) = puppets[0].tickets
        assert (pool.busy, pool.stats().running, replies) == (True, 1, [])
        puppets[0].reply(ticket, b"answer")
        assert [reply.body for reply in replies] == [b"answer"]
        assert settled(pool)


@running
async def test_a_job_that_is_too_long_goes_to_another_worker_with_room_for_its_answer(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        _, replies = asked(pool)
        puppets[0].not_done(puppets[0].tickets[0], TooLong(Estimate(1.0, 0, 1000)))
        ticket = puppets[1].long
        assert ticket is not None
        assert (ticket.most_seconds, pool.stats().reserved) == (None, 1000)
        asked(pool, job(b"[]"))
        assert len(puppets[0].tickets) == 1, "short ones pass it"
        puppets[1].reply(ticket, seconds=1.0)
        puppets[0].reply(puppets[0].tickets[0])
        assert codes(replies) == [200]
        assert settled(pool)


@running
async def test_a_long_job_that_cannot_be_in_time_is_refused_at_once(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        for timeout, found in ((60.0, []), (5.0, ["queue_full"])):
            _, replies = asked(pool, job({"within": timeout}, timeout))
            puppets[0].not_done(puppets[0].tickets[0], TooLong(Estimate(4.0, 0, 0)))
            assert codes(replies) == found


@running
async def test_what_a_worker_asks_for_comes_with_the_job_again_but_not_twice(
    puppets: list[Puppet], caplog: pytest.LogCaptureFixture
) -> None:
    async with pool_of(puppets) as pool:
        for why in (NeedsGraph(), NeedsTensors(["w"])):
            _, replies = asked(pool, graph="g", graph_bytes=b"{}")
            (ticket,) = puppets[0].tickets
            puppets[0].not_done(ticket, why)
            assert puppets[0].tickets == [ticket]
            assert (ticket.needs_graph, [*ticket.tensor_names]) == ((True, []) if why == () else (False, ["w"]))
            puppets[0].not_done(ticket, why)
            assert codes(replies) == ["internal_error"]
        assert settled(pool)
    assert "a worker asks again for what it was given" in caplog.text


@running
async def test_whose_worker_dies_is_done_again_once_and_others_are_not_to_blame(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        _, guilty = asked(pool)
        _, innocent = asked(pool)
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
async def test_the_innocent_are_not_sent_round_for_ever(puppets: list[Puppet]) -> None:
    async with pool_of(puppets, workers=1) as pool:
        _, replies = asked(pool)
        (ticket,) = puppets[0].tickets
        for deaths in range(1, 6):
            carrier = next(puppet for puppet in puppets if ticket in puppet.tickets)
            carrier.tickets = []
            pool.lost([ticket], None)
            assert (ticket.deaths, codes(replies)) == (deaths, [])
        pool.lost([ticket], None)
        assert codes(replies) == ["worker_died"]


@running
async def test_what_is_late_is_answered_whatever_its_worker_does_then(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        made, replies = asked(pool)
        (ticket,) = puppets[0].tickets
        pool.expired(ticket)
        assert (codes(replies), puppets[0].stopped, pool.busy) == (["deadline_exceeded"], [ticket], True)
        puppets[0].skip(ticket)
        assert settled(pool)
        pool.cancel(made)
        assert codes(replies) == ["deadline_exceeded"]


@running
async def test_who_has_left_hears_nothing_and_a_reply_that_comes_is_given_back(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        made, replies = asked(pool)
        (ticket,) = puppets[0].tickets
        pool.cancel(made)
        memory = mock.Mock()
        puppets[0].reply(ticket, memory=memory)
        assert replies == []
        memory.release.assert_called_once_with()
        assert settled(pool)


@running
async def test_more_than_are_held_are_refused_unless_another_has_more(puppets: list[Puppet]) -> None:
    async with pool_of(puppets, queue=3) as pool:
        held = [asked(pool, tenant="greedy")[1] for _ in range(4)]
        assert codes(asked(pool, tenant="greedy")[1]) == ["queue_full"]
        assert asked(pool, tenant="modest")[1] == []
        assert [codes(replies) for replies in held] == [[], [], [], ["queue_full"]], "the last one gave way"
        assert pool.stats().displaced == 1


@running
async def test_a_pool_that_drains_takes_nothing_more_and_is_done_when_all_is(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        _, replies = asked(pool)
        pool.drain()
        assert (pool.ready, codes(asked(pool)[1])) == (False, ["shutting_down"])
        with pytest.raises(Refusal):
            pool.allocate(10)
        closing = asyncio.create_task(pool.close(60.0))
        await asyncio.sleep(0)
        puppets[0].reply(puppets[0].tickets[0])
        assert await closing
        assert codes(replies) == [200]
        assert all(puppet.finished for puppet in puppets)


@running
async def test_what_is_not_done_by_the_end_is_refused(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        _, replies = asked(pool)
        assert not await pool.close(0.0)
        assert codes(replies) == ["shutting_down"]


@running
async def test_a_large_body_lies_where_workers_see_it_until_the_job_is_over(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        body = np.full(INLINE + 1, 7, np.uint8)
        made, _ = asked(pool, Task("forward", body, "id", 60.0, job({}).expires))
        (ticket,) = puppets[0].tickets
        assert ticket.memory is not None
        assert bytes(made.body) == body.tobytes() == bytes(ticket.memory.view)
        assert pool.stats().reserved == INLINE + 1
        puppets[0].reply(ticket)
        assert settled(pool)
        assert bytes(made.body) == b""


@running
async def test_every_worker_hears_of_another_version_and_the_one_before_is_given_back(puppets: list[Puppet]) -> None:
    async with pool_of(puppets) as pool:
        first, second = (TensorVersion("uint8", (3,), str(i), pool.allocate_tensor(3)) for i in range(2))
        pool.place("ns", "w", first)
        pool.place("ns", "w", second)
        assert (len(first.memory.view), pool.residents) == (0, {("ns", "w"): second})
        pool.place("ns", "w", None)
        assert (len(second.memory.view), pool.residents) == (0, {})
        assert [puppet.news for puppet in puppets] == [[("ns", "w")] * 3] * 3
