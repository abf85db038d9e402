"""The watch: it reports late jobs, kills stuck workers, and retires old ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from service.core.settings import Settings
from service.workers.admission import Account
from service.workers.supervisor import GRACE, Watch, is_stopped, resident_bytes
from service.workers.task import Task
from service.workers.ticket import TaskState, Ticket

GONE = 1 << 26


@pytest.fixture(autouse=True)
def _frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freeze the clock."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)


class Worker:
    """The attributes of a worker that the watch reads."""

    def __init__(self, **attributes: Any) -> None:
        self.pid, self.ready, self.ended, self.served = GONE, True, False, 0
        self.started = time.monotonic()
        self.long: Ticket | None = None
        self.executing: Ticket | None = None
        self.killed: list[str] = []
        self.page = self
        self.since = time.monotonic()
        vars(self).update(attributes)

    def kill(self, reason: str) -> None:
        self.killed.append(reason)

    def stop(self, ticket: Ticket) -> None:
        """Do nothing."""

    def begun(self, ticket: Ticket) -> float | None:
        return self.since if ticket is self.executing else None


class Workers:
    """Some workers, and the retired ones."""

    def __init__(self, *working: Worker, spare: Worker | None = None) -> None:
        self.working, self.spare = [*working], spare
        self.retired: list[tuple[Worker, str]] = []

    def __iter__(self) -> Iterator[Worker]:
        return iter([*self.working, *([self.spare] if self.spare else [])])

    def retire(self, worker: Worker, reason: str) -> None:
        self.retired.append((worker, reason))


class RecordingReceiver:
    """Records the calls of the watch."""

    def __init__(self) -> None:
        self.late: list[Ticket] = []
        self.slow: list[tuple[Any, Ticket]] = []

    def expired(self, ticket: Ticket) -> None:
        self.late.append(ticket)

    def overran(self, worker: Any, ticket: Ticket) -> None:
        self.slow.append((worker, ticket))


def ticket(left: float = 60.0) -> Ticket:
    job = Task("forward", b"", "id", 60.0, time.monotonic() + left)
    return Ticket(job, Account("a"), lambda _: None, 0.0)


def stopped(worker: Worker, ago: float, state: TaskState = TaskState.STOPPING) -> Ticket:
    stopped_ticket = ticket()
    stopped_ticket.sent_to(cast("Any", worker), 0)
    stopped_ticket.stop(state)
    stopped_ticket.stopped_at -= ago
    return stopped_ticket


def watching(workers: Workers, *tickets: Ticket, **stated: Any) -> tuple[Watch, RecordingReceiver]:
    receiver, by_job = RecordingReceiver(), {each.task: each for each in tickets}
    settings = Settings(**{"device": "cpu", "worker_bytes": 0, **stated})
    watch = Watch(receiver, by_job, cast("Any", workers), settings)
    watch.check_at(time.monotonic())
    return watch, receiver


def test_expired_job_is_late() -> None:
    late, early = ticket(-0.001), ticket()
    watch, receiver = watching(Workers(), late, early)
    watch.look()
    assert receiver.late == [late]


def test_look_does_nothing_before_the_next_check() -> None:
    late = ticket(-1.0)
    watch, receiver = watching(Workers(), late)
    watch.check_at(time.monotonic() + 1000)  # does not postpone the earlier check
    watch.look()
    other_watch, other_receiver = watching(Workers(), ticket())
    other_watch.look()
    other_watch.check_at(time.monotonic() + 1000)
    other_watch.look()
    assert (receiver.late, other_receiver.late) == ([late], [])


def test_next_check_is_the_earliest_deadline() -> None:
    """Each ticket sets its check once; the watch remembers the earliest of the remaining ones."""
    first, second = ticket(-0.001), ticket(-0.001)
    tickets = {first.task: first}
    receiver = RecordingReceiver()
    watch = Watch(receiver, tickets, cast("Any", Workers()), Settings(device="cpu"))
    watch.look()
    assert receiver.late == [], "nobody has said when"
    watch.check_at(first.task.expires)
    watch.look()
    tickets[second.task] = second
    watch.look()
    assert receiver.late == [first, first, second]


@pytest.mark.parametrize("executed", [True, False])
@pytest.mark.parametrize("ago", [0.0, GRACE - 0.001, GRACE + 0.001, 1.999, 2.001])
def test_worker_that_does_not_stop_is_killed(executed: bool, ago: float) -> None:
    """It has GRACE for a job that it executes, and two seconds without a new job for one that it should drop."""
    worker = Worker()
    stopped_ticket = stopped(worker, ago)
    worker.executing = stopped_ticket if executed else None
    watch, _ = watching(Workers(worker), stopped_ticket)
    watch.look()
    assert worker.killed == (["stuck"] if ago > (GRACE if executed else 2.0) else [])


def test_worker_is_not_killed_for_a_queued_job() -> None:
    worker = Worker(executing=ticket())
    watch, _ = watching(Workers(worker), stopped(worker, 100.0))
    watch.look()
    assert worker.killed == []


def test_stopped_job_is_never_late() -> None:
    worker = Worker()
    stopped_ticket = stopped(worker, 0.0)
    stopped_ticket.task.expires = time.monotonic() - 1.0
    watch, receiver = watching(Workers(worker), stopped_ticket)
    watch.look()
    assert receiver.late == []


def test_returning_job_may_be_late() -> None:
    worker = Worker()
    stopped_ticket = stopped(worker, 0.0, TaskState.RETURNING)
    stopped_ticket.task.expires = time.monotonic() - 0.001
    watch, receiver = watching(Workers(worker), stopped_ticket)
    watch.look()
    assert receiver.late == [stopped_ticket]


@pytest.mark.parametrize(("ago", "is_long", "slow"), [(0.101, False, True), (0.099, False, False), (0.2, True, False)])
def test_short_job_that_runs_long_is_reported(ago: float, is_long: bool, slow: bool) -> None:
    running_ticket = ticket()
    worker = Worker(executing=running_ticket, since=time.monotonic() - ago, long=running_ticket if is_long else None)
    watch, receiver = watching(Workers(worker, Worker(since=0.0)))
    watch.look()
    assert receiver.slow == ([(worker, running_ticket)] if slow else [])


@pytest.mark.parametrize(
    ("age", "stated", "killed"),
    [
        (121, {"ready": False}, ["never ready"]),
        (119, {"ready": False}, []),
        (121, {"ready": False, "ended": True}, []),
        (121, {}, []),
    ],
)
def test_worker_that_never_becomes_ready_is_killed(age: int, stated: dict[str, bool], killed: list[str]) -> None:
    worker = Worker(started=time.monotonic() - age, **stated)
    watching(Workers(worker))[0].inspect()
    assert worker.killed == killed


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"worker_jobs": 10}, "jobs"),
        ({"worker_jobs": 11}, None),
        ({"worker_age": 101}, "age"),
        ({"worker_age": 102}, None),
        ({"worker_bytes": 1 << 20}, "memory"),
        ({"worker_bytes": 1 << 40}, None),
        ({}, None),
    ],
)
def test_worn_out_worker_is_retired_if_a_spare_exists(limits: dict[str, int], reason: str | None) -> None:
    """Retire one at a time, and never the last ready worker."""
    old = [Worker(served=10, started=time.monotonic() - 101, pid=os.getpid()) for _ in range(2)]
    alone, with_spare = Workers(*old), Workers(*old, spare=Worker())
    for workers in (alone, with_spare):
        watching(workers, **limits)[0].inspect()
    assert alone.retired == []
    assert with_spare.retired == ([(old[0], reason)] if reason else [])


def test_spare_can_be_retired() -> None:
    spare = Worker(served=5)
    workers = Workers(Worker(), spare=spare)
    watching(workers, worker_jobs=5)[0].inspect()
    assert workers.retired == [(spare, "jobs")]


def test_process_figures_from_the_system() -> None:
    assert resident_bytes(GONE) == 0
    assert not is_stopped(GONE)
    assert 1 << 20 < resident_bytes(os.getpid()) < 1 << 40
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert not is_stopped(process.pid)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert is_stopped(process.pid)
        worker = Worker(pid=process.pid)
        watching(Workers(worker))[0].inspect()
        assert worker.killed == ["stopped"]
    finally:
        process.kill()
        process.communicate()
