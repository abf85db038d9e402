"""Jobs that are stopped: at their deadline, or because nobody waits for them any more."""

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


def never(_: Reply) -> None:
    raise AssertionError("the client is gone")


@pytest.mark.slow
@running
async def test_the_deadline_of_work_that_looks_at_it() -> None:
    async with processes(1) as pool:
        before = pids(pool)
        assert code(await ask(pool, {"sleep": 1000}, 0.05)) == "deadline_exceeded"
        await until(lambda: settled(pool))
        assert pids(pool) == before


@pytest.mark.slow
@running
async def test_the_deadline_of_work_that_does_not() -> None:
    async with processes(1) as pool:
        before = pids(pool)
        assert code(await ask(pool, {"stuck": 1000}, 0.05)) == "deadline_exceeded"
        await until(lambda: settled(pool))
        await whole(pool)
        assert len(pids(pool) & before) == 2
        assert pool.stats().restarts == {"stuck": 1}


@pytest.mark.slow
@running
async def test_the_deadline_of_a_job_that_waits() -> None:
    async with processes(1) as pool:
        first = asyncio.create_task(ask(pool, {"estimate": 0.01, "stuck": 0.5}))
        await until(lambda: executing(pool))
        assert code(await ask(pool, {"estimate": 0.01}, 0.1)) == "deadline_exceeded"
        assert (await first).status == 200
        await until(lambda: settled(pool))
        assert not pool.stats().restarts


@pytest.mark.slow
@running
async def test_a_job_that_waits_is_dropped_when_its_client_goes() -> None:
    async with processes(1) as pool:
        first = asyncio.create_task(ask(pool, {"estimate": 0.01, "stuck": 0.3}))
        await until(lambda: executing(pool))
        memory = pool.allocate(100_000)
        memory.view[:] = b'{"die": 1}'.ljust(100_000)
        gone = job(b"", memory=memory)
        gone.body = memory.view
        pool.submit(gone, never)
        pool.cancel(gone)
        pool.cancel(gone)
        assert (await first).status == 200
        await until(lambda: settled(pool))
        assert not pool.stats().restarts


@pytest.mark.slow
@running
async def test_jobs_that_were_sent_are_not_begun_when_their_clients_go() -> None:
    async with processes(1) as pool:
        first = asyncio.create_task(ask(pool, {"stuck": 0.05}))
        await until(lambda: executing(pool))
        gone = [job({"die": 1}) for _ in range(10)]
        for one in gone:
            pool.submit(one, never)
            pool.cancel(one)
        assert (await first).status == 200
        assert (await ask(pool, {})).status == 200
        await until(lambda: settled(pool))
        assert not pool.stats().restarts


@pytest.mark.slow
@running
async def test_work_that_looks_stops_when_its_client_goes() -> None:
    async with processes(1) as pool:
        before, gone = pids(pool), job({"sleep": 1000})
        pool.submit(gone, never)
        await until(lambda: executing(pool))
        pool.cancel(gone)
        await until(lambda: settled(pool))
        assert pids(pool) == before


@pytest.mark.slow
@running
async def test_work_that_does_not_look_is_killed_when_its_client_goes() -> None:
    async with processes(1) as pool:
        gone = job({"stuck": 1000})
        pool.submit(gone, never)
        await until(lambda: executing(pool))
        pool.cancel(gone)
        await until(lambda: settled(pool))
        assert pool.stats().restarts == {"stuck": 1}


@pytest.mark.slow
@running
async def test_only_the_guilty_is_killed() -> None:
    """The others that its worker had are answered, as they are that other workers have."""
    async with processes(1) as pool:
        late = asyncio.create_task(ask(pool, {"stuck": 1000}, 0.3))
        await until(lambda: executing(pool))
        others = [asyncio.create_task(ask(pool, {"pid": 1})) for _ in range(10)]
        large = asyncio.create_task(ask(pool, b'{"seen": 1}'.ljust(100_000)))
        assert code(await late) == "deadline_exceeded"
        assert [reply.status for reply in await together(*others, large)] == [200] * 11
        (await large).release()
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_a_short_job_that_runs_long_does_not_hold_up_others() -> None:
    async with processes(1) as pool:
        slow = asyncio.create_task(ask(pool, {"stuck": 1000}))
        await until(lambda: executing(pool))
        others = [asyncio.create_task(ask(pool, {})) for _ in range(40)]
        assert [reply.status for reply in await together(*others)] == [200] * 40
        assert not slow.done()
        slow.cancel()


@pytest.mark.slow
@running
async def test_where_all_are_busy_it_is_stopped_and_done_with_the_long_ones() -> None:
    async with processes(1) as pool:
        slow = [asyncio.create_task(ask(pool, {"sleep": seconds})) for seconds in (0.6, 0.7, 0.8, 0.9)]
        done = await together(*(ask(pool, {}) for _ in range(20)))
        assert [reply.status for reply in done] == [200] * 20
        assert [reply.status for reply in await together(*slow)] == [200] * 4
        await until(lambda: settled(pool))
        assert not pool.stats().restarts


@pytest.mark.slow
@running
async def test_close_waits_for_what_runs() -> None:
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
async def test_close_does_not_wait_for_ever() -> None:
    async with processes(1) as pool:
        stuck = asyncio.create_task(ask(pool, {"stuck": 1000}))
        await until(lambda: executing(pool))
        assert not await pool.close(0.01)
        assert orjson.loads((await stuck).body)["code"] == "shutting_down"
        assert not list(pool._supervisor)


@pytest.mark.slow
@running
async def test_a_job_that_nobody_waits_for_is_not_handed_to_another_worker() -> None:
    """It lies behind one that runs long, so that what waits there is taken back."""
    async with processes(1) as pool:
        quick = pool._supervisor.quick
        assert quick is not None
        before = sum(worker.served for worker in pool._supervisor)
        first = asyncio.create_task(ask(pool, {"stuck": 0.3}))
        await until(lambda: quick.executing)
        left = asyncio.create_task(ask(pool, {"stuck": 0.01}))
        await until(lambda: quick.sent == 2)
        left.cancel()
        assert (await first).status == 200
        await until(lambda: settled(pool))
        assert sum(worker.served for worker in pool._supervisor) == before + 1
