"""Lanes: short tasks wait for the quick worker, and long ones for the general workers, which hold up no short one.

A single caller may use all workers. Several callers take turns in each lane, by the time that they have used. Then a
worker is sent only few tasks in advance, since what lies in its socket is beyond the reach of turns.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Final

from engine.ir.fairness import Turns
from service.workers.admission import QUICK, Accounts, CostModel, kind_of
from service.workers.supervisor import Supervisor
from service.workers.ticket import Length, TaskState, Ticket
from service.workers.worker_process import WorkerProcess

#: short tasks in the quick worker's socket from which on idle general workers help
_HELP_FROM: Final = 16
#: short tasks that such a helper has at a time
_HELPER_TASKS: Final = 8
#: short tasks that a worker has at a time while callers take turns: the current one and the next
_IN_TURN: Final = 2
#: seconds that a caller's short task may wait behind another caller's
_PATIENCE: Final = 2 * QUICK
#: shortcut, since every task uses it: in Python 3.11, looking up an enum member takes ten times as long as a global
_LONG: Final = Length.LONG


class Lanes:
    """Tasks that wait for a worker, and the choice of the worker."""

    def __init__(
        self,
        supervisor: Supervisor,
        accounts: Accounts,
        late: Callable[[Ticket], None],
        overtaken: Callable[[WorkerProcess, Ticket], None],
    ) -> None:
        """Set up empty lanes.

        `late` is called with a long task that cannot meet its deadline any more, and `overtaken` with a task that runs
        too long while short tasks of other callers wait behind it.
        """
        self._supervisor = supervisor
        self._accounts = accounts
        self._late = late
        self._overtaken = overtaken
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._in_turn = False
        self.short: Turns[Ticket] = Turns()
        #: long tasks, and those that are not known to be short
        self.long: Turns[Ticket] = Turns()

    @property
    def waiting(self) -> int:
        """Number of tasks that no worker has."""
        return self.short.count + self.long.count

    @property
    def has_idle(self) -> bool:
        """Whether a general worker is idle, and no task waits."""
        return not self.waiting and any(w.long is None and w.idle for w in self._supervisor.general)

    def put(self, ticket: Ticket) -> None:
        """Send a task to a worker, or queue it if none can take it."""
        if self._accounts.contended or self._in_turn:
            self._put_in_turn(ticket)
        elif ticket.length >= _LONG:
            self._put_long(ticket)
        else:
            ticket.most_seconds = QUICK
            worker = None if self.short.count else self._for_short()
            if worker is None:
                self._wait(ticket)
            else:
                worker.send(ticket)

    def _put_long(self, ticket: Ticket) -> None:
        """Send a long task to a free worker without checking its deadline: only tasks that wait are refused."""
        worker = None if self.long.count else self._for_long(ticket)
        if worker is None:
            self._wait(ticket)
        else:
            ticket.most_seconds = None
            worker.send_long(ticket)

    def _put_in_turn(self, ticket: Ticket) -> None:
        """Queue a task behind those of the same caller, in turn with those of others."""
        self._take_turns()
        self._wait(ticket)
        self.pump()
        if self._timer is None and self._is_behind():
            self._look()

    def _take_turns(self) -> None:
        """Start or stop taking turns; at the start, take back what waits in sockets, so that it waits for its turn."""
        if self._in_turn is self._accounts.contended:
            return
        self._in_turn = self._accounts.contended
        for worker in self._supervisor.working if self._in_turn else ():
            for waiting in worker.take_back((worker.executing, worker.long)):
                self.put_back(waiting)

    def _is_behind(self) -> bool:
        """Return whether a short task waits in the quick worker, or for it, behind a task of another caller."""
        quick = self._supervisor.quick
        running = None if quick is None or quick.long is not None else quick.executing
        if quick is None or running is None:
            return False
        return any(waiting.account is not running.account for waiting in (*quick.tickets, *self.short))

    def _look(self) -> None:
        """Replace the quick worker once it has spent too long on one caller's task while others wait."""
        self._timer = None
        quick = self._supervisor.quick
        if quick is None or not self._is_behind():
            return
        remaining = quick.page.since + _PATIENCE - time.monotonic()
        running = quick.executing
        if remaining <= 0 and running is not None and self._supervisor.relieve():
            self._overtaken(quick, running)
        else:
            self._timer = self._loop.call_later(max(remaining, QUICK), self._look)

    def _wait(self, ticket: Ticket) -> None:
        self._lane(ticket).put(ticket.account, ticket)

    def put_back(self, ticket: Ticket) -> None:
        """Put back a task that a worker had, ahead of those that none had."""
        self.hold(ticket)
        self.put_first(ticket)

    def hold(self, ticket: Ticket) -> None:
        """Take a task back from a worker without putting it into a lane."""
        ticket.become(TaskState.WAITING)
        self.charge(ticket, 0.0)

    def put_first(self, ticket: Ticket) -> None:
        """Put a task that was held at the head of its caller's line."""
        self._lane(ticket).put_back(ticket.account, ticket)

    def drop(self, ticket: Ticket) -> None:
        """Remove a task that is not wanted any more."""
        self._lane(ticket).drop(ticket.account, ticket)

    def charge(self, ticket: Ticket, seconds: float) -> None:
        """Correct what the caller was charged in advance for a task to the seconds that it took."""
        if ticket.charged_lane is not None:
            ticket.charged_lane.charge(ticket.account, seconds - ticket.charged)
            ticket.charged_lane = None

    def pump(self) -> None:
        """Send waiting tasks to the workers that can take one."""
        while self.short.count and (worker := self._for_short()):
            owner = self.short.first()
            if self._in_turn and self.short.peek(owner).account.is_doubtful(time.monotonic()):
                ticket = self.short.take_next(owner)
                # The caller's tasks have overrun lately, and this one's time is unknown: out of the way of short tasks.
                ticket.length = Length.DOUBTFUL
                ticket.kind = kind_of(ticket.task)
                self._wait(ticket)
            else:
                worker.send(self._take(self.short, owner))
        while self.long.count and (worker := self._for_long(self.long.peek(self.long.first()))):
            ticket = self._take(self.long, self.long.first())
            is_long = ticket.length >= _LONG
            if is_long and time.monotonic() + self.expected(ticket) > ticket.task.expires:
                self.charge(ticket, 0.0)
                self._late(ticket)
            # A doubtful task is tried like a short one, in a worker for long tasks: it may come back as TooLong.
            else:
                ticket.most_seconds = None if is_long else QUICK
                worker.send_long(ticket)
        if self.long.count:
            self._lend()

    def _take(self, lane: Turns[Ticket], owner: Hashable) -> Ticket:
        """Take the next task of an owner, who is charged for its expected time."""
        expected = self.expected(lane.peek(owner))
        ticket = lane.take_next(owner, expected)
        ticket.charged_lane, ticket.charged = lane, expected
        ticket.most_seconds = QUICK
        return ticket

    def _lend(self) -> None:
        """Have the idle quick worker try a doubtful task of a caller that no general worker serves."""
        quick = self._supervisor.quick
        if quick is None or quick.long is not None or not quick.idle:
            return
        # Callers that have a general worker already can wait for it.
        served = {worker.long.account for worker in self._supervisor.general if worker.long is not None}
        try:
            owner = self.long.first(lambda ticket: ticket.length is Length.DOUBTFUL and ticket.account not in served)
        except KeyError:
            return
        quick.send(self._take(self.long, owner))

    def overdue(self, cost_model: CostModel) -> list[Ticket]:
        """Find the waiting long tasks that will miss their deadlines, going by what has been measured."""
        now, workers = time.monotonic(), self._supervisor.long_workers
        late, burdens, running = [], self._burdens(now), self._running(now)
        for owner, tickets in self.long.lines():
            others = [burden for account, burden in burdens.items() if account is not owner]
            ahead = running[owner]
            for ticket in tickets:
                known = cost_model.lower_bound(ticket.kind, workers)
                # Only kinds with enough measurements can be refused here: an estimate alone may be far too high.
                needed = known.seconds if known else self.expected(ticket)
                wait = _work_ahead(ahead, needed, others) / workers
                if known and now + wait + needed > ticket.task.expires:
                    late.append(ticket)
                else:
                    ahead += needed
        return late

    def ahead(self, ticket: Ticket) -> float:
        """Estimate the seconds until a worker takes up a long task that arrives now."""
        burdens = self._burdens(time.monotonic())
        own_seconds = burdens.pop(ticket.account, 0.0)
        return _work_ahead(own_seconds, self.expected(ticket), burdens.values()) / self._supervisor.long_workers

    def is_idle(self, ticket: Ticket) -> bool:
        """Return whether a worker is free for this task, so that trying it costs others nothing."""
        return not self.long.count and self._for_long(ticket) is not None

    @staticmethod
    def expected(ticket: Ticket) -> float:
        """Return the expected seconds of a task; those of a short one if there is no estimate."""
        return ticket.estimate.seconds if ticket.estimate else QUICK

    def _burdens(self, now: float) -> defaultdict[object, float]:
        """Sum up the expected seconds of running and waiting long tasks, by account."""
        seconds = self._running(now)
        for ticket in self.long:
            seconds[ticket.account] += self.expected(ticket)
        return seconds

    def _running(self, now: float) -> defaultdict[object, float]:
        """Sum up the seconds that running long tasks still take; one that is overdue, a tenth of its time so far."""
        seconds: defaultdict[object, float] = defaultdict(float)
        for worker in self._supervisor.general:
            if (ticket := worker.long) is not None:
                elapsed, expected = now - worker.page.since, self.expected(ticket)
                seconds[ticket.account] += (
                    max(expected - elapsed, elapsed / 10) if worker.executing is ticket else expected
                )
        return seconds

    def _lane(self, ticket: Ticket) -> Turns[Ticket]:
        return self.short if ticket.length is Length.SHORT else self.long

    def _for_short(self) -> WorkerProcess | None:
        quick_limit, helper_limit = (_IN_TURN, _IN_TURN) if self._in_turn else (_HELP_FROM, _HELPER_TASKS)
        quick = self._supervisor.quick
        if quick is not None and quick.long is not None:
            quick = None  # a long task holds it up
        if quick is not None and quick.sent < quick_limit and quick.has_capacity:
            return quick
        helper = min(
            (w for w in self._supervisor.general if w.long is None), key=lambda worker: worker.sent, default=None
        )
        if helper is not None and helper.sent < helper_limit and helper.has_capacity:
            return helper
        # If nobody can help, the quick worker's socket takes more; but not while callers take turns.
        return quick if quick is not None and quick.has_capacity and not self._in_turn else None

    def _for_long(self, ticket: Ticket) -> WorkerProcess | None:
        """Choose a free worker: preferably one that has done this kind of task, and so may have its plan."""
        free = [worker for worker in self._supervisor.general if worker.long is None and worker.has_capacity]
        return next((worker for worker in free if ticket.kind in worker.known_kinds), free[0] if free else None)


def _work_ahead(own_seconds: float, needed: float, others: Iterable[float]) -> float:
    """Estimate the seconds of work ahead of a task: its caller's own, and a share of each other caller's.

    Turns let no other caller run more than this caller's own work including the task.
    """
    return own_seconds + sum(min(burden, own_seconds + needed) for burden in others)
