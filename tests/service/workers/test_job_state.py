"""The states of a job in the pool: allowed transitions, and paths to the final state."""

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
    """A worker that records its calls, and begins when the test says so."""

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


def unexpected_reply(_: Reply) -> None:
    raise AssertionError("nobody was to be told")


def ticket_in(state: TaskState) -> Ticket:
    """A ticket that was brought to this state."""
    ticket = Ticket(Task("forward", b"", "id", 1.0, 0.0), cast("Account", None), unexpected_reply, 0.0)
    for step in path_to(state):
        ticket.become(step)
    return ticket


def path_to(state: TaskState) -> list[TaskState]:
    paths: list[list[TaskState]] = [[]]
    for path in paths:
        current = path[-1] if path else TaskState.WAITING
        if current is state:
            return path
        paths += [[*path, follows] for follows in TRANSITIONS[current] if follows not in path]
    raise AssertionError(f"no way leads to {state.name}")


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda state: state.name.lower())
def test_only_listed_transitions_are_allowed(before: TaskState, after: TaskState) -> None:
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
def test_every_state_is_reachable_and_leads_to_answered(state: TaskState) -> None:
    assert ticket_in(state).state is state
    seen, reached = {state}, [state]
    for each in reached:
        new = TRANSITIONS[each].keys() - seen
        seen |= new
        reached += new
    assert TaskState.ANSWERED in seen


def test_abandoned_ticket_is_never_awaited_again() -> None:
    """No state without a waiting caller leads to a state with one."""
    for before, follows in TRANSITIONS.items():
        if not ticket_in(before).is_awaited:
            assert not any(ticket_in(after).is_awaited for after in follows)


def test_ticket_has_a_worker_only_while_it_is_sent() -> None:
    ticket, worker = ticket_in(TaskState.WAITING), RecordingWorker()
    ticket.sent_to(cast("Carrier", worker), 7)
    assert (ticket.state, ticket.worker, ticket.slot) == (TaskState.SENT, worker, 7)
    ticket.become(TaskState.WAITING)
    assert ticket.worker is None
    ticket.sent_to(cast("Carrier", worker), 3)
    ticket.become(TaskState.ANSWERED)
    assert ticket.worker is None


def test_ticket_runs_once_its_worker_has_begun() -> None:
    ticket, worker = ticket_in(TaskState.WAITING), RecordingWorker()
    assert ticket.begun() is None
    ticket.sent_to(cast("Carrier", worker), 0)
    assert (ticket.begun(), ticket.state) == (None, TaskState.SENT)
    worker.since = 12.5
    assert (ticket.begun(), ticket.state) == (12.5, TaskState.RUNNING)
    ticket.become(TaskState.RETURNING)
    assert (ticket.begun(), ticket.state) == (12.5, TaskState.RETURNING)


@pytest.mark.parametrize("state", [TaskState.RETURNING, TaskState.STOPPING], ids=lambda state: state.name.lower())
def test_stop_reaches_the_worker_and_records_the_time(state: TaskState) -> None:
    ticket, worker, before = ticket_in(TaskState.WAITING), RecordingWorker(), time.monotonic()
    ticket.sent_to(cast("Carrier", worker), 0)
    assert not ticket.is_stopped
    assert before <= ticket.stop(state) == ticket.stopped_at <= time.monotonic()
    assert (ticket.state, ticket.is_stopped, worker.stopped) == (state, True, [ticket])
    assert ticket.is_awaited == (state is TaskState.RETURNING)
