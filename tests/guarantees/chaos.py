"""`make chaos`: deaths, disconnects, bad input, slow clients and good traffic together, for ten minutes.

The server has keys, and keeps its state in a folder. No answer may be wrong, no status above 499 but 503, 504 and 507,
and memory must not grow. In the last third of the time the server itself is killed, again and again, and what it has
acknowledged must be there when it starts anew.
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

from tests.guarantees import bombs, framing, jobs, known, malformed, talk
from tests.guarantees.probe import Seen, probing
from tests.guarantees.started import Started
from tests.guarantees.talk import Answer, Connection, Hangup, head, once, posted
from tests.guarantees.trend import Trend, trend

MINUTES = 10
#: states of a server, which a client has to expect
STATES = (503, 504, 507)
GOOD_CLIENTS = 4
#: bytes: workers die and are made anew all the time, so memory goes up and down by more than in a soak
FLOOR = 16 << 20
SAMPLE = 0.25
HEALTH_MS = 100
#: of the time, at the end: the server is killed after each of its lives, which have so many seconds
SHARE_OF_LIVES = 1 / 3
LIFE = 15.0
#: of what is asked by good clients, so many a second are answered, whatever else goes on
GOOD_RATE = 20


@dataclass
class Tally:
    """What happened."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    #: of each tensor that a client keeps, the number that was acknowledged, and the last one that was sent
    kept: dict[str, tuple[float, float]] = field(default_factory=dict)
    #: the server is being killed: its connections end
    killed: bool = False

    def took(self, what: str, answer: Answer, *, right: bool) -> None:
        """Count an answer, which is right, or tells a state of the server, or is a fault."""
        self.counts[f"{what}: {answer.status}"] += 1
        if not right and answer.status not in STATES:
            self.fault(f"{what}: {answer.status} {answer.body[:120]!r}")

    def fault(self, text: str) -> None:
        """Something that may not happen."""
        self.wrong.append(text)

    def hung_up(self, who: str, error: Exception) -> None:
        """A connection has ended that should not, unless the server was killed."""
        if not self.killed:
            self.fault(f"{who}: {type(error).__name__} {error}")


GOOD_CALLS = {f"{name}: 200" for name in ("W1", "Hessian", "hvp", "jvp", "batch", "binary")}
Actor = Callable[[Started, Tally, random.Random], None]


