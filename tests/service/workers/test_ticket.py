"""A ticket: nobody has the job at first, what it holds is its own, and its worker's word says since when it runs."""

from __future__ import annotations

import time

import pytest

from service.workers.admission import Account
from service.workers.task import Reply, Task
from service.workers.ticket import ImpossibleTransition, Length, TaskState, Ticket


class Worker:
    """One that begins, and lets go, when the test says so."""

    def __init__(self) -> None:
        self.executing: Ticket | None = None
        self.since: dict[Ticket, float] = {}
        self.stopped: list[tuple[Ticket, TaskState]] = []

    def stop(self, ticket: Ticket) -> None:
        self.stopped.append((ticket, ticket.state))

    def begun(self, ticket: Ticket) -> float | None:
        return self.since.get(ticket)

    def kill(self, reason: str) -> None:
        raise AssertionError(reason)


def ticket() -> Ticket:
    replies: list[Reply] = []
    return Ticket(Task("forward", b"", "id", 1.0, 0.0), Account("a"), replies.append, 3.5)


def sent(worker: Worker, slot: int = 4) -> Ticket:
    made = ticket()
    made.sent_to(worker, slot)
    return made


def test_at_first_it_waits_and_nothing_is_known_of_it() -> None:
    made = ticket()
    assert (made.state, made.submitted, made.worker, made.length) == (TaskState.WAITING, 3.5, None, Length.SHORT)
    assert made.is_awaited
    assert not made.is_stopped
    assert (made.kind, made.estimate, made.reserved, made.memory, made.most_seconds, made.deaths) == (None,) * 5 + (0,)


def test_lengths_are_in_order_so_that_a_job_only_grows_longer_and_one_alone_is_long() -> None:
    assert [*Length] == sorted(Length)
    assert [length for length in Length if length >= Length.LONG] == [Length.LONG, Length.ALONE]
    assert max(Length.DOUBTFUL, Length.LONG, Length.ALONE) is Length.ALONE


def test_one_that_waits_has_no_worker_to_be_told_anything() -> None:
    with pytest.raises(AssertionError):
        ticket().stop(TaskState.STOPPING)
    with pytest.raises(ImpossibleTransition):
        ticket().become(TaskState.STOPPING)


def test_it_is_sent_to_one_worker_at_a_time() -> None:
    worker = Worker()
    made = sent(worker)
    assert (made.state, made.worker, made.slot) == (TaskState.SENT, worker, 4)
    with pytest.raises(ImpossibleTransition, match="a job that is sent cannot become sent"):
        made.sent_to(Worker(), 1)


def test_that_it_runs_is_seen_when_it_is_looked_at() -> None:
    worker = Worker()
    made, other = sent(worker), sent(worker, 5)
    worker.since[made] = 12.5
    assert (made.begun(), made.state) == (12.5, TaskState.RUNNING)
    assert (other.begun(), other.state) == (None, TaskState.SENT)
    assert (made.begun(), made.state) == (12.5, TaskState.RUNNING), "twice, it is still running"


@pytest.mark.parametrize("state", [TaskState.RETURNING, TaskState.STOPPING])
def test_its_worker_hears_of_a_stop_once_it_is_in_that_state(state: TaskState) -> None:
    worker = Worker()
    made, before = sent(worker), time.monotonic()
    when = made.stop(state)
    assert before <= when == made.stopped_at <= time.monotonic()
    assert worker.stopped == [(made, state)]
    assert made.is_stopped
    assert made.is_awaited == (state is TaskState.RETURNING)
    with pytest.raises(ImpossibleTransition):
        made.stop(TaskState.RETURNING)


def test_one_that_is_over_has_no_worker_and_does_nothing_more() -> None:
    made = sent(Worker())
    made.become(TaskState.ANSWERED)
    assert made.worker is None
    assert made.begun() is None
    assert not made.is_awaited
    for state in TaskState:
        with pytest.raises(ImpossibleTransition):
            made.become(state)


def test_no_attribute_is_made_by_a_slip_of_the_pen() -> None:
    """There is one for each job that is held."""
    with pytest.raises(AttributeError):
        ticket().kindd = None  # type: ignore[attr-defined]
