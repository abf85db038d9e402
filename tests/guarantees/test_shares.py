"""Guarantee 16: no caller notices what another one does. Each attack runs beside a modest caller.

Callers are distinguished by the namespaces of their keys, or by their addresses if there are no keys.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.core.keys.caller import new_key
from tests.guarantees.figures import Figures
from tests.guarantees.greedy import SOON_PLANNED, Greed, beside
from tests.guarantees.jobs import feed, in_steps, node, request, small, speed
from tests.guarantees.started import Started
from tests.guarantees.talk import Answer, Connection
from tests.service.core.keys.cases import record, write

pytestmark = pytest.mark.guarantee(16)

#: how much longer the slowest of a hundred calls may take during an attack than alone
SLOWER = 3
CALLS, ROUNDS = 300, 3
#: seconds for a series of calls
PATIENCE = 8
#: bytes of a body from which a server may estimate its cost
PREFIX = 512
#: number of calls that look like another caller's
LOOKALIKES = 112


@dataclass(frozen=True)
class Caller:
    """A caller, identified by an address or a key."""

    server: Started
    source: str = ""
    lines: tuple[str, ...] = ()

    def connect(self) -> Connection:
        """Open a connection of this caller."""
        return Connection(self.server.address, source=self.source, lines=self.lines)

    def greed(self, **stated: object) -> Greed:
        """A greedy workload of this caller."""
        return Greed(self.server.address, 60.0, source=self.source, lines=self.lines, **stated)


Callers = Callable[..., tuple[Caller, Caller]]


@pytest.fixture(params=["keys", "addresses"])
def callers(request: pytest.FixtureRequest, start: Callable[..., Started], tmp_path: Path) -> Iterator[Callers]:
    """A function that starts a server for two unrelated callers."""
    started: list[Started] = []

    def open_to(*options: str) -> tuple[Caller, Caller]:
        if request.param == "addresses":
            started.append(server := start(*options))
            return Caller(server, "127.0.0.1"), Caller(server, "127.0.0.2")
        keys = {name: new_key() for name in ("modest", "greedy")}
        path = write(tmp_path / "keys.json", [record(name, key) for name, key in keys.items()])
        started.append(server := start("--keys-file", str(path), *options))
        modest, greedy = (Caller(server, lines=(f"Authorization: Bearer {key}",)) for key in keys.values())
        return modest, greedy

    yield open_to
    for server in started:
        server.stop()


def calls(caller: Caller, count: int = CALLS) -> list[Answer]:
    """Make small calls one after the other, with pauses like those of a program that uses the answers.

    There are fewer calls if they take too long.
    """
    answers, end = list[Answer](), time.monotonic() + PATIENCE
    with caller.connect() as connection:
        while len(answers) < count and time.monotonic() < end:
            answers.append(connection.ask("/v1/gradients", small(float(len(answers)))))
            time.sleep(0.002)
    return answers


def slowest_of_a_hundred(answers: list[Answer]) -> float:
    """The 99th percentile of the answer times, in ms."""
    return 1000 * statistics.quantiles([answer.seconds for answer in answers], n=100)[98]


def compare(modest: Caller, greed: Greed, figures: Figures, attack: str) -> None:
    """Compare calls alone with calls during the attack, in turns, so that disturbances affect both."""
    calls(modest, 50)
    alone, crowded = list[Answer](), list[Answer]()
    for _ in range(ROUNDS):
        alone += calls(modest)
        with beside(greed):
            time.sleep(0.5)
            crowded += calls(modest)
        time.sleep(1)
    before, after = slowest_of_a_hundred(alone), slowest_of_a_hundred(crowded)
    middle = [1000 * statistics.median([answer.seconds for answer in answers]) for answers in (alone, crowded)]
    note = f"{before:.1f} ms alone, {after:.1f} beside; medians {middle[0]:.1f} and {middle[1]:.1f}"
    figures.at_most(f"{attack}: the slowest of a hundred calls, against alone", after / before, SLOWER, "×", note)
    statuses = Counter(answer.status for answer in crowded if answer.status != 200)
    figures.at_most(f"{attack}: calls that are not answered by 200", statuses.total(), 0, "", str(dict(statuses)))


def test_a_hundred_new_graphs_at_once(callers: Callers, figures: Figures, request: pytest.FixtureRequest) -> None:
    modest, greedy = callers()
    compare(modest, greedy.greed(), figures, f"a hundred new graphs at once, {request.node.callspec.id}")


def test_a_hundred_known_calls_at_once(callers: Callers, figures: Figures, request: pytest.FixtureRequest) -> None:
    modest, greedy = callers()
    greed = greedy.greed(body=small().decode())
    compare(modest, greed, figures, f"a hundred calls of a known graph, {request.node.callspec.id}")


def test_a_full_queue(callers: Callers, figures: Figures, request: pytest.FixtureRequest) -> None:
    """One caller sends a hundred times as many calls as may wait; the other's place in the queue stays free."""
    modest, greedy = callers("--queue", "20")
    body = speed(modest.server.address).steps(0.2) if modest.source else in_steps(8)
    with beside(greedy.greed(body=body.decode(), path="/v1/forward")):
        time.sleep(1)
        statuses = Counter(answer.status for answer in calls(modest, 100))
    figure = f"calls at a queue that another has filled that are not answered by 200, {request.node.callspec.id}"
    figures.at_most(figure, statuses.total() - statuses[200], 0, "", str(dict(statuses)))