def good(server: Started, tally: Tally, rng: random.Random) -> None:
    """A client that is honest and checks every answer."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    kinds = known.makers(server.address)
    while not tally.stop.is_set():
        try:
            with Connection(server.address) as connection:
                for _ in range(200):
                    asked = rng.choice(kinds)(numbers)
                    answer = connection.ask(asked.path, asked.body, kind=asked.kind)
                    tally.took(asked.name, answer, right=answer.status == 200 and asked.is_answered_by(answer.body))
                    if tally.stop.is_set() or answer.headers.get("connection") == "close":
                        break
        except (OSError, Hangup) as error:
            tally.hung_up("a good client was hung up on", error)
            if tally.killed:
                return


def slow_jobs(server: Started, tally: Tally, rng: random.Random) -> None:
    """Work of up to two seconds, some with too little time."""
    while not tally.stop.wait(rng.uniform(0.1, 1.0)):
        products, x = rng.randrange(5, 80), rng.uniform(0.1, 0.9)
        timeout = rng.choice((100, 1000, 30_000))
        try:
            answer = once(server.address, f"/v1/forward?timeout_ms={timeout}", jobs.in_steps(products, 512, x))
            tally.took("slow job", answer, right=answer.status == 200)
        except (OSError, Hangup) as error:
            tally.hung_up("a slow job", error)


def keeping(server: Started, tally: Tally, rng: random.Random) -> None:
    """A client that counts in a tensor, by calls that read and store it, or by writing it; and reads it again."""
    name = f"count-{secrets.token_hex(4)}"
    try:
        with Connection(server.address) as connection:
            while not tally.stop.is_set():
                _count(connection, tally, name, rng)
    except (OSError, Hangup) as error:
        tally.hung_up("a client that stores", error)


def _count(connection: Connection, tally: Tally, name: str, rng: random.Random) -> None:
    acknowledged, tried = tally.kept.get(name, (0.0, 0.0))
    number = tried + 1
    tally.kept[name] = (acknowledged, number)
    if acknowledged and acknowledged == tried and rng.random() < 0.7:  # else what is there is not known
        nodes = [jobs.node("input"), jobs.node("add_scalar", 0, scalar=1.0), jobs.node("sum", 1)]
        fed = [{"node": 0, "tensor_id": name}]
        asked = jobs.request(nodes, fed, outputs=[2], store=[{"node": 1, "tensor_id": name}])
        answer = connection.ask("/v1/forward", asked)
    else:
        body = json.dumps({"dtype": "float64", "shape": [64], "data": [number] * 64}).encode()
        answer = connection.ask(f"/v1/tensors/{name}", body, "PUT")
    tally.took("store", answer, right=answer.status in (200, 201))
    if answer.status in (200, 201):
        tally.kept[name] = (number, number)
        _read(connection, tally, name, number)


def _read(connection: Connection, tally: Tally, name: str, number: float) -> None:
    answer = connection.ask(f"/v1/tensors/{name}", b"", "GET")
    right = answer.status == 200 and answer.json()["tensor"]["data"] == [number] * 64
    tally.took("what was stored", answer, right=right)


def killer(server: Started, tally: Tally, rng: random.Random) -> None:
    """Kills a worker every now and then, and sometimes two."""
    while not tally.stop.wait(rng.uniform(1.0, 6.0)):
        for pid in rng.sample(server.workers, min(len(server.workers), rng.choice((1, 1, 1, 2)))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                tally.counts["workers killed"] += 1


def vanishing(server: Started, tally: Tally, rng: random.Random) -> None:
    """Clients that go in the middle of a head, a body, the work, an answer."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    while not tally.stop.wait(rng.expovariate(20)):
        body = rng.choice((jobs.in_steps(30, 512), known.doubled(numbers, 400_000).body, jobs.small()))
        sent = posted("/v1/forward", body)
        with contextlib.suppress(OSError):
            connection = Connection(server.address)
            connection.send(sent[: rng.choice((rng.randrange(len(sent)), len(sent)))])
            tally.stop.wait(rng.choice((0.0, 0.0, 0.05, 0.5)))
            rng.choice((connection.reset, connection.close))()
            tally.counts["clients that vanished"] += 1


def bad_input(server: Started, tally: Tally, rng: random.Random) -> None:
    """What must be refused."""
    cases = [case for case in (*malformed.cases(), *bombs.cases()) if len(case.body) < 2_000_000]
    while not tally.stop.wait(rng.expovariate(10)):
        case = rng.choice(cases)
        try:
            answer = once(server.address, case.path, case.body, kind=case.kind)
            tally.took("bad input", answer, right=400 <= answer.status < 500)
        except (OSError, Hangup) as error:
            tally.hung_up(case.name, error)


def bad_framing(server: Started, tally: Tally, rng: random.Random) -> None:
    """What is no HTTP. Whether it is refused as it should be is looked at elsewhere; here counts what it breaks."""
    frames = [frame for frame in framing.frames() if len(frame.sent) < 2_000_000]
    while not tally.stop.wait(rng.expovariate(10)):
        with contextlib.suppress(OSError, Hangup), Connection(server.address, timeout=2) as connection:
            connection.send(rng.choice(frames).sent)
            answer = connection.answer()
            tally.took("bad framing", answer, right=answer.status < 500)


