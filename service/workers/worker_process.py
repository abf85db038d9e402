"""Worker process as the front sees it: a socket for tasks and replies, the slots of its tasks, and its end."""

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

#: command that starts a worker; -P keeps the current folder off the module path
COMMAND: Final = (sys.executable, "-P", "-m", "service.workers.child")
#: size of the send buffers, so that neither side waits until the other one reads
_SOCKET_BYTES: Final = 1 << 20
#: increments of the nice value of workers relative to the front, and of those with long tasks
_NICE: Final = 2
_NICE_LONG: Final = 5
#: out-of-memory score that makes the kernel kill a process before all others
_OOM_SCORE: Final = "1000"
#: number of kinds of tasks that are remembered per worker
_KNOWN_KINDS: Final = 256


class ProcessCallbacks(Protocol):
    """Callbacks for the life of a worker process."""

    def became_ready(self, worker: WorkerProcess) -> None:
        """Handle a worker that is ready for tasks."""

    def exited(self, worker: WorkerProcess) -> None:
        """Handle a worker that has ended, and whose last messages have been processed."""

    def signalled(self, worker: WorkerProcess, number: int, last_words: LastWords) -> None:
        """Handle the news that a signal ended a worker, with the record of what it computed then."""

    def accounted_for(self, worker: WorkerProcess) -> None:
        """Handle a worker whose end is explained: other workers know of it, and can do its tasks."""


class Receiver(Protocol):
    """Callbacks for the tasks of the workers."""

    @property
    def residents(self) -> Mapping[TensorKey, TensorVersion]:
        """Tensor versions that tasks read from now on."""

    @property
    def mapped_limit(self) -> float:
        """Most bytes of versions in buffers that a worker keeps mapped, beside those of its next task."""

    def replied(self, worker: WorkerProcess, ticket: Ticket, reply: Reply, seconds: float) -> None:
        """Handle the reply to a task, on which the worker spent so many seconds."""

    def not_done(self, ticket: Ticket, reason: NotDone, seconds: float) -> None:
        """Handle a task that a worker did not do, because it lacked something or the task would take too long."""

    def skipped(self, ticket: Ticket) -> None:
        """Handle a task that was stopped, and has no reply."""

    def has_capacity(self) -> None:
        """Handle a worker that can be sent another task."""

    def answered(self, tenant: str, nbytes: int) -> Claim:
        """Claim the memory of an answer that a worker has written."""

    def lost(self, tickets: Sequence[Ticket], executing: Ticket | None) -> None:
        """Handle the end of a worker that had these tasks, and was executing one of them, or none."""

    def expired(self, ticket: Ticket) -> None:
        """Handle a task whose deadline has passed."""

    def overran(self, worker: WorkerProcess, ticket: Ticket) -> None:
        """Handle a task that was expected to be short, and runs long."""


class _ProcessState(IntEnum):
    """State of a process. States follow each other in this order; some may be skipped."""

    HEARING = 0
    #: it was told to finish, and gets no more messages
    FINISHING = 1
    #: it has closed its socket, and all its messages were processed
    ENDED = 2
    #: its supervisor knows why it ended
    ACCOUNTED_FOR = 3


class WorkerProcess(asyncio.Protocol):
    """Process of `command`, from its start to its end. It is the asyncio protocol of its socket."""

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
        self._outgoing: list[bytes] = []
        self._tickets: list[Ticket | None] = [None] * SLOTS
        self._free = list(range(SLOTS))
        self._transport: asyncio.WriteTransport | None = None
        self._taken_back = 0
        self._still_referenced: set[int] = set()
        self._replica = Replica(receiver.residents, receiver.mapped_limit)
        self._state = _ProcessState.HEARING
        #: whether it keeps a large version that no task reads any more
        self._has_stale_version = False
        self.device = ""
        self.failure = ""
        #: why it ends, if that was decided here
        self.reason: str | None = None
        self.started = time.monotonic()
        #: number of tasks that it has replied to
        self.served = 0
        #: its long task, if any: no other is sent behind it
        self.long: Ticket | None = None
        #: kinds of long tasks that it has done, whose plans it may have cached
        self.known_kinds = FairEviction()
        self._last_words = last_words(memoryview(bytes(CRASH_RECORD_BYTES)))
        #: done once the process has been waited for
        self.reaped: asyncio.Future[None] = self._loop.create_future()

    def start(self) -> None:
        """Spawn the process, which reports when it is ready."""
        ours, theirs = socket.socketpair()
        # A second socket passes descriptors. It keeps message boundaries, so each descriptor stays with its number.
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
                "RUST_BACKTRACE": "0",  # a backtrace takes memory, and Rust libraries panic when there is none
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                **self._environment,
            },
        )
        theirs.close()
        their_side.close()
        self.page.close()
        self._channel = DescriptorChannel(side)
        self.lower_priority(_NICE)
        # If the system runs out of memory, it kills this process and not the front: a worker can be replaced.
        with suppress(OSError):
            Path(f"/proc/{self.pid}/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")
        # A pidfd tells the event loop of the exit without a signal handler, which would belong to the whole process.
        self._sentinel = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._sentinel, self._reap)
        self._connecting = self._loop.create_task(self._loop.create_connection(lambda: self, sock=ours))

    @property
    def ready(self) -> bool:
        """Whether it has opened its device, and lives."""
        return bool(self.device) and self._state < _ProcessState.ENDED

    @property
    def ended(self) -> bool:
        """Whether it has ended, and all its messages were processed."""
        return self._state >= _ProcessState.ENDED

    @property
    def pid(self) -> int:
        """Id of the process."""
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
        """Number of tasks that it has, without those that were taken back and that it has not yet skipped."""
        return SLOTS - len(self._free) - self._taken_back

    @property
    def tickets(self) -> list[Ticket]:
        """Tasks that it has, in the order of their slots."""
        return [ticket for ticket in self._tickets if ticket is not None]

    @property
    def executing(self) -> Ticket | None:
        """Task that it executes now."""
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
        # Changes of tensors go down the socket ahead of the task, so the worker never reads an older version.
        if self._replica.stale or ticket.tensor_names:
            self._send_updates([(task.reads or task.namespace, name) for name in ticket.tensor_names])
        if memory is None or memory.buffer is None:
            place = BodyPlace(0, len(task.body))
        else:
            with suppress(ConnectionError):  # the process has just ended, which is noticed elsewhere
                self._channel.show(memory.buffer)
            place = BodyPlace(memory.buffer.number, len(task.body))
        if ticket.sums is not None and ticket.sums.buffer is not None:
            with suppress(ConnectionError):
                self._channel.show(ticket.sums.buffer)
        graph = task.graph_bytes if ticket.needs_graph else None
        self.send_frame(frames.task_frame(slot, task, place, ticket.most_seconds, graph))

    def send_long(self, ticket: Ticket) -> None:
        """Send a task behind which no other is sent until it is done."""
        self.long = ticket
        self.known_kinds.use(ticket.kind, ticket.account)
        if len(self.known_kinds) > _KNOWN_KINDS:
            self.known_kinds.evict()
        self.send(ticket)

    def lower_priority(self, steps: int = _NICE_LONG) -> None:
        """Lower the priority below that of the front; with long tasks, also below that of the quick worker.

        This holds from the start: loading the modules takes a second of a processor.
        """
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, self.pid, os.getpriority(os.PRIO_PROCESS, 0) + steps)

    def stop(self, ticket: Ticket) -> None:
        """Tell the worker not to begin a task, or to end it early. It replies that it skipped the task."""
        self.page.stops[ticket.slot][0] = 1

    def begun(self, ticket: Ticket) -> float | None:
        """Return when the worker began this task, on the monotonic clock; None if it does not execute it now."""
        return self.page.since if ticket is self.executing else None

    def take_back(self, keeping: Collection[Ticket | None]) -> list[Ticket]:
        """Take back the tasks that wait behind the one that is executed, but those in `keeping`: the worker skips them.

        The last one comes first, so that the caller can put each back ahead of the one before. Tasks with a body in a
        buffer stay: the buffer would be reused while this worker reads it.
        """
        taken = [t for t in self.tickets if t not in keeping and t.memory is None and t.is_awaited]
        self._taken_back += len(taken)
        taken.sort(key=lambda ticket: ticket.submitted, reverse=True)
        for ticket in taken:
            self.stop(ticket)
            self._tickets[ticket.slot] = None  # the slot is free once the worker has skipped the task
        return taken

    def changed(self, key: TensorKey) -> None:
        """Note that a resident tensor was replaced or deleted.

        The process is told before its next task. An idle one is told now if it keeps a large version in memory.
        """
        if self._replica.changed(key):
            self._has_stale_version = True
            self._drop_stale_versions()

    def _drop_stale_versions(self) -> None:
        if self.idle and not self.ended:
            self._send_updates(())

    def _send_updates(self, needed: Sequence[TensorKey]) -> None:
        self._has_stale_version = False
        updates = self._replica.updates(needed)
        for number in updates.hidden:
            self._channel.hide(number)
        with suppress(ConnectionError):  # the process has just ended, which is noticed elsewhere
            self._channel.show_all(updates.buffers)
        for frame in updates.frames:
            self.send_frame(frame)

    def send_frame(self, frame: bytes) -> None:
        """Send a frame, together with the others of this turn of the event loop."""
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(frame)

    def forget(self, number: int) -> None:
        """Tell the process that one of our buffers is gone."""
        if not self.ended and self._channel.hide(number):
            self.send_frame(frames.note(frames.FORGET, number))

    def kill(self, reason: str) -> None:
        """Kill the process now."""
        if self.reason is None:
            self.reason = reason
        self._process.send_signal(signal.SIGKILL)

    def finish(self, reason: str) -> None:
        """Let the process end once it has done its tasks."""
        if self.reason is None:
            self.reason = reason
        self._flush()
        if self._transport is not None:
            self._transport.write_eof()
            self._state = max(self._state, _ProcessState.FINISHING)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the settings, which come first."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._transport.write(frames.text(frames.SETTINGS, self._settings))

    def data_received(self, data: bytes) -> None:
        """Handle replies and other messages of the process."""
        for kind, frame, start in self._inbox.feed(data):
            if kind == frames.REPLY:
                self._reply(frame, start)
            else:
                self._handle(kind, frame, start)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the process has ended."""
        self._state = _ProcessState.ENDED
        self._last_words = last_words(self.page.crash_record)
        self._channel.close()
        self._process.send_signal(signal.SIGKILL)  # it may have closed its socket and live on
        self._supervisor.exited(self)
        self._report_end()

    def _reply(self, frame: bytes, start: int) -> None:
        slot = frames.slot_of(frame, start)
        ticket = self._free_slot(slot)
        reply, buffer, nbytes, begun, ended = frames.read_reply(frame, start, ticket.submitted if ticket else 0.0)
        if buffer:
            memory = self._channel.mapped(buffer)
            frames.attach_body(reply, memoryview(memory)[:nbytes])
            reply.claim = self._receiver.answered(ticket.task.tenant if ticket else "", len(memory))
            reply.memory = _AnswerMemory(self, buffer, memory, reply.claim)
        self.served += 1
        if ticket is None:
            reply.release()
            self._receiver.has_capacity()
        else:
            self._receiver.replied(self, ticket, reply, ended - begun)

    def _not_done(self, frame: bytes, start: int) -> None:
        reason, begun, ended = frames.read_not_done(frame, start)
        self.served += 1
        if ticket := self._free_slot(frames.slot_of(frame, start)):
            self._receiver.not_done(ticket, reason, ended - begun)
        else:
            self._receiver.has_capacity()

    def _handle(self, kind: int, frame: bytes, start: int) -> None:
        if kind == frames.SKIPPED:
            if ticket := self._free_slot(frames.slot_of(frame, start)):
                self._receiver.skipped(ticket)
            else:
                self._receiver.has_capacity()
        elif kind in frames.NOT_DONE:
            self._not_done(frame, start)
        elif kind == frames.STILL_REFERENCED:
            self._still_referenced.add(frames.read_note(frame, start))
        elif kind == frames.FORGET:
            self._dispose(self._channel.forget(frames.read_note(frame, start)))
        elif kind == frames.READY:
            self.device = frames.read_text(frame, start)
            self._supervisor.became_ready(self)
        elif kind == frames.FAILED:
            self.failure = frames.read_text(frame, start)

    def _free_slot(self, slot: int) -> Ticket | None:
        """Free a slot; return its ticket, or None if the task was taken back."""
        ticket = self._tickets[slot]
        self._free.append(slot)
        if self._has_stale_version:
            self._drop_stale_versions()
        if ticket is None:
            # The task was taken back and given to another worker; this is only the answer to its stop.
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
        """Return a buffer to the process: its answer is not needed any more."""
        if self.ended:
            self._dispose(memory)
        else:
            self.send_frame(frames.note(frames.RELEASED, number))

    def _dispose(self, memory: mmap | None) -> None:
        if memory is not None and len(memory) > LARGEST:
            self._loop.run_in_executor(None, _unmap, memory)

    def _flush(self) -> None:
        if self._outgoing and self._transport is not None and self._state is _ProcessState.HEARING:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

    def _reap(self) -> None:
        self._loop.remove_reader(self._sentinel)
        os.close(self._sentinel)
        self._process.wait()
        if not self.reaped.done():
            self.reaped.set_result(None)
        self._report_end()

    def _report_end(self) -> None:
        """Report how the process ended, once the exit status is known and all its messages were processed."""
        if self._state is not _ProcessState.ENDED or self._process.returncode is None:
            return
        self._state = _ProcessState.ACCOUNTED_FOR
        # A negative return code is the number of the signal that ended the process.
        number = -self._process.returncode
        # SIGKILL says nothing about a plan if the process was killed from here.
        if number > 0 and (self.reason is None or number != signal.SIGKILL):
            self._supervisor.signalled(self, number, self._last_words)
        self._supervisor.accounted_for(self)
        self.page.forget()


class _AnswerMemory:
    """Memory of an answer in a worker's buffer; it is given back once."""

    __slots__ = ("_claim", "_memory", "_number", "_worker")

    def __init__(self, worker: WorkerProcess, number: int, memory: mmap, claim: Claim) -> None:
        self._claim = claim
        self._worker: WorkerProcess | None = worker
        self._number = number
        self._memory = memory

    def release(self) -> None:
        """Let the process reuse the buffer."""
        worker, self._worker = self._worker, None
        self._claim.end()
        if worker is not None:
            worker.release(self._number, self._memory)


def _unmap(memory: mmap) -> None:
    with suppress(BufferError):  # a view is still in use: the memory is unmapped with it
        memory.close()
