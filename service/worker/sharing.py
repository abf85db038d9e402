"""Sharing of work by several jobs that are done as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

from service.transport.job import Job, Reply
from service.transport.job_result import JobResult

#: jobs that wait, from which on it is looked whether they can be executed together
FEWEST: Final = 4

_Task = TypeVar("_Task")


class Sharing(Protocol[_Task]):
    """Doer of jobs in two steps, so that some of them can have the second one in common."""

    def read_job(self, job: Job, most_seconds: float | None) -> _Task | JobResult:
        """The first step, or what has become of the job where there is no second one."""

    def groups(self, tasks: Sequence[_Task]) -> list[list[int]]:
        """The positions of those that can be done as one; others are not named."""

    def run_tasks(self, tasks: Sequence[_Task]) -> list[Reply] | None:
        """Do a group as one; None where that was not to be, and each is to be done alone."""

    def finish(self, task: _Task) -> JobResult:
        """Do one alone."""
