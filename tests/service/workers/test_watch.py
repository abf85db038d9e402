"""The watch: what is late is seen when it is looked at, and workers that hang or have served their time are ended."""

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
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stands still."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)


class Worker:
    """What is looked at of one."""

    def __init__(self, **stated: Any) -> None:
        self.pid, self.ready, self.ended, self.served = GONE, True, False, 0
        self.started = time.monotonic()
        self.long: Ticket | None = None
        self.executing: Ticket | None = None
        self.killed: list[str] = []
        self.page = self
        self.since = time.monotonic()
        vars(self).update(stated)

    def kill(self, reason: str) -> None:
        self.killed.append(reason)

    def stop(self, ticket: Ticket) -> None:
        """It does not."""

    def begun(self, ticket: Ticket) -> float | None:
        return self.since if ticket is self.executing else None


class Workers:
    """Some workers, and what becomes of them."""

    def __init__(self, *working: Worker, spare: Worker | None = None) -> None:
        self.working, self.spare = [*working], spare
        self.retired: list[tuple[Worker, str]] = []

    def __iter__(self) -> Iterator[Worker]:
        return iter([*self.working, *([self.spare] if self.spare else [])])

    def retire(self, worker: Worker, reason: str) -> None:
        self.retired.append((worker, reason))


class Seen:
    """What the watch has said."""

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
    made = ticket()
    made.sent_to(cast("Any", worker), 0)
    made.stop(state)
    made.stopped_at -= ago
    return made


def watching(workers: Workers, *tickets: Ticket, **stated: Any) -> tuple[Watch, Seen]:
    seen, by_job = Seen(), {each.task: each for each in tickets}
    settings = Settings(**{"device": "cpu", "worker_bytes": 0, **stated})
    watch = Watch(seen, by_job, cast("Any", workers), settings)
    watch.check_at(time.monotonic())
    return watch, seen


def test_a_job_whose_time_is_up_is_late_and_another_is_not() -> None:
    late, early = ticket(-0.001), ticket()
    watch, seen = watching(Workers(), late, early)
    watch.look()
    assert seen.late == [late]


def test_nothing_is_looked_at_before_there_is_something_to_be_seen() -> None:
    late = ticket(-1.0)
    watch, seen = watching(Workers(), late)
    watch.check_at(time.monotonic() + 1000)  # which does not put the other off
    watch.look()
    again, noted = watching(Workers(), ticket())
    again.look()
    again.check_at(time.monotonic() + 1000)
    again.look()
    assert (seen.late, noted.late) == ([late], [])


def test_the_next_look_is_when_the_first_of_all_is_late() -> None:
    """Each says so once; the watch remembers it of all that are left."""
    first, second = ticket(-0.001), ticket(-0.001)
    tickets = {first.task: first}
    seen = Seen()
    watch = Watch(seen, tickets, cast("Any", Workers()), Settings(device="cpu"))
    watch.look()
    assert seen.late == [], "nobody has said when"
    watch.check_at(first.task.expires)
    watch.look()
    tickets[second.task] = second
    watch.look()
    assert seen.late == [first, first, second]


@pytest.mark.parametrize("executed", [True, False])
@pytest.mark.parametrize("ago", [0.0, GRACE - 0.001, GRACE + 0.001, 1.999, 2.001])
def test_a_worker_that_does_not_let_go_is_killed(executed: bool, ago: float) -> None:
    """Of what it executes soon, and of what it was to drop, once it does not begin anything for two seconds."""
    worker = Worker()
    made = stopped(worker, ago)
    worker.executing = made if executed else None
    watch, _ = watching(Workers(worker), made)
    watch.look()
    assert worker.killed == (["stuck"] if ago > (GRACE if executed else 2.0) else [])


def test_a_worker_is_not_killed_for_a_job_that_waits_behind_another() -> None:
    worker = Worker(executing=ticket())
    watch, _ = watching(Workers(worker), stopped(worker, 100.0))
    watch.look()
    assert worker.killed == []


def test_nobody_waits_for_one_that_is_stopped_so_it_is_not_late() -> None:
    worker = Worker()
    made = stopped(worker, 0.0)
    made.task.expires = time.monotonic() - 1.0
    watch, seen = watching(Workers(worker), made)
    watch.look()
    assert seen.late == []


def test_one_that_is_to_come_back_may_still_be_late() -> None:
    worker = Worker()
    made = stopped(worker, 0.0, TaskState.RETURNING)
    made.task.expires = time.monotonic() - 0.001
    watch, seen = watching(Workers(worker), made)
    watch.look()
    assert seen.late == [made]


@pytest.mark.parametrize(("ago", "is_long", "slow"), [(0.101, False, True), (0.099, False, False), (0.2, True, False)])
def test_a_short_job_that_runs_long_holds_others_up(ago: float, is_long: bool, slow: bool) -> None:
    made = ticket()
    worker = Worker(executing=made, since=time.monotonic() - ago, long=made if is_long else None)
    watch, seen = watching(Workers(worker, Worker(since=0.0)))
    watch.look()
    assert seen.slow == ([(worker, made)] if slow else [])


@pytest.mark.parametrize(
    ("age", "stated", "killed"),
    [
        (121, {"ready": False}, ["never ready"]),
        (119, {"ready": False}, []),
        (121, {"ready": False, "ended": True}, []),
        (121, {}, []),
    ],
)
def test_a_worker_that_is_never_ready_is_killed(age: int, stated: dict[str, bool], killed: list[str]) -> None:
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
def test_who_has_served_is_sent_home_where_another_takes_the_place(limits: dict[str, int], reason: str | None) -> None:
    """One at a time, and never the last that is ready."""
    old = [Worker(served=10, started=time.monotonic() - 101, pid=os.getpid()) for _ in range(2)]
    alone, with_spare = Workers(*old), Workers(*old, spare=Worker())
    for workers in (alone, with_spare):
        watching(workers, **limits)[0].inspect()
    assert alone.retired == []
    assert with_spare.retired == ([(old[0], reason)] if reason else [])


def test_the_spare_may_have_worked_before() -> None:
    spare = Worker(served=5)
    workers = Workers(Worker(), spare=spare)
    watching(workers, worker_jobs=5)[0].inspect()
    assert workers.retired == [(spare, "jobs")]


def test_what_the_system_says_of_a_process() -> None:
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
