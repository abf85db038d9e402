"""Supervisor of the worker processes: starts and replaces them, and watches for late tasks and hanging workers.

Workers have one of three places. The *quick* worker gets short tasks only, so that these wait for no long one. The
*general* workers get long tasks, one at a time, and short ones if the quick worker has many. The *spare* is started
and idle: a new process takes a second to load, so it fills a gap at once. For example, with two general workers,
where a task that was expected to be short runs long in the quick worker A:

    quick A   general B, C      spare D    A has run the task for `_HELD_UP` seconds
    quick D   general B, C, A              `relieve`: D takes the short tasks, A finishes the long one
    quick D   general B, C      spare A    `trim`: a general worker that is free becomes the spare

If a worker ends, the spare takes its place (`_vacate`) and a new process is started, which becomes the spare. Starts
are one by one, since each takes a processor for a second; if most workers are missing, two at a time. A process that
ends before it is ready is replaced after a pause, which doubles each time: the next one may fail as well.

Workers are not trusted to answer. Each has a control page in shared memory, where it notes which task it executes and
since when. `Watch` reads these pages and the deadlines at intervals: it has late tasks answered, and kills a worker
`GRACE` seconds after it was told to stop the task that it executes and has not.
"""

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
from service.core.settings import SECRETS, Settings, settings_for_worker
from service.workers import frames
from service.workers.confinement import kernel_support
from service.workers.incidents import Incidents
from service.workers.sandbox import SHARE, allowed_files, environment_of, make_folders
from service.workers.task import Task
from service.workers.ticket import Ticket
from service.workers.topology import Topology, share_of_memory, topology_for
from service.workers.worker_process import COMMAND, Receiver, WorkerProcess

_logger = logging.getLogger("gradserve.workers")

#: seconds before the next start if processes end before they are ready, doubled each time; and the longest
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0
#: seconds from the end of a worker to the next start, which takes a processor for a second: the tasks that the worker
#: left are first
_RESTART_DELAY: Final = 0.25
#: workers that are started at a time if most are missing: if they are being killed one after the other, more are about
#: to go
_STARTED_AT_ONCE: Final = 2


#: seconds for a task to stop once it was told to, after which its worker is killed
GRACE: Final = 0.25
#: seconds after which a worker is killed that executes nothing, and does not even drop a task that was stopped
_SILENCE: Final = 2.0
#: seconds of execution after which a short task counts as long, and the tasks behind it move to other workers
_HELD_UP: Final = 0.1
#: seconds for a worker to become ready
_START: Final = 120.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_NEVER: Final = float("inf")


