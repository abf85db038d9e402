"""Guarantee 13: memory does not grow during 100,000 mixed requests, or 60,000 loops. `make soak` sends a million."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.guarantees.conftest import judge
from tests.guarantees.figures import Figures
from tests.guarantees.known import Maker, looped
from tests.guarantees.probe import probing
from tests.guarantees.soak import FLOOR, run
from tests.guarantees.started import Started

pytestmark = pytest.mark.guarantee(13)
REQUESTS, LOOPS = 100_000, 60_000
MIB = 1 << 20


def test_memory_does_not_grow(start: Callable[..., Started], figures: Figures) -> None:
    _soak(start(), figures, REQUESTS, "mixed")


def test_memory_does_not_grow_with_loops(start: Callable[..., Started], figures: Figures) -> None:
    _soak(start(), figures, LOOPS, "loops", [looped])


def _soak(server: Started, figures: Figures, requests: int, name: str, kinds: Sequence[Maker] | None = None) -> None:
    with probing(server.address) as seen:
        soaked = run(server, requests, kinds)
    note = f"{soaked.trend}; {soaked.requests} requests at {soaked.rate:.0f} per second"
    figures.at_most(f"{name}: wrong responses", len(soaked.wrong), 0, "", "; ".join(soaked.wrong[:3]))
    least = round(max(0.0, soaked.trend.low) / MIB, 2)
    figures.at_most(
        f"{name}: memory growth in the second half, lower end of the 99 % interval", least, FLOOR / MIB, "MiB", note
    )
    judge(seen, f"soak of {requests} requests ({name})", figures.test)
