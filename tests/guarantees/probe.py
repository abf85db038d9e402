"""Probe `/health/live` continuously, in a separate process, with high priority if permitted.

`python -m tests.guarantees.probe HOST PORT` runs until standard input ends, and then writes its observations as JSON.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from tests.guarantees.started import ROOT
from tests.guarantees.talk import Address, Connection, Hangup

PAUSE = 0.01
#: one request in `FRESH` is made on a new connection
FRESH = 5
PATIENCE = 5.0
SLOW_MS = 50


@dataclass
class Seen:
    """Observations: the slowest response in ms, and the latest wake-up of the probe itself, caused by the machine.

    `slow` lists the responses that took more than 50 ms: the second of the request, and the duration in ms.
    """

    asked: int = 0
    failed: int = 0
    worst: float = 0.0
    late: float = 0.0
    slow: list[tuple[float, float]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def _raise_priority() -> None:
    """Raise the priority of this process, if permitted."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        try:
            os.nice(-10)
        except PermissionError:
            return


class _Prober:
    def __init__(self, address: Address) -> None:
        self._address, self.seen = address, Seen()
        self._connection: Connection | None = None
        self._began = time.perf_counter()

    def ask(self) -> None:
        """Send one request, and record its outcome."""
        start = time.perf_counter()
        reason = self._reason()
        took = 1000 * (time.perf_counter() - start)
        seen = self.seen
        seen.asked += 1
        seen.worst = max(seen.worst, took)
        if took > SLOW_MS:
            seen.slow.append((round(start - self._began, 1), round(took, 1)))
        if reason:
            seen.failed += 1
            seen.reasons = [*seen.reasons, reason][:5]

    def _reason(self) -> str | None:
        if self._connection is None or self.seen.asked % FRESH == 0:
            self._hang_up()
        try:
            self._connection = self._connection or Connection(self._address, PATIENCE)
            answer = self._connection.ask("/health/live", method="GET")
        except (OSError, Hangup) as error:
            self._hang_up()
            return f"{type(error).__name__}: {error}"
        return None if answer.status == 200 else f"status {answer.status}"

    def _hang_up(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None


def main() -> None:
    """Probe until standard input ends."""
    _raise_priority()
    prober = _Prober((sys.argv[1], int(sys.argv[2])))
    prober.ask()
    prober.seen = Seen()  # discard imports and the first connection
    sys.stdout.write("\n")
    sys.stdout.flush()
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        while True:
            start = time.perf_counter()
            if selector.select(PAUSE):
                break
            prober.seen.late = max(prober.seen.late, 1000 * (time.perf_counter() - start - PAUSE))
            prober.ask()
    json.dump(asdict(prober.seen), sys.stdout)


@contextmanager
def probing(address: Address) -> Iterator[Seen]:
    """Probe while the block runs; the yielded observations are complete after it."""
    command = [sys.executable, "-m", "tests.guarantees.probe", address[0], str(address[1])]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    process.stdout.readline()
    seen = Seen()
    try:
        yield seen
    finally:
        seen.__dict__.update(json.loads(process.communicate()[0]))


if __name__ == "__main__":
    main()
