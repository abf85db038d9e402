"""`make chaos`: worker deaths, disconnects, bad input, slow clients and good traffic together, for ten minutes.

The server has keys, and stores its state in a folder. No response may be wrong, no status above 499 may occur except
503, 504 and 507, and memory must not grow. In the last third of the time the server itself is killed repeatedly, and
must have all acknowledged writes when it restarts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.guarantees import framing, jobs, known, malformed, oversized, talk
from tests.guarantees.probe import Seen, probing
from tests.guarantees.started import Started
from tests.guarantees.talk import Answer, Connection, Hangup, head, once, posted
from tests.guarantees.trend import Trend, trend

MINUTES = 10
#: statuses that report a temporary state of the server, which clients must expect
STATES = (503, 504, 507)
GOOD_CLIENTS = 4
#: bytes: workers die and are replaced all the time, so memory varies more than in a soak
FLOOR = 16 << 20
SAMPLE = 0.25
HEALTH_MS = 100
#: the fraction of the time, at the end, in which the server is killed every `LIFE` seconds
KILL_FRACTION = 1 / 3
LIFE = 15.0
#: calls of good clients per second that must succeed
GOOD_RATE = 20


@dataclass
class Tally:
    """The events of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    #: for each stored tensor, the last acknowledged number and the last one sent
    stored: dict[str, tuple[float, float]] = field(default_factory=dict)
    #: whether the server is being killed, which ends its connections
    killed: bool = False

    def count(self, name: str, answer: Answer, *, right: bool) -> None:
        """Count a response: it is right, reports a temporary state, or is a fault."""
        self.counts[f"{name}: {answer.status}"] += 1
        if not right and answer.status not in STATES:
            self.fault(f"{name}: {answer.status} {answer.body[:120]!r}")

    def fault(self, text: str) -> None:
        """Record a fault."""
        self.wrong.append(text)

    def hung_up(self, who: str, error: Exception) -> None:
        """Record a closed connection as a fault, unless the server was being killed."""
        if not self.killed:
            self.fault(f"{who}: {type(error).__name__} {error}")


GOOD_CALLS = {f"{name}: 200" for name in ("W1", "Hessian", "hvp", "jvp", "batch", "binary")}
Actor = Callable[[Started, Tally, random.Random], None]


def good(server: Started, tally: Tally, rng: random.Random) -> None:
    """A client that sends valid requests and checks every response."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    kinds = known.makers(server.address)
    while not tally.stop.is_set():
        try:
            with Connection(server.address) as connection:
                for _ in range(200):
                    asked = rng.choice(kinds)(numbers)
                    answer = connection.ask(asked.path, asked.body, kind=asked.kind)
                    tally.count(asked.name, answer, right=answer.status == 200 and asked.is_answered_by(answer.body))
                    if tally.stop.is_set() or answer.headers.get("connection") == "close":
                        break
        except (OSError, Hangup) as error:
            tally.hung_up("a good client was disconnected", error)
            if tally.killed:
                return


def slow_jobs(server: Started, tally: Tally, rng: random.Random) -> None:
    """Requests that take up to two seconds, some with a deadline that is too short."""
    while not tally.stop.wait(rng.uniform(0.1, 1.0)):
        products, x = rng.randrange(5, 80), rng.uniform(0.1, 0.9)
        timeout = rng.choice((100, 1000, 30_000))
        try:
            answer = once(server.address, f"/v1/forward?timeout_ms={timeout}", jobs.in_steps(products, 512, x))
            tally.count("slow request", answer, right=answer.status == 200)
        except (OSError, Hangup) as error:
            tally.hung_up("a slow request", error)


def counting_client(server: Started, tally: Tally, rng: random.Random) -> None:
    """A client that increments a tensor, by a call that reads and stores it or by a plain write, and reads it back."""
    name = f"count-{secrets.token_hex(4)}"
    try:
        with Connection(server.address) as connection:
            while not tally.stop.is_set():
                _count(connection, tally, name, rng)
    except (OSError, Hangup) as error:
        tally.hung_up("a client that stores tensors", error)


def _count(connection: Connection, tally: Tally, name: str, rng: random.Random) -> None:
    acknowledged, tried = tally.stored.get(name, (0.0, 0.0))
    number = tried + 1
    tally.stored[name] = (acknowledged, number)
    if acknowledged and acknowledged == tried and rng.random() < 0.7:  # otherwise the stored value is uncertain
        nodes = [jobs.node("input"), jobs.node("add_scalar", 0, scalar=1.0), jobs.node("sum", 1)]
        fed = [{"node": 0, "tensor_id": name}]
        asked = jobs.request(nodes, fed, outputs=[2], store=[{"node": 1, "tensor_id": name}])
        answer = connection.ask("/v1/forward", asked)
    else:
        body = json.dumps({"dtype": "float64", "shape": [64], "data": [number] * 64}).encode()
        answer = connection.ask(f"/v1/tensors/{name}", body, "PUT")
    tally.count("store", answer, right=answer.status in (200, 201))
    if answer.status in (200, 201):
        tally.stored[name] = (number, number)
        _read(connection, tally, name, number)


def _read(connection: Connection, tally: Tally, name: str, number: float) -> None:
    answer = connection.ask(f"/v1/tensors/{name}", b"", "GET")
    right = answer.status == 200 and answer.json()["tensor"]["data"] == [number] * 64
    tally.count("stored value", answer, right=right)


def killer(server: Started, tally: Tally, rng: random.Random) -> None:
    """Kill one worker, or sometimes two, at random times."""
    while not tally.stop.wait(rng.uniform(1.0, 6.0)):
        for pid in rng.sample(server.workers, min(len(server.workers), rng.choice((1, 1, 1, 2)))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                tally.counts["workers killed"] += 1


def disconnecting(server: Started, tally: Tally, rng: random.Random) -> None:
    """Clients that disconnect while they send the headers or the body, while they wait, or while they read."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    while not tally.stop.wait(rng.expovariate(20)):
        body = rng.choice((jobs.in_steps(30, 512), known.doubled(numbers, 400_000).body, jobs.small()))
        sent = posted("/v1/forward", body)
        with contextlib.suppress(OSError):
            connection = Connection(server.address)
            connection.send(sent[: rng.choice((rng.randrange(len(sent)), len(sent)))])
            tally.stop.wait(rng.choice((0.0, 0.0, 0.05, 0.5)))
            rng.choice((connection.reset, connection.close))()
            tally.counts["clients disconnected"] += 1


