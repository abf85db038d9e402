"""Context of a task while a worker has it: its deadline, and the times at which its parts ended."""

from __future__ import annotations

from time import monotonic, perf_counter
from typing import Final

from engine import Deadline
from service.facades.foreign_call import OwnRequest
from service.workers.task import Estimate, Task, Timings

#: seconds that planning may take even where what is over a time is not to be run: it is done once
PLANNING: Final = 0.05
#: what is expected of a task that was not planned in that time
UNPLANNED: Final = Estimate(1.0, 0, 0)


class TaskContext:
    """A task from the moment on that a worker takes it up; what takes longer than `most_seconds` is not to be run."""

    __slots__ = ("_backward", "_marks", "deadline", "most_seconds", "own", "task")

    def __init__(self, task: Task, most_seconds: float | None) -> None:
        self._marks = [perf_counter()]
        self._backward = 0.0
        self.task = task
        self.most_seconds = most_seconds
        #: what it comes to, where it is of another protocol
        self.own: OwnRequest | None = None
        self.deadline = Deadline(task.timeout, start=task.expires - task.timeout, stop=task.stop)

    def patience(self, seconds: float) -> Deadline:
        """Return the deadline of a part of the work that is to take no longer than this, if the task is to be short."""
        if self.most_seconds is None:
            return self.deadline
        start = monotonic()
        return Deadline(max(0.0, min(seconds, self.task.expires - start)), start, self.task.stop)

    @property
    def is_reading(self) -> bool:
        """Whether the request is still being read: none of its parts is over."""
        return len(self._marks) == 1

    def is_too_long(self, cost: Estimate, patience: float = 0.0) -> bool:
        """Whether this is not to be done now. What takes no longer than `patience` always is."""
        return self.most_seconds is not None and cost.seconds > max(self.most_seconds, patience)

    def mark(self) -> float:
        """Note the end of a part, decoding, planning, or execution, and return its time."""
        now = perf_counter()
        self._marks.append(now)
        return now

    def mark_read(self) -> None:
        """Note the end of decoding, where nothing is to be planned, nor executed."""
        for _ in ("decoding", "planning", "execution"):
            self.mark()

    def ran(self) -> float:
        """Note the end of execution, and return its time."""
        if self.deadline.turned is not None:
            self._backward = monotonic() - self.deadline.turned
        return self.mark()

    def timings(self) -> Timings:
        """Return the times of all parts, now that the last one is over, which is encoding."""
        began, decoded, planned, executed = self._marks
        ended = perf_counter()
        return Timings(0.0, decoded - began, planned - decoded, executed - planned, self._backward, ended - executed)
