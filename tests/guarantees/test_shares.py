"""Sixteenth guarantee: what one caller does, nobody else notices: each attack runs beside a caller who behaves.

Callers are told apart by the namespaces of their keys, and where no keys are asked for by their addresses.
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

#: how much longer the slowest of a hundred calls may take beside others than alone
SLOWER = 3
CALLS, ROUNDS = 300, 3
#: seconds that they may take
PATIENCE = 8
#: bytes of a body by which a server may judge it
PREFIX = 512
#: calls that look like another's
LIKE = 112


@dataclass(frozen=True)
class Caller:
    """Who calls: from an address, or with a key."""

    server: Started
    source: str = ""
    lines: tuple[str, ...] = ()

    def connect(self) -> Connection:
        """A connection of theirs."""
        return Connection(self.server.address, source=self.source, lines=self.lines)

    def greed(self, **stated: object) -> Greed:
        """Theirs, to be told what for."""
        return Greed(self.server.address, 60.0, source=self.source, lines=self.lines, **stated)


Callers = Callable[..., tuple[Caller, Caller]]


@pytest.fixture(params=["keys", "addresses"])
def callers(request: pytest.FixtureRequest, start: Callable[..., Started], tmp_path: Path) -> Iterator[Callers]:
    """Starts a server for two who have nothing to do with each other."""
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
    """One small call after the other, with a pause as a program has that does something with the answers.

    Where they take too long, there are fewer.
    """
    answers, end = list[Answer](), time.monotonic() + PATIENCE
    with caller.connect() as connection:
        while len(answers) < count and time.monotonic() < end:
            answers.append(connection.ask("/v1/gradients", small(float(len(answers)))))
            time.sleep(0.002)
    return answers


def slowest_of_a_hundred(answers: list[Answer]) -> float:
    """In ms."""
    return 1000 * statistics.quantiles([answer.seconds for answer in answers], n=100)[98]


def compared(modest: Caller, greed: Greed, figures: Figures, attack: str) -> None:
    """Calls alone and beside the attack, in turns: what the machine does meanwhile is done to both."""
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
    compared(modest, greedy.greed(), figures, f"a hundred new graphs at once, {request.node.callspec.id}")


def test_a_hundred_known_calls_at_once(callers: Callers, figures: Figures, request: pytest.FixtureRequest) -> None:
    modest, greedy = callers()
    greed = greedy.greed(body=small().decode())
    compared(modest, greed, figures, f"a hundred calls of a known graph, {request.node.callspec.id}")


def test_a_full_queue(callers: Callers, figures: Figures, request: pytest.FixtureRequest) -> None:
    """One caller asks for a hundred times as much as may wait; the place of the other is free."""
    modest, greedy = callers("--queue", "20")
    body = speed(modest.server.address).steps(0.2) if modest.source else in_steps(8)
    with beside(greedy.greed(body=body.decode(), path="/v1/forward")):
        time.sleep(1)
        statuses = Counter(answer.status for answer in calls(modest, 100))
    what = f"calls at a queue that another has filled that are not answered by 200, {request.node.callspec.id}"
    figures.at_most(what, statuses.total() - statuses[200], 0, "", str(dict(statuses)))


def alike(number: int, side: int) -> bytes:
    """As long as every other, and the same in the first bytes: a product of matrices of this side, a few times."""
    nodes = [node("input"), node("broadcast_to", 0, shape=["SIDE", "SIDE"]), node("tanh", 1)]
    for _ in range(12):
        nodes += [node("matmul", len(nodes) - 1, 2), node("tanh", len(nodes))]
    nodes.append(node("mean", len(nodes) - 1))
    whole = {"feeds": [feed(0, [], ["NUMBER"])], "graph": {"nodes": nodes}}
    text = json.dumps(whole).replace('"SIDE"', f"{side:5}").replace('"NUMBER"', f"{number:3}.5")
    return text.replace('{"feeds"', "{" + " " * PREFIX + '"feeds"', 1).encode()


def test_estimates_are_ones_own(callers: Callers, figures: Figures, request: pytest.FixtureRequest) -> None:
    """Slow calls that look like the quick ones of another, as far as one can see without reading them."""
    modest, greedy = callers("--timeout-ms", "10000")
    quick, slow = alike(0, 2), alike(0, 1024)
    assert len(quick) == len(slow)
    assert quick[:PREFIX] == slow[:PREFIX]
    with modest.connect() as connection:
        assert connection.ask("/v1/forward", quick).status == 200
        with beside(greedy.greed(body=slow.decode(), path="/v1/forward", connections=12)):
            time.sleep(4)
            answers, end = list[Answer](), time.monotonic() + 2 * PATIENCE
            while len(answers) < LIKE and time.monotonic() < end:
                answers.append(connection.ask("/v1/forward", alike(len(answers), 2)))
    statuses = Counter(answer.status for answer in answers)
    told = next((answer.json()["detail"] for answer in answers if answer.status != 200), "")
    what = f"quick calls that look like another's slow ones and are refused, of {LIKE}, {request.node.callspec.id}"
    figures.at_most(what, statuses.total() - statuses[200], 0, "", f"{dict(statuses)} {told}")


def known(number: int) -> bytes:
    """One of a few graphs that are sent again and again."""
    nodes = [node("parameter"), node("broadcast_to", 0, shape=[7, number + 1]), node("sum", 1)]
    return request(nodes, [feed(0, [], [0.5])])


def test_a_thousand_graphs_of_another(callers: Callers, figures: Figures, request: pytest.FixtureRequest) -> None:
    """Plans that were made stay, whatever others have planned."""
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
    what = f"plans of twenty graphs that are still there beside thousands of another, {request.node.callspec.id}"
    figures.at_least(what, sum(hits) / len(hits), 0.9, "")
