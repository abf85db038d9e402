"""A worker process from its start to its end: it reads the settings, opens the device, and takes tasks from a socket.

Tasks are executed one by one. Replies to tasks that came together are sent together.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

from engine.executors.witness import witness
from service.logs import begin_log
from service.settings import Settings
from service.transport import frames
from service.transport.control_page import ControlPage
from service.transport.frames import Inbox
from service.transport.shared_buffers import DescriptorChannel
from service.worker.sandbox import behave, die_with_parent
from service.worker.worker_loop import READ, Opened, WorkerLoop

#: makes the work of a process
OpenDevice = Callable[[Settings], Opened]


def run_worker(make: OpenDevice) -> None:
    """Serve the front until it closes the socket. The arguments are the descriptors that it passed."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group, but it is the front that ends us
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    jobs, descriptors, memory = map(int, sys.argv[1:])
    front = socket.socket(fileno=jobs)
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
        channel, page = DescriptorChannel(socket.socket(fileno=descriptors)), ControlPage(memory)
        witness.attach(page.witness)
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
