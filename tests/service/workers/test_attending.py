"""A worker process from its start on: it hears its settings, says what it has opened or why it could not, and ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from service.core.settings import Settings
from service.workers import frames
from service.workers.frames import Inbox
from service.workers.shared_memory import ControlPage
from tests.conftest import ROOT
from tests.service.workers.loops import sent

#: opens what the settings name: a device that echoes, or none
PROGRAM = """
from service.workers.shared_memory import Vitals
from service.workers.task import Reply
from service.api.media import JSON
from service.workers.worker_main import run_worker
from service.workers.worker_main import Opened

def make(settings):
    if settings.workers == 7:
        raise RuntimeError("there is no such device")
    return Opened(lambda job, most: Reply(200, JSON, [bytes(job.body)]), "the device", lambda: Vitals(0, 0))

run_worker(make)
"""


def attended(first: bytes, *then: bytes) -> tuple[int, list[tuple[int, str]]]:
    """How a process ended that was told this, and the rest once it had an answer to that; and what it said."""
    (front, back), (ours, theirs), page = socket.socketpair(), socket.socketpair(), ControlPage.create()
    with front, back, ours, theirs:
        passed = back.fileno(), theirs.fileno(), page.fd
        command = [sys.executable, "-c", PROGRAM, *map(str, passed)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
        process = subprocess.Popen(command, pass_fds=passed, cwd=ROOT, env=environment)
        back.close()
        page.close()
        front.sendall(first)
        inbox, found = Inbox(), []
        while data := front.recv(1 << 20):
            for kind, frame, at in inbox.feed(data):
                is_text = kind in (frames.READY, frames.FAILED)
                found.append((kind, frames.read_text(frame, at) if is_text else str(frames.slot_of(frame, at))))
            if then and len(found) == 1:
                front.sendall(b"".join(then))
                front.shutdown(socket.SHUT_WR)
        return process.wait(), found


def settings(workers: int) -> bytes:
    return frames.text(frames.SETTINGS, Settings(device="cpu", workers=workers).model_dump_json(exclude={"api_key"}))


@pytest.mark.slow
def test_it_says_what_it_has_opened_does_its_jobs_and_ends_with_the_socket() -> None:
    assert attended(settings(1), sent(3)) == (0, [(frames.READY, "the device"), (frames.REPLY, "3")])


@pytest.mark.slow
def test_where_there_is_no_device_it_says_why_and_ends() -> None:
    assert attended(settings(7)) == (2, [(frames.FAILED, "there is no such device")])