def slow_clients(server: Started, tally: Tally, rng: random.Random) -> None:
    """Connections that are half open, that trickle, and that do not read what they asked for."""
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
    """Memory, at equal distances in time."""
    del rng
    while not tally.stop.wait(SAMPLE):
        tally.resident.append(server.resident)


ACTORS: tuple[Actor, ...] = (
    *[good] * GOOD_CLIENTS,
    keeping,
    keeping,
    slow_jobs,
    killer,
    vanishing,
    vanishing,
    bad_input,
    bad_framing,
    slow_clients,
    watch,
)


def run(options: Sequence[str], seconds: float, seed: int) -> tuple[Tally, Seen]:
    """All actors, so long; then they and the server for as long as each of its lives is."""
    tally, server = Tally(), Started(*options)
    try:
        with probing(server.address) as seen:
            act(server, tally, seconds * (1 - SHARE_OF_LIVES), seed)
        look_afterwards(server, tally, seconds * (1 - SHARE_OF_LIVES))
        for life in range(round(seconds * SHARE_OF_LIVES / LIFE)):
            act(server, tally, LIFE, seed + 1000 * (life + 1), kills=True)
            server = Started(*options)
            look_at_what_is_kept(server, tally)
    finally:
        server.stop()
    return tally, seen


def act(server: Started, tally: Tally, seconds: float, seed: int, *, kills: bool = False) -> None:
    """All actors at a server for so long; in the end it is killed under them, or they stop."""
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


def look_at_what_is_kept(server: Started, tally: Tally) -> None:
    """After a kill: of each tensor the number that was acknowledged, or the one that was under way."""
    for name, (acknowledged, tried) in tally.kept.items():
        answer = once(server.address, f"/v1/tensors/{name}", b"", "GET")
        data = answer.json()["tensor"]["data"] if answer.status == 200 else []
        if not acknowledged and not data:
            continue  # not even the first one
        if len(data) != 64 or len(set(data)) != 1 or not acknowledged <= data[0] <= tried:
            tally.fault(f"{name}: {acknowledged:g} was acknowledged, {tried:g} sent, and {data[:3]} is there")
        tally.counts["tensors that outlived a server"] += 1


def look_afterwards(server: Started, tally: Tally, seconds: float) -> None:
    """Good traffic alone must be answered; and there must have been some, and deaths, all the time."""
    time.sleep(5)
    after = once(server.address, "/v1/gradients", jobs.small())
    tally.took("afterwards", after, right=after.status == 200 and jobs.is_right(after.body))
    done = sum(count for what, count in tally.counts.items() if what in GOOD_CALLS)
    if done < GOOD_RATE * seconds:
        tally.fault(f"good clients were answered {done / seconds:.1f} times a second, and {GOOD_RATE} are little")
    if not tally.counts["workers killed"]:
        tally.fault("there were no workers to kill")


def report(tally: Tally, seen: Seen, memory: Trend) -> bool:
    """Say what happened; whether all of it may."""
    for what, count in sorted(tally.counts.items()):
        print(f"  {what:32}{count:8,}")
    print(f"health: {seen.asked:,} asked, {seen.failed} failed, the slowest after {seen.worst:.1f} ms")
    if seen.slow:
        print(f"  slow ones, by second and ms: {sorted(seen.slow, key=lambda one: -one[1])[:8]}")
    print(f"memory: {memory}: {'flat' if memory.is_flat(FLOOR) else 'GROWS'}")
    for text, count in Counter(tally.wrong).most_common(20):
        print(f"  FAULT, {count} times: {text}")
    held = not tally.wrong and not seen.failed and seen.worst <= HEALTH_MS and memory.is_flat(FLOOR)
    print("held" if held else f"NOT held: {len(tally.wrong)} faults")
    return held


def main() -> None:
    """Chaos at a server of its own; status 1 where something happens that may not."""
    parser = argparse.ArgumentParser(
        description="Deaths, disconnects, bad input, slow clients and good traffic together."
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