def alike(number: int, side: int) -> bytes:
    """A few products of matrices of this side; all bodies have the same length and the same first bytes."""
    nodes = [node("input"), node("broadcast_to", 0, shape=["SIDE", "SIDE"]), node("tanh", 1)]
    for _ in range(12):
        nodes += [node("matmul", len(nodes) - 1, 2), node("tanh", len(nodes))]
    nodes.append(node("mean", len(nodes) - 1))
    whole = {"feeds": [feed(0, [], ["NUMBER"])], "graph": {"nodes": nodes}}
    text = json.dumps(whole).replace('"SIDE"', f"{side:5}").replace('"NUMBER"', f"{number:3}.5")
    return text.replace('{"feeds"', "{" + " " * PREFIX + '"feeds"', 1).encode()


def test_estimates_are_ones_own(callers: Callers, figures: Figures, request: pytest.FixtureRequest) -> None:
    """One caller's slow calls look like the other's quick ones, unless they are parsed."""
    modest, greedy = callers("--timeout-ms", "10000")
    quick, slow = alike(0, 2), alike(0, 1024)
    assert len(quick) == len(slow)
    assert quick[:PREFIX] == slow[:PREFIX]
    with modest.connect() as connection:
        assert connection.ask("/v1/forward", quick).status == 200
        with beside(greedy.greed(body=slow.decode(), path="/v1/forward", connections=12)):
            time.sleep(4)
            answers, end = list[Answer](), time.monotonic() + 2 * PATIENCE
            while len(answers) < LOOKALIKES and time.monotonic() < end:
                answers.append(connection.ask("/v1/forward", alike(len(answers), 2)))
    statuses = Counter(answer.status for answer in answers)
    detail = next((answer.json()["detail"] for answer in answers if answer.status != 200), "")
    figure = (
        f"quick calls that look like another's slow ones and are refused, of {LOOKALIKES}, {request.node.callspec.id}"
    )
    figures.at_most(figure, statuses.total() - statuses[200], 0, "", f"{dict(statuses)} {detail}")


def known(number: int) -> bytes:
    """One of a few graphs that are sent repeatedly."""
    nodes = [node("parameter"), node("broadcast_to", 0, shape=[7, number + 1]), node("sum", 1)]
    return request(nodes, [feed(0, [], [0.5])])


def test_a_thousand_graphs_of_another(callers: Callers, figures: Figures, request: pytest.FixtureRequest) -> None:
    """Cached plans stay, whatever other callers plan."""
    modest, greedy = callers()
    cached = []
    with modest.connect() as connection:
        for _ in range(3):
            for number in range(20):
                assert connection.ask("/v1/gradients", known(number)).status == 200
        with beside(greedy.greed(nodes=SOON_PLANNED, connections=8)):
            for _ in range(10):
                time.sleep(1)
                cached += [connection.ask("/v1/gradients", known(number)).json() for number in range(20)]
    hits = [answer["stats"]["plan_cached"] for answer in cached]
    figure = f"plans of twenty graphs that are still there beside thousands of another, {request.node.callspec.id}"
    figures.at_least(figure, sum(hits) / len(hits), 0.9, "")
