"""Which worker does a job: short ones the quick worker, so that they wait for no long one; long ones the others."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from service.compute.crew import Crew
from service.compute.experience import QUICK, Experience
from service.compute.process import WorkerProcess
from service.compute.ticket import Ticket

#: short jobs in the quick worker's socket from which on others help, where they have nothing to do
_HELP: Final = 16
#: short jobs that such a helper has at a time
_HELPS: Final = 8


class Lanes:
    """Jobs that wait for a worker, and the choice of one."""

    def __init__(self, crew: Crew, late: Callable[[Ticket], None]) -> None:
        """`late` is told of a long job that cannot be in time any more."""
        self._crew = crew
        self._late = late
        self.short: deque[Ticket] = deque()
        self.long: deque[Ticket] = deque()

    @property
    def waiting(self) -> int:
        """Jobs that no worker has."""
        return len(self.short) + len(self.long)

    def put(self, ticket: Ticket) -> None:
        """A job for the next worker that can take it."""
        if ticket.long:
            self._put_long(ticket)
            return
        ticket.bound = QUICK
        worker = None if self.short else self._for_short()
        if worker is None:
            self.short.append(ticket)
        else:
            worker.send(ticket)

    def _put_long(self, ticket: Ticket) -> None:
        """To a worker that is free, whatever is expected of the job; only what waits is looked at again."""
        worker = None if self.long else self._for_long(ticket)
        if worker is None:
            self.long.append(ticket)
        else:
            ticket.bound = None
            worker.send_long(ticket)

    def put_back(self, ticket: Ticket) -> None:
        """A job that a worker had, before those that none had."""
        (self.long if ticket.long else self.short).appendleft(ticket)

    def drop(self, ticket: Ticket) -> None:
        """A job that is not wanted any more."""
        (self.long if ticket.long else self.short).remove(ticket)

    def pump(self) -> None:
        """Send what waits to those that can take it."""
        while self.short and (worker := self._for_short()):
            worker.send(self.short.popleft())
        while self.long and (worker := self._for_long(self.long[0])):
            ticket = self.long.popleft()
            if time.monotonic() + self.expected(ticket) > ticket.job.expires:
                self._late(ticket)
                continue
            ticket.bound = None
            worker.send_long(ticket)

    def overdue(self, experience: Experience) -> list[Ticket]:
        """The long jobs that will not be in time, as far as can be told now that another one has been measured."""
        now, workers = time.monotonic(), self._crew.hands
        found, ahead = [], self._running(now) / workers
        for ticket in self.long:
            known = experience.settled(ticket.kind, workers)
            needed = known.seconds if known else self.expected(ticket)
            if known and now + ahead + needed > ticket.job.expires:
                found.append(ticket)
            else:
                ahead += needed / workers
        return found

    def ahead(self) -> float:
        """Seconds until a long job that comes now is taken up."""
        waiting = sum(map(self.expected, self.long))
        return (self._running(time.monotonic()) + waiting) / self._crew.hands

    @staticmethod
    def expected(ticket: Ticket) -> float:
        """Seconds that a long job takes once it is taken up."""
        return ticket.estimate.seconds if ticket.estimate else QUICK

    def _running(self, now: float) -> float:
        return sum(self._left(worker.long, worker, now) for worker in self._crew.general if worker.long)

    def _left(self, ticket: Ticket, worker: WorkerProcess, now: float) -> float:
        """Seconds that a job still runs. One that takes longer than was expected may take a tenth of that more."""
        run = now - worker.cell.since
        return max(self.expected(ticket) - run, run / 10) if worker.executing is ticket else self.expected(ticket)

    def _for_short(self) -> WorkerProcess | None:
        quick = self._crew.quick
        if quick is not None and quick.long is not None:
            quick = None  # it is held up
        if quick is not None and quick.sent < _HELP:
            return quick
        helper = min((w for w in self._crew.general if w.long is None), key=_load, default=None)
        if helper is not None and helper.sent < _HELPS:
            return helper
        return quick if quick is not None and quick.has_room else None

    def _for_long(self, ticket: Ticket) -> WorkerProcess | None:
        """One that did the like before, and so has its plan; or any."""
        free = [worker for worker in self._crew.general if worker.long is None and worker.has_room]
        return next((worker for worker in free if ticket.kind in worker.seen), free[0] if free else None)


def _load(worker: WorkerProcess) -> int:
    return worker.sent
