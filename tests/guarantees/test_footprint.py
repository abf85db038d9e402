"""Guarantee 13, for caches: memory stays below the estimate of `gradserve doctor`, however many graphs are new."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import numpy as np
import pytest

from service.core.settings import Settings
from service.workers.topology import typical_footprint
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import feed, node, request
from tests.guarantees.known import Known, makers
from tests.guarantees.started import Started
from tests.guarantees.talk import Connection

pytestmark = pytest.mark.guarantee(13)

REQUESTS = 12_000
CLIENTS = 4
SAMPLES = 80
#: caches that fill quickly, and one worker besides the quick one and the spare, so that none starts late
SETTINGS = {"plan_cache": 32, "plan_cache_bytes": 64 << 20, "workers": 1}
#: allowance for allocators and for caches of types and attributes, in the last third of the requests
MAX_GROWTH = 8 << 20
MIB = 1 << 20


def network(rng: random.Random) -> bytes:
    """A request with a random graph of up to 60 nodes, on a vector."""
    length, count = rng.randint(1, 40), rng.randint(4, 58)
    nodes = [node("parameter")]
    for i in range(1, count):
        op, x = rng.choice(["sin", "tanh", "square", "neg", "mul", "add", "mul_scalar"]), rng.randrange(i)
        other_operand = [rng.randrange(i)] if op in ("mul", "add") else []
        attrs = {"scalar": rng.random()} if op == "mul_scalar" else {}
        nodes.append(node(op, x, *other_operand, **attrs))
    return request([*nodes, node("sum", count - 1)], [feed(0, [length], [rng.random() / 4 for _ in range(length)])])


def test_memory_settles_within_the_doctor_estimate(start: Callable[..., Started], figures: Figures) -> None:
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
    server = start("--state=memory", *options)
    sent, wrong = Sent(server), list[str]()
    threads = [threading.Thread(target=ask, args=(server, seed, sent, wrong)) for seed in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    samples = np.array(sent.resident) / MIB
    bound = typical_footprint(Settings(device="cpu", **SETTINGS)).whole / MIB
    note = "MiB by requests: " + ", ".join(f"{mib:.0f}" for mib in samples[:: SAMPLES // 10])
    figures.at_most("wrong responses to new graphs", len(wrong), 0, "", "; ".join(wrong[:3]))
    figures.at_most(
        "peak memory with small caches; the bound is the estimate of gradserve doctor",
        round(samples.max(), 1),
        bound,
        "MiB",
        note,
    )
    parts = [float(np.median(part)) for part in np.array_split(samples, 12)]
    grown = round(parts[-1] - parts[-4], 1)
    figures.at_most(f"memory growth in the last third of {REQUESTS} new graphs", grown, MAX_GROWTH / MIB, "MiB", note)


class Sent:
    """Counts requests, and samples the server's memory."""

    def __init__(self, server: Started) -> None:
        self.count = 0
        self.resident: list[int] = []
        self._server = server
        self._lock = threading.Lock()

    def one(self) -> None:
        """Count a response, and sample the memory if a sample is due."""
        with self._lock:
            self.count += 1
            due = self.count * SAMPLES // REQUESTS > len(self.resident)
            if due:
                self.resident.append(self._server.resident)


def ask(server: Started, seed: int, sent: Sent, wrong: list[str]) -> None:
    """Send graphs with known results and random sizes, and as many networks, some of them several times."""
    rng, numbers, kinds = random.Random(seed), np.random.default_rng(seed), makers(server.address)
    with Connection(server.address) as connection:
        while sent.count < REQUESTS:
            is_network = rng.random() < 0.5
            known = Known("network", "/v1/gradients", network(rng), {}) if is_network else rng.choice(kinds)(numbers)
            for _ in range(rng.choice((1, 1, 1, 3))):
                answer = connection.ask(known.path, known.body, kind=known.kind)
                if answer.status != 200 or not (is_network or known.is_answered_by(answer.body)):
                    wrong.append(f"{known.name}: {answer.status} {answer.body[:100]!r}")
                sent.one()
