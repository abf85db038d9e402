"""Worker processes: their priority and memory limits, and their replacement by age, jobs and memory."""

from __future__ import annotations

import asyncio
import os
import resource

import pytest

from service.core import machine
from service.core.budget import FRONT_LIMIT, THREAD_BYTES, WORKER_BYTES, WORKER_CACHE_BYTES, WORKER_MARGIN
from service.core.settings import Settings
from service.workers.sandbox import limit_of, memory_limit
from service.workers.topology import share_of_memory, topology_for
from tests.service.workers.pools import ask, processes, running, settled, together, until, whole


@pytest.mark.slow
@running
async def test_workers_have_lower_priority_than_the_front() -> None:
    async with processes(1) as pool:
        assert int((await ask(pool, {"nice": 1})).body) == os.nice(0) + 2
        assert int((await ask(pool, {"estimate": 1, "nice": 1})).body) == os.nice(0) + 5


@pytest.mark.slow
@running
async def test_worker_memory_is_limited_by_the_budgets() -> None:
    budgets = {"max_bytes": 1 << 30, "plan_cache_bytes": 1 << 20, "max_response_bytes": 1 << 20, "max_body_bytes": 1024}
    async with processes(1, **budgets) as pool:
        limit = int((await ask(pool, {"limit": 1})).body)
        allowed = limit_of(Settings(**budgets))
        assert allowed < limit < allowed + (1 << 30)
        reply = await ask(pool, {"allocate": limit})
        assert reply.body == b"no memory"


@pytest.mark.parametrize("cpus", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("memory", [2, 4, 8, 16, 24, 64, 256, 1024])
def test_limits_of_all_workers_fit_the_memory(memory: int, cpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the defaults, including the front; one execution always fits into the limit of its worker."""
    monkeypatch.setattr(machine, "memory_bytes", lambda: memory << 30)
    monkeypatch.setattr(machine, "cpus", lambda: cpus)
    settings = Settings(device="cpu")
    if settings.max_bytes == 64 << 20:
        assert memory <= 4
        return  # too little memory for so many workers; `gradserve doctor` reports it
    processes = topology_for(settings, "cpu").processes
    worker_settings = settings.model_copy(update={"plan_cache_bytes": settings.plan_cache_bytes // processes})
    largest = (
        WORKER_BYTES + WORKER_CACHE_BYTES + WORKER_MARGIN + machine.cpus_per_worker(settings.workers) * THREAD_BYTES
    )
    for taken in 80 << 20, largest:
        limit = memory_limit(worker_settings, taken, share_of_memory(settings))
        assert limit >= taken + settings.max_bytes
        assert processes * limit + FRONT_LIMIT <= memory << 30


def test_explicit_max_bytes_is_not_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory_bytes", lambda: 4 << 30)
    settings = Settings(device="cpu", workers=2, max_bytes=2 << 30)
    assert memory_limit(settings, 80 << 20, share_of_memory(settings)) > 2 << 30


@pytest.mark.slow
@running
async def test_limits_of_real_workers_fit_the_memory() -> None:
    async with processes(2, max_tensor_bytes="1MiB") as pool:
        limits = [int((await ask(pool, {"limit": 1})).body)]
        limits += [resource.prlimit(worker.pid, resource.RLIMIT_DATA)[0] for worker in pool._supervisor]
        assert len(limits) == 5
        assert sum(limits[1:]) + FRONT_LIMIT <= machine.memory_bytes()


@pytest.mark.slow
@running
async def test_worker_is_replaced_after_worker_jobs() -> None:
    """No job is lost."""
    async with processes(1, worker_jobs=50) as pool:
        before = {worker.pid for worker in pool._supervisor}
        replies = await together(*(ask(pool, {"stuck": 0.001}) for _ in range(100)))
        assert [reply.status for reply in replies] == [200] * 100
        await until(lambda: pool.stats().restarts.get("jobs"))
        await whole(pool)
        assert {worker.pid for worker in pool._supervisor} != before
        assert (await ask(pool, {})).status == 200


@pytest.mark.slow
@running
async def test_worker_is_replaced_after_worker_age() -> None:
    async with processes(1, worker_age=1) as pool:
        await until(lambda: pool.stats().restarts.get("age", 0) >= 2)
        assert (await ask(pool, {})).status == 200


@pytest.mark.slow
@running
async def test_worker_is_replaced_beyond_worker_bytes() -> None:
    async with processes(1, worker_bytes=400 << 20) as pool:
        grown = int((await ask(pool, {"grow": 600 << 20, "pid": 1})).body)
        await until(lambda: pool.stats().restarts == {"memory": 1})
        assert grown not in {worker.pid for worker in pool._supervisor}


@pytest.mark.slow
@running
async def test_replaced_worker_finishes_its_running_job() -> None:
    async with processes(1) as pool:
        assert pool._supervisor.quick is not None
        old = pool._supervisor.quick
        running_job = asyncio.create_task(ask(pool, {"stuck": 0.3, "pid": 1}))
        await until(lambda: old.executing is not None)
        pool._supervisor.retire(old, "age")
        assert int((await ask(pool, {"pid": 1})).body) != old.pid
        assert int((await running_job).body) == old.pid
        await until(lambda: settled(pool) and old.ended)
        await whole(pool)
