"""Tensors that jobs are expected to read, by what jobs like them have read."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from service.cluster.recent import RecentlyUsed
from service.transport.job import Job

#: bytes at the beginning of a body by which jobs are alike that are of no registered graph
_BEGINNING: Final = 256
#: kinds of jobs that are remembered
_KINDS: Final = 1024


class ExpectedReads:
    """The names that jobs of the same graph have asked for, or that began alike; what is wrong is asked once more."""

    def __init__(self) -> None:
        self._names: RecentlyUsed[Hashable, Sequence[str]] = RecentlyUsed(_KINDS, lambda names: 1)

    def of(self, job: Job) -> Sequence[str]:
        """What a job is expected to read: nothing, where that is not known."""
        return self._names.find(_kind_of(job)) or ()

    def learn(self, job: Job, names: Sequence[str]) -> None:
        """A job has asked for these."""
        self._names.put(_kind_of(job), names)


def _kind_of(job: Job) -> Hashable:
    return job.namespace, job.call, job.graph or bytes(job.body[:_BEGINNING])
