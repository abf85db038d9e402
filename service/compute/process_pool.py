"""The pool of worker processes: jobs are admitted, sent to workers, stopped in time, and accounted for."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.compute.crew import Crew
from service.compute.frames import INLINE
from service.compute.job import Job, Reply
from service.compute.pool import Done
from service.compute.process import COMMAND, WorkerProcess
from service.compute.rooms import Rooms, SlabRoom
from service.compute.threads import refused
from service.compute.ticket import Ticket
from service.errors import Refusal
from service.settings import Settings

#: seconds between two looks at what is late
_TICK: Final = 0.02
#: seconds that a job which was told to stop has, before its worker is killed
_GRACE: Final = 0.25


@dataclass(frozen=True, slots=True)
class PoolStats:
    """What a pool is doing: jobs that wait, by lane, and that run; bytes that are held; workers."""

    waiting: dict[str, int]
    running: int
    bytes_held: int
    workers: int
    restarts: dict[str, int]
    ready: bool


class ProcessPool:
    """Jobs in processes of their own. `start` it on the event loop that it is used on, `close` it at the end."""

    def __init__(self, settings: Settings, command: Sequence[str] = COMMAND) -> None:
        self.device = ""
        self._settings = settings
        self._command = command
        self._capacity = settings.workers + settings.queue
        self._tickets: dict[Job, Ticket] = {}
        self._waiting: deque[Ticket] = deque()
        self._draining = False
        self._soonest = float("inf")
        self._empty = asyncio.Event()

    async def start(self) -> None:
        """Start the workers, and wait until jobs can be done. Raises RuntimeError when the device cannot be had."""
        self._loop = asyncio.get_running_loop()
        self._rooms = Rooms(self._loop, self._forget)
        self._crew = Crew(self._settings, self, self._settings.workers, self._command)
        await self._crew.start()
        assert self._crew.quick is not None
        self.device = self._crew.quick.device
        self._sweeping = self._loop.call_later(_TICK, self._sweep)

    async def close(self, grace: float) -> bool:
        """Accept nothing more, and end the workers once all is done, or after `grace` seconds; whether all was done."""
        self.drain()
        if self._tickets:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), grace)
        done = not self._tickets
        for ticket in tuple(self._tickets.values()):
            self._refuse(ticket, self._stopping())
        self._sweeping.cancel()
        await self._crew.close(2.0 if done else 0.0)
        self._rooms.close()
        return done

    @property
    def ready(self) -> bool:
        """Whether work is accepted, and there is a worker for it."""
        return not self._draining and self._crew.alive > 0

    @property
    def busy(self) -> bool:
        """Whether a job runs or waits."""
        return bool(self._tickets)

    def stats(self) -> PoolStats:
        """What is going on now."""
        return PoolStats(
            {"general": len(self._waiting)},
            len(self._tickets) - len(self._waiting),
            self._rooms.held,
            self._crew.alive,
            dict(self._crew.ends),
            self.ready,
        )

    def room(self, nbytes: int) -> SlabRoom:
        """Memory for a body. Raises Refusal: shutting_down, queue_full."""
        if self._draining:
            raise self._stopping()
        return self._rooms.room(nbytes)

    def submit(self, job: Job, done: Done) -> None:
        """Take up a job; at its deadline there is a reply, whatever its worker does then."""
        if self._draining or len(self._tickets) >= self._capacity:
            self._turn_away(job, done)
            return
        ticket = Ticket(job, done, time.monotonic())
        self._tickets[job] = ticket
        self._soonest = min(self._soonest, job.expires)
        if job.room is not None or len(job.body) > INLINE:
            self._lodge(ticket)
        self._waiting.append(ticket)
        self._pump()

    def cancel(self, job: Job) -> None:
        """Nobody waits for the reply any more: the work stops."""
        if ticket := self._tickets.get(job):
            ticket.answered = True
            self._abandon(ticket)

    def drain(self) -> None:
        """Accept nothing more; what was accepted goes on."""
        self._draining = True

    def replied(self, worker: WorkerProcess, ticket: Ticket, reply: Reply, seconds: float) -> None:
        """A worker has done a job."""
        if reply.needs_graph and not ticket.graph_wanted:
            ticket.graph_wanted = True
            self._waiting.appendleft(ticket)
        else:
            self._settle(ticket)
            self._answer(ticket, reply)
        self._pump()

    def skipped(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """A worker has let go of a job."""
        self._settle(ticket)
        self._pump()

    def lost(self, worker: WorkerProcess, tickets: Sequence[Ticket], executing: Ticket | None) -> None:
        """A worker has ended: what it had is done by others."""
        for ticket in tickets:
            ticket.worker = None
            ticket.deaths += 1
            if ticket.answered:
                self._settle(ticket)
            elif ticket.deaths > 1 or ticket.job.effects:
                self._refuse(ticket, self._died())
            else:
                self._waiting.appendleft(ticket)
        self._pump()

    def staffed(self) -> None:
        """There is a worker more."""
        self._pump()

    def _turn_away(self, job: Job, done: Done) -> None:
        refusal = self._stopping()
        if not self._draining:
            detail = f"the server already holds {len(self._tickets)} requests, its limit; try again shortly"
            refusal = Refusal("queue_full", detail, retry_after=1)
        if job.room is not None:
            job.room.give_back()
        done(refused(refusal, job))

    @staticmethod
    def _stopping() -> Refusal:
        return Refusal("shutting_down", "the server is stopping and takes no new work", retry_after=5)

    @staticmethod
    def _died() -> Refusal:
        detail = "the worker process that computed this request ended; send it again"
        return Refusal("worker_died", detail, retry_after=1)

    def _lodge(self, ticket: Ticket) -> None:
        """The body in memory that a worker can see."""
        job = ticket.job
        if isinstance(job.room, SlabRoom):
            ticket.room = job.room
            return
        ticket.room = room = self._rooms.room(len(job.body))
        room.view[:] = job.body.data if isinstance(job.body, np.ndarray) else job.body
        job.body = room.view

    def _pump(self) -> None:
        """Send what waits to workers that can take it."""
        while self._waiting:
            workers = [w for w in (self._crew.quick, *self._crew.general) if w is not None and w.ready and w.idle]
            if not workers:
                return
            workers[0].send(self._waiting.popleft())

    def _abandon(self, ticket: Ticket) -> None:
        """Nobody waits for a job: it leaves the queue, or is stopped."""
        if ticket.worker is not None:
            ticket.stopped = time.monotonic()
            self._soonest = min(self._soonest, ticket.stopped + _GRACE)
            ticket.worker.stop(ticket)
        else:
            self._waiting.remove(ticket)
            self._settle(ticket)

    def _refuse(self, ticket: Ticket, refusal: Refusal) -> None:
        self._settle(ticket)
        self._answer(ticket, refused(refusal, ticket.job))

    def _answer(self, ticket: Ticket, reply: Reply) -> None:
        if ticket.answered:
            reply.release()
        else:
            ticket.answered = True
            ticket.done(reply)

    def _settle(self, ticket: Ticket) -> None:
        """No worker has the job any more."""
        self._tickets.pop(ticket.job, None)
        if ticket.room is not None:
            ticket.job.body = b""
            ticket.room.give_back()
        if not self._tickets:
            self._empty.set()

    def _forget(self, number: int) -> None:
        for worker in self._crew:
            worker.forget(number)

    def _sweep(self) -> None:
        """Answer what is late, and kill workers that did not stop."""
        self._sweeping = self._loop.call_later(_TICK, self._sweep)
        now = time.monotonic()
        if now < self._soonest:
            return
        for ticket in tuple(self._tickets.values()):
            if not ticket.answered and now >= ticket.job.expires:
                detail = f"the request was not finished within its {ticket.job.timeout:g} s"
                self._answer(ticket, refused(Refusal("deadline_exceeded", detail), ticket.job))
                self._abandon(ticket)
            elif ticket.stopped and now >= ticket.stopped + _GRACE:
                worker = ticket.worker
                if isinstance(worker, WorkerProcess) and worker.executing is ticket:
                    worker.kill("stuck")
        self._soonest = min(
            (t.stopped + _GRACE if t.stopped else t.job.expires for t in self._tickets.values()), default=float("inf")
        )
