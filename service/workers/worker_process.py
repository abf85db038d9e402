"""A worker process as the front sees it: a socket for tasks and replies, and the end of the process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from mmap import mmap
from pathlib import Path
from typing import Final, Protocol, cast

from engine.ir.fairness import FairEviction
from engine.runtime.crash_record import CRASH_RECORD_BYTES, LastWords, last_words
from service.core.settings import without_secrets
from service.store.tables import TensorVersion
from service.workers import frames
from service.workers.claims import Claim
from service.workers.frames import BodyPlace, Inbox
from service.workers.residents import Replica, TensorKey
from service.workers.shared_memory import LARGEST, SLOTS, ControlPage, DescriptorChannel
from service.workers.task import NotDone, Reply
from service.workers.ticket import Ticket

COMMAND: Final = (sys.executable, "-P", "-m", "service.workers.child")
_SOCKET_BYTES: Final = 1 << 20
#: by how much workers are nicer than the front, and those of long tasks
_BEHIND: Final = 2
_FAR_BEHIND: Final = 5
#: what makes the system end a process before all others
_FIRST_TO_GO: Final = "1000"
#: kinds of tasks that are remembered of a worker
_SEEN: Final = 256


class ProcessCallbacks(Protocol):
    """Callbacks for the coming and going of a worker."""

    def became_ready(self, worker: WorkerProcess) -> None:
        """It is ready for tasks."""

    def exited(self, worker: WorkerProcess) -> None:
        """It has ended, and everything that it said has been heard."""

    def signalled(self, worker: WorkerProcess, number: int, said: LastWords) -> None:
        """It is known that a signal has ended it, and what it was at then."""

    def accounted_for(self, worker: WorkerProcess) -> None:
        """It has ended, and is known by what: its tasks can be done by others, who were told of it."""


class Receiver(Protocol):
    """Callbacks of whoever gives the workers tasks, for what becomes of these."""

    @property
    def residents(self) -> Mapping[TensorKey, TensorVersion]:
        """Versions of tensors that tasks read from now on."""

    @property
    def most_mapped(self) -> float:
        """Bytes of versions in buffers that a worker knows beside those of its next task."""

    def replied(self, worker: WorkerProcess, ticket: Ticket, reply: Reply, seconds: float) -> None:
        """A task has its reply, after so many seconds of work."""

    def not_done(self, ticket: Ticket, why: NotDone, seconds: float) -> None:
        """A worker lacks something for a task, as it found after so many seconds."""

    def skipped(self, ticket: Ticket) -> None:
        """A task was stopped: it has no reply."""

    def has_capacity(self) -> None:
        """A worker can be sent another task."""

    def answered(self, tenant: str, nbytes: int) -> Claim:
        """Hold an answer of so many bytes, until the claim ends."""

    def lost(self, tickets: Sequence[Ticket], executing: Ticket | None) -> None:
        """A worker has ended that had these tasks, and executed this one of them, if any."""

    def expired(self, ticket: Ticket) -> None:
        """A task's time is up."""

    def held_up(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """A task that was thought to be short runs long."""


class _ProcessState(IntEnum):
    """State of a process, from its start on; each follows those before it, some of which may be left out."""

    HEARING = 0
    #: it was told to finish, and hears nothing any more
    FINISHING = 1
    #: it has closed its socket, and what it had said was heard
    ENDED = 2
    #: its supervisor knows what has ended it
    ACCOUNTED_FOR = 3


class WorkerProcess(asyncio.Protocol):
    """A process of `command`, from its start to its end; asyncio calls the methods of a protocol."""

    def __init__(
        self,
        supervisor: ProcessCallbacks,
        receiver: Receiver,
        settings: str,
        command: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        self._supervisor = supervisor
        self._receiver = receiver
        self._settings = settings
        self._command = command
        self._environment = environment
        self._loop = asyncio.get_running_loop()
        self._inbox = Inbox()
        self._out: list[bytes] = []
        self._tickets: list[Ticket | None] = [None] * SLOTS
        self._free = list(range(SLOTS))
        self._transport: asyncio.WriteTransport | None = None
        self._taken_back = 0
        self._still_referenced: set[int] = set()
        self._replica = Replica(receiver.residents, receiver.most_mapped)
        self._state = _ProcessState.HEARING
        #: whether it has a large version that nobody reads any more
        self._burdened = False
        self.device = ""
        self.failure = ""
        #: why it ends, where that is our doing
        self.reason: str | None = None
        self.started = time.monotonic()
        #: tasks that it has replied to
        self.served = 0
        #: the long task that it has: no other is sent after it
        self.long: Ticket | None = None
        #: kinds of long tasks that it has done, whose plans it may have
        self.known_kinds = FairEviction()
        self._said = last_words(memoryview(bytes(CRASH_RECORD_BYTES)))
        #: done once the process is no more
        self.reaped: asyncio.Future[None] = self._loop.create_future()

    def start(self) -> None:
        """Spawn the process. It says when it is ready."""
        ours, theirs = socket.socketpair()
        side, their_side = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        ours.setblocking(False)
        side.setblocking(False)
        self.page = ControlPage.create()
        passed = (theirs.fileno(), their_side.fileno(), self.page.fd)
        self._process = subprocess.Popen(  # noqa: S603  our own program
            (*self._command, *map(str, passed)),
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
            stdout=sys.__stderr__,
            env={
                **without_secrets(os.environ),
                "RUST_BACKTRACE": "0",  # to trace a panic takes memory, and it panics where there is none
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                **self._environment,
            },
        )
        theirs.close()
        their_side.close()
        self.page.close()
        self._channel = DescriptorChannel(side)
        self.lower_priority(_BEHIND)
        # Where the system has no memory left, it ends this process, and not the front: another takes its place.
        with suppress(OSError):
            Path(f"/proc/{self.pid}/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
        self._sentinel = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._sentinel, self._reap)
        self._connecting = self._loop.create_task(self._loop.create_connection(lambda: self, sock=ours))

    @property
    def ready(self) -> bool:
        """Whether it has said which device it has opened, and lives."""
        return bool(self.device) and self._state < _ProcessState.ENDED

    @property
    def ended(self) -> bool:
        """Whether it is gone, and all that it said was heard."""
        return self._state >= _ProcessState.ENDED

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def idle(self) -> bool:
        """Whether it has no task."""
        return len(self._free) == SLOTS

    @property
    def has_capacity(self) -> bool:
        """Whether another task can be sent."""
        return bool(self._free)

    @property
    def sent(self) -> int:
        """Tasks that it has, but for those that were taken back and it does not know of yet."""
        return SLOTS - len(self._free) - self._taken_back

    @property
    def tickets(self) -> list[Ticket]:
        """The tasks that it has, in the order of their slots."""
        return [ticket for ticket in self._tickets if ticket is not None]

    @property
    def executing(self) -> Ticket | None:
        """The task that it executes."""
        slot = self.page.executing
        return None if slot is None else self._tickets[slot]

    def send(self, ticket: Ticket) -> None:
        """Send a task. There must be a free slot."""
        slot = self._free.pop()
        self.page.stops[slot][0] = 0
        self._tickets[slot] = ticket
        ticket.sent_to(self, slot)
        task = ticket.task
        memory = ticket.memory
        if self._replica.stale or ticket.wanted:
            self._tell([(task.reads or task.namespace, name) for name in ticket.wanted])
        if memory is None or memory.buffer is None:
            place = BodyPlace(0, len(task.body))
        else:
            with suppress(ConnectionError):  # it has just ended, and that will be heard
                self._channel.show(memory.buffer)
            place = BodyPlace(memory.buffer.number, len(task.body))
        if ticket.sums is not None and ticket.sums.buffer is not None:
            with suppress(ConnectionError):
                self._channel.show(ticket.sums.buffer)
        graph = task.graph_bytes if ticket.needs_graph else None
        self.send_frame(frames.task_frame(slot, task, place, ticket.most_seconds, graph))

    def send_long(self, ticket: Ticket) -> None:
        """Send a task after which no other is sent until it is done."""
        self.long = ticket
        self.known_kinds.use(ticket.kind, ticket.account)
        if len(self.known_kinds) > _SEEN:
            self.known_kinds.let_go()
        self.send(ticket)

    def lower_priority(self, steps: int = _FAR_BEHIND) -> None:
        """Go behind the front, and by more steps behind the quick worker: long tasks have time.

        From the start on: to load everything takes a second of a processor.
        """
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, self.pid, os.getpriority(os.PRIO_PROCESS, 0) + steps)

    def stop(self, ticket: Ticket) -> None:
        """Tell the worker not to begin a task, or to end it early: that comes as skipped."""
        self.page.stops[ticket.slot][0] = 1

    def begun(self, ticket: Ticket) -> float | None:
        """Return when the execution of this task began, on the monotonic clock; None where it is not executed."""
        return self.page.since if ticket is self.executing else None

    def take_back(self, keeping: Collection[Ticket | None]) -> list[Ticket]:
        """Take back the tasks that wait behind the one that is executed: this worker will not begin them.

        The last one comes first, as each is to be put back before those that wait. Tasks with a body in a buffer stay:
        it would be given back while this worker reads it.
        """
        taken = [t for t in self.tickets if t not in keeping and t.memory is None and t.is_wanted]
        self._taken_back += len(taken)
        taken.sort(key=lambda ticket: ticket.submitted, reverse=True)
        for ticket in taken:
            self.stop(ticket)
            self._tickets[ticket.slot] = None  # the slot is not free before this worker has said so
        return taken

    def changed(self, key: TensorKey) -> None:
        """Note that a resident tensor is another one, or none any more.

        The process is told before its next task. But one that rests does not keep a large version until then.
        """
        if self._replica.changed(key):
            self._burdened = True
            self._unburden()

    def _unburden(self) -> None:
        if self.idle and not self.ended:
            self._tell(())

    def _tell(self, wanted: Sequence[TensorKey]) -> None:
        self._burdened = False
        news = self._replica.news(wanted)
        for number in news.hidden:
            self._channel.hide(number)
        with suppress(ConnectionError):  # it has just ended, and that will be heard
            self._channel.show_all(news.buffers)
        for frame in news.frames:
            self.send_frame(frame)

    def send_frame(self, frame: bytes) -> None:
        """Send a frame, with others of this turn of the event loop."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(frame)

    def forget(self, number: int) -> None:
        """Tell the process that a buffer of ours is gone."""
        if not self.ended and self._channel.hide(number):
            self.send_frame(frames.note(frames.FORGET, number))

    def kill(self, reason: str) -> None:
        """End it now, whatever it does."""
        if self.reason is None:
            self.reason = reason
        self._process.send_signal(signal.SIGKILL)

    def finish(self, reason: str) -> None:
        """Let it end once it has done what it was sent."""
        if self.reason is None:
            self.reason = reason
        self._flush()
        if self._transport is not None:
            self._transport.write_eof()
            self._state = max(self._state, _ProcessState.FINISHING)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Tell it the settings first."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._transport.write(frames.text(frames.SETTINGS, self._settings))

    def data_received(self, data: bytes) -> None:
        """Take replies, and what else it says."""
        for kind, frame, at in self._inbox.feed(data):
            if kind == frames.REPLY:
                self._reply(frame, at)
            else:
                self._heard(kind, frame, at)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the process has ended."""
        self._state = _ProcessState.ENDED
        self._said = last_words(self.page.crash_record)
        self._channel.close()
        self._process.send_signal(signal.SIGKILL)  # should it have closed its socket, and live
        self._supervisor.exited(self)
        self._account()

    def _reply(self, frame: bytes, at: int) -> None:
        slot = frames.slot_of(frame, at)
        ticket = self._returned(slot)
        reply, buffer, nbytes, begun, ended = frames.read_reply(frame, at, ticket.submitted if ticket else 0.0)
        if buffer:
            memory = self._channel.mapped(buffer)
            frames.attach_body(reply, memoryview(memory)[:nbytes])
            reply.claim = self._receiver.answered(ticket.task.tenant if ticket else "", len(memory))
            reply.memory = _AnswerMemory(self, buffer, memory, reply.claim)
        self.served += 1
        if ticket is None:
            reply.give_back()
            self._receiver.has_capacity()
        else:
            self._receiver.replied(self, ticket, reply, ended - begun)

    def _not_done(self, frame: bytes, at: int) -> None:
        why, begun, ended = frames.read_not_done(frame, at)
        self.served += 1
        if ticket := self._returned(frames.slot_of(frame, at)):
            self._receiver.not_done(ticket, why, ended - begun)
        else:
            self._receiver.has_capacity()

    def _heard(self, kind: int, frame: bytes, at: int) -> None:
        if kind == frames.SKIPPED:
            if ticket := self._returned(frames.slot_of(frame, at)):
                self._receiver.skipped(ticket)
            else:
                self._receiver.has_capacity()
        elif kind in frames.NOT_DONE:
            self._not_done(frame, at)
        elif kind == frames.STILL_REFERENCED:
            self._still_referenced.add(frames.read_note(frame, at))
        elif kind == frames.FORGET:
            self._dispose(self._channel.forget(frames.read_note(frame, at)))
        elif kind == frames.READY:
            self.device = frames.read_text(frame, at)
            self._supervisor.became_ready(self)
        elif kind == frames.FAILED:
            self.failure = frames.read_text(frame, at)

    def _returned(self, slot: int) -> Ticket | None:
        """Free a slot; returns its task, none where it was taken back."""
        ticket = self._tickets[slot]
        self._free.append(slot)
        if self._burdened:
            self._unburden()
        if ticket is None:
            self._taken_back -= 1
            return None
        self._tickets[slot] = None
        if ticket is self.long:
            self.long = None
        if self._still_referenced and ticket.memory is not None and ticket.memory.buffer is not None:
            ticket.memory.still_referenced = ticket.memory.buffer.number in self._still_referenced
            self._still_referenced.discard(ticket.memory.buffer.number)
        return ticket

    def release(self, number: int, memory: mmap) -> None:
        """Give back a buffer of the process's, whose answer nobody needs any more."""
        if self.ended:
            self._dispose(memory)
        else:
            self.send_frame(frames.note(frames.RELEASED, number))

    def _dispose(self, memory: mmap | None) -> None:
        if memory is not None and len(memory) > LARGEST:
            self._loop.run_in_executor(None, _unmap, memory)

    def _flush(self) -> None:
        if self._out and self._transport is not None and self._state is _ProcessState.HEARING:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def _reap(self) -> None:
        self._loop.remove_reader(self._sentinel)
        os.close(self._sentinel)
        self._process.wait()
        if not self.reaped.done():
            self.reaped.set_result(None)
        self._account()

    def _account(self) -> None:
        """Say how it ended, once that is known and all that it said was heard."""
        if self._state is not _ProcessState.ENDED or self._process.returncode is None:
            return
        self._state = _ProcessState.ACCOUNTED_FOR
        number = -self._process.returncode
        if number > 0 and (self.reason is None or number != signal.SIGKILL):
            self._supervisor.signalled(self, number, self._said)
        self._supervisor.accounted_for(self)
        self.page.forget()


class _AnswerMemory:
    """Memory of an answer, which is given back once."""

    __slots__ = ("_claim", "_memory", "_number", "_worker")

    def __init__(self, worker: WorkerProcess, number: int, memory: mmap, claim: Claim) -> None:
        self._claim = claim
        self._worker: WorkerProcess | None = worker
        self._number = number
        self._memory = memory

    def give_back(self) -> None:
        """Let the process write into it again."""
        worker, self._worker = self._worker, None
        self._claim.end()
        if worker is not None:
            worker.release(self._number, self._memory)


def _unmap(memory: mmap) -> None:
    with suppress(BufferError):  # it goes with the last view
        memory.close()
