"""Jobs that are stopped: at their deadline, or because their client is gone."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from service.workers.process_pool import ProcessPool
from service.workers.task import Reply
from tests.service.workers.pools import ask, code, job, processes, running, settled, together, until, whole


def pids(pool: ProcessPool) -> set[int]:
    return {worker.pid for worker in pool._supervisor}


def executing(pool: ProcessPool, count: int = 1) -> bool:
    return sum(worker.executing is not None for worker in pool._supervisor) == count


def unexpected_reply(_: Reply) -> None:
    raise AssertionError("the client is gone")


@pytest.mark.slow
@running
async def test_deadline_of_work_that_checks_it() -> None:
    async with processes(1) as pool:
        before = pids(pool)
        assert code(await ask(pool, {"sleep": 1000}, 0.05)) == "deadline_exceeded"
        await until(lambda: settled(pool))
        assert pids(pool) == before


@pytest.mark.slow
@running
async def test_deadline_of_work_that_does_not_check_it() -> None:
    async with processes(1) as pool:
        before = pids(pool)
        assert code(await ask(pool, {"stuck": 1000}, 0.05)) == "deadline_exceeded"
        await until(lambda: settled(pool))
        await whole(pool)
        assert len(pids(pool) & before) == 2
        assert pool.stats().restarts == {"stuck": 1}


@pytest.mark.slow
@running
async def test_deadline_of_a_waiting_job() -> None:
    async with processes(1) as pool:
        first = asyncio.create_task(ask(pool, {"estimate": 0.01, "stuck": 0.5}))
        await until(lambda: executing(pool))
        assert code(await ask(pool, {"estimate": 0.01}, 0.1)) == "deadline_exceeded"
        assert (await first).status == 200
        await until(lambda: settled(pool))
        assert not pool.stats().restarts


@pytest.mark.slow
@running
async def test_waiting_job_is_dropped_when_its_client_leaves() -> None:
    async with processes(1) as pool:
        first = asyncio.create_task(ask(pool, {"estimate": 0.01, "stuck": 0.3}))
        await until(lambda: executing(pool))
        memory = pool.allocate(100_000)
        memory.view[:] = b'{"die": 1}'.ljust(100_000)
        abandoned = job(b"", memory=memory)
        abandoned.body = memory.view
        pool.submit(abandoned, unexpected_reply)
        pool.cancel(abandoned)
        pool.cancel(abandoned)
        assert (await first).status == 200
        await until(lambda: settled(pool))
        assert not pool.stats().restarts


@pytest.mark.slow
@running
async def test_sent_jobs_are_not_begun_when_their_clients_leave() -> None:
    async with processes(1) as pool:
        first = asyncio.create_task(ask(pool, {"stuck": 0.05}))
        await until(lambda: executing(pool))
        abandoned = [job({"die": 1}) for _ in range(10)]
        for job_of_client in abandoned:
            pool.submit(job_of_client, unexpected_reply)
            pool.cancel(job_of_client)
        assert (await first).status == 200
        assert (await ask(pool, {})).status == 200
        await until(lambda: settled(pool))
        assert not pool.stats().restarts


@pytest.mark.slow
@running
async def test_cooperative_work_stops_when_its_client_leaves() -> None:
    async with processes(1) as pool:
        before, abandoned = pids(pool), job({"sleep": 1000})
        pool.submit(abandoned, unexpected_reply)
        await until(lambda: executing(pool))
        pool.cancel(abandoned)
        await until(lambda: settled(pool))
        assert pids(pool) == before


@pytest.mark.slow
@running
async def test_stuck_work_is_killed_when_its_client_leaves() -> None:
    async with processes(1) as pool:
        abandoned = job({"stuck": 1000})
        pool.submit(abandoned, unexpected_reply)
        await until(lambda: executing(pool))
        pool.cancel(abandoned)
        await until(lambda: settled(pool))
        assert pool.stats().restarts == {"stuck": 1}


@pytest.mark.slow
@running
async def test_only_the_stuck_worker_is_killed() -> None:
    """The other jobs of its worker are answered, like those of other workers."""
    async with processes(1) as pool:
        guilty = asyncio.create_task(ask(pool, {"stuck": 1000}, 0.3))
        await until(lambda: executing(pool))
        others = [asyncio.create_task(ask(pool, {"pid": 1})) for _ in range(10)]
        large = asyncio.create_task(ask(pool, b'{"seen": 1}'.ljust(100_000)))
        assert code(await guilty) == "deadline_exceeded"
        assert [reply.status for reply in await together(*others, large)] == [200] * 11
        (await large).release()
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_short_job_that_runs_long_does_not_block_others() -> None:
    async with processes(1) as pool:
        slow = asyncio.create_task(ask(pool, {"stuck": 1000}))
        await until(lambda: executing(pool))
        others = [asyncio.create_task(ask(pool, {})) for _ in range(40)]
        assert [reply.status for reply in await together(*others)] == [200] * 40
        assert not slow.done()
        slow.cancel()


@pytest.mark.slow
@running
async def test_overrunning_job_is_redone_as_long_if_all_are_busy() -> None:
    async with processes(1) as pool:
        slow = [asyncio.create_task(ask(pool, {"sleep": seconds})) for seconds in (0.6, 0.7, 0.8, 0.9)]
        replies = await together(*(ask(pool, {}) for _ in range(20)))
        assert [reply.status for reply in replies] == [200] * 20
        assert [reply.status for reply in await together(*slow)] == [200] * 4
        await until(lambda: settled(pool))
        assert not pool.stats().restarts


@pytest.mark.slow
@running
async def test_close_waits_for_running_jobs() -> None:
    async with processes(1) as pool:
        running_job = asyncio.create_task(ask(pool, {"stuck": 0.2}))
        await until(lambda: executing(pool))
        closing = asyncio.create_task(pool.close(60))
        await asyncio.sleep(0)
        refused = await ask(pool, {})
        assert (code(refused), dict(refused.headers)) == ("shutting_down", {"Retry-After": "5"})
        assert not pool.ready
        assert await closing
        assert (await running_job).status == 200
        assert not list(pool._supervisor)


@pytest.mark.slow
@running
async def test_close_gives_up_after_its_grace_period() -> None:
    async with processes(1) as pool:
        stuck = asyncio.create_task(ask(pool, {"stuck": 1000}))
        await until(lambda: executing(pool))
        assert not await pool.close(0.01)
        assert orjson.loads((await stuck).body)["code"] == "shutting_down"
        assert not list(pool._supervisor)


@pytest.mark.slow
@running
async def test_abandoned_job_is_not_given_to_another_worker() -> None:
    """It waits behind a long job, so that the pool takes it back."""
    async with processes(1) as pool:
        quick = pool._supervisor.quick
        assert quick is not None
        before = sum(worker.served for worker in pool._supervisor)
        first = asyncio.create_task(ask(pool, {"stuck": 0.3}))
        await until(lambda: quick.executing)
        abandoned = asyncio.create_task(ask(pool, {"stuck": 0.01}))
        await until(lambda: quick.sent == 2)
        abandoned.cancel()
        assert (await first).status == 200
        await until(lambda: settled(pool))
        assert sum(worker.served for worker in pool._supervisor) == before + 1
