"""Guarantee 4: `/health/live` responds within 100 ms under any load. The fixture `attacked` measures it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.guarantees import oversized, processes
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import small, speed
from tests.guarantees.started import Started
from tests.guarantees.talk import SAFETENSORS, Connection, Hangup, once

pytestmark = pytest.mark.guarantee(4)


def together(count: int, work: Callable[[int], object]) -> None:
    """Run `work` in `count` threads, each with its number, and wait for all of them."""
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_workers_run_at_lower_priority_than_the_front(server: Started, figures: Figures) -> None:
    lower = [processes.nice(pid) - processes.nice(server.pid) for pid in server.workers]
    figures.at_least("difference in nice value between workers and front", min(lower, default=0), 1, "")


def test_idle_server(attacked: Started) -> None:
    """The baseline for the other tests."""
    for _ in range(300):
        once(attacked.address, "/health/live", method="GET")


def test_all_workers_busy(attacked: Started) -> None:
    interruptible, uninterruptible = (
        speed(attacked.address).interruptible(2),
        speed(attacked.address).uninterruptible(2),
    )
    together(8, lambda i: once(attacked.address, "/v1/forward", interruptible if i % 2 else uninterruptible))


@pytest.mark.parametrize("name", ["a million tiny nodes", "40 MB of numbers", "a million keys"])
def test_concurrent_large_bodies(attacked: Started, name: str) -> None:
    body = oversized.LARGE[name]()
    together(4, lambda i: once(attacked.address, "/v1/gradients", body))


def test_flood_of_small_calls(attacked: Started) -> None:
    def ask(_: int) -> None:
        with Connection(attacked.address) as connection:
            for _ in range(150):
                connection.ask("/v1/gradients", small())

    together(32, ask)


def test_flood_of_connections(attacked: Started) -> None:
    def ask(_: int) -> None:
        for _ in range(100):
            once(attacked.address, "/v1/gradients", small())

    together(16, ask)


def test_truncated_large_binary_bodies(attacked: Started) -> None:
    def ask(_: int) -> None:
        for _ in range(3):
            with Connection(attacked.address) as connection:
                head = b"POST /v1/forward HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000000\r\n"
                connection.send(head + b"Content-Type: " + SAFETENSORS.encode() + b"\r\n\r\n")
                try:
                    for _ in range(40):
                        connection.send(bytes(1 << 20))
                except (OSError, Hangup):
                    return

    together(4, ask)


def test_pipelined_requests(attacked: Started) -> None:
    get = b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n"
    sent = get % b"/v1/ops" * 200 + get % b"/openapi.json" * 100

    def ask(_: int) -> None:
        with Connection(attacked.address) as connection:
            threading.Thread(target=connection.send, args=(sent,), daemon=True).start()
            for _ in range(300):
                assert connection.answer().status == 200

    together(4, ask)
