"""Guarantee 16: one caller does not affect another. A modest caller sends small calls during each attack.

Callers are distinguished by the namespaces of their keys, or by their addresses if the server has no keys.
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
from tests.guarantees.greedy import QUICK_TO_PLAN, Greed, beside
from tests.guarantees.jobs import feed, in_steps, node, request, small, speed
from tests.guarantees.started import Started
from tests.guarantees.talk import Answer, Connection
from tests.service.core.keys.cases import record, write

pytestmark = pytest.mark.guarantee(16)

#: how many times longer the slowest of a hundred calls may take during an attack than alone
SLOWER = 3
CALLS, ROUNDS = 300, 3
#: seconds for a series of calls
PATIENCE = 8
#: number of bytes of a body from which a server may estimate its cost
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
    """Make small calls one after the other, with short pauses, as a program does that uses the results.

    Stop early if they take too long.
    """
    answers, end = list[Answer](), time.monotonic() + PATIENCE
    with caller.connect() as connection:
        while len(answers) < count and time.monotonic() < end:
            answers.append(connection.ask("/v1/gradients", small(float(len(answers)))))
            time.sleep(0.002)
    return answers


def slowest_of_a_hundred(answers: list[Answer]) -> float:
    """The 99th percentile of the response times, in ms."""
    return 1000 * statistics.quantiles([answer.seconds for answer in answers], n=100)[98]


def compare(modest: Caller, greed: Greed, figures: Figures, attack: str) -> None:
    """Compare calls alone with calls during the attack, in alternation, so that disturbances affect both."""
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
    note = f"{before:.1f} ms alone, {after:.1f} during the attack; medians {middle[0]:.1f} and {middle[1]:.1f}"
    figures.at_most(f"{attack}: slowest of a hundred calls, relative to baseline", after / before, SLOWER, "×", note)
    statuses = Counter(answer.status for answer in crowded if answer.status != 200)
    figures.at_most(f"{attack}: calls with a status other than 200", statuses.total(), 0, "", str(dict(statuses)))


def test_new_graphs_of_one_caller_do_not_slow_another(
    callers: Callers, figures: Figures, request: pytest.FixtureRequest
) -> None:
    modest, greedy = callers()
    compare(modest, greedy.greed(), figures, f"100 concurrent new graphs ({request.node.callspec.id})")


def test_repeated_calls_of_one_caller_do_not_slow_another(
    callers: Callers, figures: Figures, request: pytest.FixtureRequest
) -> None:
    modest, greedy = callers()
    greed = greedy.greed(body=small().decode())
    compare(modest, greed, figures, f"100 concurrent calls of one graph ({request.node.callspec.id})")


def test_full_queue_of_one_caller_does_not_block_another(
    callers: Callers, figures: Figures, request: pytest.FixtureRequest
) -> None:
    """One caller fills the queue many times over; the other still gets a place in it."""
    modest, greedy = callers("--queue", "20")
    body = speed(modest.server.address).interruptible(0.2) if modest.source else in_steps(8)
    with beside(greedy.greed(body=body.decode(), path="/v1/forward")):
        time.sleep(1)
        statuses = Counter(answer.status for answer in calls(modest, 100))
    figure = f"queue filled by another caller ({request.node.callspec.id}): calls with a status other than 200"
    figures.at_most(figure, statuses.total() - statuses[200], 0, "", str(dict(statuses)))


def alike(number: int, side: int) -> bytes:
    """Products of square matrices of this side; all bodies have the same length and the same first bytes."""
    nodes = [node("input"), node("broadcast_to", 0, shape=["SIDE", "SIDE"]), node("tanh", 1)]
    for _ in range(12):
        nodes += [node("matmul", len(nodes) - 1, 2), node("tanh", len(nodes))]
    nodes.append(node("mean", len(nodes) - 1))
    whole = {"feeds": [feed(0, [], ["NUMBER"])], "graph": {"nodes": nodes}}
    text = json.dumps(whole).replace('"SIDE"', f"{side:5}").replace('"NUMBER"', f"{number:3}.5")
    return text.replace('{"feeds"', "{" + " " * PREFIX + '"feeds"', 1).encode()


def test_cost_estimates_are_separate_for_each_caller(
    callers: Callers, figures: Figures, request: pytest.FixtureRequest
) -> None:
    """One caller's slow calls have the length and first bytes of the other's quick calls."""
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
        f"quick calls that resemble another caller's slow ones ({request.node.callspec.id}): refused, of {LOOKALIKES}"
    )
    figures.at_most(figure, statuses.total() - statuses[200], 0, "", f"{dict(statuses)} {detail}")


def known(number: int) -> bytes:
    """A request with one of a few graphs, which are sent repeatedly."""
    nodes = [node("parameter"), node("broadcast_to", 0, shape=[7, number + 1]), node("sum", 1)]
    return request(nodes, [feed(0, [], [0.5])])


def test_graphs_of_one_caller_do_not_evict_plans_of_another(
    callers: Callers, figures: Figures, request: pytest.FixtureRequest
) -> None:
    """Cached plans of one caller stay while another caller plans thousands of graphs."""
    modest, greedy = callers()
    cached = []
    with modest.connect() as connection:
        for _ in range(3):
            for number in range(20):
                assert connection.ask("/v1/gradients", known(number)).status == 200
        with beside(greedy.greed(nodes=QUICK_TO_PLAN, connections=8)):
            for _ in range(10):
                time.sleep(1)
                cached += [connection.ask("/v1/gradients", known(number)).json() for number in range(20)]
    hits = [answer["stats"]["plan_cached"] for answer in cached]
    figure = f"thousands of new graphs of another caller ({request.node.callspec.id}): fraction of plans still cached"
    figures.at_least(figure, sum(hits) / len(hits), 0.9, "")
