"""`make soak`: many mixed requests; every response is checked, and memory must not grow."""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.guarantees.known import Known, Maker, makers
from tests.guarantees.malformed import Case, cases
from tests.guarantees.started import Started
from tests.guarantees.talk import Connection, Hangup
from tests.guarantees.trend import Trend, trend

MILLION = 1_000_000
CLIENTS = 8
#: number of requests that are built once and sent many times, because building them is slow
PREPARED = 400
SAMPLES = 400
#: bytes by which an allocator may still grow, however long a run has been
FLOOR = 1 << 20
BAD_SHARE = 0.05


@dataclass
class Soaked:
    """The results of a soak test: requests, wrong responses, and the trend of memory."""

    requests: int
    rate: float
    wrong: list[str]
    trend: Trend


@dataclass
class _Soak:
    server: Started
    total: int
    known: list[Known]
    bad: list[Case]
    sent: int = 0
    wrong: list[str] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def client(self, seed: int) -> None:
        """Open connections one after the other, and send a few hundred requests on each."""
        rng = random.Random(seed)
        while self.sent < self.total:
            try:
                with Connection(self.server.address) as connection:
                    for _ in range(500):
                        if not self._ask(connection, rng):
                            break
            except (OSError, Hangup) as error:
                self.wrong.append(f"{type(error).__name__}: {error}")

    def _ask(self, connection: Connection, rng: random.Random) -> bool:
        """Send one request, and return whether the connection can be reused."""
        if self.bad and rng.random() < BAD_SHARE:
            case = rng.choice(self.bad)
            answer = connection.ask(case.path, case.body, kind=case.kind)
            right, name = 400 <= answer.status < 500, case.name
        else:
            known = rng.choice(self.known)
            answer = connection.ask(known.path, known.body, kind=known.kind)
            right, name = answer.status == 200 and known.is_answered_by(answer.body), known.name
        if not right:
            self.wrong.append(f"{name}: {answer.status} {answer.body[:100]!r}")
        self._count()
        return answer.headers.get("connection") != "close"

    def _count(self) -> None:
        with self.lock:
            self.sent += 1
            due = self.sent * SAMPLES // self.total > len(self.resident)
            if due:
                self.resident.append(0)
                place = len(self.resident) - 1
        if due:
            self.resident[place] = self.server.resident


def _prepared(kinds: Sequence[Maker]) -> list[Known]:
    rng = np.random.default_rng(0)
    return [kinds[i % len(kinds)](rng) for i in range(PREPARED)]


def run(server: Started, total: int, kinds: Sequence[Maker] | None = None) -> Soaked:
    """Send `total` requests of these kinds from eight clients; by default all kinds, and 5 % invalid requests."""
    bad = [] if kinds else [case for case in cases() if len(case.body) < 10_000 and case.path == "/v1/gradients"]
    soak = _Soak(server, total, _prepared(kinds or makers(server.address)), bad)
    start = time.perf_counter()
    threads = [threading.Thread(target=soak.client, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    samples = [sample for sample in soak.resident if sample]
    return Soaked(soak.sent, soak.sent / (time.perf_counter() - start), soak.wrong, trend(samples))


def main() -> None:
    """Run a soak test against a new server; exit with 1 if a response is wrong or memory grows."""
    parser = argparse.ArgumentParser(
        description="Send many requests, check every response, and measure the server's memory."
    )
    parser.add_argument("--requests", type=int, default=MILLION)
    options = parser.parse_args()
    server = Started()
    try:
        soaked = run(server, options.requests)
    finally:
        server.stop()
    print(f"{soaked.requests:,} requests at {soaked.rate:,.0f} per second; {len(soaked.wrong)} wrong responses")
    print(f"memory: {soaked.trend}: {'flat' if soaked.trend.is_flat(FLOOR) else 'GROWS'}")
    for line in soaked.wrong[:20]:
        print(f"  {line}")
    sys.exit(bool(soaked.wrong) or not soaked.trend.is_flat(FLOOR))


if __name__ == "__main__":
    main()
