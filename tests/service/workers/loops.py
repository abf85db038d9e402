"""A worker's loop in this process: what the front sends it at once, and all that it says to that."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from service.workers import frames
from service.workers.frames import BodyPlace, Inbox
from service.workers.shared_memory import ControlPage, DescriptorChannel, Vitals
from service.workers.task import Task, TaskResult
from service.workers.worker_main import Opened, WorkerLoop
from tests.service.workers.pools import job


class Loop:
    """The two ends of a worker, and its page."""

    def __init__(self, work: Callable[[Task, float | None], TaskResult], **stated: Any) -> None:
        self.page = ControlPage.create()
        self.opened = Opened(work, "cpu", lambda: Vitals(3, 4), **stated)
        self.bodies: dict[int, bytes] = {}

    def say(self, *sent: bytes) -> list[tuple[int, Any]]:
        """Of each frame that comes: its kind, and what it says."""
        (front, back), (ours, theirs) = socket.socketpair(), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        found: list[tuple[int, Any]] = []
        with front, back, ours, theirs:
            front.sendall(b"".join(sent))
            front.shutdown(socket.SHUT_WR)
            WorkerLoop(back, DescriptorChannel(theirs), self.page, self.opened).serve()
            back.close()
            inbox, channel = Inbox(), DescriptorChannel(ours)
            while data := front.recv(1 << 20):
                found += [(kind, self._read(kind, frame, at, channel)) for kind, frame, at in inbox.feed(data)]
        self.page.close()
        return found

    def _read(self, kind: int, frame: bytes, at: int, channel: DescriptorChannel) -> Any:
        if kind == frames.REPLY:
            slot = frames.slot_of(frame, at)
            reply, buffer, nbytes, *_ = frames.read_reply(frame, at, 0.0)
            body = bytes(channel.body(buffer, nbytes)) if buffer else reply.body
            return slot, body
        if kind in frames.NOT_DONE:
            return frames.slot_of(frame, at), frames.read_not_done(frame, at)[0]
        return frames.read_note(frame, at)


def sent(slot: int, body: bytes = b"{}", most: float | None = 1.0, **stated: Any) -> bytes:
    """A job in a slot, as the front sends it."""
    return frames.task_frame(slot, job(body, **stated), BodyPlace(0, len(body)), most, None)
