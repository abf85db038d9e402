"""Guarantee 5: excess load gets an early 503 with Retry-After, and accepted requests get 80 % of capacity."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from tests.guarantees import oversized
from tests.guarantees.conftest import judge
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import in_one_step, small, speed
from tests.guarantees.probe import probing
from tests.guarantees.started import Started
from tests.guarantees.talk import Address, Answer, Connection, Hangup, posted
from tests.guarantees.test_liveness import together

pytestmark = pytest.mark.guarantee(5)
REQUESTS, SECONDS, DEADLINE = 60, 0.85, 10.0
#: number of concurrent requests when the capacity is measured: enough that no worker waits
CONCURRENT = 4


@dataclass(frozen=True)
class Outcome:
    """The outcome of a request: status, seconds until the response, and whether it has Retry-After."""

    status: int
    seconds: float
    advised: bool


def at_once(address: Address, body: bytes, count: int, path: str = "/v1/forward") -> list[Outcome]:
    """Send `count` equal requests at the same moment, each on an open connection."""
    gate, outcomes = threading.Barrier(count), list[Outcome]()

    def ask(_: int) -> None:
        with Connection(address) as connection:
            gate.wait()
            start = time.perf_counter()
            try:
                answer = connection.ask(path, body)
            except (OSError, Hangup):
                outcomes.append(Outcome(0, time.perf_counter() - start, advised=False))
                return
            advice = answer.headers.get("retry-after", "")
            outcomes.append(Outcome(answer.status, answer.seconds, advised=advice.isdigit() and int(advice) > 0))

    together(count, ask)
    return outcomes


def rate(address: Address, body: bytes, requests: int) -> float:
    """The requests per second of a server that is always busy but never overloaded."""
    start = time.perf_counter()

    def ask(_: int) -> None:
        with Connection(address) as connection:
            for _ in range(requests // CONCURRENT):
                assert connection.ask("/v1/forward", body).status == 200

    together(CONCURRENT, ask)
    return requests / (time.perf_counter() - start)


@pytest.mark.parametrize("kind", ["interruptible", "uninterruptible"])
def test_excess_requests_are_refused_early(start: Callable[..., Started], figures: Figures, kind: str) -> None:
    measuring = start()
    body = getattr(speed(measuring.address), kind)(SECONDS)
    capacity = rate(measuring.address, body, 16)
    measuring.stop()
    fresh = start("--timeout-ms", str(int(1000 * DEADLINE)))
    with probing(fresh.address) as seen:
        outcomes = at_once(fresh.address, body, REQUESTS)
    done = [outcome for outcome in outcomes if outcome.status == 200]
    refused = [outcome for outcome in outcomes if outcome.status == 503]
    others = [outcome.status for outcome in outcomes if outcome.status not in (200, 503)]
    note = f"{len(done)} done, {len(refused)} refused; capacity {capacity:.2f} per second"
    name = f"{REQUESTS} concurrent slow requests ({kind})"
    figures.at_most(f"{name}: statuses other than 200 and 503", len(others), 0, "", f"{sorted(others)}; {note}")
    figures.at_most(f"{name}: slowest refusal", _slowest(refused), 500, "ms", note)
    figures.at_most(f"{name}: refusals without Retry-After", sum(not r.advised for r in refused), 0, "")
    share = len(done) / max((outcome.seconds for outcome in done), default=1e9) / capacity
    figures.at_least(f"{name}: throughput of accepted ones, as a fraction of capacity", round(share, 2), 0.8, "", note)
    judge(seen, f"{REQUESTS} concurrent slow requests ({kind})", figures.test)


def test_full_queue_refuses_at_once(start: Callable[..., Started], figures: Figures) -> None:
    """400 small calls arrive at once while all workers are busy; the queue has four places."""
    server = start("--queue", "4")
    busy = speed(server.address).interruptible(4)
    with probing(server.address) as seen:
        background = threading.Thread(target=at_once, args=(server.address, busy, 6))
        background.start()
        time.sleep(1)
        outcomes = at_once(server.address, small(), 400, "/v1/gradients")
        background.join()
    refused = [outcome for outcome in outcomes if outcome.status == 503]
    others = [outcome.status for outcome in outcomes if outcome.status not in (200, 503)]
    note = f"{len(refused)} of {len(outcomes)} refused"
    figures.at_most(
        "400 concurrent small calls: statuses other than 200 and 503", len(others), 0, "", f"{sorted(others)}; {note}"
    )
    figures.at_most("400 concurrent small calls: slowest refusal", _slowest(refused), 500, "ms", note)
    judge(seen, "400 concurrent small calls at a full queue", figures.test)


def _slowest(outcomes: Sequence[Outcome | Answer]) -> float:
    return round(1000 * max((outcome.seconds for outcome in outcomes), default=0.0), 1)


def test_idle_server_refuses_nothing(start: Callable[..., Started], figures: Figures) -> None:
    """A lone request starts even if it may miss its deadline: the estimate may be wrong, and nothing else waits."""
    server = start()
    server.await_spare()
    with Connection(server.address) as connection:
        statuses = [
            connection.ask("/v1/forward?timeout_ms=1500", in_one_step(side)).status for side in (1024, 4096, 8192)
        ]
    figures.at_most("lone requests refused with 503, of 3", statuses.count(503), 0, "", str(statuses))


def test_slow_plans_do_not_delay_small_calls(start: Callable[..., Started], figures: Figures) -> None:
    """The requests look small until they are planned, and there are more of them than workers."""
    server = start()
    slow = [case for case in oversized.cases() if case.name.startswith(("depth", "derivatives: Hessian of a long"))] * 3
    with Connection(server.address) as connection:
        assert connection.ask("/v1/gradients", small()).status == 200
        waiting = [Connection(server.address) for _ in slow]
        for other, case in zip(waiting, slow, strict=True):
            other.send(posted(case.path, case.body))
        time.sleep(0.3)
        answers = [connection.ask("/v1/gradients", small()) for _ in range(10)]
    lost = [answer.status for answer in answers if answer.status != 200]
    figures.at_most("small calls during slow planning: statuses other than 200, of 10", len(lost), 0, "", str(lost))
    figures.at_most("small calls during slow planning: slowest", _slowest(answers), 1000, "ms")
