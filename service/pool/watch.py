"""Watch over tasks and workers, at intervals and not by a timer each."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from service.pool.process import WorkerProcess
from service.pool.supervisor import Supervisor
from service.pool.ticket import Ticket
from service.settings import Settings
from service.transport.job import Job

#: seconds that a task which was told to stop has, before its worker is killed
GRACE: Final = 0.25
#: seconds after which a worker is killed that does not even begin what it was told to drop
_SILENCE: Final = 2.0
#: seconds of execution after which a short task holds up those behind it
_HELD_UP: Final = 0.1
#: seconds that a worker has to become ready
_START: Final = 120.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_NEVER: Final = float("inf")


class Watched(Protocol):
    """Callbacks for what was seen."""

    def expired(self, ticket: Ticket) -> None:
        """A task's time is up."""

    def held_up(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """A task that was thought to be short runs long."""


class Watch:
    """Watch over the tasks and the workers that there are."""

    def __init__(
        self, watched: Watched, tickets: Mapping[Job, Ticket], supervisor: Supervisor, settings: Settings
    ) -> None:
        self._watched = watched
        self._tickets = tickets
        self._supervisor = supervisor
        self._settings = settings
        self._next = _NEVER

    def at(self, moment: float) -> None:
        """There will be something to be seen to at this moment, on the monotonic clock."""
        self._next = min(self._next, moment)

    def look(self) -> None:
        """See to tasks that are late, and to workers that hold others up."""
        now = time.monotonic()
        if now >= self._next:
            for ticket in tuple(self._tickets.values()):
                self._time(ticket, now)
            self._next = min(map(_next, self._tickets.values()), default=_NEVER)
        for worker in self._supervisor.working:
            if worker.long is None and now - worker.page.since > _HELD_UP and (short := worker.executing):
                self._watched.held_up(worker, short)

    def inspect(self) -> None:
        """End a worker that hangs; send one home that has served its time, where another takes its place at once."""
        now = time.monotonic()
        for worker in self._supervisor:
            if not worker.ready and not worker.ended and now - worker.started > _START:
                worker.kill("never ready")
            elif is_stopped(worker.pid):
                worker.kill("stopped")
        if (spare := self._supervisor.spare) is not None:
            for worker in (*self._supervisor.working, spare):  # which may have worked before
                if reason := self._worn(worker, now):
                    self._supervisor.retire(worker, reason)
                    return

    def _time(self, ticket: Ticket, now: float) -> None:
        if ticket.is_wanted and now >= ticket.job.expires:
            self._watched.expired(ticket)
        elif ticket.worker is not None and ticket.is_stopped and now >= ticket.stopped + GRACE:
            executing = ticket.worker.executing
            if ticket is executing or (executing is None and now >= ticket.stopped + _SILENCE):
                ticket.worker.kill("stuck")

    def _worn(self, worker: WorkerProcess, now: float) -> str | None:
        settings = self._settings
        if settings.worker_jobs and worker.served >= settings.worker_jobs:
            return "jobs"
        if settings.worker_age and now - worker.started >= settings.worker_age:
            return "age"
        if settings.worker_bytes and resident_bytes(worker.pid) >= settings.worker_bytes:
            return "memory"
        return None


def _next(ticket: Ticket) -> float:
    stopped = ticket.stopped + GRACE if ticket.is_stopped else _NEVER
    return min(stopped, ticket.job.expires) if ticket.is_wanted else stopped


def is_stopped(pid: int) -> bool:
    """Whether a process was suspended by a signal, and so will do nothing. False where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] == "T"


def resident_bytes(pid: int) -> int:
    """The private memory that a process takes; shared pages, such as bodies, are not counted. 0 where it is gone."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE
