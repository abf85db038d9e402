from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from engine import HostArray
from service.transport import frames
from service.transport.control_page import ControlPage, Vitals
from service.transport.frames import Inbox, Whereabouts
from service.transport.job import Job, Reply
from service.transport.job_result import JobResult
from service.transport.shared_buffers import UNUSED, DescriptorChannel
from service.transport.sum_parts import Total
from service.worker.answers import AnswerBuffers
from service.worker.residents import Residents

#: (task, most seconds) → what has become of it
Execute = Callable[[Job, float | None], JobResult]


class Opened(NamedTuple):
    """The work of a process, the device that does it, and what the process says of itself.

    `condemn` is told of plans, by their digest, that are to run without kernels.
    """

    work: Execute
    device: str
    vitals: Callable[[], Vitals]
    condemn: Callable[[bytes], None] = lambda digest: None


#: bytes that are read from the socket at a time
READ: Final = 256 << 10
#: a reply that is ready does not wait for others for longer than so many seconds
_HOLD: Final = 0.0005
#: seconds between two reports of itself
_TELL: Final = 1.0
#: to a body: the one of `_job`, the argument of `_take_away`, and that of `getrefcount`
_OUR_REFERENCES: Final = 3


class WorkerLoop:
    """Loop of a process: it takes tasks from the socket and gives replies to it."""

    def __init__(self, front: socket.socket, channel: DescriptorChannel, page: ControlPage, opened: Opened) -> None:
        self._front = front
        self._channel = channel
        self._page = page
        self._work = opened.work
        self._vitals = opened.vitals
        self._condemn = opened.condemn
        self._reported = 0.0
        self._answers = AnswerBuffers(channel, self._tell)
        self._residents = Residents(channel)
        self._out: list[bytes] = []
        self._written = 0.0

    def serve(self) -> None:
        """Until the front closes its end, or a reply says that this process is not to go on."""
        inbox, front = Inbox(), self._front
        take: dict[int, Callable[[bytes, int], object]] = {
            frames.JOB: self._job,
            frames.FORGET: lambda frame, at: self._channel.forget(frames.read_note(frame, at)),
            frames.RELEASED: lambda frame, at: self._answers.released(frames.read_note(frame, at)),
            frames.RESIDENT: self._residents.hear,
            frames.CONDEMNED: lambda frame, at: self._condemn(bytes.fromhex(frames.read_text(frame, at))),
        }
        while data := self._received(front):
            self._written = time.monotonic()
            for kind, frame, at in inbox.feed(data):
                take[kind](frame, at)
            self._flush()

    def _received(self, front: socket.socket) -> bytes:
        """What comes next; while nothing does, memory that is not used goes back to the system."""
        while self._answers.buffers.waiting and not select.select([front], [], [], UNUSED)[0]:
            self._answers.buffers.trim()
            self._flush()
        return front.recv(READ)

    def _job(self, frame: bytes, at: int) -> None:
        slot, job, place, most_seconds = frames.read_job(frame, at)
        job.stop = stop = self._page.stops[slot]
        job.resident = self._residents.of(job.namespace)
        if stop[0]:
            self._skip(slot)
            return
        body = self._channel.body(place.buffer, place.nbytes) if place.buffer else None
        if body is not None:
            job.body = body.data
        if isinstance(job.part, Total):
            job.beside = self._channel.body(job.part.buffer, job.part.nbytes)
        begun = time.monotonic()
        self._page.begin(slot, begun)
        outcome = self._work(job, most_seconds)
        self._page.end()
        ended = time.monotonic()
        self._done(slot, outcome, begun, ended)
        if body is not None:
            del outcome, job
            self._take_away(body, place.buffer)
        if ended - self._written > _HOLD:  # replies wait for others, but not for long
            self._flush()

    def _done(self, slot: int, outcome: JobResult, begun: float, ended: float) -> None:
        if ended - self._reported > _TELL:
            self._reported = ended
            self._page.tell(self._vitals())
        if self._page.stops[slot][0]:
            self._skip(slot)
        elif isinstance(outcome, Reply):
            self._reply(slot, outcome, begun, ended)
        else:
            self._out.append(frames.not_done_frame(slot, outcome, begun, ended))
        if isinstance(outcome, Reply) and outcome.recycle is not None:
            self._flush()
            os._exit(0)

    def _skip(self, slot: int) -> None:
        self._out.append(frames.note(frames.SKIPPED, slot))

    def _take_away(self, body: HostArray, buffer: int) -> None:
        """Nothing may hold on to a body: other bytes will be there. It is said, and the buffer not used again."""
        if sys.getrefcount(body) > _OUR_REFERENCES:
            # Before the reply, upon which the front would take the buffer for free.
            self._out.insert(0, frames.note(frames.KEPT, buffer))

    def _reply(self, slot: int, reply: Reply, begun: float, ended: float) -> None:
        parts = (*reply.parts, *reply.kept) if reply.kept else reply.parts
        nbytes = sum(map(len, parts))
        buffer = self._answers.written(parts, nbytes) if nbytes > frames.INLINE else 0
        self._out.append(frames.reply_frame(slot, reply, Whereabouts(buffer, nbytes), begun, ended))

    def _tell(self, kind: int, number: int) -> None:
        self._out.append(frames.note(kind, number))

    def _flush(self) -> None:
        if self._out:
            self._front.sendall(b"".join(self._out))
            self._out.clear()
            self._written = time.monotonic()
