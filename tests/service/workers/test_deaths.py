"""Workers that die are replaced, and others retry their jobs once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import orjson
import pytest

from service.core.settings import Settings
from service.workers.frames import INLINE
from service.workers.process_pool import ProcessPool
from service.workers.worker_process import WorkerProcess
from tests.conftest import ROOT
from tests.service.workers.pools import COMMAND, ask, code, processes, running, settled, together, until, whole


def quick(pool: ProcessPool) -> WorkerProcess:
    assert pool._supervisor.quick is not None
    return pool._supervisor.quick


@pytest.mark.slow
@running
async def test_killed_idle_worker_is_replaced() -> None:
    async with processes(1) as pool:
        for _ in range(3):
            killed = quick(pool)
            os.kill(killed.pid, signal.SIGKILL)
            await until(lambda gone=killed: gone.ended)
            assert (await ask(pool, {"pid": 1})).body != b"%d" % killed.pid
            await whole(pool)
        assert pool.stats().restarts == {"died": 3}
        assert pool.stats().workers == {"quick": 1, "long": 1, "spare": 1}


@pytest.mark.slow
@running
async def test_all_workers_killed_at_once_are_replaced() -> None:
    async with processes(2) as pool:
        for worker in pool._supervisor:
            os.kill(worker.pid, signal.SIGKILL)
        replies = await together(*(ask(pool, {}) for _ in range(20)))
        assert [reply.status for reply in replies] == [200] * 20
        await whole(pool)


@pytest.mark.slow
@running
async def test_two_workers_start_at_once_if_most_are_missing() -> None:
    """Otherwise killing workers one by one, as soon as they are ready, would leave none."""

    def starting(pool: ProcessPool) -> int:
        return sum(not worker.ready for worker in pool._supervisor)

    async with processes(2) as pool:
        killed = [worker for worker in pool._supervisor if worker is not quick(pool)]
        for worker in killed:
            os.kill(worker.pid, signal.SIGKILL)
        await until(lambda: all(worker.ended for worker in killed))
        await until(lambda: starting(pool))
        assert starting(pool) == 2
        await whole(pool)


@pytest.mark.slow
@running
async def test_job_of_a_dead_worker_is_retried(tmp_path: Path) -> None:
    async with processes(1) as pool:
        reply = await ask(pool, {"die_unless": str(tmp_path / "once")})
        assert (reply.status, reply.body) == (200, b"done")
        assert pool.stats().restarts == {"died": 1}


@pytest.mark.slow
@running
async def test_job_that_kills_two_workers_is_refused() -> None:
    async with processes(1) as pool:
        reply = await ask(pool, {"die": 1})
        assert (reply.status, code(reply), dict(reply.headers)) == (503, "worker_died", {"Retry-After": "1"})
        assert pool.stats().restarts == {"died": 2}
        assert (await ask(pool, {})).status == 200
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_jobs_queued_behind_a_fatal_one_are_done() -> None:
    """Jobs that the worker had not begun are not blamed: all are answered, with large and small bodies."""
    async with processes(1) as pool:
        assert pool._supervisor.spare is not None
        spare = pool._supervisor.spare
        waiting = [ask(pool, b'{"seen": 1}'.ljust(nbytes)) for nbytes in (20, 100_000) * 6]
        first = asyncio.create_task(ask(pool, {"die": 1}))
        replies = await together(*waiting)
        assert [reply.status for reply in replies] == [200] * 12
        assert Counter(len(reply.body) for reply in replies) == {20: 6, 100_000: 6}
        assert code(await first) == "worker_died"
        assert not spare.ended, "it took the place of the quick worker, and was given what kills again"
        for reply in replies:
            reply.release()
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_answer_outlives_its_worker() -> None:
    async with processes(1) as pool:
        reply = await ask(pool, {"answer": 1 << 20})
        for worker in pool._supervisor:
            os.kill(worker.pid, signal.SIGKILL)
        await until(lambda: pool.stats().restarts == {"died": 3})
        assert reply.body == b"a" * ((1 << 20) - 1) + b"z"
        reply.release()
        assert settled(pool)


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["memory", "fault", "cuda"])
@running
async def test_worker_that_asks_to_be_recycled_is_replaced(reason: str) -> None:
    """Its reply is delivered; the jobs queued behind it, on an unusable GPU, are done by another worker."""
    async with processes(1) as pool:
        bad, *good = await together(ask(pool, {"recycle": reason}), *(ask(pool, {"pid": 1}) for _ in range(10)))
        assert bad.status == 500
        assert [reply.status for reply in good] == [200] * 10
        assert pool.stats().restarts == {reason: 1}
        await whole(pool)
        assert {int(reply.body) for reply in good} <= {worker.pid for worker in pool._supervisor}


@pytest.mark.slow
@running
async def test_kills_leak_no_descriptors() -> None:
    async with processes(1) as pool:

        async def kill_one() -> None:
            jobs = [asyncio.create_task(ask(pool, b"{}".ljust(100_000))) for _ in range(5)]
            await asyncio.sleep(0)
            os.kill(quick(pool).pid, signal.SIGKILL)
            await together(*jobs)
            await whole(pool)
            await until(lambda: settled(pool) and len(list(pool._supervisor)) == 3)

        await kill_one()
        before = descriptors()
        for _ in range(4):
            await kill_one()
        await until(lambda: descriptors() <= before)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.slow
@running
async def test_pool_without_a_device_does_not_start() -> None:
    os.environ["GRADSERVE_TEST_NO_DEVICE"] = "1"
    try:
        pool = ProcessPool(Settings(device="cpu"), COMMAND)
        with pytest.raises(RuntimeError, match="there is no such device"):
            await pool.start()
        assert not pool.ready
        assert await pool.close(0)
    finally:
        del os.environ["GRADSERVE_TEST_NO_DEVICE"]


@pytest.mark.slow
@running
async def test_failing_starts_are_retried_with_backoff() -> None:
    async with processes(1) as pool:
        os.environ["GRADSERVE_TEST_NO_DEVICE"] = "1"
        try:
            os.kill(quick(pool).pid, signal.SIGKILL)
            await until(lambda: pool._supervisor._pause > 0.3)
            assert (await ask(pool, {})).status == 200
        finally:
            del os.environ["GRADSERVE_TEST_NO_DEVICE"]
        await whole(pool)
        assert pool._supervisor._pause == 0


#: starts a pool, prints its workers' ids, and is killed while one of them is busy
FRONT = """
import asyncio
from tests.service.workers.pools import ask, processes

