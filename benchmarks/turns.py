"""Timing in turns: each side has bursts of its own, after a pause in which what another one left spinning stops."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Call = Callable[[], object]
#: makes so many calls in a row, and returns the seconds of one
Burst = Callable[[int], float]

BURST, PAUSE = 0.06, 0.03
#: a call that takes less has one call before its burst that is not counted, to bring its data and threads back
BRIEF = 0.02
FEWEST = 5


@dataclass(frozen=True)
class Spread:
    """Milliseconds of one call: the median over bursts, and the quartiles."""

    median: float
    lower: float
    upper: float


def burst_of(call: Call, count: int) -> float:
    """Seconds of one call, of `count` in a row."""
    if count * BRIEF >= BURST:
        call()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def bursts(sides: Mapping[str, Burst], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Milliseconds of a call, burst by burst; the k-th of all sides are of one round. Each begins with another side.

    At most `rounds`, and fewer where they would take more than `seconds`, but at least five.
    """
    counts = {name: _calls_in_a_burst(side) for name, side in sides.items()}
    names = list(sides)
    times: dict[str, list[float]] = {name: [] for name in names}
    start = time.perf_counter()
    for i in range(rounds):
        if i >= FEWEST and time.perf_counter() - start > seconds:
            break
        turn = i % len(names)
        for name in names[turn:] + names[:turn]:
            time.sleep(PAUSE)
            times[name].append(1000 * sides[name](counts[name]))
    return times


def _calls_in_a_burst(side: Burst) -> int:
    """By the second of two calls, and then by as many as seemed enough."""
    side(1)
    first = max(1, int(BURST / max(side(1), 1e-7)))
    return max(1, int(BURST / max(side(first), 1e-7)))


def spread(times: list[float]) -> Spread:
    """The quartiles of two or more."""
    lower, median, upper = statistics.quantiles(times, n=4, method="inclusive")
    return Spread(median, lower, upper)


def ratio_of_medians(ours: list[float], theirs: list[float]) -> float:
    """How many times their time ours is, by the medians."""
    return statistics.median(ours) / statistics.median(theirs)


def median_of_ratios(ours: list[float], theirs: list[float]) -> float:
    """The same, by the middle one of the rounds' ratios: what slowed a whole round down does not count."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def in_turns(calls: Mapping[str, Call], repeats: int) -> dict[str, float]:
    """Median milliseconds of each of several slow calls, one of each in turn, after two that are not counted."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for i in range(repeats + 2):
        for name, call in calls.items():
            took = 1000 * burst_of(call, 1)
            if i >= 2:
                times[name].append(took)
    return {name: statistics.median(each) for name, each in times.items()}
