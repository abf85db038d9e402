"""Guarantee 11: after SIGTERM, running work finishes, new work is refused, and the server exits in time."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable

import pytest

from tests.guarantees import processes
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import small, speed
from tests.guarantees.started import Started
from tests.guarantees.talk import Connection, Hangup, head, once, posted

pytestmark = pytest.mark.guarantee(11)
GRACE = 6


def ended(server: Started, within: float) -> float:
    """The seconds until the process has exited; more than `within` if it has not."""
    start = time.perf_counter()
    try:
        server.process.wait(within)
    except subprocess.TimeoutExpired:
        return within + 1
    return time.perf_counter() - start


def listens(server: Started) -> bool:
    """Whether the server accepts connections."""
    try:
        socket.create_connection(server.address, timeout=1).close()
    except OSError:
        return False
    return True


def incomplete_requests() -> list[bytes]:
    """Requests that are never completed."""
    chunked = head("/v1/gradients", None, more=("Transfer-Encoding: chunked",))
    return [
        b"",
        b"POST /v1",
        head("/v1/gradients", 10_000),
        head("/v1/gradients", 10_000) + b"{" * 99,
        chunked + b"100\r\n{",
    ]


def test_running_work_finishes_and_incomplete_requests_do_not_delay_the_exit(
    start: Callable[..., Started], figures: Figures
) -> None:
    server = start("--shutdown-grace", str(GRACE))
    job = speed(server.address).interruptible(1.5)
    open_ones = [Connection(server.address) for _ in range(40)]
    for i, connection in enumerate(open_ones):
        connection.send(incomplete_requests()[i % len(incomplete_requests())])
    statuses = _answers(server, job, 4)
    time.sleep(0.7)
    server.signal()
    begin = time.perf_counter()
    time.sleep(0.2)
    taken = listens(server)
    ended(server, 2 * GRACE + 5)
    exit_after = time.perf_counter() - begin
    for thread in statuses:
        thread.join()
    lost = [thread.status for thread in statuses if thread.status != 200]
    figures.at_most("requests in progress at SIGTERM that do not finish, of 4", len(lost), 0, "", str(lost))
    figures.at_most("new connections accepted after SIGTERM", taken, 0, "")
    figures.at_most(
        f"exit after SIGTERM, with incomplete requests; grace period {GRACE} s", round(exit_after, 2), GRACE + 1.0, "s"
    )
    figures.at_most("exit status after SIGTERM", abs(server.process.returncode or 0), 0, "")


class _Asking(threading.Thread):
    """A thread that sends one request."""

    def __init__(self, server: Started, body: bytes) -> None:
        super().__init__()
        self._server, self._body = server, body
        self.status = 0

    def run(self) -> None:
        try:
            self.status = once(self._server.address, "/v1/forward", self._body).status
        except (OSError, Hangup):
            self.status = -1


def _answers(server: Started, body: bytes, count: int) -> list[_Asking]:
    threads = [_Asking(server, body) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def test_work_beyond_the_grace_period_is_ended(start: Callable[..., Started], figures: Figures) -> None:
    server = start("--shutdown-grace", "2")
    (asking,) = _answers(server, speed(server.address).uninterruptible(15), 1)
    time.sleep(1)
    server.signal()
    figures.at_most("exit after SIGTERM, with work of 15 s; grace period 2 s", round(ended(server, 20), 2), 3.0, "s")
    asking.join()
    figures.at_most(
        "work beyond the grace period: outcomes other than 503 and a closed connection",
        asking.status not in (503, -1),
        0,
        "",
        str(asking.status),
    )


def test_new_work_on_an_open_connection_is_refused(start: Callable[..., Started], figures: Figures) -> None:
    server = start("--shutdown-grace", str(GRACE))
    late = Connection(server.address)
    body = small()
    late.send(head("/v1/gradients", len(body)) + body[:10])
    working = _answers(server, speed(server.address).interruptible(1.5), 1)
    time.sleep(0.5)
    server.signal()
    time.sleep(0.2)
    late.send(body[10:])
    answer = late.answer()
    refused = answer.status == 503 and answer.json()["code"] == "shutting_down"
    figures.at_most(
        "requests completed after SIGTERM and not refused with shutting_down", not refused, 0, "", str(answer.status)
    )
    ended(server, 15)
    assert [thread.join() or thread.status for thread in working] == [200]


def test_second_sigterm_exits_at_once(start: Callable[..., Started], figures: Figures) -> None:
    server = start("--shutdown-grace", "30")
    asking = _answers(server, speed(server.address).interruptible(20), 1)
    time.sleep(1)
    server.signal()
    time.sleep(0.5)
    server.signal()
    figures.at_most("exit after a second SIGTERM", round(ended(server, 20), 2), 1.0, "s")
    for thread in asking:
        thread.join()


def test_workers_exit_with_their_front(start: Callable[..., Started], figures: Figures) -> None:
    """They exit even if the front had no time to stop them."""
    server = start()
    orphans = server.workers
    assert orphans, "the server has no worker processes"
    with Connection(server.address) as connection:
        connection.send(posted("/v1/forward", speed(server.address).interruptible(10)))
        time.sleep(0.5)
        server.signal(signal.SIGKILL)
        server.process.wait()
        time.sleep(2)
    left = [pid for pid in orphans if processes.exists(pid)]
    figures.at_most("workers alive 2 s after their front was killed", len(left), 0, "")
