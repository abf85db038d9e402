"""What jobs are expected to take: as their plans say it, corrected by what was measured.

The front does not read bodies, so it knows a job by its kind: the call, the registered graph, the length, and the first
bytes where no graph says what follows. A kind that turned out to be long is remembered, and only such a one: most jobs
are short, and cost nothing here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final
from zlib import crc32

from service.compute.job import Estimate, Job

#: seconds that a job may take where others wait behind it
QUICK: Final = 0.002
#: bytes of a body that says too little to be run where short jobs are
LARGE_BODY: Final = 256 << 10
#: a job that was thought to be short, and takes longer than so many seconds, belongs to a long kind
MISJUDGED: Final = 0.02
#: kinds that are remembered
_KINDS: Final = 4096
_PREFIX: Final = 512
#: the weight of the last measurement
_NEW: Final = 0.3
#: bytes of a body that are read in a second, where nothing else is known
_READ_RATE: Final = 50e6
#: runs of a plan that take longer than those that follow: it is made in the first, and compiled beside the second
_WARMING: Final = 2
#: by what factor one measurement may differ from the cost model, to be believed
_MOST: Final = 4.0
#: measurements after which the cost model's correction is trusted, and what is added to it before and after
_TRUSTED: Final = 3
_UNSURE, _SURE = 1.25, 1.1


class _Kind:
    """What one long kind's plan says, and what its jobs took: seconds, 0 before one has been measured, and how many."""

    __slots__ = ("count", "last", "plan", "taken")

    def __init__(self, plan: Estimate) -> None:
        self.plan = plan
        self.taken = 0.0
        self.count = 0
        self.last: tuple[float, ...] = ()


class Experience:
    """Remembers what long jobs took."""

    def __init__(self) -> None:
        self._kinds: OrderedDict[Hashable, _Kind] = OrderedDict()
        self._factor = 1.0
        self._measured = 0

    @property
    def margin(self) -> float:
        """By how much more than is expected has to fit."""
        return _SURE if self._measured >= _TRUSTED else _UNSURE

    def known(self, job: Job) -> tuple[Hashable, Estimate | None]:
        """The job's kind, and what it takes, where that is known to be long. A large body is taken to be."""
        large = len(job.body) > LARGE_BODY
        if not (self._kinds or large):
            return None, None
        kind = kind_of(job)
        if found := self._kinds.get(kind):
            return kind, self._expected(found)
        return kind, Estimate(len(job.body) / _READ_RATE, 0, 0) if large else None

    def planned(self, kind: Hashable, plan: Estimate) -> Estimate:
        """A plan of this kind is estimated to be long: what it is expected to take."""
        found = self._kinds.setdefault(kind, _Kind(plan))
        found.plan = plan
        self._kinds.move_to_end(kind)
        if len(self._kinds) > _KINDS:
            self._kinds.popitem(last=False)
        return self._expected(found)

    def settled(self, kind: Hashable, workers: int) -> Estimate | None:
        """What a job takes at the least: each of the workers has planned its kind, and compiled it, and run it."""
        found = self._kinds.get(kind)
        if found is None or found.count <= _WARMING * workers:
            return None
        return found.plan._replace(seconds=min(found.last))

    def measured(self, kind: Hashable, expected: Estimate | None, seconds: float, *, planned: bool) -> None:
        """A job of this kind took so many seconds. One that turns out to be short is forgotten.

        Where it had to be `planned` first, and perhaps compiled, the next of its kind will take less.
        """
        found = self._kinds.get(kind)
        if seconds < QUICK / 2:
            self._kinds.pop(kind, None)
            return
        if found is None:
            self.planned(kind, (expected or Estimate(0, 0, 0))._replace(seconds=0.0))
            found = self._kinds[kind]
        self.calibrate(found.plan.seconds, seconds)
        found.count += 1
        found.last = (*found.last[-2:], seconds)
        if not planned or not found.plan.seconds:
            found.taken = found.taken * (1 - _NEW) + seconds * _NEW if found.taken else seconds

    def calibrate(self, estimated: float, measured: float) -> None:
        """The cost model said `estimated` seconds, and it took `measured`; a single one does not say much."""
        if estimated > 0:
            ratio = min(_MOST, max(1 / _MOST, measured / estimated))
            self._factor = self._factor * (1 - _NEW) + ratio * _NEW
            self._measured += 1

    def _expected(self, kind: _Kind) -> Estimate:
        return kind.plan._replace(seconds=kind.taken or kind.plan.seconds * self._factor)


def kind_of(job: Job) -> Hashable:
    """What is the same for jobs that are expected to take the same time."""
    if job.graph is not None:
        return job.call, job.graph, len(job.body)
    return job.call, len(job.body), crc32(bytes(job.body[:_PREFIX]))
