"""Counters and histograms, compared with independent counts."""

from __future__ import annotations

import random

import pytest

from service.observe.tally import BOUNDS, OTHER, Histogram, Tally
from service.workers.task import Reply, Timings


def test_histogram_buckets_are_cumulative() -> None:
    rng = random.Random(7)
    seconds = [10 ** rng.uniform(-6, 2) for _ in range(500)] + list(BOUNDS)
    histogram = Histogram()
    for each in seconds:
        histogram.add(each)
    buckets = dict(histogram.buckets())
    assert buckets.pop("+Inf") == len(seconds)
    assert buckets == {str(bound): sum(each <= bound for each in seconds) for bound in BOUNDS}
    assert histogram.total == pytest.approx(sum(seconds))


def test_requests_are_counted_by_call_and_status() -> None:
    tally = Tally()
    tally.count("gradients", 200, 10, 100, 0.5)
    tally.count("gradients", 200, 1, 2, 0.25)
    tally.count("gradients", 413, 4, 8, 0.0)
    tally.count(None, 404, 0, 16, 0.0)
    assert tally.requests == {("gradients", 200, ""): 2, ("gradients", 413, ""): 1, (OTHER, 404, ""): 1}
    assert (tally.received, tally.sent) == (15, 126)
    assert tally.seconds["gradients"].total == 0.75


def test_phases_are_counted_separately() -> None:
    tally = Tally()
    tally.count_work(Reply(200, "", [], timings=Timings(1, 2, 3, 4, 6, 5), cached=True))
    tally.count_work(Reply(200, "", [], timings=Timings(execute=4)))
    assert {name: histogram.total for name, histogram in tally.timings.items()} == {
        "waited": 1, "decode": 2, "plan": 3, "execute": 8, "backward": 6, "encode": 5,
    }  # fmt: skip
    assert tally.plans == {True: 1, False: 1}
