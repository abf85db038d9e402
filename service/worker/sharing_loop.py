"""Inside a worker process that executes together what waits together: a batch of the socket's, and its replies."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from service.transport import frames
from service.transport.control_page import ControlPage
from service.transport.job import Reply
from service.transport.job_result import JobResult
from service.transport.shared_buffers import DescriptorChannel
from service.worker.sharing import FEWEST
from service.worker.worker_loop import Opened, WorkerLoop


class _Read(NamedTuple):
    """A job that was read, and its slot."""

    slot: int
    task: Any


class SharingLoop(WorkerLoop):
    """Loop over all jobs that are in the socket at once; what cannot be done together is done one by one."""

    def __init__(self, front: socket.socket, channel: DescriptorChannel, page: ControlPage, opened: Opened) -> None:
        super().__init__(front, channel, page, opened)
        assert opened.sharing is not None
        self._sharing = opened.sharing
        self._batch: list[tuple[bytes, int]] = []

    def _take_job(self, frame: bytes, at: int) -> None:
        self._batch.append((frame, at))

    def _end_batch(self) -> None:
        batch, self._batch = self._batch, []
        if len(batch) < FEWEST:
            for frame, at in batch:
                self._job(frame, at)
        else:
            self._share([read for frame, at in batch if (read := self._read_job(frame, at))])

    def _hear(self, frame: bytes, at: int) -> None:
        """What came before it is done with what was there: tensors that changed together are seen together."""
        self._end_batch()
        super()._hear(frame, at)

    def _read_job(self, frame: bytes, at: int) -> _Read | None:
        """A job after its first step; None where it is done."""
        slot, job, place, most_seconds = frames.read_job(frame, at)
        if place.buffer or most_seconds is None:  # large, or one that is to be alone
            self._job(frame, at)
            return None
        job.stop = self._page.stops[slot]
        job.resident = self._residents.of(job.namespace)
        if job.stop[0]:
            self._skip(slot)
            return None
        self._page.begin(slot, time.monotonic())
        task = self._sharing.read_job(job, most_seconds)
        self._page.end()
        if isinstance(task, JobResult):
            self._answer(slot, task)
            return None
        return _Read(slot, task)

    def _share(self, read: Sequence[_Read]) -> None:
        """The second step of all: first that of those who share it."""
        groups = self._sharing.groups([each.task for each in read])
        shared = {position for group in groups for position in group}
        for group in groups:
            self._run_group([read[position] for position in group])
        for position, each in enumerate(read):
            if position not in shared:
                self._finish(each)

    def _run_group(self, group: Sequence[_Read]) -> None:
        self._page.begin_together([each.slot for each in group], time.monotonic())
        replies = self._sharing.run_tasks([each.task for each in group])
        self._page.end()
        if replies is None:
            for each in group:
                self._finish(each)
        else:
            for each, reply in zip(group, replies, strict=True):
                self._answer(each.slot, reply)

    def _finish(self, each: _Read) -> None:
        if self._page.stops[each.slot][0]:
            self._skip(each.slot)
            return
        self._page.begin(each.slot, time.monotonic())
        reply = self._sharing.finish(each.task)
        self._page.end()
        self._answer(each.slot, reply)

    def _answer(self, slot: int, outcome: JobResult) -> None:
        """Say that the job was begun when it would have been, had it not been interrupted."""
        ended = time.monotonic()
        worked = outcome.timings.worked if isinstance(outcome, Reply) else 0.0
        self._done(slot, outcome, ended - worked, ended)
        self._hold(ended)
