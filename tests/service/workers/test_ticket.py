"""A ticket: its initial state, its worker, and the start time that its worker reports."""

from __future__ import annotations

import time

import pytest

from service.workers.admission import Account
from service.workers.task import Reply, Task
from service.workers.ticket import ImpossibleTransition, Length, TaskState, Ticket


class Worker:
    """A worker that begins and lets go when the test says so."""

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
    new_ticket = ticket()
    new_ticket.sent_to(worker, slot)
    return new_ticket


def test_new_ticket_waits_without_worker_or_estimate() -> None:
    waiting_ticket = ticket()
    assert (waiting_ticket.state, waiting_ticket.submitted, waiting_ticket.worker, waiting_ticket.length) == (
        TaskState.WAITING,
        3.5,
        None,
        Length.SHORT,
    )
    assert waiting_ticket.is_awaited
    assert not waiting_ticket.is_stopped
    assert (
        waiting_ticket.kind,
        waiting_ticket.estimate,
        waiting_ticket.reserved,
        waiting_ticket.memory,
        waiting_ticket.most_seconds,
        waiting_ticket.deaths,
    ) == (None,) * 5 + (0,)


def test_lengths_are_ordered() -> None:
    assert [*Length] == sorted(Length)
    assert [length for length in Length if length >= Length.LONG] == [Length.LONG, Length.ALONE]
    assert max(Length.DOUBTFUL, Length.LONG, Length.ALONE) is Length.ALONE


def test_waiting_ticket_cannot_be_stopped() -> None:
    with pytest.raises(AssertionError):
        ticket().stop(TaskState.STOPPING)
    with pytest.raises(ImpossibleTransition):
        ticket().become(TaskState.STOPPING)


def test_ticket_is_sent_to_one_worker_at_a_time() -> None:
    worker = Worker()
    sent_ticket = sent(worker)
    assert (sent_ticket.state, sent_ticket.worker, sent_ticket.slot) == (TaskState.SENT, worker, 4)
    with pytest.raises(ImpossibleTransition, match="a job that is sent cannot become sent"):
        sent_ticket.sent_to(Worker(), 1)


def test_running_state_is_read_from_the_worker() -> None:
    worker = Worker()
    sent_ticket, other = sent(worker), sent(worker, 5)
    worker.since[sent_ticket] = 12.5
    assert (sent_ticket.begun(), sent_ticket.state) == (12.5, TaskState.RUNNING)
    assert (other.begun(), other.state) == (None, TaskState.SENT)
    assert (sent_ticket.begun(), sent_ticket.state) == (12.5, TaskState.RUNNING), "twice, it is still running"


@pytest.mark.parametrize("state", [TaskState.RETURNING, TaskState.STOPPING])
def test_worker_is_stopped_after_the_state_changes(state: TaskState) -> None:
    worker = Worker()
    sent_ticket, before = sent(worker), time.monotonic()
    when = sent_ticket.stop(state)
    assert before <= when == sent_ticket.stopped_at <= time.monotonic()
    assert worker.stopped == [(sent_ticket, state)]
    assert sent_ticket.is_stopped
    assert sent_ticket.is_awaited == (state is TaskState.RETURNING)
    with pytest.raises(ImpossibleTransition):
        sent_ticket.stop(TaskState.RETURNING)


def test_answered_ticket_has_no_worker_and_no_transitions() -> None:
    sent_ticket = sent(Worker())
    sent_ticket.become(TaskState.ANSWERED)
    assert sent_ticket.worker is None
    assert sent_ticket.begun() is None
    assert not sent_ticket.is_awaited
    for state in TaskState:
        with pytest.raises(ImpossibleTransition):
            sent_ticket.become(state)


def test_misspelt_attribute_is_refused() -> None:
    """Tickets have slots, since there is one for each job."""
    with pytest.raises(AttributeError):
        ticket().kindd = None  # type: ignore[attr-defined]
