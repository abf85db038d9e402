"""Main loop of a worker process: read the settings, open the device, take tasks from a socket.

Tasks are executed one by one. Replies to tasks that arrived together are sent together.
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
from service.core.logs import set_up_logging
from service.core.settings import Settings
from service.workers import frames
from service.workers.frames import BodyPlace, Inbox
from service.workers.residents import Residents
from service.workers.sandbox import die_with_parent, limit_process
from service.workers.shared_memory import UNUSED, ControlPage, DescriptorChannel, SharedBuffer, SharedBuffers, Vitals
from service.workers.task import Reply, Task, TaskResult, Total

#: bytes that are read from the socket at a time
READ: Final = 256 << 10
#: seconds that a finished reply may wait for others to be sent with it
_HOLD: Final = 0.0005
#: seconds between two reports of vital signs
_REPORT_INTERVAL: Final = 1.0
#: references to a body: the local variable of `_task`, the parameter of `_report_held_body`, that of `getrefcount`
_OUR_REFERENCES: Final = 3
#: seconds for the warm-up, which delays only the start
_PATIENCE: Final = 60.0
_BODY: Final = (
    b'{"graph": {"nodes": [{"op": "parameter"}, {"op": "square", "operands": [0]}]},'
    b' "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [1.0]}}]}'
)


class AnswerBuffers:
    """Buffers with answers that the front has, by number."""

    def __init__(self, channel: DescriptorChannel, tell: Callable[[int, int], None]) -> None:
        self._channel = channel
        self._note = tell
        #: also holds the buffers that wait for the next answer
        self.buffers = SharedBuffers(IDLE_ANSWER_BYTES, self._dropped)
        self._shown: dict[int, SharedBuffer] = {}

    def write(self, parts: Sequence[bytes | memoryview], nbytes: int) -> int:
        """Write the parts into a buffer that the front can map; return its number."""
        buffer = self.buffers.acquire(nbytes)
        buffer.used = nbytes
        offset = 0
        with memoryview(buffer.memory) as memory:
            for part in parts:
                memory[offset : offset + len(part)] = part
                offset += len(part)
        self._shown[buffer.number] = buffer
        self._channel.show(buffer)
        return buffer.number

    def release(self, number: int) -> None:
        """Take back a buffer whose answer the front has sent or dropped."""
        buffer = self._shown.pop(number)
        if buffer.pooled:
            buffer.clear()
        self.buffers.put(buffer)

    def _dropped(self, buffer: SharedBuffer) -> None:
        self._channel.hide(buffer.number)
        self._note(frames.FORGET, buffer.number)
        buffer.drop()


class Opened(NamedTuple):
    """Work of a process, the device that does it, and its vital signs.

    `work` takes a task and the most seconds that it may take. `condemn` takes the digest of a plan that is to run
    without kernels.
    """

    work: Callable[[Task, float | None], TaskResult]
    device: str
    vitals: Callable[[], Vitals]
    condemn: Callable[[bytes], None] = lambda digest: None


class WorkerLoop:
    """Loop of a process that takes tasks from the socket and writes their replies to it."""

    def __init__(self, front: socket.socket, channel: DescriptorChannel, page: ControlPage, opened: Opened) -> None:
        self._front = front
        self._channel = channel
        self._page = page
        self._work = opened.work
        self._vitals = opened.vitals
        self._condemn = opened.condemn
        self._reported = 0.0
        self._answers = AnswerBuffers(channel, self._note)
        self._residents = Residents(channel)
        self._outgoing: list[bytes] = []
        self._written = 0.0

    def serve(self) -> None:
        """Serve until the front closes its end, or a reply says that this process has to be replaced."""
        inbox, front = Inbox(), self._front
        handlers: dict[int, Callable[[bytes, int], object]] = {
            frames.TASK: self._task,
            frames.FORGET: lambda frame, start: self._channel.forget(frames.read_note(frame, start)),
            frames.RELEASED: lambda frame, start: self._answers.release(frames.read_note(frame, start)),
            frames.RESIDENT: self._residents.update,
            frames.CONDEMNED: lambda frame, start: self._condemn(bytes.fromhex(frames.read_text(frame, start))),
        }
        while data := self._received(front):
            self._written = time.monotonic()
            for kind, frame, start in inbox.feed(data):
                handlers[kind](frame, start)
            self._flush()

    def _received(self, front: socket.socket) -> bytes:
        """Receive the next bytes; while waiting, give unused memory back to the system."""
        while self._answers.buffers.waiting and not select.select([front], [], [], UNUSED)[0]:
            self._answers.buffers.trim()
            self._flush()
        return front.recv(READ)

    def _task(self, frame: bytes, start: int) -> None:
        slot, task, place, most_seconds = frames.read_task(frame, start)
        task.stop = stop = self._page.stops[slot]
        task.resident = self._residents.finder(task.namespace)
        # The stop byte is set without a message: the front may have given up the task while it waited in the socket.
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
            # These hold views of the body, which would count as references to it.
            del outcome, task
            self._report_held_body(body, place.buffer)
        if ended - self._written > _HOLD:  # replies are sent together, but none is held back for long
            self._flush()

    def _done(self, slot: int, outcome: TaskResult, begun: float, ended: float) -> None:
        if ended - self._reported > _REPORT_INTERVAL:
            self._reported = ended
            self._page.report(self._vitals())
        # A task that was stopped meanwhile has no reader: its answer is not even copied to a buffer.
        if self._page.stops[slot][0]:
            self._skip(slot)
        elif isinstance(outcome, Reply):
            parts = (*outcome.parts, *outcome.stored_data)
            nbytes = sum(map(len, parts))
            buffer = self._answers.write(parts, nbytes) if nbytes > frames.INLINE else 0
            self._outgoing.append(frames.reply_frame(slot, outcome, BodyPlace(buffer, nbytes), begun, ended))
        else:
            self._outgoing.append(frames.not_done_frame(slot, outcome, begun, ended))
        if isinstance(outcome, Reply) and outcome.recycle is not None:
            # The reply goes out first. Then the process exits without cleanup, since its state may be damaged.
            self._flush()
            os._exit(0)

    def _skip(self, slot: int) -> None:
        self._outgoing.append(frames.note(frames.SKIPPED, slot))

    def _report_held_body(self, body: HostArray, buffer: int) -> None:
        """Tell the front not to reuse a buffer if a view of its body is still referenced."""
        if sys.getrefcount(body) > _OUR_REFERENCES:
            # This goes ahead of the reply, after which the front would reuse the buffer.
            self._outgoing.insert(0, frames.note(frames.STILL_REFERENCED, buffer))

    def _note(self, kind: int, number: int) -> None:
        self._outgoing.append(frames.note(kind, number))

    def _flush(self) -> None:
        if self._outgoing:
            self._front.sendall(b"".join(self._outgoing))
            self._outgoing.clear()
            self._written = time.monotonic()


def run_worker(make: Callable[[Settings], Opened]) -> None:
    """Serve the front until it closes the socket. The program's arguments are the descriptors that it passed."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the front ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tasks, descriptors, memory = map(int, sys.argv[1:])
    front = socket.socket(fileno=tasks)
    settings = Settings.model_validate_json(_settings(front))
    set_up_logging(settings)
    with suppress(ConnectionError):
        try:
            opened = make(settings)
        except RuntimeError as error:
            front.sendall(frames.text(frames.FAILED, str(error)))
            raise SystemExit(2) from None
        limit_process(settings)
        front.sendall(frames.text(frames.READY, opened.device))
        channel, page = DescriptorChannel(socket.socket(fileno=descriptors)), ControlPage(memory)
        crash_record.attach(page.crash_record)
        WorkerLoop(front, channel, page, opened).serve()
    # Skip the interpreter's shutdown: it would wait for compiler threads, and there is nothing to be saved.
    sys.stderr.flush()
    os._exit(0)


def _settings(front: socket.socket) -> str:
    inbox = Inbox()
    while data := front.recv(READ):
        for _, frame, start in inbox.feed(data):
            return frames.read_text(frame, start)
    raise SystemExit(0)


def divide(workers: int) -> None:
    """Limit each BLAS of this process to the processors of one worker, but at least one thread.

    The limit is that of the process and is only ever lowered: a lower one from the environment or from another
    library stays.
    """
    loaded = ThreadpoolController().select(user_api="blas")
    present = (library["num_threads"] for library in loaded.info())  # None if a library does not say
    threads = min([machine.cpus_per_worker(workers), *filter(None, present)])
    loaded.limit(limits=threads)
    # SciPy has its own BLAS, which is loaded when a graph first needs it, and reads this variable then.
    os.environ["OPENBLAS_NUM_THREADS"] = str(threads)


def warm_up(work: Callable[[Task], object]) -> None:
    """Compute the gradient of x², which builds the message models, loads modules and makes a first plan."""
    work(Task("gradients", _BODY, "rehearsal", _PATIENCE, time.monotonic() + _PATIENCE))
