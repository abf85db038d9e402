"""The states of a job in the pool: what may follow upon which, and that every way of a job ends."""

from __future__ import annotations

import itertools
import time
from typing import cast

import pytest

from service.workers.admission import Account
from service.workers.task import Reply, Task
from service.workers.ticket import TRANSITIONS, Carrier, ImpossibleTransition, TaskState, Ticket

PAIRS = list(itertools.product(TaskState, TaskState))


class RecordingWorker:
    """A worker that notes what it is told, and begins when the test says so."""

    def __init__(self) -> None:
        self.stopped: list[Ticket] = []
        self.since: float | None = None
        self.executing: Ticket | None = None

    def stop(self, ticket: Ticket) -> None:
        self.stopped.append(ticket)

    def begun(self, ticket: Ticket) -> float | None:
        return self.since

    def kill(self, reason: str) -> None:
        raise AssertionError(reason)


def unheard(_: Reply) -> None:
    raise AssertionError("nobody was to be told")


def ticket_in(state: TaskState) -> Ticket:
    """A ticket after some way to this state."""
    ticket = Ticket(Task("forward", b"", "id", 1.0, 0.0), cast("Account", None), unheard, 0.0)
    for step in way_to(state):
        ticket.become(step)
    return ticket


def way_to(state: TaskState) -> list[TaskState]:
    ways: list[list[TaskState]] = [[]]
    for way in ways:
        at = way[-1] if way else TaskState.WAITING
        if at is state:
            return way
        ways += [[*way, follows] for follows in TRANSITIONS[at] if follows not in way]
    raise AssertionError(f"no way leads to {state.name}")


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda state: state.name.lower())
def test_what_may_follow_follows_and_nothing_else(before: TaskState, after: TaskState) -> None:
    ticket = ticket_in(before)
    if after in TRANSITIONS[before]:
        ticket.become(after)
        assert ticket.state is after
        return
    with pytest.raises(
        ImpossibleTransition, match=f"a job that is {before.name.lower()} cannot become {after.name.lower()}"
    ):
        ticket.become(after)
    assert ticket.state is before


@pytest.mark.parametrize("state", TaskState, ids=lambda state: state.name.lower())
def test_every_state_is_reached_and_can_be_left_for_the_last_one(state: TaskState) -> None:
    assert ticket_in(state).state is state
    seen, found = {state}, [state]
    for each in found:
        new = TRANSITIONS[each].keys() - seen
        seen |= new
        found += new
    assert TaskState.ANSWERED in seen


def test_nobody_who_has_left_is_waited_for_again() -> None:
    """From a state in which nobody waits for the reply, none is reached in which somebody does."""
    for before, follows in TRANSITIONS.items():
        if not ticket_in(before).is_awaited:
            assert not any(ticket_in(after).is_awaited for after in follows)


def test_a_worker_has_it_from_being_sent_until_it_waits_again_or_is_over() -> None:
    ticket, worker = ticket_in(TaskState.WAITING), RecordingWorker()
    ticket.sent_to(cast("Carrier", worker), 7)
    assert (ticket.state, ticket.worker, ticket.slot) == (TaskState.SENT, worker, 7)
    ticket.become(TaskState.WAITING)
    assert ticket.worker is None
    ticket.sent_to(cast("Carrier", worker), 3)
    ticket.become(TaskState.ANSWERED)
    assert ticket.worker is None


def test_it_runs_once_its_worker_is_seen_to_have_begun() -> None:
    ticket, worker = ticket_in(TaskState.WAITING), RecordingWorker()
    assert ticket.begun() is None
    ticket.sent_to(cast("Carrier", worker), 0)
    assert (ticket.begun(), ticket.state) == (None, TaskState.SENT)
    worker.since = 12.5
    assert (ticket.begun(), ticket.state) == (12.5, TaskState.RUNNING)
    ticket.become(TaskState.RETURNING)
    assert (ticket.begun(), ticket.state) == (12.5, TaskState.RETURNING)


@pytest.mark.parametrize("state", [TaskState.RETURNING, TaskState.STOPPING], ids=lambda state: state.name.lower())
def test_its_worker_is_told_to_let_go_and_since_when(state: TaskState) -> None:
    ticket, worker, before = ticket_in(TaskState.WAITING), RecordingWorker(), time.monotonic()
    ticket.sent_to(cast("Carrier", worker), 0)
    assert not ticket.is_stopped
    assert before <= ticket.stop(state) == ticket.stopped_at <= time.monotonic()
    assert (ticket.state, ticket.is_stopped, worker.stopped) == (state, True, [ticket])
    assert ticket.is_awaited == (state is TaskState.RETURNING)
