"""Counts of durations by size, as Prometheus keeps them, at a fraction of a microsecond each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

#: seconds, three a decade: from a part of a small call to the longest time that a request may have by default
BOUNDS: Final = (
    1e-05, 2e-05, 5e-05, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0, 30.0,
)  # fmt: skip


class Histogram:
    """Counts of durations that were at most each of BOUNDS, and their sum in seconds."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    @staticmethod
    def add_each(histograms: Iterable[Histogram], durations: Iterable[float]) -> None:
        """Count one of the durations, in seconds, in each: for every request, and less than as many calls."""
        for histogram, seconds in zip(histograms, durations, strict=True):
            histogram.counts[bisect_left(BOUNDS, seconds)] += 1
            histogram.total += seconds

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Each bound as Prometheus writes it, and how many are at most that; "+Inf" is all."""
        return zip((*map(str, BOUNDS), "+Inf"), accumulate(self.counts), strict=True)
