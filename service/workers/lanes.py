"""Lanes: short tasks go to the quick worker, so that they wait for no long one; long ones go to the others.

A caller alone has all workers. Several callers take turns, in either lane by what they have had of it; and little is
sent to a worker that has not begun what it has, since what is in its socket is out of turn.
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

#: short tasks in the quick worker's socket from which on others help, where they have nothing to do
_HELP: Final = 16
#: short tasks that such a helper has at a time
_HELPS: Final = 8
#: short tasks that any worker has at a time, where callers take turns: what it does, and what it does next
_IN_TURN: Final = 2
#: seconds that somebody's short task waits for somebody else's
_PATIENCE: Final = 2 * QUICK
#: each task is asked for it: in Python 3.11 a member of an enumeration takes ten times as long to find as a name
_LONG: Final = Length.LONG


class Lanes:
    """Tasks that wait for a worker, and the choice of one."""

    def __init__(
        self,
        supervisor: Supervisor,
        accounts: Accounts,
        late: Callable[[Ticket], None],
        overtaken: Callable[[WorkerProcess, Ticket], None],
    ) -> None:
        """`late` is told of a long task that cannot be in time any more.

        And `overtaken` of one that takes its time where others' short ones would wait for it, and has been left alone.
        """
        self._supervisor = supervisor
        self._accounts = accounts
        self._late = late
        self._overtaken = overtaken
        self._loop = asyncio.get_running_loop()
        self._looking: asyncio.TimerHandle | None = None
        self._in_turn = False
        self.short: Turns[Ticket] = Turns()
        #: long tasks, and those of which nobody can say whether they are
        self.long: Turns[Ticket] = Turns()

    @property
    def waiting(self) -> int:
        """Tasks that no worker has."""
        return self.short.count + self.long.count

    @property
    def has_idle(self) -> bool:
        """Whether a worker of long tasks has nothing to do, and no task waits."""
        return not self.waiting and any(w.long is None and w.idle for w in self._supervisor.general)

    def put(self, ticket: Ticket) -> None:
        """Send a task to the next worker that can take it."""
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
        """Send a long task to a worker that is free, whatever is expected of it; only tasks that wait are refused."""
        worker = None if self.long.count else self._for_long(ticket)
        if worker is None:
            self._wait(ticket)
        else:
            ticket.most_seconds = None
            worker.send_long(ticket)

    def _put_in_turn(self, ticket: Ticket) -> None:
        """Put a task behind those of the same caller, and beside those of others."""
        self._take_turns()
        self._wait(ticket)
        self.pump()
        if self._looking is None and self._is_behind():
            self._look()

    def _take_turns(self) -> None:
        """Begin or end to take turns; with several callers, tasks that wait in sockets come back for their turns."""
        if self._in_turn is self._accounts.contended:
            return
        self._in_turn = self._accounts.contended
        for worker in self._supervisor.working if self._in_turn else ():
            for waiting in worker.take_back((worker.executing, worker.long)):
                self.put_back(waiting)

    def _is_behind(self) -> bool:
        """Whether somebody's short task waits for somebody else's in the quick worker."""
        quick = self._supervisor.quick
        running = None if quick is None or quick.long is not None else quick.executing
        if quick is None or running is None:
            return False
        return any(waiting.account is not running.account for waiting in (*quick.tickets, *self.short))

    def _look(self) -> None:
        """Have another worker do what is short, once the quick one has taken too long over another caller's task."""
        self._looking = None
        quick = self._supervisor.quick
        if quick is None or not self._is_behind():
            return
        left = quick.page.since + _PATIENCE - time.monotonic()
        running = quick.executing
        if left <= 0 and running is not None and self._supervisor.relieve():
            self._overtaken(quick, running)
        else:
            self._looking = self._loop.call_later(max(left, QUICK), self._look)

    def _wait(self, ticket: Ticket) -> None:
        self._lane(ticket).put(ticket.account, ticket)

    def put_back(self, ticket: Ticket) -> None:
        """Put a task that a worker had before those that none had."""
        self.hold(ticket)
        self.put_first(ticket)

    def hold(self, ticket: Ticket) -> None:
        """Have a task that a worker had wait for something else, in no lane."""
        ticket.become(TaskState.WAITING)
        self.charge(ticket, 0.0)

    def put_first(self, ticket: Ticket) -> None:
        """Put a task that was held before those that no worker had."""
        self._lane(ticket).put_back(ticket.account, ticket)

    def drop(self, ticket: Ticket) -> None:
        """Take out a task that is not wanted any more."""
        self._lane(ticket).drop(ticket.account, ticket)

    def charge(self, ticket: Ticket, seconds: float) -> None:
        """Charge the caller of a task that came in turn for these seconds, in place of those that were expected."""
        if ticket.charged_lane is not None:
            ticket.charged_lane.charge(ticket.account, seconds - ticket.charged)
            ticket.charged_lane = None

    def pump(self) -> None:
        """Send what waits to those that can take it."""
        while self.short.count and (worker := self._for_short()):
            owner = self.short.first()
            if self._in_turn and self.short.next_of(owner).account.is_doubtful(time.monotonic()):
                ticket = self.short.take_next(owner)
                ticket.length = Length.DOUBTFUL
                ticket.kind = kind_of(ticket.task)
                self._wait(ticket)
            else:
                worker.send(self._taken(self.short, owner))
        while self.long.count and (worker := self._for_long(self.long.next_of(self.long.first()))):
            ticket = self._taken(self.long, self.long.first())
            is_long = ticket.length >= _LONG
            if is_long and time.monotonic() + self.expected(ticket) > ticket.task.expires:
                self.charge(ticket, 0.0)
                self._late(ticket)
            else:
                ticket.most_seconds = None if is_long else QUICK
                worker.send_long(ticket)
        if self.long.count:
            self._lend()

    def _taken(self, lane: Turns[Ticket], owner: Hashable) -> Ticket:
        """Take the next task of an owner, who is charged for what is expected of it."""
        expected = self.expected(lane.next_of(owner))
        ticket = lane.take_next(owner, expected)
        ticket.charged_lane, ticket.charged = lane, expected
        ticket.most_seconds = QUICK
        return ticket

    def _lend(self) -> None:
        """Have the quick worker, while it idles, do what may be short for those who have no other worker."""
        quick = self._supervisor.quick
        if quick is None or quick.long is not None or not quick.idle:
            return
        served = {worker.long.account for worker in self._supervisor.general if worker.long is not None}
        try:
            owner = self.long.first(lambda ticket: ticket.length is Length.DOUBTFUL and ticket.account not in served)
        except KeyError:
            return
        quick.send(self._taken(self.long, owner))

    def overdue(self, cost_model: CostModel) -> list[Ticket]:
        """Find the long tasks that will not be in time, as far as is known now that another one has been measured."""
        now, workers = time.monotonic(), self._supervisor.long_workers
        late, burdens, running = [], self._burdens(now), self._running(now)
        for owner, tickets in self.long.lines():
            others = [burden for account, burden in burdens.items() if account is not owner]
            ahead = running[owner]
            for ticket in tickets:
                known = cost_model.settled(ticket.kind, workers)
                needed = known.seconds if known else self.expected(ticket)
                wait = _before(ahead, needed, others) / workers
                if known and now + wait + needed > ticket.task.expires:
                    late.append(ticket)
                else:
                    ahead += needed
        return late

    def ahead(self, ticket: Ticket) -> float:
        """Seconds until a long task that comes now is taken up."""
        burdens = self._burdens(time.monotonic())
        own = burdens.pop(ticket.account, 0.0)
        return _before(own, self.expected(ticket), burdens.values()) / self._supervisor.long_workers

    def is_idle(self, ticket: Ticket) -> bool:
        """Whether a worker has nothing to do, and may as well find out how long a task takes."""
        return not self.long.count and self._for_long(ticket) is not None

    @staticmethod
    def expected(ticket: Ticket) -> float:
        """Seconds that a long task takes once it is taken up."""
        return ticket.estimate.seconds if ticket.estimate else QUICK

    def _burdens(self, now: float) -> defaultdict[object, float]:
        """Seconds of long tasks that run or wait, by account."""
        seconds = self._running(now)
        for ticket in self.long:
            seconds[ticket.account] += self.expected(ticket)
        return seconds

    def _running(self, now: float) -> defaultdict[object, float]:
        """Seconds that long tasks still run. One that takes longer than was expected may take a tenth of that more."""
        seconds: defaultdict[object, float] = defaultdict(float)
        for worker in self._supervisor.general:
            if (ticket := worker.long) is not None:
                run, expected = now - worker.page.since, self.expected(ticket)
                seconds[ticket.account] += max(expected - run, run / 10) if worker.executing is ticket else expected
        return seconds

    def _lane(self, ticket: Ticket) -> Turns[Ticket]:
        return self.short if ticket.length is Length.SHORT else self.long

    def _for_short(self) -> WorkerProcess | None:
        most, helps = (_IN_TURN, _IN_TURN) if self._in_turn else (_HELP, _HELPS)
        quick = self._supervisor.quick
        if quick is not None and quick.long is not None:
            quick = None  # it is held up
        if quick is not None and quick.sent < most and quick.has_capacity:
            return quick
        helper = min(
            (w for w in self._supervisor.general if w.long is None), key=lambda worker: worker.sent, default=None
        )
        if helper is not None and helper.sent < helps and helper.has_capacity:
            return helper
        return quick if quick is not None and quick.has_capacity and not self._in_turn else None

    def _for_long(self, ticket: Ticket) -> WorkerProcess | None:
        """Choose a free worker: one that did the like before, and so has its plan, or any."""
        free = [worker for worker in self._supervisor.general if worker.long is None and worker.has_capacity]
        return next((worker for worker in free if ticket.kind in worker.seen), free[0] if free else None)


def _before(own: float, needed: float, others: Iterable[float]) -> float:
    """Seconds of work before a task that needs so much, where its caller has work before it, and so have others.

    None of them gets ahead of the caller by more than what is the caller's own.
    """
    return own + sum(min(burden, own + needed) for burden in others)
