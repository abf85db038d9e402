"""A worker process from its start to its end: it reads the settings, opens the device, and takes tasks from a socket.

Tasks are executed one by one. Replies to tasks that came together are sent together.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from threadpoolctl import ThreadpoolController

from engine import HostArray
from engine.runtime.crash_record import crash_record
from service.core import machine
from service.core.budget import IDLE_ANSWER_BYTES
from service.core.logs import begin_log
from service.core.settings import Settings
from service.workers import frames
from service.workers.frames import BodyPlace, Inbox
from service.workers.residents import Residents
from service.workers.sandbox import behave, die_with_parent
from service.workers.shared_memory import UNUSED, ControlPage, DescriptorChannel, SharedBuffer, SharedBuffers, Vitals
from service.workers.task import Reply, Task, TaskResult, Total

#: bytes that are read from the socket at a time
READ: Final = 256 << 10
#: a reply that is ready does not wait for others for longer than so many seconds
_HOLD: Final = 0.0005
#: seconds between two reports of itself
_TELL: Final = 1.0
#: to a body: the one of `_task`, the argument of `_take_away`, and that of `getrefcount`
_OUR_REFERENCES: Final = 3
#: seconds that the warm-up may take: nobody waits for it but the start
_PATIENCE: Final = 60.0
_BODY: Final = (
    b'{"graph": {"nodes": [{"op": "parameter"}, {"op": "square", "operands": [0]}]},'
    b' "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [1.0]}}]}'
)


class AnswerBuffers:
    """The buffers of this process that the front has, by number."""

    def __init__(self, channel: DescriptorChannel, tell: Callable[[int, int], None]) -> None:
        self._channel = channel
        self._tell = tell
        #: those that wait for the next answer among them
        self.buffers = SharedBuffers(IDLE_ANSWER_BYTES, self._dropped)
        self._away: dict[int, SharedBuffer] = {}

    def written(self, parts: Sequence[bytes | memoryview], nbytes: int) -> int:
        """Write the parts into a buffer that the front can see; returns its number."""
        buffer = self.buffers.acquire(nbytes)
        buffer.used = nbytes
        at = 0
        with memoryview(buffer.memory) as memory:
            for part in parts:
                memory[at : at + len(part)] = part
                at += len(part)
        self._away[buffer.number] = buffer
        self._channel.show(buffer)
        return buffer.number

    def released(self, number: int) -> None:
        """Take a buffer back whose contents the front has sent, or nobody wants."""
        buffer = self._away.pop(number)
        if buffer.pooled:
            buffer.clear()
        self.buffers.put(buffer)

    def _dropped(self, buffer: SharedBuffer) -> None:
        self._channel.hide(buffer.number)
        self._tell(frames.FORGET, buffer.number)
        buffer.drop()


class Opened(NamedTuple):
    """The work of a process, the device that does it, and its vital signs.

    `work` takes a task and the most seconds that it may take. `condemn` is told of plans, by their digest, that are to
    run without kernels.
    """

    work: Callable[[Task, float | None], TaskResult]
    device: str
    vitals: Callable[[], Vitals]
    condemn: Callable[[bytes], None] = lambda digest: None


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
        """Serve until the front closes its end, or a reply says that this process is not to go on."""
        inbox, front = Inbox(), self._front
        take: dict[int, Callable[[bytes, int], object]] = {
            frames.TASK: self._task,
            frames.FORGET: lambda frame, at: self._channel.forget(frames.read_note(frame, at)),
            frames.RELEASED: lambda frame, at: self._answers.released(frames.read_note(frame, at)),
            frames.RESIDENT: self._residents.update,
            frames.CONDEMNED: lambda frame, at: self._condemn(bytes.fromhex(frames.read_text(frame, at))),
        }
        while data := self._received(front):
            self._written = time.monotonic()
            for kind, frame, at in inbox.feed(data):
                take[kind](frame, at)
            self._flush()

    def _received(self, front: socket.socket) -> bytes:
        """Receive the next bytes; while none come, memory that is not used goes back to the system."""
        while self._answers.buffers.waiting and not select.select([front], [], [], UNUSED)[0]:
            self._answers.buffers.trim()
            self._flush()
        return front.recv(READ)

    def _task(self, frame: bytes, at: int) -> None:
        slot, task, place, most_seconds = frames.read_task(frame, at)
        task.stop = stop = self._page.stops[slot]
        task.resident = self._residents.of(task.namespace)
        if stop[0]:
            self._skip(slot)
            return
        body = self._channel.body(place.buffer, place.nbytes) if place.buffer else None
        if body is not None:
            task.body = body.data
        if isinstance(task.part, Total):
            task.sums = self._channel.body(task.part.buffer, task.part.nbytes)
        begun = time.monotonic()
        self._page.begin(slot, begun)
        outcome = self._work(task, most_seconds)
        self._page.end()
        ended = time.monotonic()
        self._done(slot, outcome, begun, ended)
        if body is not None:
            del outcome, task
            self._take_away(body, place.buffer)
        if ended - self._written > _HOLD:  # replies wait for others, but not for long
            self._flush()

    def _done(self, slot: int, outcome: TaskResult, begun: float, ended: float) -> None:
        if ended - self._reported > _TELL:
            self._reported = ended
            self._page.report(self._vitals())
        if self._page.stops[slot][0]:
            self._skip(slot)
        elif isinstance(outcome, Reply):
            parts = (*outcome.parts, *outcome.kept)
            nbytes = sum(map(len, parts))
            buffer = self._answers.written(parts, nbytes) if nbytes > frames.INLINE else 0
            self._out.append(frames.reply_frame(slot, outcome, BodyPlace(buffer, nbytes), begun, ended))
        else:
            self._out.append(frames.not_done_frame(slot, outcome, begun, ended))
        if isinstance(outcome, Reply) and outcome.recycle is not None:
            self._flush()
            os._exit(0)

    def _skip(self, slot: int) -> None:
        self._out.append(frames.note(frames.SKIPPED, slot))

    def _take_away(self, body: HostArray, buffer: int) -> None:
        """Tell the front not to use a buffer again, if something still holds on to its body."""
        if sys.getrefcount(body) > _OUR_REFERENCES:
            # Before the reply, upon which the front would take the buffer for free.
            self._out.insert(0, frames.note(frames.STILL_REFERENCED, buffer))

    def _tell(self, kind: int, number: int) -> None:
        self._out.append(frames.note(kind, number))

    def _flush(self) -> None:
        if self._out:
            self._front.sendall(b"".join(self._out))
            self._out.clear()
            self._written = time.monotonic()


def run_worker(make: Callable[[Settings], Opened]) -> None:
    """Serve the front until it closes the socket. The program's arguments are the descriptors that it passed."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group, but it is the front that ends us
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tasks, descriptors, memory = map(int, sys.argv[1:])
    front = socket.socket(fileno=tasks)
    settings = Settings.model_validate_json(_settings(front))
    begin_log(settings)
    with suppress(ConnectionError):
        try:
            opened = make(settings)
        except RuntimeError as error:
            front.sendall(frames.text(frames.FAILED, str(error)))
            raise SystemExit(2) from None
        behave(settings)
        front.sendall(frames.text(frames.READY, opened.device))
        channel, page = DescriptorChannel(socket.socket(fileno=descriptors)), ControlPage(memory)
        crash_record.attach(page.crash_record)
        WorkerLoop(front, channel, page, opened).serve()
    # Not by the interpreter's end: a compiler's thread may be busy, and there is nothing to be saved.
    sys.stderr.flush()
    os._exit(0)


def _settings(front: socket.socket) -> str:
    inbox = Inbox()
    while data := front.recv(READ):
        for _, frame, at in inbox.feed(data):
            return frames.read_text(frame, at)
    raise SystemExit(0)


def divide(workers: int) -> None:
    """Let each BLAS of this process use as many threads as each worker has processors, and one at least.

    It is the process that is limited, and only ever further: what the environment or another application in it asked
    for stands where it is less.
    """
    loaded = ThreadpoolController().select(user_api="blas")
    present = (library["num_threads"] for library in loaded.info())  # None where a library does not say
    threads = min([machine.cpus_each(workers), *filter(None, present)])
    loaded.limit(limits=threads)
    # SciPy has a BLAS of its own, which comes when a graph first needs it, and reads this then.
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)


def warm_up(work: Callable[[Task], object]) -> None:
    """Compute the gradient of x² as for a caller: models are built, modules loaded, the first plan is made."""
    work(Task("gradients", _BODY, "rehearsal", _PATIENCE, time.monotonic() + _PATIENCE))
