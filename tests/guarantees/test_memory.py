"""Thirteenth guarantee: memory does not grow, over 100,000 mixed requests. `make soak` sends a million."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.guarantees.conftest import judge
from tests.guarantees.figures import Figures
from tests.guarantees.probe import probing
from tests.guarantees.soak import FLOOR, run
from tests.guarantees.started import Started

pytestmark = pytest.mark.guarantee(13)
REQUESTS = 100_000
MIB = 1 << 20


def test_memory_does_not_grow(start: Callable[..., Started], figures: Figures) -> None:
    server = start()
    with probing(server.address) as seen:
        soaked = run(server, REQUESTS)
    note = f"{soaked.trend}; {soaked.requests} requests at {soaked.rate:.0f} a second"
    figures.at_most("wrong answers", len(soaked.wrong), 0, "", "; ".join(soaked.wrong[:3]))
    least = round(max(0.0, soaked.trend.low) / MIB, 2)
    figures.at_most("growth in the second half, at the least (99 %)", least, FLOOR / MIB, "MiB", note)
    judge(seen, f"a soak of {REQUESTS} requests", figures.test)
