"""Supervisor: starts and replaces worker processes, and watches deadlines and workers that hang."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from engine.runtime.crash_record import LastWords
from service.core import machine
from service.core.settings import SECRETS, Settings, own_settings
from service.workers import frames
from service.workers.confinement import offers
from service.workers.incidents import Incidents
from service.workers.sandbox import SHARE, allowed_files, environment_of, make_folders
from service.workers.task import Task
from service.workers.ticket import Ticket
from service.workers.topology import Topology, share_of_memory, topology_for
from service.workers.worker_process import COMMAND, Receiver, WorkerProcess

_logger = logging.getLogger("gradserve.workers")

#: seconds to the next start, where processes end before they are ready; doubled each time, up to the most
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0
#: seconds from the end of a worker to the start of another: the start takes a processor for a second, which what the
#: dead one left behind needs first
_BREATH: Final = 0.25
#: workers that are started at once where most are missing: whoever ends them one after the other has not ended all
_STARTED_AT_ONCE: Final = 2


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


class Supervisor:
    """Keeper of a quick worker, general ones, and a spare; they are missed in this order."""

    def __init__(self, settings: Settings, callbacks: Receiver, command: Sequence[str] = COMMAND) -> None:
        self._settings = settings
        self._callbacks = callbacks
        self._command = command
        self._topology = Topology(1, quick=False, spare=False, cards=())
        confined = allowed_files(settings)
        make_folders(confined)
        self._environment = {**environment_of(confined), SHARE: str(share_of_memory(settings))}
        if confined and (missing := offers().missing):
            _logger.warning("this kernel confines workers in part, or not at all: %s", "; ".join(missing))
        self.incidents = Incidents(settings.cache_dir)
        self._pause = 0.0
        self._whole = False
        self._closing = False
        self._alive: dict[WorkerProcess, int] = {}
        self._unreaped: set[asyncio.Future[None]] = set()
        self._first: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.quick: WorkerProcess | None = None
        self.general: list[WorkerProcess] = []
        self.spare: WorkerProcess | None = None
        #: kernels of workers that have ended
        self.kernels = 0
        #: ends of workers by their reason
        self.ends: Counter[str] = Counter()

    async def start(self) -> str:
        """Start workers, and wait until one of each kind is ready: a call goes to a kind, and would wait for it.

        The spare and the other general workers follow one by one, so as not to slow the first requests. Returns the
        device. Raises RuntimeError when it cannot be had.
        """
        if self._settings.device == "cpu" or (self._settings.device == "auto" and not machine.cards()):
            self._topology = topology_for(self._settings, "cpu")
        for _ in range(1 + self._topology.quick):
            self._spawn()
        try:
            device = await self._first
            self._topology = topology_for(self._settings, device)
            if (first := self.quick) is not None and not self._topology.quick:
                self.quick = None
                self.general.append(first)
            self._fill()
            self._note_complete()
            await self._complete
        except BaseException:
            await self.close(0)
            raise
        return device

    @property
    def ready(self) -> int:
        """Workers that take tasks, or could."""
        return sum(worker.ready for worker in self._alive)

    def count(self) -> dict[str, int]:
        """Workers that are ready, by what they are for."""
        alone = {"quick": self.quick, "spare": self.spare}
        counts = {name: int(worker is not None and worker.ready) for name, worker in alone.items()}
        return counts | {"long": sum(worker.ready for worker in self.general)}

    @property
    def long_workers(self) -> int:
        """Workers that long tasks are divided among, with those that are still to start."""
        return max(1, self._topology.general, len(self.general))

    @property
    def working(self) -> list[WorkerProcess]:
        """Workers that are given tasks."""
        return [*self.general] if self.quick is None else [self.quick, *self.general]

    def __iter__(self) -> Iterator[WorkerProcess]:
        return iter(tuple(self._alive))

    def came(self, worker: WorkerProcess) -> None:
        """Give a worker that is ready the place that misses one most."""
        for digest in self.incidents.condemned:
            worker.send_frame(frames.text(frames.CONDEMNED, digest))
        self._pause = 0.0
        if not self._first.done():
            self._first.set_result(worker.device)
        if self._place(worker):
            self._note_complete()
            self._callbacks.has_capacity()
        else:
            worker.finish("surplus")
        self._fill()

    def went(self, worker: WorkerProcess) -> None:
        """Put the spare in the place of a worker that has ended, and start another one."""
        del self._alive[worker]
        if self._closing:
            return
        self.kernels += worker.page.vitals.kernels
        reason = worker.reason or "died"
        self.ends[reason] += 1
        _logger.log(logging.INFO if worker.reason else logging.WARNING, "worker %d ended: %s", worker.pid, reason)
        self._leave(worker)
        if not worker.device:
            self._failed(worker)
        elif self.ready:
            asyncio.get_running_loop().call_later(_BREATH, self._fill)
        else:
            self._fill()

    def signalled(self, worker: WorkerProcess, number: int, said: LastWords) -> None:
        """Note that a signal has ended a worker. Where that was once too often at the same plan, tell all others."""
        if self._closing or (condemned := self.incidents.note(worker.pid, number, said)) is None:
            return
        for other in self:
            if other.ready:
                other.send_frame(frames.text(frames.CONDEMNED, condemned))

    def accounted_for(self, worker: WorkerProcess) -> None:
        """Have others do the tasks of a worker that has ended: not before these know of the plan that ended it."""
        if not self._closing:
            self._callbacks.lost(worker.tickets, worker.executing)

    def retire(self, worker: WorkerProcess, reason: str) -> None:
        """Send a worker no more tasks: it ends once it has done those that it has."""
        self._leave(worker)
        worker.finish(reason)
        self._fill()

    def dismiss(self, worker: WorkerProcess, reason: str) -> None:
        """Send a worker no more tasks, which ends by itself, since something has gone wrong in it."""
        worker.reason = reason
        self._leave(worker)

    def relieve(self) -> bool:
        """Put another worker in the place of the quick one, which a long task holds up. False where all are busy."""
        helper = self.spare or next((worker for worker in self.general if worker.idle), None)
        if self.quick is None or helper is None:
            return False
        self._remove(helper)
        self.general.append(self.quick)
        self.quick = helper
        return True

    def trim(self) -> None:
        """Make a free worker the spare again, where the spare has become one of the workers."""
        while len(self.general) > self._topology.general:
            worker = next((worker for worker in reversed(self.general) if worker.long is None), None)
            if worker is None:
                return
            self.general.remove(worker)
            if self.spare is None:
                self.spare = worker
            else:
                worker.finish("surplus")

    async def close(self, grace: float) -> None:
        """End all: by their leave, or after `grace` seconds without it."""
        self._closing = True
        for worker in self:
            worker.finish("closing")
        if gone := tuple(self._unreaped):
            _, late = await asyncio.wait(gone, timeout=grace)
            for worker in self if late else ():
                worker.kill("closing")
            await asyncio.wait(gone)

    def _fill(self) -> None:
        """Start what is missing, one by one; several at once where most of those are missing that have been there."""
        if self._closing:
            return
        staying = [worker for worker in self._alive if worker.reason is None]
        wanted, ready = self._topology.processes, sum(worker.ready for worker in staying)
        self._whole |= ready == wanted
        at_once = _STARTED_AT_ONCE if self._whole and 2 * ready <= wanted else 1
        starting = len(staying) - ready
        for _ in range(min(wanted - len(staying), at_once - starting)):
            self._spawn()

    def _spawn(self) -> None:
        taken = {number for worker, number in self._alive.items() if worker.reason is None}
        number = next(number for number in range(len(taken) + 1) if number not in taken)
        stated = own_settings(self._settings, self._topology.processes).model_dump_json(exclude={*SECRETS})
        environment = {**self._topology.environment(number), **self._environment}
        worker = WorkerProcess(self, self._callbacks, stated, self._command, environment)
        worker.start()
        self._unreaped.add(worker.reaped)
        worker.reaped.add_done_callback(self._unreaped.discard)
        self._alive[worker] = number

    def _failed(self, worker: WorkerProcess) -> None:
        """Wait longer before the next start, after a worker that ended before it was ready: so may the next one."""
        if not self._first.done():
            self._first.set_exception(RuntimeError(worker.failure or "the workers end before they are ready"))
            return
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
        asyncio.get_running_loop().call_later(self._pause, self._fill)

    def _place(self, worker: WorkerProcess) -> bool:
        """Give a worker the first place that is free."""
        if self._topology.quick and self.quick is None:
            self.quick = worker
        elif len(self.general) < self._topology.general:
            self.general.append(worker)
            if self._topology.quick:
                worker.step_back()
        elif self._topology.spare and self.spare is None:
            self.spare = worker
        else:
            return False
        return True

    def _note_complete(self) -> None:
        """Note that a worker of each kind is ready, once that is so for the first time."""
        if self.general and (self.quick is not None or not self._topology.quick) and not self._complete.done():
            self._complete.set_result(None)

    def _remove(self, worker: WorkerProcess) -> None:
        if worker is self.quick:
            self.quick = None
        elif worker is self.spare:
            self.spare = None
        elif worker in self.general:
            self.general.remove(worker)

    def _leave(self, worker: WorkerProcess) -> None:
        """Free a worker's place, which the spare takes."""
        self._remove(worker)
        if (spare := self.spare) is not None:
            self.spare = None
            self._place(spare)


