"""A worker process as the front sees it: what goes down its socket, what comes up, and how it ends."""

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

#: a process that says what it was told to as it begins, and is told the settings and more until the socket is closed
PROGRAM = """
import os, socket, sys
said, name, jobs = bytes.fromhex(sys.argv[1]), sys.argv[2], socket.socket(fileno=int(sys.argv[3]))
jobs.sendall(said)
with open(name, "wb", 0) as heard:
    heard.write(os.environ.get("GRADSERVE_TEST_TOLD", "").encode() + b"|")
    while data := jobs.recv(1 << 20):
        heard.write(data)
"""


class Noted:
    """A supervisor and whoever gives the workers jobs: what was said to them."""

    residents: dict[tuple[str, str], Any] = {}  # noqa: RUF012 - nothing is ever in it
    mapped_limit = float("inf")

    def __init__(self) -> None:
        self.said: list[Any] = []

    def became_ready(self, worker: WorkerProcess) -> None:
        self.said.append(("came", worker.device))

    def exited(self, worker: WorkerProcess) -> None:
        self.said.append(("went", [ticket.slot for ticket in worker.tickets]))

    def signalled(self, worker: WorkerProcess, number: int, said: LastWords) -> None:
        self.said.append(("signalled", number))

    def accounted_for(self, worker: WorkerProcess) -> None:
        self.said.append(("accounted for", [ticket.slot for ticket in worker.tickets]))

    def replied(self, worker: WorkerProcess, ticket: Ticket, reply: Reply, seconds: float) -> None:
        self.said.append((ticket, reply.body, seconds))

    def skipped(self, ticket: Ticket) -> None:
        self.said.append(("skipped", ticket))


@asynccontextmanager
async def process(folder: Any, *said: bytes) -> AsyncIterator[tuple[WorkerProcess, Noted]]:
    """One that says so, and the rest once it is ready."""
    noted = Noted()
    spoken = b"".join([frames.text(frames.READY, "cpu"), *said])
    command: Sequence[str] = (sys.executable, "-S", "-E", "-c", PROGRAM, spoken.hex(), str(folder / "heard"))
    worker = WorkerProcess(noted, cast("Any", noted), "the settings", command, {"GRADSERVE_TEST_TOLD": "environment"})
    worker.start()
    try:
        yield worker, noted
    finally:
        if not worker.reaped.done():
            worker.kill("over")
        await worker.reaped
        await until(lambda: worker.ended)


def ticket() -> Ticket:
    return Ticket(job({}), Account("a"), lambda _: None, 0.0)


def heard(folder: Any) -> tuple[bytes, list[int]]:
    """The environment that it saw, and the kinds of frames that it was sent."""
    environment, _, told = (folder / "heard").read_bytes().partition(b"|")
    return environment, [kind for kind, *_ in Inbox().feed(told)]


@running
async def test_it_is_told_the_settings_first_and_ends_when_it_is_let_finish(tmp_path: Any) -> None:
    async with process(tmp_path) as (worker, noted):
        assert (worker.ready, worker.ended, worker.idle) == (False, False, True)
        await until(lambda: worker.ready)
        worker.send(ticket())
        worker.finish("age")
        worker.send_frame(frames.note(frames.FORGET, 1))  # which it does not hear any more
        await worker.reaped
        await until(lambda: worker.ended)
        assert (worker.reason, worker.ready) == ("age", False)
        assert noted.said == [("came", "cpu"), ("went", [SLOTS - 1]), ("accounted for", [SLOTS - 1])]
        assert heard(tmp_path) == (b"environment", [frames.SETTINGS, frames.TASK])


@running
async def test_its_replies_come_to_the_jobs_of_their_slots(tmp_path: Any) -> None:
    body = b"answer"
    said = reply_frame(SLOTS - 1, Reply(200, JSON, [body]), BodyPlace(0, len(body)), 1.0, 3.5)
    async with process(tmp_path, said, frames.note(frames.SKIPPED, SLOTS - 2)) as (worker, noted):
        first, second = ticket(), ticket()
        for each in (first, second):
            worker.send(each)
        worker.long = first
        assert (worker.sent, worker.tickets, worker.idle) == (2, [second, first], False)
        await until(lambda: worker.idle)
        assert noted.said == [("came", "cpu"), (first, body, 2.5), ("skipped", second)]
        assert (worker.served, worker.sent) == (1, 0)
        assert worker.long is None


@running
async def test_what_is_stopped_or_begun_is_said_on_the_page(tmp_path: Any) -> None:
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
async def test_a_signal_that_was_not_ours_is_told_once_it_is_known(tmp_path: Any) -> None:
    async with process(tmp_path) as (worker, noted):
        await until(lambda: worker.ready)
        os.kill(worker.pid, signal.SIGABRT)
        await until(lambda: len(noted.said) == 4)
        assert noted.said[1:] == [("went", []), ("signalled", signal.SIGABRT), ("accounted for", [])]


@running
async def test_one_that_we_kill_is_no_incident(tmp_path: Any) -> None:
    async with process(tmp_path) as (worker, noted):
        await until(lambda: worker.ready)
        worker.kill("stuck")
        worker.kill("another reason")
        await worker.reaped
        await until(lambda: worker.ended)
        await asyncio.sleep(0)
        assert (worker.reason, noted.said) == ("stuck", [("came", "cpu"), ("went", []), ("accounted for", [])])
