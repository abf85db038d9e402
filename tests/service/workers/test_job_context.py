"""The context of a job in a worker: its timings and its deadline."""

from __future__ import annotations

import time

import pytest

from engine.ir.errors import DeadlineExceeded
from service.workers.executions import execution as job_context
from service.workers.executions.execution import TaskContext
from service.workers.task import Estimate, Task


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake_clock = Clock()
    monkeypatch.setattr(job_context, "perf_counter", fake_clock)
    monkeypatch.setattr(job_context, "monotonic", fake_clock)
    return fake_clock


def job(stop: bytes = b"\0", left: float = 60.0) -> Task:
    return Task("forward", b"", "id", 60.0, time.monotonic() + left, stop=stop)


def advance(context: TaskContext, clock: Clock, seconds: float) -> None:
    clock.now += seconds
    assert context.mark() == clock.now


def test_each_phase_has_its_time(clock: Clock) -> None:
    context = TaskContext(job(), None)
    advance(context, clock, 1.0)
    advance(context, clock, 2.0)
    clock.now += 4.0
    assert context.ran() == clock.now
    clock.now += 8.0
    assert context.timings() == (0.0, 1.0, 2.0, 4.0, 0.0, 8.0)


def test_backward_time_begins_at_backward_start(clock: Clock) -> None:
    context = TaskContext(job(), None)
    advance(context, clock, 1.0)
    advance(context, clock, 1.0)
    context.deadline.backward_start = clock.now + 3.0
    clock.now += 5.0
    context.ran()
    assert context.timings().backward == 2.0


@pytest.mark.parametrize(
    ("most", "seconds", "patience", "too_long"),
    [
        (None, 1e9, 0.0, False),
        (0.5, 0.5, 0.0, False),
        (0.5, 0.51, 0.0, True),
        (0.5, 0.6, 0.6, False),
        (0.5, 0.61, 0.6, True),
        (0.0, 0.001, 0.0, True),
    ],
)
def test_job_over_its_limit_is_too_long(most: float | None, seconds: float, patience: float, too_long: bool) -> None:
    assert TaskContext(job(), most).is_too_long(Estimate(seconds, 0, 0), patience) == too_long


def test_deadline_is_that_of_the_job() -> None:
    TaskContext(job(), None).deadline.check()
    for late in (job(left=-0.001), job(stop=b"\1")):
        with pytest.raises(DeadlineExceeded):
            TaskContext(late, None).deadline.check()


def test_patience_shortens_the_deadline_of_a_short_job() -> None:
    long, short = TaskContext(job(), None), TaskContext(job(), 0.002)
    assert long.patience(0.0) is long.deadline
    assert short.patience(1e9).time == pytest.approx(short.task.expires)
    before = time.monotonic()
    assert before + 5.0 <= short.patience(5.0).time <= time.monotonic() + 5.0
    short.patience(50.0).check()
    with pytest.raises(DeadlineExceeded):
        short.patience(0.0).check()
    with pytest.raises(DeadlineExceeded):
        TaskContext(job(stop=b"\1"), 0.002).patience(50.0).check()
    assert TaskContext(job(left=-100.0), 0.002).patience(5.0).seconds == 0.0, "of what is late, nothing is left"
