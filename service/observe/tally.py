"""Tally of requests, and histograms of durations. The front counts alone, so the totals are of all workers."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final, NamedTuple

from service.workers.task import Reply, Timings

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


#: the label of what is no computing call
OTHER: Final = "other"


class Holdings(NamedTuple):
    """Things kept for callers at this moment: tensors, graphs, models, their bytes, and writes that are not on disk."""

    tensors: int = 0
    tensor_bytes: int = 0
    graphs: int = 0
    graph_bytes: int = 0
    models: int = 0
    model_bytes: int = 0
    behind: int = 0


class ClusterFigures(NamedTuple):
    """Figures of a server of a cluster: shards that it has, that it took over, looks, what it asked others, by kind."""

    shards: int
    takeovers: int
    looks: int
    passed_on: Mapping[str, int]


class Tally:
    """Requests by call and outcome, how long they took and in which parts, and what their plans came from.

    Commits of what is kept, and requests that were denied, by why. `holdings` is asked at each scrape, and answers
    at once. All of it belongs to the event loop.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int, str]] = Counter()
        self.received = 0
        self.sent = 0
        self.seconds: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.timings = {name: Histogram() for name in Timings._fields}
        self.plans: Counter[bool] = Counter()
        self.commits: Counter[str] = Counter()
        self.commit_seconds = Histogram()
        self.denials: Counter[str] = Counter()
        self.holdings: Callable[[], Holdings] = Holdings
        #: of a server that shares its state
        self.cluster: Callable[[], ClusterFigures] | None = None

    def count(self, call: str | None, status: int, received: int, sent: int, seconds: float, facade: str = "") -> None:
        """Count a request that was answered, and bytes of its body and of the answer's; `facade` names its protocol."""
        label = call or OTHER
        self.requests[label, status, facade] += 1
        self.received += received
        self.sent += sent
        self.seconds[label].add(seconds)

    def count_work(self, reply: Reply) -> None:
        """Count the work for an answer."""
        Histogram.add_each(self.timings.values(), reply.timings)
        self.plans[reply.cached] += 1

    def committed(self, outcome: str, seconds: float) -> None:
        """Count a commit that ended: `written`, or the code of its refusal (store_full); seconds since it came."""
        self.commits[outcome] += 1
        self.commit_seconds.add(seconds)

    def denied(self, reason: str) -> None:
        """Count a request that its caller may not make, by its code: unauthenticated, forbidden, rate_limited."""
        self.denials[reason] += 1
