"""Jobs that are one execution in their worker, as the pool sees them: a death or a delay of it is nobody's fault."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from service.pool.process_pool import ProcessPool
from service.transport.job import Reply
from tests.service.pool.pools import ask, code, job, processes, running, settled, together, until, whole

GROUP = {"group": 1}


async def at_once(pool: ProcessPool, *told: dict[str, Any]) -> list[Reply]:
    """The replies to jobs that go to a worker in one write."""
    return await together(*(ask(pool, one) for one in told))


def bodies(replies: list[Reply]) -> Counter[bytes]:
    assert {reply.status for reply in replies} == {200}
    return Counter(reply.body for reply in replies)


@pytest.mark.slow
@running
async def test_what_waits_together_is_done_together() -> None:
    async with processes(1, coalesce="on") as pool:
        replies = await at_once(pool, *[GROUP] * 8, {"answer": 3})
        assert bodies(replies) == {b"together": 8, b"aaz": 1}
        assert [reply.coalesced for reply in replies] == [True] * 8 + [False]
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_two_are_not_worth_it() -> None:
    async with processes(1, coalesce="on") as pool:
        assert bodies(await at_once(pool, GROUP, GROUP)) == {b"done": 2}


@pytest.mark.slow
@running
async def test_it_has_to_be_asked_for() -> None:
    async with processes(1) as pool:
        assert bodies(await at_once(pool, *[GROUP] * 8)) == {b"done": 8}
    async with processes(1, coalesce="on", determinism="bitwise") as pool:
        assert bodies(await at_once(pool, *[GROUP] * 8)) == {b"done": 8}


@pytest.mark.slow
@running
async def test_what_fails_together_is_done_one_by_one() -> None:
    async with processes(1, coalesce="on") as pool:
        replies = await at_once(pool, *[GROUP] * 5, GROUP | {"fails": 1, "answer": 2})
        assert bodies(replies) == {b"done": 5, b"az": 1}


@pytest.mark.slow
@running
async def test_what_dies_together_is_done_alone() -> None:
    async with processes(1, coalesce="on") as pool:
        replies = await at_once(pool, *[GROUP] * 7, GROUP | {"in_group": {"die": 1}})
        assert bodies(replies) == {b"done": 8}
        assert pool.stats().restarts == {"died": 1}
        await until(lambda: settled(pool))
        await whole(pool)


@pytest.mark.slow
@running
async def test_who_kills_its_company_kills_nobody_else() -> None:
    """It is done again alone, and not a third time; the others are answered."""
    async with processes(1, coalesce="on") as pool:
        replies = await at_once(pool, *[GROUP] * 7, GROUP | {"in_group": {"die": 1}, "die": 1})
        assert [reply.status for reply in replies] == [200] * 7 + [503]
        assert code(replies[-1]) == "worker_died"
        assert pool.stats().restarts == {"died": 2}
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_what_is_held_up_together_is_done_alone() -> None:
    """Nothing in the group looks at its deadline: its worker is killed, and nobody waits for that."""
    async with processes(1, coalesce="on") as pool:
        replies = await at_once(pool, *[GROUP] * 7, GROUP | {"in_group": {"stuck": 1000}})
        assert bodies(replies) == {b"done": 8}
        assert pool.stats().restarts == {"stuck": 1}
        assert pool._cost_model.known(job(GROUP))[1] is None, "what was slow together is taken to be long"
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_who_is_late_or_gone_is_not_answered_and_others_are() -> None:
    async with processes(1, coalesce="on") as pool:
        holding = asyncio.create_task(ask(pool, {"stuck": 0.09}))
        await until(lambda: any(worker.executing for worker in pool._supervisor))
        others = [asyncio.create_task(ask(pool, GROUP)) for _ in range(6)]
        late = asyncio.create_task(ask(pool, GROUP | {"in_group": {"die": 1}}, 0.01))
        gone = job({"group": 1, "in_group": {"die": 1}})
        pool.submit(gone, lambda _: None)
        pool.cancel(gone)
        assert code(await late) == "deadline_exceeded"
        assert [reply.status for reply in await together(holding, *others)] == [200] * 7
        await until(lambda: settled(pool))
        assert not pool.stats().restarts
