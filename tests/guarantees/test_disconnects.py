"""Guarantee 7: work stops within a second of a disconnect."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.guarantees import processes
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import small, speed
from tests.guarantees.loops import endless
from tests.guarantees.started import Started
from tests.guarantees.talk import Connection, once, posted

pytestmark = pytest.mark.guarantee(7)
#: seconds between samples of processor time, and the fraction of one processor that counts as work
SAMPLE, IDLE = 0.1, 0.3


def seconds_of_work(pid: int, within: float) -> float:
    """Measure how long a server continues to work, by the processor time of its workers, until all are idle.

    Only the current workers count: a worker that replaces a stopped one is busy starting.
    """
    working = processes.workers(pid)
    start = last = time.perf_counter()
    used, worked, quiet = processes.seconds_of(working), 0.0, 0.0
    while quiet < 0.5 and time.perf_counter() - start < within:
        time.sleep(SAMPLE)
        now, total = time.perf_counter(), processes.seconds_of(working)
        if (total - used) / (now - last) > IDLE:
            worked, quiet = now - start, 0.0
        else:
            quiet += now - last
        last, used = now, total
    return worked


def disconnect(connection: Connection, how: str) -> None:
    """Reset or close the connection."""
    connection.reset() if how == "reset" else connection.close()


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("kind", ["interruptible", "uninterruptible"])
def test_work_stops_after_a_disconnect(attacked: Started, figures: Figures, kind: str, how: str) -> None:
    body = getattr(speed(attacked.address), kind)(8)
    connections = [Connection(attacked.address) for _ in range(2)]
    for connection in connections:
        connection.send(posted("/v1/forward", body))
    time.sleep(1.5)
    for connection in connections:
        disconnect(connection, how)
    worked = seconds_of_work(attacked.pid, 12)
    figures.at_most(f"work after a disconnect ({kind}, {how})", round(worked, 2), 1.0, "s")


@pytest.mark.parametrize("name", endless())
def test_loop_stops_after_a_disconnect(attacked: Started, figures: Figures, name: str) -> None:
    connection = Connection(attacked.address)
    connection.send(posted("/v1/forward?timeout_ms=60000", endless()[name]))
    time.sleep(1.5)
    begun = processes.seconds_of(attacked.workers)
    time.sleep(1)
    assert processes.seconds_of(attacked.workers) > begun + SAMPLE, "the loop does not run"
    connection.close()
    worked = seconds_of_work(attacked.pid, 12)
    figures.at_most(f"work after a disconnect ({name})", round(worked, 2), 1.0, "s")
    assert once(attacked.address, "/v1/gradients", small()).status == 200


def test_next_task_starts_after_disconnects(start: Callable[..., Started], figures: Figures) -> None:
    """The only worker is busy with requests of disconnected clients: the next request succeeds within a second."""
    server = start("--workers", "1")
    body, waits = speed(server.address).uninterruptible(8), []
    for _ in range(2):
        connections = [Connection(server.address) for _ in range(3)]
        for connection in connections:
            connection.send(posted("/v1/forward", body))
        time.sleep(1)
        for connection in connections:
            connection.close()
        begin = time.perf_counter()
        assert once(server.address, "/v1/forward", speed(server.address).interruptible(0.05)).status == 200
        waits.append(time.perf_counter() - begin)
    figures.at_most("next task after disconnects", round(max(waits), 2), 1.0, "s")


def test_work_stops_after_a_hundred_disconnects(attacked: Started, figures: Figures) -> None:
    """They disconnect while they send the headers or the body, and while they wait."""
    body = speed(attacked.address).interruptible(3)
    sent = posted("/v1/forward", body)
    for i in range(100):
        connection = Connection(attacked.address)
        connection.send(sent[: (30, 400, len(sent), len(sent))[i % 4]])
        disconnect(connection, ("close", "reset")[i // 4 % 2])
    worked = seconds_of_work(attacked.pid, 20)
    figures.at_most("work after a hundred disconnects", round(worked, 2), 1.0, "s")
    assert once(attacked.address, "/v1/gradients", small()).status == 200
