"""Admission: callers, what each has in work, and the refusal of more tasks than are held."""

from __future__ import annotations

import math
from typing import Final

from service.errors import Refusal, full

#: seconds that a client is told to wait, at most
_LONGEST_WAIT: Final = 60
#: the weight of the last look in the rate of replies
_NEW: Final = 0.3


class Admission:
    """Count of what is held against `jobs`, which refuses."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._rate = 0.0
        self._replies = 0
        self._looked = 0.0

    def full(self, jobs: int) -> bool:
        """Whether so many tasks are all that are held."""
        return jobs >= self._jobs

    def crowded(self, jobs: int) -> Refusal:
        """The refusal of one task more."""
        return full(jobs, self._wait(jobs))

    @staticmethod
    def infeasible(needed: float, left: float) -> Refusal:
        """The refusal of a task that would be done in `needed` seconds, and has `left`."""
        detail = f"what waits already would take this request to {needed:.3g} s, and it has {left:.3g} s"
        return Refusal("queue_full", detail, retry_after=min(_LONGEST_WAIT, max(1, math.ceil(needed - left))))

    def replied(self) -> None:
        """A task is done with."""
        self._replies += 1

    def look(self, now: float) -> None:
        """Measure the rate of replies since the last look."""
        if self._looked:
            rate = self._replies / (now - self._looked)
            self._rate = self._rate * (1 - _NEW) + rate * _NEW
        self._looked = now
        self._replies = 0

    def _wait(self, jobs: int) -> int:
        """Whole seconds until half of what waits is done, as fast as tasks were done lately."""
        return min(_LONGEST_WAIT, max(1, math.ceil(jobs / (2 * self._rate)))) if self._rate else 1
