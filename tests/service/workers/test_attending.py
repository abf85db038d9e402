"""A worker process from start to exit: it reads its settings, reports its device or its failure, and exits."""

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

#: opens a device that echoes, or fails if the settings say so
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


def run_process(first: bytes, *then: bytes) -> tuple[int, list[tuple[int, str]]]:
    """Send `first` to a process, and `then` after its first reply; return the exit status and the replies."""
    (front, back), (ours, theirs), page = socket.socketpair(), socket.socketpair(), ControlPage.create()
    with front, back, ours, theirs:
        passed = back.fileno(), theirs.fileno(), page.fd
        command = [sys.executable, "-c", PROGRAM, *map(str, passed)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
        process = subprocess.Popen(command, pass_fds=passed, cwd=ROOT, env=environment)
        back.close()
        page.close()
        front.sendall(first)
        inbox, replies = Inbox(), []
        while data := front.recv(1 << 20):
            for kind, frame, offset in inbox.feed(data):
                is_text = kind in (frames.READY, frames.FAILED)
                replies.append(
                    (kind, frames.read_text(frame, offset) if is_text else str(frames.slot_of(frame, offset)))
                )
            if then and len(replies) == 1:
                front.sendall(b"".join(then))
                front.shutdown(socket.SHUT_WR)
        return process.wait(), replies


def settings(workers: int) -> bytes:
    return frames.text(frames.SETTINGS, Settings(device="cpu", workers=workers).model_dump_json(exclude={"api_key"}))


@pytest.mark.slow
def test_worker_reports_its_device_and_serves_until_eof() -> None:
    assert run_process(settings(1), sent(3)) == (0, [(frames.READY, "the device"), (frames.REPLY, "3")])


@pytest.mark.slow
def test_worker_without_a_device_reports_why_and_exits() -> None:
    assert run_process(settings(7)) == (2, [(frames.FAILED, "there is no such device")])
