"""Guarantee 6: no 200 begins after the deadline, and a 504 arrives at most a second after it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest

from tests.guarantees.figures import Figures
from tests.guarantees.jobs import MachineSpeed, small, speed
from tests.guarantees.loops import endless
from tests.guarantees.oversized import numbers
from tests.guarantees.started import Started
from tests.guarantees.talk import Answer, Connection, Hangup, head, once
from tests.guarantees.test_liveness import together

pytestmark = pytest.mark.guarantee(6)
#: allowance in seconds for the round trip between client and server
ROUND_TRIP = 0.02


def send(server: Started, body: bytes, seconds: float, call: str = "forward") -> Answer:
    """Send a request with a deadline."""
    return once(server.address, f"/v1/{call}?timeout_ms={max(1, round(1000 * seconds))}", body)


def slow_bodies(machine: MachineSpeed) -> dict[str, bytes]:
    """Bodies that take three seconds or more, in parsing or in execution."""
    return {
        "many steps": machine.interruptible(4),
        "one long step": machine.uninterruptible(6),
        "a large body": numbers(8_000_000),
    }


def test_504_arrives_on_time(attacked: Started, figures: Figures) -> None:
    machine = speed(attacked.address)
    outcomes = {}
    for name, body in slow_bodies(machine).items():
        for deadline in (0.2, 0.5, 1.0):
            answer = send(attacked, body, deadline, "gradients" if name == "a large body" else "forward")
            if answer.seconds > deadline or answer.status == 504:  # otherwise the error was found in time
                outcomes[f"{name}, {deadline:g} s"] = (answer.status, answer.seconds - deadline)
            time.sleep(0.5)
    _record(figures, "long requests", outcomes)


def test_504_from_a_loop_arrives_on_time(attacked: Started, figures: Figures) -> None:
    """The loops run in machine code and in Python, and their workers survive."""
    outcomes, missing = {}, 0
    once(attacked.address, "/v1/gradients", small())
    attacked.await_spare()
    for name, body in endless().items():
        for deadline in (0.3, 1.0):
            before = set(attacked.workers)
            answer = send(attacked, body, deadline)
            outcomes[f"{name}, {deadline:g} s"] = (answer.status, answer.seconds - deadline)
            assert once(attacked.address, "/v1/gradients", small()).status == 200
            missing += len(before.difference(attacked.workers))
    _record(figures, "long loops", outcomes)
    figures.at_most("long loops: workers lost", missing, 0, "")


def test_504_for_a_queued_request_arrives_on_time(start: Callable[..., Started], figures: Figures) -> None:
    """The requests wait behind several seconds of work; an early 503 is allowed, too."""
    server = start("--workers", "1")
    long = speed(server.address).uninterruptible(4)
    threads = [threading.Thread(target=once, args=(server.address, "/v1/forward", long)) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    outcomes = {}
    for deadline in (0.2, 0.5, 1.0):
        answer = send(server, long, deadline)
        if answer.status != 503:
            outcomes[f"waiting, {deadline:g} s"] = (answer.status, answer.seconds - deadline)
    for thread in threads:
        thread.join()
    _record(figures, "queued requests", outcomes)


def test_504_during_an_upload_arrives_on_time(attacked: Started, figures: Figures) -> None:
    outcomes = {}
    for deadline in (0.3, 0.8):
        with Connection(attacked.address, timeout=5) as connection:
            start = time.perf_counter()
            connection.send(head(f"/v1/gradients?timeout_ms={round(1000 * deadline)}", 10**6))
            stop = threading.Event()
            trickling = threading.Thread(target=_trickle, args=(connection, stop))
            trickling.start()
            try:
                status = connection.answer(start).status
            except TimeoutError:
                status = 0
            outcomes[f"trickling, {deadline:g} s"] = (status, time.perf_counter() - start - deadline)
            stop.set()
            trickling.join()
    _record(figures, "slow uploads", outcomes)


def test_no_200_begins_after_the_deadline(attacked: Started, figures: Figures) -> None:
    """The deadlines are close to the duration of the work, so that 200 and 504 race."""
    body, lateness, statuses, lock = speed(attacked.address).interruptible(0.15), [], [], threading.Lock()
    once(attacked.address, "/v1/forward", body)

    def ask(i: int) -> None:
        rng = random.Random(i)
        for _ in range(40):
            deadline = rng.uniform(0.1, 0.6)
            answer = send(attacked, body, deadline)
            with lock:
                statuses.append(answer.status)
                if answer.status == 200:
                    lateness.append(answer.seconds - deadline)

    together(3, ask)
    note = f"{statuses.count(200)} times 200, {statuses.count(504)} times 504, {statuses.count(503)} times 503"
    assert set(statuses) <= {200, 503, 504}, note
    figures.at_most(
        "longest delay of a 200 after its deadline", round(1000 * max(lateness), 1), 1000 * ROUND_TRIP, "ms", note
    )


def test_next_call_is_served_soon_after_a_504(server: Started, figures: Figures) -> None:
    """A worker in an uninterruptible step does not delay the next call."""
    piece = speed(server.address).uninterruptible(8)
    waits = []
    for _ in range(2):
        together(4, lambda i: send(server, piece, 0.5))
        start = time.perf_counter()
        assert once(server.address, "/v1/gradients", small()).status == 200
        waits.append(time.perf_counter() - start)
    figures.at_most("next small call after missed deadlines", round(1000 * max(waits), 1), 1000, "ms")


def _trickle(connection: Connection, stop: threading.Event) -> None:
    try:
        while not stop.wait(0.05):
            connection.send(b" ")
    except (OSError, Hangup):
        return


def _record(figures: Figures, kind: str, outcomes: dict[str, tuple[int, float]]) -> None:
    others = {name: status for name, (status, _) in outcomes.items() if status not in (408, 504)}
    latest = max((late for _, late in outcomes.values()), default=0.0)
    figures.at_most(f"{kind}: statuses other than 504 and 408", len(others), 0, "", str(others))
    figures.at_most(f"{kind}: longest delay of a 504 after its deadline", round(1000 * latest, 1), 1000, "ms")
