"""Request counters and duration histograms. Only the front counts, so the totals cover all workers."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final, NamedTuple

from service.workers.task import Reply, Timings

#: bucket bounds in seconds, three per decade: from a phase of a small call to the default timeout
BOUNDS: Final = (
    1e-05, 2e-05, 5e-05, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0, 30.0,
)  # fmt: skip


class Histogram:
    """Number of durations up to each of BOUNDS, and their sum in seconds."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    @staticmethod
    def add_each(histograms: Iterable[Histogram], durations: Iterable[float]) -> None:
        """Count one duration, in seconds, in each histogram. This runs for every request; it is cheaper than `add`."""
        for histogram, seconds in zip(histograms, durations, strict=True):
            histogram.counts[bisect_left(BOUNDS, seconds)] += 1
            histogram.total += seconds

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Return each bound as Prometheus writes it with its cumulative count; "+Inf" counts all."""
        return zip((*map(str, BOUNDS), "+Inf"), accumulate(self.counts), strict=True)


#: call label of a request that is not a computing call
OTHER: Final = "other"


class Holdings(NamedTuple):
    """Current numbers of stored tensors, graphs and models, their bytes, and writes that are not on disk yet."""

    tensors: int = 0
    tensor_bytes: int = 0
    graphs: int = 0
    graph_bytes: int = 0
    models: int = 0
    model_bytes: int = 0
    pending_writes: int = 0


class ClusterStats(NamedTuple):
    """Statistics of a cluster server: owned shards, takeovers, checks of the state, and requests passed on by kind.

    `moves` counts the shards that it has opened, by reason. `blind` is the number of owned shards whose store has not
    answered for three leases. `has_conflict` tells that another process answers at its address. `tensor_memory` is the
    number of bytes of tensors that are in memory.
    """

    shards: int
    takeovers: int
    state_checks: int
    forwarded: Mapping[str, int]
    moves: Mapping[str, int] = {}
    blind: int = 0
    has_conflict: bool = False
    tensor_memory: int = 0


class Tally:
    """Counters of requests by call and outcome, their durations and phases, and plan cache hits and misses.

    It also counts commits of stored data, and denied requests by reason. `holdings` is called at each scrape and must
    return immediately. Only the event loop may use a tally.
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
        #: statistics of the cluster, if the server shares its state
        self.cluster: Callable[[], ClusterStats] | None = None

    def count(self, call: str | None, status: int, received: int, sent: int, seconds: float, facade: str = "") -> None:
        """Count an answered request, with the bytes of its body and of its response; `facade` names its protocol."""
        label = call or OTHER
        self.requests[label, status, facade] += 1
        self.received += received
        self.sent += sent
        self.seconds[label].add(seconds)

    def count_work(self, reply: Reply) -> None:
        """Count the work of a worker for a request."""
        Histogram.add_each(self.timings.values(), reply.timings)
        self.plans[reply.cached] += 1

    def count_commit(self, outcome: str, seconds: float) -> None:
        """Count a finished commit by outcome: `written`, or the code of its refusal. `seconds` is its duration."""
        self.commits[outcome] += 1
        self.commit_seconds.add(seconds)

    def count_denial(self, reason: str) -> None:
        """Count a denied request by the code of its refusal: unauthenticated, forbidden, rate_limited."""
        self.denials[reason] += 1