class Watch:
    """Watch over the tasks and the workers that there are, at intervals and not by a timer each."""

    def __init__(
        self, callbacks: Receiver, tickets: Mapping[Task, Ticket], supervisor: Supervisor, settings: Settings
    ) -> None:
        self._callbacks = callbacks
        self._tickets = tickets
        self._supervisor = supervisor
        self._settings = settings
        self._next = _NEVER

    def at(self, moment: float) -> None:
        """Look at the tasks at this moment, on the monotonic clock, or earlier."""
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
                self._callbacks.held_up(worker, short)

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
        if ticket.is_wanted and now >= ticket.task.expires:
            self._callbacks.expired(ticket)
        elif ticket.worker is not None and ticket.is_stopped and now >= ticket.stopped_at + GRACE:
            executing = ticket.worker.executing
            if ticket is executing or (executing is None and now >= ticket.stopped_at + _SILENCE):
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
    stopped = ticket.stopped_at + GRACE if ticket.is_stopped else _NEVER
    return min(stopped, ticket.task.expires) if ticket.is_wanted else stopped


def is_stopped(pid: int) -> bool:
    """Whether a process was suspended by a signal, and so will do nothing. False where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] == "T"


def resident_bytes(pid: int) -> int:
    """Read the private memory of a process; shared pages, such as bodies, are not counted. 0 where it is gone."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE
