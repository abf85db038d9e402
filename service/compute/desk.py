"""Inside a worker process: jobs from the socket, one by one, and their replies to it, those of a batch at once."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from engine import HostArray
from service.compute import frames
from service.compute.answers import AnswerSlabs
from service.compute.cell import Cell, Vitals
from service.compute.frames import Inbox, Whereabouts
from service.compute.job import Job, Reply
from service.compute.prison import begin_modestly, behave
from service.compute.slabs import Passage
from service.logs import begin_log
from service.settings import Settings

#: (job, most seconds) → reply
Execute = Callable[[Job, float | None], Reply]


class Opened(NamedTuple):
    """The work of a process, the device that does it, and what the process says of itself."""

    work: Execute
    device: str
    vitals: Callable[[], Vitals]


OpenDevice = Callable[[Settings], Opened]

_READ: Final = 256 << 10
#: a reply that is ready does not wait for others for longer than so many seconds
_HOLD: Final = 0.0005
#: seconds between two reports of itself
_TELL: Final = 1.0
#: to a body: the one of `_job`, the argument of `_take_away`, and that of `getrefcount`
_OUR_REFERENCES: Final = 3


def attend(make: OpenDevice) -> None:
    """Serve the front until it closes the socket. The arguments are the descriptors that it passed."""
    begin_modestly()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group, but it is the front that ends us
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    channel, side, cell = map(int, sys.argv[1:])
    front = socket.socket(fileno=channel)
    settings = Settings.model_validate_json(_settings(front))
    begin_log(settings)
    with suppress(ConnectionError):
        try:
            opened = make(settings)
        except RuntimeError as error:
            front.sendall(frames.text(frames.FAILED, str(error)))
            raise SystemExit(2) from None
        behave(settings)
        front.sendall(frames.text(frames.CAME, opened.device))
        Desk(front, Passage(socket.socket(fileno=side)), Cell(cell), opened).serve()
    # Not by the interpreter's end: a compiler's thread may be busy, and there is nothing to be saved.
    sys.stderr.flush()
    os._exit(0)


def _settings(front: socket.socket) -> str:
    inbox = Inbox()
    while data := front.recv(_READ):
        for _, frame, at in inbox.feed(data):
            return frames.read_text(frame, at)
    raise SystemExit(0)


class Desk:
    """Takes jobs from the socket and gives replies to it."""

    def __init__(self, front: socket.socket, passage: Passage, cell: Cell, opened: Opened) -> None:
        self._front = front
        self._passage = passage
        self._cell = cell
        self._work = opened.work
        self._vitals = opened.vitals
        self._told = 0.0
        self._answers = AnswerSlabs(passage, self._tell)
        self._out: list[bytes] = []
        self._written = 0.0

    def serve(self) -> None:
        """Until the front closes its end, or a reply says that this process is not to go on."""
        inbox, front, take = Inbox(), self._front, {frames.JOB: self._job, **self._notes()}
        while data := front.recv(_READ):
            self._written = time.monotonic()
            for kind, frame, at in inbox.feed(data):
                take[kind](frame, at)
            self._flush()

    def _notes(self) -> dict[int, Callable[[bytes, int], None]]:
        return {
            frames.FORGET: lambda frame, at: self._forget(frames.read_note(frame, at)),
            frames.RELEASED: lambda frame, at: self._answers.released(frames.read_note(frame, at)),
        }

    def _forget(self, number: int) -> None:
        self._passage.forget(number)

    def _job(self, frame: bytes, at: int) -> None:
        slot, job, place, most_seconds = frames.read_job(frame, at)
        job.stop = stop = self._cell.stops[slot]
        if stop[0]:
            self._out.append(frames.note(frames.SKIPPED, slot))
            return
        body = self._passage.body(place.slab, place.nbytes) if place.slab else None
        if body is not None:
            job.body = body.data
        begun = time.monotonic()
        self._cell.begin(slot, begun)
        reply = self._work(job, most_seconds)
        self._cell.end()
        ended = time.monotonic()
        if ended - self._told > _TELL:
            self._told = ended
            self._cell.tell(self._vitals())
        if self._cell.stops[slot][0]:
            self._out.append(frames.note(frames.SKIPPED, slot))
        else:
            self._reply(slot, reply, begun, ended)
        if reply.recycle is not None:
            self._flush()
            os._exit(0)
        if body is not None:
            del reply, job
            self._take_away(body, place.slab)
        if ended - self._written > _HOLD:
            self._flush()

    def _take_away(self, body: HostArray, slab: int) -> None:
        """Nothing may hold on to a body: other bytes will be there. What does is said, and the slab not used again."""
        if sys.getrefcount(body) > _OUR_REFERENCES:
            # Before the reply, upon which the front would take the slab for free.
            self._out.insert(0, frames.note(frames.KEPT, slab))

    def _reply(self, slot: int, reply: Reply, begun: float, ended: float) -> None:
        nbytes = sum(map(len, reply.pieces))
        slab = self._answers.written(reply.pieces, nbytes) if nbytes > frames.INLINE else 0
        self._out.append(frames.reply_frame(slot, reply, Whereabouts(slab, nbytes), begun, ended))

    def _tell(self, kind: int, number: int) -> None:
        self._out.append(frames.note(kind, number))

    def _flush(self) -> None:
        if self._out:
            self._front.sendall(b"".join(self._out))
            self._out.clear()
            self._written = time.monotonic()