class Supervisor:
    """Owner of the worker processes: a quick one, general ones, and a spare. Free places are filled in this order."""

    def __init__(self, settings: Settings, callbacks: Receiver, command: Sequence[str] = COMMAND) -> None:
        self._settings = settings
        self._callbacks = callbacks
        self._command = command
        self._topology = Topology(1, quick=False, spare=False, cards=())
        confined = allowed_files(settings)
        make_folders(confined)
        self._environment = {**environment_of(confined), SHARE: str(share_of_memory(settings))}
        if confined and (missing := kernel_support().missing):
            _logger.warning("this kernel does not fully confine workers: %s", "; ".join(missing))
        self.incidents = Incidents(settings.cache_dir)
        self._pause = 0.0
        self._was_complete = False
        self._closing = False
        self._alive: dict[WorkerProcess, int] = {}
        self._unreaped: set[asyncio.Future[None]] = set()
        self._first: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.quick: WorkerProcess | None = None
        self.general: list[WorkerProcess] = []
        self.spare: WorkerProcess | None = None
        #: number of kernels of workers that have ended
        self.kernels = 0
        #: number of ends of workers, by reason
        self.ends: Counter[str] = Counter()

    async def start(self) -> str:
        """Start workers, and wait until there is one for each kind of task.

        The spare and the other general workers follow one by one, so as not to slow the first requests. Returns
        the device. Raises RuntimeError if it cannot be opened.
        """
        if self._settings.device == "cpu" or (self._settings.device == "auto" and not machine.visible_gpus()):
            self._topology = topology_for(self._settings, "cpu")
        # Which workers are needed beyond these depends on the device, which the first one opens.
        for _ in range(1 + self._topology.quick):
            self._spawn()
        try:
            device = await self._first
            self._topology = topology_for(self._settings, device)
            # If the device has no quick worker, the process that was started as one serves all tasks.
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
        """Number of workers that are ready, in whatever place."""
        return sum(worker.ready for worker in self._alive)

    def count(self) -> dict[str, int]:
        """Count the workers that are ready, by place."""
        alone = {"quick": self.quick, "spare": self.spare}
        counts = {name: int(worker is not None and worker.ready) for name, worker in alone.items()}
        return counts | {"long": sum(worker.ready for worker in self.general)}

    @property
    def long_workers(self) -> int:
        """Number of workers that share the long tasks, including those still to be started."""
        return max(1, self._topology.general, len(self.general))

    @property
    def working(self) -> list[WorkerProcess]:
        """Workers that get tasks."""
        return [*self.general] if self.quick is None else [self.quick, *self.general]

    def __iter__(self) -> Iterator[WorkerProcess]:
        return iter(tuple(self._alive))

    def became_ready(self, worker: WorkerProcess) -> None:
        """Give a worker that is ready the first free place."""
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

    def exited(self, worker: WorkerProcess) -> None:
        """Fill the place of a worker that has ended, and start another."""
        del self._alive[worker]
        if self._closing:
            return
        self.kernels += worker.page.vitals.kernels
        reason = worker.reason or "died"
        self.ends[reason] += 1
        _logger.log(logging.INFO if worker.reason else logging.WARNING, "worker %d ended: %s", worker.pid, reason)
        self._vacate(worker)
        if not worker.device:
            self._failed(worker)
        elif self.ready:
            asyncio.get_running_loop().call_later(_RESTART_DELAY, self._fill)
        else:
            self._fill()

    def signalled(self, worker: WorkerProcess, number: int, last_words: LastWords) -> None:
        """Note that a signal killed a worker; if its plan is condemned for that, tell all workers."""
        if self._closing or (condemned := self.incidents.note(worker.pid, number, last_words)) is None:
            return
        for other in self:
            if other.ready:
                other.send_frame(frames.text(frames.CONDEMNED, condemned))

    def accounted_for(self, worker: WorkerProcess) -> None:
        """Give the tasks of a worker that has ended to others, which know by now whether its plan is condemned."""
        if not self._closing:
            self._callbacks.lost(worker.tickets, worker.executing)

    def retire(self, worker: WorkerProcess, reason: str) -> None:
        """Send a worker no more tasks: it exits once it has done those that it has."""
        self._vacate(worker)
        worker.finish(reason)
        self._fill()

    def dismiss(self, worker: WorkerProcess, reason: str) -> None:
        """Send no more tasks to a worker that will exit by itself, because something went wrong in it."""
        worker.reason = reason
        self._vacate(worker)

    def relieve(self) -> bool:
        """Replace the quick worker, which a long task holds up. Return False if all others are busy."""
        helper = self.spare or next((worker for worker in self.general if worker.idle), None)
        if self.quick is None or helper is None:
            return False
        # The slow worker becomes a general one, though there may then be one too many: `trim` settles that later.
        self._remove(helper)
        self.general.append(self.quick)
        self.quick = helper
        return True

    def trim(self) -> None:
        """Make a free general worker the spare, if there is one general worker too many."""
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
        """End all workers: they may finish what they have, and are killed after `grace` seconds."""
        self._closing = True
        for worker in self:
            worker.finish("closing")
        if unreaped := tuple(self._unreaped):
            _, late = await asyncio.wait(unreaped, timeout=grace)
            for worker in self if late else ():
                worker.kill("closing")
            await asyncio.wait(unreaped)

    def _fill(self) -> None:
        """Start the missing workers, one at a time; two, if most of a set that was once complete are missing."""
        if self._closing:
            return
        # Workers that are ending are replaced already: they only finish what they have.
        staying = [worker for worker in self._alive if worker.reason is None]
        target, ready = self._topology.processes, sum(worker.ready for worker in staying)
        self._was_complete |= ready == target
        at_once = _STARTED_AT_ONCE if self._was_complete and 2 * ready <= target else 1
        starting = len(staying) - ready
        for _ in range(min(target - len(staying), at_once - starting)):
            self._spawn()

    def _spawn(self) -> None:
        taken = {number for worker, number in self._alive.items() if worker.reason is None}
        # The lowest free number: with GPUs, it is the index of the GPU that no other worker has.
        number = next(number for number in range(len(taken) + 1) if number not in taken)
        # Workers get no secrets: they run what callers send.
        settings_json = settings_for_worker(self._settings, self._topology.processes).model_dump_json(
            exclude={*SECRETS}
        )
        environment = {**self._topology.environment(number), **self._environment}
        worker = WorkerProcess(self, self._callbacks, settings_json, self._command, environment)
        worker.start()
        self._unreaped.add(worker.reaped)
        worker.reaped.add_done_callback(self._unreaped.discard)
        self._alive[worker] = number

    def _failed(self, worker: WorkerProcess) -> None:
        """Pause before the next start, after a worker that ended before it was ready: the next may as well."""
        if not self._first.done():
            self._first.set_exception(RuntimeError(worker.failure or "the workers exit before they are ready"))
            return
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
        asyncio.get_running_loop().call_later(self._pause, self._fill)

    def _place(self, worker: WorkerProcess) -> bool:
        """Give a worker the first free place. Return False if there is none."""
        if self._topology.quick and self.quick is None:
            self.quick = worker
        elif len(self.general) < self._topology.general:
            self.general.append(worker)
            if self._topology.quick:
                worker.lower_priority()
        elif self._topology.spare and self.spare is None:
            self.spare = worker
        else:
            return False
        return True

    def _note_complete(self) -> None:
        """Note, once, that there is a worker for each kind of task."""
        if self.general and (self.quick is not None or not self._topology.quick) and not self._complete.done():
            self._complete.set_result(None)

    def _remove(self, worker: WorkerProcess) -> None:
        if worker is self.quick:
            self.quick = None
        elif worker is self.spare:
            self.spare = None
        elif worker in self.general:
            self.general.remove(worker)

    def _vacate(self, worker: WorkerProcess) -> None:
        """Free the place of a worker, and give it to the spare."""
        self._remove(worker)
        if (spare := self.spare) is not None:
            self.spare = None
            self._place(spare)