async def front():
    async with processes(1) as pool:
        asyncio.create_task(ask(pool, {"stuck": 1000}))
        await asyncio.sleep(0)
        print(*(worker.pid for worker in pool._supervisor), flush=True)
        await asyncio.Event().wait()

asyncio.run(front())
"""


@pytest.mark.slow
def test_workers_exit_with_the_front() -> None:
    front = subprocess.Popen([sys.executable, "-c", FRONT], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert front.stdout is not None
    pids = [int(pid) for pid in front.stdout.readline().split()]
    assert len(pids) == 3
    front.kill()
    front.wait()
    front.stdout.close()
    asyncio.run(until(lambda: not any(is_alive(pid) for pid in pids)))


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
@running
async def test_counters_outlive_their_worker() -> None:
    async with processes(1) as pool:
        assert (await ask(pool, {})).status == 200
        stats = pool.stats()
        assert (stats.compiled, stats.device) == (3, 4)
        assert stats.resident > 1 << 20
        assert pool._supervisor.quick is not None
        os.kill(pool._supervisor.quick.pid, signal.SIGKILL)
        await until(lambda: pool.stats().restarts == {"died": 1})
        stats = pool.stats()
        assert (stats.compiled, stats.device) == (3, 0)


@pytest.mark.slow
@running
async def test_suspended_workers_are_replaced() -> None:
    """All of them, including the spare: their successors do their jobs."""
    async with processes(1) as pool:
        await whole(pool)
        for worker in pool._supervisor:
            os.kill(worker.pid, signal.SIGSTOP)
        assert (await ask(pool, {}, 25)).status == 200
        assert pool.stats().restarts["stopped"] >= 1


@pytest.mark.slow
@running
async def test_large_body_for_a_worker_that_just_died_is_rerouted() -> None:
    """The front has not noticed its death yet, and cannot share the memory of the body with it."""
    async with processes(1) as pool:
        pid = quick(pool).pid
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222  the loop must not notice
        body = orjson.dumps({"seen": 1}).ljust(2 * INLINE)
        reply = await ask(pool, body)
        assert (reply.status, reply.body) == (200, body)
        reply.release()
        await until(lambda: settled(pool))
