"""Lanes and admission: short jobs do not wait for long ones, and infeasible deadlines are refused at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from service.core.settings import Settings
from service.workers.admission import LARGE_BODY, QUICK, Admission, CostModel, TaskKind, kind_of
from service.workers.process_pool import ProcessPool
from service.workers.task import Estimate
from service.workers.topology import topology_for
from tests.service.workers.pools import COMMAND, ask, code, job, processes, running, settled, together, until

LONG = {"estimate": 1.0}


def begun(pool: ProcessPool, count: int) -> bool:
    return (
        sum(worker.long is not None and worker.executing is worker.long for worker in pool._supervisor.general) == count
    )


@pytest.mark.slow
@running
async def test_short_jobs_do_not_wait_for_long_ones() -> None:
    """Every general worker is held, and more long jobs wait; short ones pass them."""
    async with processes(2) as pool:
        held = [asyncio.create_task(ask(pool, {**LONG, "stuck": 1000})) for _ in range(4)]
        await until(lambda: begun(pool, 2) and pool.stats().queued["long"] == 2)
        assert [reply.status for reply in await together(*(ask(pool, {}) for _ in range(200)))] == [200] * 200
        assert not any(task.done() for task in held)
        for task in held:
            task.cancel()
        await together(*held, return_exceptions=True)
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_quick_worker_does_not_run_long_jobs() -> None:
    async with processes(2) as pool:
        assert pool._supervisor.quick is not None
        quick, general = pool._supervisor.quick.pid, {worker.pid for worker in pool._supervisor.general}
        assert int((await ask(pool, {"pid": 1})).body) == quick
        assert int((await ask(pool, {**LONG, "pid": 1})).body) in general


@pytest.mark.slow
@running
async def test_long_kind_skips_the_quick_worker_next_time() -> None:
    async with processes(1) as pool:
        assert pool._supervisor.quick is not None
        instructions = {**LONG, "sleep": 0.01}
        await ask(pool, instructions)
        served = pool._supervisor.quick.served
        await ask(pool, instructions)
        assert pool._supervisor.quick.served == served


@pytest.mark.slow
@running
async def test_general_workers_help_the_quick_worker() -> None:
    async with processes(2) as pool:
        replies = await together(*(ask(pool, {"stuck": 0.001, "pid": 1}) for _ in range(200)))
        answered = Counter(int(reply.body) for reply in replies)
        assert set(answered) == {worker.pid for worker in pool._supervisor.working}


@pytest.mark.slow
@running
async def test_full_queue_refuses_jobs() -> None:
    async with processes(1, queue=2) as pool:
        taken = [asyncio.create_task(ask(pool, {**LONG, "sleep": 0.3})) for _ in range(3)]
        await until(lambda: begun(pool, 1))
        refused = await ask(pool, {})
        assert (refused.status, code(refused), dict(refused.headers)) == (503, "queue_full", {"Retry-After": "1"})
        assert b"already holds 3 requests" in refused.body
        assert [reply.status for reply in await together(*taken)] == [200] * 3
        assert (await ask(pool, {})).status == 200


@pytest.mark.slow
@running
async def test_refused_job_releases_its_memory() -> None:
    async with processes(1, queue=0) as pool:
        taken = asyncio.create_task(ask(pool, {"sleep": 0.2}))
        await asyncio.sleep(0)
        memory = pool.allocate(100_000)
        memory.reserve(100_000)
        assert code(await ask(pool, b"{}", memory=memory)) == "queue_full"
        await taken
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_answer_without_memory_is_refused() -> None:
    async with processes(1, held_bytes=1 << 20) as pool:
        memory = pool.allocate(1 << 19)
        memory.reserve(1 << 19)
        refused = await ask(pool, {**LONG, "promises": 1 << 20})
        assert code(refused) == "queue_full"
        memory.release()
        assert (await ask(pool, {**LONG, "promises": 1 << 20})).status == 200
        await until(lambda: settled(pool))


@pytest.mark.slow
@running
async def test_job_that_became_infeasible_is_not_begun() -> None:
    """The job before it exceeds its estimate."""
    async with processes(1) as pool:
        first = asyncio.create_task(ask(pool, {"estimate": 0.01, "stuck": 0.5}))
        await until(lambda: begun(pool, 1))
        refused = await ask(pool, {"estimate": 0.4, "die": 1}, 0.8)
        assert code(refused) == "queue_full"
        assert (await first).status == 200
        assert not pool.stats().restarts


@pytest.mark.slow
@running
async def test_idle_server_tries_an_infeasible_estimate() -> None:
    """An estimate may be wrong; the deadline decides."""
    async with processes(1) as pool:
        assert (await ask(pool, {"estimate": 100.0}, 60)).status == 200


@pytest.mark.slow
@running
async def test_server_with_an_idle_worker_tries_an_infeasible_estimate() -> None:
    """One worker is busy, and no job waits for the other."""
    async with processes(2) as pool:
        busy = asyncio.create_task(ask(pool, {"estimate": 1.0, "stuck": 0.5}))
        await until(lambda: begun(pool, 1))
        assert (await ask(pool, {"estimate": 100.0}, 60)).status == 200
        assert (await busy).status == 200


async def crowd(instructions: dict[str, Any], seconds: float) -> list[str]:
    """Outcomes of 60 equal jobs that arrive at once at a fresh server with two workers, in order of reply."""
    replies = []

    async def send(pool: ProcessPool) -> None:
        replies.append(await ask(pool, instructions, seconds))

    async with processes(2) as pool:
        await together(*(send(pool) for _ in range(60)))
        await until(lambda: settled(pool))
    for reply in replies:
        assert reply.status == 200 or 1 <= int(dict(reply.headers)["Retry-After"]) <= 60
    return ["done" if reply.status == 200 else code(reply) for reply in replies]


@pytest.mark.slow
def test_feasible_slow_jobs_are_done_and_the_rest_refused() -> None:
    """Two workers can do 50 of them in their 5 s; at least 80 % of that is accepted, and none is late."""
    order = asyncio.run(crowd({"estimate": 0.2, "stuck": 0.2}, 5.0))
    refused = order.count("queue_full")
    assert set(order) == {"done", "queue_full"}
    assert "queue_full" not in order[refused + 3 :], "when they come, before it has been measured what they take"
    assert 10 <= refused <= 22


@pytest.mark.slow
def test_underestimated_jobs_are_never_late() -> None:
    """The estimate is a tenth of the actual time; once that is measured, infeasible jobs are refused."""
    outcomes = Counter(asyncio.run(crowd({"estimate": 0.02, "stuck": 0.2}, 3.0)))
    assert set(outcomes) == {"done", "queue_full"}
    assert 20 <= outcomes["done"] <= 30


def test_cost_model_learns() -> None:
    costs, long = CostModel(), job({"a": 1})
    assert costs.estimate(long) == (None, None)
    kind = kind_of(long)
    assert costs.add_plan(kind, Estimate(2.0, 5, 7)) == (2.0, 5, 7)
    costs.record(kind, None, 9.0, planned=True)
    assert costs.estimate(long) == (kind, (pytest.approx(2.0 * 1.9), 5, 7)), "as its plan says, corrected a little"
    costs.record(kind, None, 2.0, planned=False)
    costs.record(kind, None, 3.0, planned=False)
    assert costs.estimate(long) == (kind, (pytest.approx(2.0 * 0.7 + 3.0 * 0.3), 5, 7)), "as it was measured"
    other = job({"b": 1})
    assert costs.estimate(other) == (kind_of(other), None)
    factor = ((1.0 * 0.7 + 4.0 * 0.3) * 0.7 + 1.0 * 0.3) * 0.7 + 1.5 * 0.3
    assert costs.add_plan(kind_of(other), Estimate(4.0, 0, 0)).seconds == pytest.approx(4 * factor), (
        "as the others were"
    )
    costs.record(kind, None, QUICK / 3, planned=False)
    assert costs.estimate(long)[1] is None, "forgotten, since it is short"


def test_margin_falls_with_measurements() -> None:
    costs, kind = CostModel(), kind_of(job({}, tenant="a"))
    unsure = costs.margin("a")
    costs.add_plan(kind, Estimate(1.0, 0, 0))
    for _ in range(3):
        costs.record(kind, None, 1.0, planned=False)
    assert 1.0 < costs.margin("a") < unsure == costs.margin("b")


def test_callers_do_not_share_measurements() -> None:
    """Neither times of equal bodies nor corrections of the cost model are shared."""
    costs, body = CostModel(), {"a": 1}
    kind = kind_of(job(body, tenant="greedy"))
    costs.add_plan(kind, Estimate(5.0, 0, 0))
    for _ in range(5):
        costs.record(kind, None, 20.0, planned=False)
    assert costs.estimate(job(body, tenant="greedy"))[1] is not None
    assert costs.estimate(job(body, tenant="modest"))[1] is None
    assert costs.add_plan(kind_of(job(body, tenant="modest")), Estimate(1.0, 0, 0)).seconds == 1.0


def test_kinds_of_one_caller_do_not_evict_those_of_another() -> None:
    costs, own = CostModel(), job({}, tenant="modest")
    costs.add_plan(kind_of(own), Estimate(1.0, 0, 0))
    for number in range(6000):
        costs.add_plan(TaskKind("greedy", number), Estimate(1.0, 0, 0))
    assert costs.estimate(own)[1] is not None
    assert len(costs._kinds) == 4096


def test_kind_of() -> None:
    assert kind_of(job(b"x" * 600)) == kind_of(job(b"x" * 600))
    assert kind_of(job(b"x" * 600)) != kind_of(job(b"x" * 601))
    assert kind_of(job(b"x" * 600)) != kind_of(job(b"y" + b"x" * 599))
    assert kind_of(job(b"x" * 8000)) != kind_of(job(b"x" * 3999 + b"y" * 4001)), "more is looked at where there is more"
    assert kind_of(job(b"x" * 8000)) == kind_of(job(b"x" * 4000 + b"y" * 4000)), "numbers come last"
    assert kind_of(job(b"x", tenant="a")) != kind_of(job(b"x", tenant="b"))
    assert kind_of(job(b"x", graph="a")) == kind_of(job(b"y", graph="a")) != kind_of(job(b"x", graph="b"))


def test_large_body_is_not_for_the_quick_worker() -> None:
    assert CostModel().estimate(job(b"x" * (LARGE_BODY + 1)))[1] is not None
    assert CostModel().estimate(job(b"x" * LARGE_BODY))[1] is None


def test_number_of_kinds_is_bounded() -> None:
    costs = CostModel()
    for number in range(5000):
        costs.add_plan(TaskKind("", number), Estimate(1.0, 0, 0))
    assert len(costs._kinds) == 4096


def test_retry_after_follows_the_rate() -> None:
    admission = Admission(10)
    assert admission.crowded(10).retry_after == 1
    admission.look(100.0)
    for _ in range(10):
        admission.replied()
    admission.look(110.0)
    assert admission.crowded(12).retry_after == 20  # the average is 0.3 of the 1 reply a second so far; half of 12
    assert Admission.infeasible(12.4, 10.0).retry_after == 3
    assert Admission.infeasible(1e9, 10.0).retry_after == 60


def test_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(workers=3)
    assert topology_for(settings, "cpu") == (3, True, True, ())
    monkeypatch.setattr("service.core.machine.visible_gpus", lambda: ("0", "2"))
    monkeypatch.setattr("service.core.machine.cpus", lambda: 12)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    topology = topology_for(settings, "cuda:0")
    assert topology == (2, False, False, ("0", "2"))
    assert [topology.environment(number) for number in range(2)] == [
        {"OPENBLAS_NUM_THREADS": "6", "CUDA_VISIBLE_DEVICES": "0"},
        {"OPENBLAS_NUM_THREADS": "6", "CUDA_VISIBLE_DEVICES": "2"},
    ]
    assert topology_for(settings, "cpu").environment(0) == {"OPENBLAS_NUM_THREADS": "4"}
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert topology_for(settings, "cpu").environment(0) == {}


@pytest.mark.slow
@running
async def test_estimates_count_on_starting_workers() -> None:
    """A server listens once it has a worker of each kind. Long jobs wait for the other workers, too."""
    pool = ProcessPool(Settings(device="cpu", workers=2, log_level="error"), COMMAND)
    await pool.start()
    try:
        assert len(pool._supervisor.general) == 1
        requests = [asyncio.create_task(ask(pool, {"estimate": 4.0, "sleep": 0.0}, 12.0)) for _ in range(6)]
        statuses = Counter([reply.status for reply in await together(*requests)])
    finally:
        await pool.close(0)
    assert statuses == {200: 3, 503: 3}, "of two workers and a quarter more time than is expected: 4, 7.5, 10, 12.5 s"
