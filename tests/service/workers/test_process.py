"""A worker process as the front sees it: frames that it receives, frames that it sends, and its exit."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from engine.runtime.crash_record import LastWords
from service.api.media import JSON
from service.workers import frames
from service.workers.admission import Account
from service.workers.frames import BodyPlace, Inbox, reply_frame
from service.workers.shared_memory import SLOTS
from service.workers.task import Reply
from service.workers.ticket import Ticket
from service.workers.worker_process import WorkerProcess
from tests.service.workers.pools import job, running, until

#: a process that sends given bytes at its start, and records what it receives until the socket is closed
PROGRAM = """
import os, socket, sys
said, name, jobs = bytes.fromhex(sys.argv[1]), sys.argv[2], socket.socket(fileno=int(sys.argv[3]))
jobs.sendall(said)
with open(name, "wb", 0) as heard:
    heard.write(os.environ.get("GRADSERVE_TEST_TOLD", "").encode() + b"|")
    while data := jobs.recv(1 << 20):
        heard.write(data)
"""


class Recorder:
    """A supervisor and a receiver that record the calls of a worker."""

    residents: dict[tuple[str, str], Any] = {}  # noqa: RUF012 - nothing is ever in it
    mapped_limit = float("inf")

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def became_ready(self, worker: WorkerProcess) -> None:
        self.calls.append(("came", worker.device))

    def exited(self, worker: WorkerProcess) -> None:
        self.calls.append(("went", [ticket.slot for ticket in worker.tickets]))

    def signalled(self, worker: WorkerProcess, number: int, words: LastWords) -> None:
        self.calls.append(("signalled", number))

    def accounted_for(self, worker: WorkerProcess) -> None:
        self.calls.append(("accounted for", [ticket.slot for ticket in worker.tickets]))

    def replied(self, worker: WorkerProcess, ticket: Ticket, reply: Reply, seconds: float) -> None:
        self.calls.append((ticket, reply.body, seconds))

    def skipped(self, ticket: Ticket) -> None:
        self.calls.append(("skipped", ticket))


@asynccontextmanager
async def process(folder: Any, *sent: bytes) -> AsyncIterator[tuple[WorkerProcess, Recorder]]:
    """Start a process that reports that it is ready, and then sends these frames."""
    recorder = Recorder()
    output = b"".join([frames.text(frames.READY, "cpu"), *sent])
    command: Sequence[str] = (sys.executable, "-S", "-E", "-c", PROGRAM, output.hex(), str(folder / "heard"))
    worker = WorkerProcess(
        recorder, cast("Any", recorder), "the settings", command, {"GRADSERVE_TEST_TOLD": "environment"}
    )
    worker.start()
    try:
        yield worker, recorder
    finally:
        if not worker.reaped.done():
            worker.kill("over")
        await worker.reaped
        await until(lambda: worker.ended)


def ticket() -> Ticket:
    return Ticket(job({}), Account("a"), lambda _: None, 0.0)


def received_by(folder: Any) -> tuple[bytes, list[int]]:
    """The environment variable that it saw, and the kinds of frames that it received."""
    environment, _, received = (folder / "heard").read_bytes().partition(b"|")
    return environment, [kind for kind, *_ in Inbox().feed(received)]


@running
async def test_settings_come_first_and_finish_ends_the_process(tmp_path: Any) -> None:
    async with process(tmp_path) as (worker, recorder):
        assert (worker.ready, worker.ended, worker.idle) == (False, False, True)
        await until(lambda: worker.ready)
        worker.send(ticket())
        worker.finish("age")
        worker.send_frame(frames.note(frames.FORGET, 1))  # which it does not receive any more
        await worker.reaped
        await until(lambda: worker.ended)
        assert (worker.reason, worker.ready) == ("age", False)
        assert recorder.calls == [("came", "cpu"), ("went", [SLOTS - 1]), ("accounted for", [SLOTS - 1])]
        assert received_by(tmp_path) == (b"environment", [frames.SETTINGS, frames.TASK])


@running
async def test_replies_reach_the_jobs_of_their_slots(tmp_path: Any) -> None:
    body = b"answer"
    frame = reply_frame(SLOTS - 1, Reply(200, JSON, [body]), BodyPlace(0, len(body)), 1.0, 3.5)
    async with process(tmp_path, frame, frames.note(frames.SKIPPED, SLOTS - 2)) as (worker, recorder):
        first, second = ticket(), ticket()
        for each in (first, second):
            worker.send(each)
        worker.long = first
        assert (worker.sent, worker.tickets, worker.idle) == (2, [second, first], False)
        await until(lambda: worker.idle)
        assert recorder.calls == [("came", "cpu"), (first, body, 2.5), ("skipped", second)]
        assert (worker.served, worker.sent) == (1, 0)
        assert worker.long is None


@running
async def test_stop_and_begin_are_on_the_control_page(tmp_path: Any) -> None:
    async with process(tmp_path) as (worker, _):
        first, second = ticket(), ticket()
        for each in (first, second):
            worker.send(each)
        worker.stop(first)
        assert [slot for slot in range(SLOTS) if worker.page.stops[slot][0]] == [first.slot]
        worker.page.begin(second.slot, 7.5)
        assert (worker.executing, worker.begun(second), worker.begun(first)) == (second, 7.5, None)
        assert worker.take_back([second]) == [first]
        assert (worker.sent, worker.has_capacity, worker.tickets) == (1, True, [second])


@running
async def test_external_signal_is_reported(tmp_path: Any) -> None:
    async with process(tmp_path) as (worker, recorder):
        await until(lambda: worker.ready)
        os.kill(worker.pid, signal.SIGABRT)
        await until(lambda: len(recorder.calls) == 4)
        assert recorder.calls[1:] == [("went", []), ("signalled", signal.SIGABRT), ("accounted for", [])]


@running
async def test_killed_process_is_no_incident(tmp_path: Any) -> None:
    async with process(tmp_path) as (worker, recorder):
        await until(lambda: worker.ready)
        worker.kill("stuck")
        worker.kill("another reason")
        await worker.reaped
        await until(lambda: worker.ended)
        await asyncio.sleep(0)
        assert (worker.reason, recorder.calls) == ("stuck", [("came", "cpu"), ("went", []), ("accounted for", [])])
