"""The worker processes: one for short jobs, some for any, a spare; replaced when they end."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from service.compute.job import Reply
from service.compute.process import COMMAND, WorkerProcess
from service.compute.ticket import Ticket
from service.settings import Settings

_logger = logging.getLogger("gradserve.workers")

#: seconds to the next start, where processes end before they are ready; doubled each time, up to the most
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0


class Boss(Protocol):
    """Who gives the workers jobs."""

    def replied(self, worker: WorkerProcess, ticket: Ticket, reply: Reply, seconds: float) -> None:
        """A job has its reply, after so many seconds of work."""

    def skipped(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """A job was stopped: it has no reply."""

    def lost(self, worker: WorkerProcess, tickets: Sequence[Ticket], executing: Ticket | None) -> None:
        """A worker has ended that had these jobs."""

    def staffed(self) -> None:
        """There is a worker more for jobs."""


class Crew:
    """Keeps `general` workers, a quick one and a spare alive. The quick one is had first, the spare last."""

    def __init__(self, settings: Settings, boss: Boss, general: int, command: Sequence[str] = COMMAND) -> None:
        self._settings = settings.model_dump_json()
        self._boss = boss
        self._command = command
        self._wanted = general + 2
        self._places = general
        self._pause = 0.0
        self._closing = False
        self._alive: set[WorkerProcess] = set()
        self._first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.quick: WorkerProcess | None = None
        self.general: list[WorkerProcess] = []
        self.spare: WorkerProcess | None = None
        #: ends of workers by their reason
        self.ends: Counter[str] = Counter()

    async def start(self) -> None:
        """Start two and wait for them; the others follow one by one, so that they do not slow the first requests.

        Raises RuntimeError when the device cannot be had.
        """
        self._spawn({})
        self._spawn({})
        await self._first

    @property
    def alive(self) -> int:
        """Workers that take jobs, or could."""
        return sum(worker.ready for worker in self._alive)

    def __iter__(self) -> Iterator[WorkerProcess]:
        return iter(self._alive)

    def came(self, worker: WorkerProcess) -> None:
        """A worker is ready: it takes the place that misses one most."""
        self._pause = 0.0
        if self.spare is None:
            self.spare = worker
        self._promote()
        if worker is not self.quick and worker is not self.spare and worker not in self.general:
            worker.finish("surplus")
        if self.quick and self.general and not self._first.done():
            self._first.set_result(None)
        if self._first.done():
            self._again()

    def replied(self, worker: WorkerProcess, ticket: Ticket, reply: Reply, seconds: float) -> None:
        """Handed on."""
        self._boss.replied(worker, ticket, reply, seconds)

    def skipped(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """Handed on."""
        self._boss.skipped(worker, ticket)

    def went(self, worker: WorkerProcess) -> None:
        """A worker has ended: the spare takes its place, and another one is started."""
        reason = worker.reason or "died"
        executing, tickets = worker.executing, worker.tickets
        self._alive.discard(worker)
        self._leave(worker)
        if self._closing:
            return
        self.ends[reason] += 1
        _logger.warning("worker %d ended: %s", worker.pid, reason)
        if worker.device or worker.reason:
            self._spawn({})
        else:
            self._failed(worker)
        self._promote()
        self._boss.lost(worker, tickets, executing)

    def retire(self, worker: WorkerProcess, reason: str) -> None:
        """No more jobs for a worker: it ends once it has done those that it has."""
        self._leave(worker)
        self._promote()
        worker.finish(reason)

    async def close(self, grace: float) -> None:
        """End all: by their leave, or after `grace` seconds without it."""
        self._closing = True
        gone = [worker.reaped for worker in self._alive]
        for worker in tuple(self._alive):
            worker.finish("closing")
        if gone:
            _, late = await asyncio.wait(gone, timeout=grace)
            for worker in tuple(self._alive) if late else ():
                worker.kill("closing")
            await asyncio.wait(gone)

    def _spawn(self, environment: Mapping[str, str]) -> None:
        worker = WorkerProcess(self, self._settings, self._command, environment)
        worker.start()
        self._alive.add(worker)

    def _failed(self, worker: WorkerProcess) -> None:
        """It ended before it was ready: so may the next one."""
        if not self._first.done():
            self._first.set_exception(RuntimeError(worker.failure or "the workers end before they are ready"))
            return
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _FIRST_PAUSE)
        asyncio.get_running_loop().call_later(self._pause, self._again)

    def _again(self) -> None:
        if not self._closing and len(self._alive) < self._wanted:
            self._spawn({})

    def _leave(self, worker: WorkerProcess) -> None:
        if worker is self.quick:
            self.quick = None
        elif worker is self.spare:
            self.spare = None
        elif worker in self.general:
            self.general.remove(worker)

    def _promote(self) -> None:
        """The spare to where one is missing."""
        if self.spare is None or (self.quick is not None and len(self.general) == self._places):
            return
        worker, self.spare = self.spare, None
        if self.quick is None:
            self.quick = worker
        else:
            self.general.append(worker)
        self._boss.staffed()
