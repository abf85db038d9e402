"""Workers in this process that a test controls: for tests of the pool and the supervisor without worker processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from service.api.media import JSON
from service.workers.shared_memory import SLOTS, Vitals
from service.workers.task import NotDone, Reply
from service.workers.ticket import Ticket

#: beyond the process ids of the system
_PIDS = count(1 << 26)


class Puppet:
    """A stand-in for `WorkerProcess`."""

    def __init__(
        self, supervisor: Any, receiver: Any, settings: str, command: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.supervisor, self.receiver = supervisor, receiver
        self.settings, self.command, self.environment = settings, command, environment
        self.pid = next(_PIDS)
        self.page = SimpleNamespace(vitals=Vitals(0, 0), since=0.0)
        self.device = self.failure = ""
        self.ready = self.ended = False
        self.started = time.monotonic()
        self.served = 0
        self.reason: str | None = None
        self.long: Ticket | None = None
        self.known_kinds: set[object] = set()
        self.tickets: list[Ticket] = []
        self.executing: Ticket | None = None
        self.stopped: list[Ticket] = []
        self.frames: list[bytes] = []
        self.hidden: list[int] = []
        self.news: list[tuple[str, str]] = []
        self.finished = self.killed = False
        self.steps_back = 0
        #: whether it exits on `finish`
        self.obeys = True
        self.reaped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # ---------------------------------------------------------------- commands

    def start(self) -> None:
        """Do nothing: it is started, but not ready."""

    def send(self, ticket: Ticket) -> None:
        ticket.sent_to(self, len(self.tickets))
        self.tickets.append(ticket)

    def send_long(self, ticket: Ticket) -> None:
        self.long = ticket
        self.known_kinds.add(ticket.kind)
        self.send(ticket)

    def stop(self, ticket: Ticket) -> None:
        self.stopped.append(ticket)

    def take_back(self, keeping: Collection[Ticket | None]) -> list[Ticket]:
        taken = [t for t in reversed(self.tickets) if t not in keeping and t.memory is None and t.is_awaited]
        self.tickets = [t for t in self.tickets if t not in taken]
        return taken

    def send_frame(self, frame: bytes) -> None:
        self.frames.append(frame)

    def changed(self, key: tuple[str, str]) -> None:
        self.news.append(key)

    def forget(self, number: int) -> None:
        self.hidden.append(number)

    def lower_priority(self) -> None:
        self.steps_back += 1

    def finish(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.finished = True
        if self.obeys:
            self._end_soon()

    def kill(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.killed = True
        self._end_soon()

    def _end_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._end_once)

    def _end_once(self) -> None:
        if not self.ended:
            self.end()

    # ---------------------------------------------------------------- queries

    @property
    def idle(self) -> bool:
        return not self.tickets

    @property
    def sent(self) -> int:
        return len(self.tickets)

    @property
    def has_capacity(self) -> bool:
        return len(self.tickets) < SLOTS

    def begun(self, ticket: Ticket) -> float | None:
        return self.page.since if ticket is self.executing else None

    # ---------------------------------------------------------------- actions that a test triggers

    def become_ready(self, device: str = "cpu") -> None:
        """Become ready."""
        self.device, self.ready = device, True
        self.supervisor.became_ready(self)

    def end(self) -> None:
        """Exit."""
        self.ready, self.ended = False, True
        self.supervisor.exited(self)
        self.supervisor.accounted_for(self)
        self.reaped.set_result(None)

    def begin(self, ticket: Ticket) -> None:
        """Begin to execute this job."""
        self.executing = ticket
        self.page.since = time.monotonic()

    def reply(self, ticket: Ticket, body: bytes = b"done", seconds: float = 0.001, **options: Any) -> None:
        """Reply to a job."""
        self._drop(ticket)
        self.served += 1
        self.receiver.replied(self, ticket, Reply(200, JSON, [body], **options), seconds)

    def not_done(self, ticket: Ticket, why: NotDone, seconds: float = 0.001) -> None:
        """Report why a job was not done."""
        self._drop(ticket)
        self.receiver.not_done(ticket, why, seconds)

    def skip(self, ticket: Ticket) -> None:
        """Drop a job that was stopped."""
        self._drop(ticket)
        self.receiver.skipped(ticket)

    def _drop(self, ticket: Ticket) -> None:
        self.tickets.remove(ticket)
        self.executing = None if self.executing is ticket else self.executing
        self.long = None if self.long is ticket else self.long


@pytest.fixture
def puppets(monkeypatch: pytest.MonkeyPatch) -> list[Puppet]:
    """Workers that a supervisor starts, in the order of their starts."""
    started: list[Puppet] = []

    def start(*arguments: Any) -> Puppet:
        started.append(Puppet(*arguments))
        return started[-1]

    monkeypatch.setattr("service.workers.supervisor.WorkerProcess", start)
    return started