def bad_input(server: Started, tally: Tally, rng: random.Random) -> None:
    """Requests that must be refused."""
    cases = [case for case in (*malformed.cases(), *oversized.cases()) if len(case.body) < 2_000_000]
    while not tally.stop.wait(rng.expovariate(10)):
        case = rng.choice(cases)
        try:
            answer = once(server.address, case.path, case.body, kind=case.kind)
            tally.count("bad input", answer, right=400 <= answer.status < 500)
        except (OSError, Hangup) as error:
            tally.hung_up(case.name, error)


def bad_framing(server: Started, tally: Tally, rng: random.Random) -> None:
    """Invalid HTTP. Other tests check how it is refused; here it must only not cause a 5xx."""
    frames = [frame for frame in framing.frames() if len(frame.sent) < 2_000_000]
    while not tally.stop.wait(rng.expovariate(10)):
        with contextlib.suppress(OSError, Hangup), Connection(server.address, timeout=2) as connection:
            connection.send(rng.choice(frames).sent)
            answer = connection.answer()
            tally.count("bad framing", answer, right=answer.status < 500)


def slow_clients(server: Started, tally: Tally, rng: random.Random) -> None:
    """Connections that are half open, send slowly, or do not read their responses."""
    nodes = [jobs.node("input"), jobs.node("broadcast_to", 0, shape=[200_000]), jobs.node("sin", 1)]
    unread = posted("/v1/forward", jobs.request(nodes, [jobs.feed(0, [], [0.5])]))
    beginnings = (b"", b"GET / HT", head("/v1/gradients", 10_000), unread)
    held: list[Connection] = []
    while not tally.stop.wait(0.2):
        with contextlib.suppress(OSError):
            connection = Connection(server.address, buffer=4096)
            connection.send(rng.choice(beginnings))
            held.append(connection)
            tally.counts["slow clients"] += 1
        for connection in rng.sample(held, len(held) // 4):
            with contextlib.suppress(OSError):
                connection.send(b"x")
        if len(held) > 100:
            held.pop(rng.randrange(len(held))).close()
    for connection in held:
        connection.close()


def watch(server: Started, tally: Tally, rng: random.Random) -> None:
    """Sample the memory at equal intervals."""
    del rng
    while not tally.stop.wait(SAMPLE):
        tally.resident.append(server.resident)


ACTORS: tuple[Actor, ...] = (
    *[good] * GOOD_CLIENTS,
    counting_client,
    counting_client,
    slow_jobs,
    killer,
    disconnecting,
    disconnecting,
    bad_input,
    bad_framing,
    slow_clients,
    watch,
)


def run(options: Sequence[str], seconds: float, seed: int) -> tuple[Tally, Seen]:
    """Run all actors for most of the time, and then against servers that are killed and restarted."""
    tally, server = Tally(), Started(*options)
    try:
        with probing(server.address) as seen:
            act(server, tally, seconds * (1 - KILL_FRACTION), seed)
        check_afterwards(server, tally, seconds * (1 - KILL_FRACTION))
        for restart in range(round(seconds * KILL_FRACTION / LIFE)):
            act(server, tally, LIFE, seed + 1000 * (restart + 1), kills=True)
            server = Started(*options)
            check_stored_tensors(server, tally)
    finally:
        server.stop()
    return tally, seen


def act(server: Started, tally: Tally, seconds: float, seed: int, *, kills: bool = False) -> None:
    """Run all actors for `seconds`; then stop them, or kill the server."""
    tally.stop.clear()
    tally.killed = False
    actors = [actor for actor in ACTORS if actor is not watch] if kills else ACTORS
    threads = [
        threading.Thread(target=actor, args=(server, tally, random.Random(seed + i))) for i, actor in enumerate(actors)
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    if kills:
        tally.killed = True
        server.kill()
        tally.counts["servers killed"] += 1
    tally.stop.set()
    for thread in threads:
        thread.join()


def check_stored_tensors(server: Started, tally: Tally) -> None:
    """Check after a kill that each tensor has the acknowledged number or a later one that was sent."""
    for name, (acknowledged, tried) in tally.stored.items():
        answer = once(server.address, f"/v1/tensors/{name}", b"", "GET")
        data = answer.json()["tensor"]["data"] if answer.status == 200 else []
        if not acknowledged and not data:
            continue  # not even the first write was acknowledged
        if len(data) != 64 or len(set(data)) != 1 or not acknowledged <= data[0] <= tried:
            tally.fault(f"{name}: {acknowledged:g} was acknowledged, {tried:g} sent, and {data[:3]} is stored")
        tally.counts["tensors that survived a kill"] += 1


def check_afterwards(server: Started, tally: Tally, seconds: float) -> None:
    """Check that a good call succeeds, and that good calls and kills of workers occurred throughout."""
    time.sleep(5)
    after = once(server.address, "/v1/gradients", jobs.small())
    tally.count("afterwards", after, right=after.status == 200 and jobs.is_right(after.body))
    done = sum(count for event, count in tally.counts.items() if event in GOOD_CALLS)
    if done < GOOD_RATE * seconds:
        tally.fault(f"only {done / seconds:.1f} calls of good clients succeeded per second; {GOOD_RATE} are required")
    if not tally.counts["workers killed"]:
        tally.fault("there were no workers to kill")


def report(tally: Tally, seen: Seen, memory: Trend) -> bool:
    """Print the events, and return whether none is a fault."""
    for event, count in sorted(tally.counts.items()):
        print(f"  {event:32}{count:8,}")
    print(f"health: {seen.asked:,} requests, {seen.failed} failed, slowest {seen.worst:.1f} ms")
    if seen.slow:
        print(f"  slow responses (second, ms): {sorted(seen.slow, key=lambda one: -one[1])[:8]}")
    print(f"memory: {memory}: {'flat' if memory.is_flat(FLOOR) else 'GROWS'}")
    for text, count in Counter(tally.wrong).most_common(20):
        print(f"  FAULT, {count} times: {text}")
    passed = not tally.wrong and not seen.failed and seen.worst <= HEALTH_MS and memory.is_flat(FLOOR)
    print("passed" if passed else f"FAILED: {len(tally.wrong)} faults")
    return passed


def main() -> None:
    """Run the chaos test against a new server; exit with 1 if a fault occurs."""
    parser = argparse.ArgumentParser(
        description="Worker deaths, disconnects, bad input, slow clients and good traffic at the same time."
    )
    parser.add_argument("--seconds", type=float, default=60 * MINUTES)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ["GRADSERVE_API_KEY"] = key = f"gs_{secrets.token_urlsafe(32)}"
    talk.LINES.append(f"Authorization: Bearer {key}")
    with tempfile.TemporaryDirectory() as folder:
        tally, seen = run(("--state", folder), options.seconds, options.seed)
    sys.exit(not report(tally, seen, trend(tally.resident)))


if __name__ == "__main__":
    main()
