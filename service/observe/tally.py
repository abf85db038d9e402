"""What is counted of requests. The front counts alone, whatever the number of workers: so it is right over all."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Final

from service.compute.job import Phases, Reply
from service.observe.histogram import Histogram

#: the label of what is no computing call
OTHER: Final = "other"


class Tally:
    """Requests by call and outcome, how long they took and in which parts, and what their plans came from."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.received = 0
        self.sent = 0
        self.seconds: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.phases = {name: Histogram() for name in Phases._fields}
        self.plans: Counter[bool] = Counter()
        self.coalesced = 0

    def count(self, call: str | None, status: int, received: int, sent: int, seconds: float) -> None:
        """One request that was answered; bytes of its body and of the answer's."""
        label = call or OTHER
        self.requests[label, status] += 1
        self.received += received
        self.sent += sent
        self.seconds[label].add(seconds)

    def count_work(self, reply: Reply) -> None:
        """What a worker did for an answer."""
        for histogram, seconds in zip(self.phases.values(), reply.phases, strict=True):
            histogram.add(seconds)
        self.plans[reply.cached] += 1
        self.coalesced += reply.coalesced
