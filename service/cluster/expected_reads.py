"""Tensors that jobs are expected to read, by what jobs like them have read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from service.cluster.recent import RecentlyUsed
from service.state.tensors import TensorVersion
from service.transport.job import Job

#: bytes at the beginning of a body by which jobs are alike that are of no registered graph
_BEGINNING: Final = 256
#: kinds of jobs that are remembered
_KINDS: Final = 1024


@dataclass
class Expectation:
    """Names that jobs of a kind read, the versions that the last one found, and whether the one before found these."""

    names: Sequence[str]
    etags: Mapping[str, str] = field(default_factory=dict)
    is_steady: bool = False

    def found(self, versions: Mapping[str, TensorVersion]) -> None:
        """One has found these."""
        etags = etags_of(versions)
        self.is_steady, self.etags = etags == self.etags, etags


class ExpectedReads:
    """Memory of what jobs have asked for, by their graphs or beginnings; what is wrong is asked once more."""

    def __init__(self) -> None:
        self._kinds: RecentlyUsed[Hashable, Expectation] = RecentlyUsed(_KINDS, lambda expectation: 1)

    def of(self, job: Job) -> Expectation | None:
        """What a job is expected to read, where that is known."""
        return self._kinds.find(_kind_of(job))

    def learn(self, job: Job, names: Sequence[str]) -> None:
        """A job has asked for these."""
        self._kinds.put(_kind_of(job), Expectation(names))


def etags_of(versions: Mapping[str, TensorVersion]) -> Mapping[str, str]:
    """The etags of versions by the names of the tensors."""
    return {name: version.etag for name, version in versions.items()}


def _kind_of(job: Job) -> Hashable:
    return job.namespace, job.call, job.graph or bytes(job.body[:_BEGINNING])
