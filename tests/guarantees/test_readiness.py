"""Guarantee 19: once `/health/ready` returns 200, no call waits for a worker to start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.guarantees.figures import Figures
from tests.guarantees.jobs import feed, node, request, small
from tests.guarantees.started import Started
from tests.guarantees.talk import once

pytestmark = pytest.mark.guarantee(19)
STARTS = 3
#: number of processes per processor that only keep it busy
BURNERS = 4


@pytest.fixture
def _busy_machine() -> Iterator[None]:
    """Keep the machine busy, so that starting a worker takes long."""
    count = BURNERS * len(os.sched_getaffinity(0))
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    yield
    for burner in burners:
        burner.kill()
        burner.wait()


@pytest.mark.usefixtures("_busy_machine")
def test_first_calls_after_ready_do_not_wait_for_a_start(figures: Figures) -> None:
    """Send a small call and one of unknown cost, which goes to a worker of another kind."""
    unknown = request([node("parameter"), *(node("sin", i) for i in range(40))], [feed(0, [], [0.5])])
    calls, starts, failed = [], [], 0
    for _ in range(STARTS):
        began = time.monotonic()
        server = Started()
        try:
            while once(server.address, "/health/ready", method="GET").status != 200:
                pass
            starts.append(time.monotonic() - began)
            for body in (small(), unknown):
                sent = time.monotonic()
                failed += once(server.address, "/v1/gradients", body).status != 200
                calls.append(time.monotonic() - sent)
        finally:
            server.stop()
    note = f"starts of {min(starts):.1f} to {max(starts):.1f} s, calls of at most {max(calls):.2f} s"
    figures.at_most(f"first calls after ready: failed, of {len(calls)}", failed, 0, "", note)
    figures.at_most(
        "first calls after ready: slowest, as a fraction of a start", round(max(calls) / min(starts), 3), 0.25, "", note
    )
