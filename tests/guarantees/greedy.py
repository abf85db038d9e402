"""A greedy caller: a process with many connections, each of which sends a request as soon as it gets a response.

`python -m tests.guarantees.greedy '{…}'` takes the fields of `Greed` as JSON, and prints
the number of responses by status when it ends.
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

#: number of nodes of a graph whose gradient takes about 25 ms to plan, and of one that is planned quickly
SLOW_TO_PLAN, QUICK_TO_PLAN = 100, 2


@dataclass(frozen=True)
class Greed:
    """The workload of a greedy caller: gradients of new graphs of `nodes` nodes, or `body`, repeatedly."""

    address: Address
    seconds: float
    connections: int = 100
    source: str = ""
    lines: tuple[str, ...] = ()
    nodes: int = SLOW_TO_PLAN
    body: str = ""
    path: str = "/v1/gradients"


def new_graph(number: int, nodes: int = SLOW_TO_PLAN) -> bytes:
    """A request for the gradient of a chain of nodes, different for each number."""
    chain = [node("parameter"), node("broadcast_to", 0, shape=[number + 1, 2])]
    for _ in range(nodes):
        chain.append(node("tanh", len(chain) - 1))
    chain.append(node("sum", len(chain) - 1))
    return request(chain, [feed(0, [], [0.5])])


def attack(greed: Greed) -> Counter[int]:
    """Send requests until the time is up; count the responses by status, and closed connections as 0."""
    numbers, statuses, end = count(), Counter[int](), time.monotonic() + greed.seconds
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
                statuses[key.fileobj.answer().status] += 1  # type: ignore[union-attr]
                ask(key.fileobj)  # type: ignore[arg-type]
            except (OSError, Hangup):
                statuses[0] += 1
                callers.unregister(key.fileobj)
    return statuses


@contextmanager
def beside(greed: Greed) -> Iterator[subprocess.Popen[str]]:
    """Run a greedy process while the block runs."""
    command = [sys.executable, "-m", "tests.guarantees.greedy", json.dumps(asdict(greed))]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asking\n"
        try:
            yield process
        finally:
            process.kill()


def main() -> None:
    """Run the attack described by the argument."""
    greed = Greed(**json.loads(sys.argv[1]))
    print("asking", flush=True)
    with suppress(BrokenPipeError):
        print(json.dumps(attack(greed)))


if __name__ == "__main__":
    main()