class Watch:
    """Periodic check of all tasks and workers, in place of a timer for each."""

    def __init__(
        self, callbacks: Receiver, tickets: Mapping[Task, Ticket], supervisor: Supervisor, settings: Settings
    ) -> None:
        self._callbacks = callbacks
        self._tickets = tickets
        self._supervisor = supervisor
        self._settings = settings
        self._next = _NEVER

    def check_at(self, moment: float) -> None:
        """Check the tasks at this moment, on the monotonic clock, or earlier."""
        self._next = min(self._next, moment)

    def look(self) -> None:
        """Handle tasks that are late, and workers that hold up the tasks behind them."""
        now = time.monotonic()
        if now >= self._next:
            for ticket in tuple(self._tickets.values()):
                self._check_ticket(ticket, now)
            self._next = min(map(_next_check, self._tickets.values()), default=_NEVER)
        for worker in self._supervisor.working:
            # A long task holds up nobody: its worker has no other.
            if worker.long is None and now - worker.page.since > _HELD_UP and (short := worker.executing):
                self._callbacks.overran(worker, short)

    def inspect(self) -> None:
        """Kill workers that hang. Retire one that has reached a limit of its life, if a spare can replace it."""
        now = time.monotonic()
        for worker in self._supervisor:
            if not worker.ready and not worker.ended and now - worker.started > _START:
                worker.kill("never ready")
            elif is_stopped(worker.pid):
                worker.kill("stopped")
        if (spare := self._supervisor.spare) is not None:
            for worker in (*self._supervisor.working, spare):  # the spare may have worked before
                # Only one at a time: its place must be filled before the next one retires.
                if reason := self._retirement_reason(worker, now):
                    self._supervisor.retire(worker, reason)
                    return

    def _check_ticket(self, ticket: Ticket, now: float) -> None:
        if ticket.is_awaited and now >= ticket.task.expires:
            self._callbacks.expired(ticket)
        elif ticket.worker is not None and ticket.is_stopped and now >= ticket.stopped_at + GRACE:
            # A stop hits the task that is being executed. If it waits behind another, the worker is not to blame yet.
            executing = ticket.worker.executing
            if ticket is executing or (executing is None and now >= ticket.stopped_at + _SILENCE):
                ticket.worker.kill("stuck")

    def _retirement_reason(self, worker: WorkerProcess, now: float) -> str | None:
        settings = self._settings
        if settings.worker_jobs and worker.served >= settings.worker_jobs:
            return "jobs"
        if settings.worker_age and now - worker.started >= settings.worker_age:
            return "age"
        if settings.worker_bytes and resident_bytes(worker.pid) >= settings.worker_bytes:
            return "memory"
        return None


def _next_check(ticket: Ticket) -> float:
    stopped = ticket.stopped_at + GRACE if ticket.is_stopped else _NEVER
    return min(stopped, ticket.task.expires) if ticket.is_awaited else stopped


def is_stopped(pid: int) -> bool:
    """Return whether a process was suspended by a signal. False if it does not exist."""
    try:
        # The second field, the program's name in parentheses, may contain spaces and parentheses itself.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] == "T"


def resident_bytes(pid: int) -> int:
    """Read the private memory of a process, without shared pages such as bodies. 0 if it does not exist."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE
