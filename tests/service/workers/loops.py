"""A worker's loop in this process: frames that the front sends at once, and all frames that come back."""

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

    def exchange(self, *sent: bytes) -> list[tuple[int, Any]]:
        """Send frames; return the kind and content of each frame that comes back."""
        (front, back), (ours, theirs) = socket.socketpair(), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        received: list[tuple[int, Any]] = []
        with front, back, ours, theirs:
            front.sendall(b"".join(sent))
            front.shutdown(socket.SHUT_WR)
            WorkerLoop(back, DescriptorChannel(theirs), self.page, self.opened).serve()
            back.close()
            inbox, channel = Inbox(), DescriptorChannel(ours)
            while data := front.recv(1 << 20):
                received += [
                    (kind, self._read(kind, frame, offset, channel)) for kind, frame, offset in inbox.feed(data)
                ]
        self.page.close()
        return received

    def _read(self, kind: int, frame: bytes, offset: int, channel: DescriptorChannel) -> Any:
        if kind == frames.REPLY:
            slot = frames.slot_of(frame, offset)
            reply, buffer, nbytes, *_ = frames.read_reply(frame, offset, 0.0)
            body = bytes(channel.body(buffer, nbytes)) if buffer else reply.body
            return slot, body
        if kind in frames.NOT_DONE:
            return frames.slot_of(frame, offset), frames.read_not_done(frame, offset)[0]
        return frames.read_note(frame, offset)


def sent(slot: int, body: bytes = b"{}", most: float | None = 1.0, **stated: Any) -> bytes:
    """A job in a slot, as the front sends it."""
    return frames.task_frame(slot, job(body, **stated), BodyPlace(0, len(body)), most, None)
