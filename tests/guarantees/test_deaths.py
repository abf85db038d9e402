"""Guarantee 12: a dead worker is replaced within five seconds, and no health check fails."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable

import pytest

from tests.guarantees import processes
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import is_right, small, speed
from tests.guarantees.started import Started
from tests.guarantees.talk import Answer, Connection, Hangup, once

pytestmark = pytest.mark.guarantee(12)
REPLACED_S = 5.0


def replacement_seconds(server: Started, pid: int) -> float:
    """Kill a worker, and return the seconds until it is replaced."""
    before = len(server.workers)
    os.kill(pid, signal.SIGKILL)
    start = time.perf_counter()
    while time.perf_counter() - start < 2 * REPLACED_S:
        now = server.workers
        if pid not in now and len(now) >= before:
            return time.perf_counter() - start
        time.sleep(0.02)
    return 2 * REPLACED_S


def require_workers(server: Started) -> list[int]:
    """The process IDs of the server's workers; fails if there are none."""
    pids = server.workers
    assert pids, "the server has no worker processes"
    return pids


def busiest(server: Started, seconds: float = 0.4) -> int:
    """The worker that uses the most processor time within `seconds`."""
    before = {pid: processes.processor_seconds(pid) for pid in server.workers}
    time.sleep(seconds)
    return max(before, key=lambda pid: processes.processor_seconds(pid) - before[pid])


def test_idle_workers_are_replaced(attacked: Started, figures: Figures) -> None:
    taken, waits = [], []
    for _ in range(3):
        for pid in require_workers(attacked):
            if pid not in attacked.workers:
                continue
            taken.append(replacement_seconds(attacked, pid))
            start = time.perf_counter()
            assert is_right(once(attacked.address, "/v1/gradients", small()).body)
            waits.append(time.perf_counter() - start)
    figures.at_most("slowest replacement of an idle worker", round(max(taken), 2), REPLACED_S, "s")
    median = round(1000 * statistics.median(waits), 1)
    figures.at_most(
        "slowest small call after a kill",
        round(1000 * max(waits), 1),
        1000,
        "ms",
        f"median {median} ms",
    )


def test_first_call_after_a_kill_does_not_wait(attacked: Started, figures: Figures) -> None:
    """The call is sent right after the kill; a spare worker takes over. Without it, the call would wait for a start."""
    waits = []
    for _ in range(10):
        attacked.await_spare()
        pids = require_workers(attacked)
        with Connection(attacked.address) as connection:
            assert connection.ask("/v1/gradients", small()).status == 200
            os.kill(pids[len(waits) % len(pids)], signal.SIGKILL)
            answer = connection.ask("/v1/gradients", small())
            assert answer.status == 200, answer.body
            assert is_right(answer.body)
            waits.append(answer.seconds)
    median = round(1000 * statistics.median(waits), 1)
    figures.at_most(
        "slowest call at the moment of a kill", round(1000 * max(waits), 1), 250, "ms", f"median {median} ms"
    )


def test_busy_workers_are_replaced(attacked: Started, figures: Figures) -> None:
    """A task whose worker dies runs a second time; if that worker dies too, the client gets a 503."""
    require_workers(attacked)
    task = speed(attacked.address).interruptible(2)
    taken, statuses = [], []
    for _ in range(4):
        answers: list[Answer] = []
        asking = threading.Thread(target=lambda: answers.append(once(attacked.address, "/v1/forward", task)))  # noqa: B023
        asking.start()
        time.sleep(0.3)
        taken.append(replacement_seconds(attacked, busiest(attacked)))
        asking.join()
        statuses += [answer.status for answer in answers] or [0]
    note = f"statuses of their tasks: {sorted(statuses)}"
    figures.at_most("slowest replacement of a busy worker", round(max(taken), 2), REPLACED_S, "s", note)
    figures.at_most("tasks of killed workers not run again", sum(s != 200 for s in statuses), 0, "", note)


def test_task_that_kills_workers_is_not_retried_forever(attacked: Started, figures: Figures) -> None:
    require_workers(attacked)
    task = speed(attacked.address).interruptible(12)
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(once(attacked.address, "/v1/forward", task)))
    asking.start()
    time.sleep(0.3)
    for _ in range(2):
        replacement_seconds(attacked, busiest(attacked))
        time.sleep(2)  # a new worker is busy while it starts
    asking.join(40)
    outcomes = [(answer.status, "retry-after" in answer.headers) for answer in answers]
    figures.at_most(
        "tasks killed twice without a 503 with Retry-After", outcomes != [(503, True)], 0, "", str(outcomes)
    )


def test_calls_survive_the_death_of_all_workers(attacked: Started, figures: Figures) -> None:
    """All workers are killed repeatedly during traffic: every response is right, or a 503."""
    require_workers(attacked)
    stop, statuses, wrong = threading.Event(), list[int](), list[str]()

    def ask() -> None:
        while not stop.is_set():
            try:
                with Connection(attacked.address) as connection:
                    while not stop.is_set():
                        answer = connection.ask("/v1/gradients", small())
                        statuses.append(answer.status)
                        if answer.status == 200 and not is_right(answer.body):
                            wrong.append("a wrong response")
            except (OSError, Hangup) as error:
                wrong.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        for pid in attacked.workers:
            os.kill(pid, signal.SIGKILL)
        time.sleep(2)
    stop.set()
    for thread in threads:
        thread.join()
    note = ", ".join(f"{status}: {statuses.count(status)}" for status in sorted(set(statuses)))
    wrong += [str(status) for status in statuses if status not in (200, 503)]
    figures.at_most(
        "wrong responses and closed connections while all workers are killed", len(wrong), 0, "", f"{note}; {wrong[:5]}"
    )
    assert is_right(once(attacked.address, "/v1/gradients", small()).body)


def test_hung_workers_do_not_block_later_calls(start: Callable[..., Started], figures: Figures) -> None:
    """The workers hang instead of dying: their call gets a 504, and later calls succeed."""
    server = start("--timeout-ms", "3000")
    pids = require_workers(server)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    answer = once(server.address, "/v1/gradients", small())
    figures.at_most("response time of a call to hung workers", round(answer.seconds, 2), 4.0, "s", str(answer.status))
    assert answer.status in (200, 503, 504)
    time.sleep(5)
    assert is_right(once(server.address, "/v1/gradients", small()).body)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
