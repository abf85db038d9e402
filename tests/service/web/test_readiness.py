"""Readiness: proved by a job, cached for a while, and independent of a full queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from service.core.errors import Refusal
from service.store.fence import Fence
from service.store.journal import MemoryJournal
from service.web import state as readiness
from service.web.state import Readiness
from service.workers.memory import HeapAllocation
from service.workers.pool import Done, Stats
from service.workers.task import Reply, Task
from tests.conftest import Client


class Workers:
    """Pool that replies to each job with the next status."""

    device = "cpu"

    def __init__(self, *statuses: int, busy: bool = False, ready: bool = True) -> None:
        self.statuses = list(statuses)
        self.busy, self.ready = busy, ready

    def allocate(self, nbytes: int) -> HeapAllocation:
        return HeapAllocation(nbytes)

    def submit(self, job: Task, done: Done) -> None:
        done(Reply(self.statuses.pop(0), "", []))

    def cancel(self, job: Task) -> None:
        pass

    def stats(self) -> Stats:
        return Stats()

    def drain(self) -> None:
        self.ready = False


def code_of(pool: Workers) -> str:
    try:
        asyncio.run(Readiness(pool, Fence(MemoryJournal()).wait_until_current).check())
    except Refusal as refusal:
        return refusal.code
    return "ready"


@pytest.mark.parametrize(
    ("pool", "code"),
    [
        (Workers(200), "ready"),
        (Workers(500), "not_ready"),
        (Workers(503), "not_ready"),
        (Workers(504), "not_ready"),
        (Workers(503, busy=True), "ready"),
        (Workers(504, busy=True), "ready"),
        (Workers(500, busy=True), "not_ready"),
        (Workers(ready=False), "shutting_down"),
    ],
)
def test_readiness_follows_the_status_of_the_job(pool: Workers, code: str) -> None:
    assert code_of(pool) == code


def test_recent_answer_is_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        pool = Workers(200, 500)
        checks = Readiness(pool, Fence(MemoryJournal()).wait_until_current)
        await asyncio.gather(*(checks.check() for _ in range(10)))
        assert pool.statuses == [500]
        monkeypatch.setattr(readiness, "FRESH", 0.0)
        with pytest.raises(Refusal, match="do not respond"):
            await checks.check()

    asyncio.run(scenario())


def test_readiness_job_runs_on_the_device(make_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_client().get("/health/ready").json() == {"status": "ready", "device": "cpu"}

    def broken(*_: object) -> None:
        raise RuntimeError("the device is gone")

    client = make_client()
    monkeypatch.setattr("engine.runtime.numpy_backend.NumPyExecutor.run", broken)
    report = client.get("/health/ready")
    assert (report.status_code, report.json()["code"]) == (503, "not_ready")
