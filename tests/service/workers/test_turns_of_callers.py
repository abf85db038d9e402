"""Several callers of one pool: each has its share of the workers and of the queue; a single caller has everything."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from service.workers.admission import Accounts
from service.workers.process_pool import ProcessPool
from service.workers.task import Task
from tests.service.workers.pools import ask, code, job, processes, running, settled, together, until

SLOW = {"stuck": 0.02}


def begun(pool: ProcessPool, count: int) -> bool:
    return sum(worker.executing is not None for worker in pool._supervisor.working) == count


async def make_present(pool: ProcessPool, *callers: str) -> None:
    """Make these callers present."""
    await together(*(ask(pool, {}, tenant=caller) for caller in callers))
    assert pool.stats().callers >= len(callers)


@pytest.mark.slow
@running
async def test_caller_with_many_jobs_does_not_block_others() -> None:
    """A hundred slow jobs are queued first; jobs of another caller pass them one by one."""
    async with processes(1) as pool:
        await make_present(pool, "greedy", "modest")
        many = [asyncio.create_task(ask(pool, SLOW, tenant="greedy")) for _ in range(100)]
        await until(lambda: sum(task.done() for task in many) > 5)
        for _ in range(20):
            assert (await ask(pool, {}, tenant="modest")).status == 200
        assert sum(task.done() for task in many) < 90
        for task in many:
            task.cancel()
        await together(*many, return_exceptions=True)
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_caller_of_slow_jobs_loses_the_quick_worker() -> None:
    async with processes(2) as pool:
        await make_present(pool, "greedy", "modest")
        many = [asyncio.create_task(ask(pool, {**SLOW, "pid": 1}, tenant="greedy")) for _ in range(60)]
        await until(lambda: sum(task.done() for task in many) > 30)
        assert pool._supervisor.quick is not None
        quick = pool._supervisor.quick.pid
        last = [int((await task).body) for task in many[40:]]
        assert quick not in last
        assert int((await ask(pool, {"pid": 1}, tenant="modest")).body) == quick


@pytest.mark.slow
@running
async def test_single_caller_has_all_workers() -> None:
    async with processes(2) as pool:
        replies = await together(*(ask(pool, {**SLOW, "pid": 1}, tenant="alone") for _ in range(60)))
        assert len({int(reply.body) for reply in replies}) == 3


@pytest.mark.slow
@running
async def test_long_jobs_of_callers_take_turns() -> None:
    """Thirty jobs of one caller are queued first; three of another do not wait for them."""
    async with processes(1) as pool:
        order: list[str] = []

        async def send(caller: str) -> None:
            await ask(pool, {"estimate": 0.02, "sleep": 0.02}, tenant=caller)
            order.append(caller)

        await make_present(pool, "greedy", "modest")
        many = [asyncio.create_task(send("greedy")) for _ in range(30)]
        await until(lambda: len(order) > 3)
        await together(*many, *(send("modest") for _ in range(3)))
        assert order[:20].count("modest") == 3


@pytest.mark.slow
@running
async def test_full_queue_makes_way_for_a_smaller_caller() -> None:
    async with processes(1, queue=9) as pool:
        held = [asyncio.create_task(ask(pool, {"estimate": 1.0, "sleep": 0.2}, tenant="greedy")) for _ in range(10)]
        await until(lambda: pool._supervisor.general[0].long is not None)
        assert code(await ask(pool, {}, tenant="greedy")) == "queue_full"
        few = await together(*(ask(pool, {}, tenant="modest") for _ in range(3)))
        assert [reply.status for reply in few] == [200] * 3
        assert Counter(reply.status for reply in await together(*held)) == {200: 7, 503: 3}
        assert pool.stats().displaced == 3
        assert [task.result().status for task in held[:7]] == [200] * 7, "the last ones gave way"
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_jobs_of_others_do_not_make_a_deadline_infeasible() -> None:
    """Jobs of another caller do not make a short deadline infeasible."""
    async with processes(1) as pool:
        many = [asyncio.create_task(ask(pool, {"estimate": 5.0, "sleep": 0.05}, tenant="greedy")) for _ in range(8)]
        await until(lambda: pool._supervisor.general[0].long is not None)
        reply = await ask(pool, {"estimate": 0.5, "sleep": 0.0}, 2.0, tenant="modest")
        assert reply.status == 200
        await together(*many)


@pytest.mark.slow
@running
async def test_sent_jobs_are_taken_back_for_a_second_caller() -> None:
    """A single caller has filled the sockets; a second one does not wait for all of its jobs."""
    async with processes(1) as pool:
        many = [asyncio.create_task(ask(pool, SLOW, tenant="greedy")) for _ in range(60)]
        await asyncio.sleep(0)
        assert (await ask(pool, {}, tenant="modest")).status == 200
        assert sum(task.done() for task in many) < 30
        assert [reply.status for reply in await together(*many)] == [200] * 60


@pytest.mark.slow
@running
async def test_long_job_in_the_quick_worker_is_not_stopped() -> None:
    """The spare does the short jobs of another caller, long before the watch looks for stuck workers."""
    async with processes(1) as pool:
        await make_present(pool, "greedy", "modest")
        slow = asyncio.create_task(ask(pool, {"stuck": 3.0}, tenant="greedy"))
        await until(lambda: begun(pool, 1))
        assert (await ask(pool, {}, tenant="modest")).status == 200
        assert not slow.done()
        assert (await slow).status == 200


# ---------------------------------------------------------------- accounts, with simulated time


@pytest.fixture
def accounts() -> Accounts:
    return Accounts()


def test_presence_of_callers(accounts: Accounts) -> None:
    first, held = accounts.enter("a", 0.0), job({})
    first.tasks[held] = None
    accounts.enter("b", 0.0)
    assert accounts.contended
    accounts.look(0.5)
    assert accounts.contended
    accounts.look(1.5)
    assert not accounts.contended
    assert accounts.present == 1, "who has a job is there"
    assert accounts.enter("a", 2.0) is first
    del first.tasks[held]
    accounts.look(200.0)
    assert accounts.present == 0
    assert accounts.enter("a", 201.0) is not first


def test_overruns_make_a_caller_doubtful_for_a_while(accounts: Accounts) -> None:
    account = accounts.enter("a", 0.0)
    account.overran(0.05, 0.0)
    assert not account.is_doubtful(0.0)
    account.overran(0.06, 0.0)
    assert account.is_doubtful(0.0)
    assert not account.is_doubtful(0.5)
    for _ in range(1000):
        account.overran(1.0, 1.0)
    assert account.is_doubtful(2.5)
    assert not account.is_doubtful(3.5), "nothing is held against anybody for long"


def test_greatest_is_the_caller_with_most_jobs(accounts: Accounts) -> None:
    for caller, count in (("a", 1), ("b", 3), ("c", 2)):
        account = accounts.enter(caller, 0.0)
        account.tasks.update(dict.fromkeys(_jobs(count)))
    assert accounts.greatest().tenant == "b"


def _jobs(count: int) -> list[Task]:
    return [job({}) for _ in range(count)]
