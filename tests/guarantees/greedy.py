"""A caller who takes what there is: a process with many connections, each of which asks again once it is answered.

`python -m tests.guarantees.greedy '{…}'`, the fields of `Greed` as JSON; it ends by itself, and prints what it got.
"""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from tests.guarantees.jobs import feed, node, request
from tests.guarantees.talk import Address, Connection, Hangup, head

#: nodes of a graph whose gradient takes some 25 ms to plan, and of one that takes next to nothing
SLOW_TO_PLAN, SOON_PLANNED = 100, 2


@dataclass(frozen=True)
class Greed:
    """Who asks, and for what: gradients of new graphs of so many nodes, or of `body`, again and again."""

    address: Address
    seconds: float
    connections: int = 100
    source: str = ""
    lines: tuple[str, ...] = ()
    nodes: int = SLOW_TO_PLAN
    body: str = ""
    path: str = "/v1/gradients"


def new_graph(number: int, nodes: int = SLOW_TO_PLAN) -> bytes:
    """The gradient of a chain that no other number has."""
    chain = [node("parameter"), node("broadcast_to", 0, shape=[number + 1, 2])]
    for _ in range(nodes):
        chain.append(node("tanh", len(chain) - 1))
    chain.append(node("sum", len(chain) - 1))
    return request(chain, [feed(0, [], [0.5])])


def attack(greed: Greed) -> Counter[int]:
    """Ask until the time is up; the answers by status, 0 for a connection that was closed instead."""
    numbers, found, end = count(), Counter[int](), time.monotonic() + greed.seconds
    callers = selectors.DefaultSelector()

    def ask(connection: Connection) -> None:
        body = greed.body.encode() or new_graph(next(numbers), greed.nodes)
        connection.send(head(greed.path, len(body), more=greed.lines) + body)

    for _ in range(greed.connections):
        connection = Connection(tuple(greed.address), source=greed.source)
        callers.register(connection, selectors.EVENT_READ)
        ask(connection)
    while time.monotonic() < end and callers.get_map():
        for key, _ in callers.select(0.1):
            try:
                found[key.fileobj.answer().status] += 1  # type: ignore[union-attr]
                ask(key.fileobj)  # type: ignore[arg-type]
            except (OSError, Hangup):
                found[0] += 1
                callers.unregister(key.fileobj)
    return found


@contextmanager
def beside(greed: Greed) -> Iterator[subprocess.Popen[str]]:
    """While this process goes on, another one is greedy; it has asked once on each connection by then."""
    command = [sys.executable, "-m", "tests.guarantees.greedy", json.dumps(asdict(greed))]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asking\n"
        try:
            yield process
        finally:
            process.kill()


def main() -> None:
    """One attack, as it is told."""
    greed = Greed(**json.loads(sys.argv[1]))
    print("asking", flush=True)
    with suppress(BrokenPipeError):
        print(json.dumps(attack(greed)))


if __name__ == "__main__":
    main()
