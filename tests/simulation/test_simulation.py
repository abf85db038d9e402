"""A sample of histories, none of which may be wrong; and for each rule one that is wrong without it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.simulation import scenarios
from tests.simulation.__main__ import toll
from tests.simulation.checker import Operation, is_linearizable
from tests.simulation.cluster_rules import CLUSTER_RULES
from tests.simulation.history import history
from tests.simulation.rules import RULES, without

#: seeds of histories that go wrong without a rule, found by `make simulation`: find new ones if histories change
SEEDS = {
    "an opening counts once nothing is behind it": 1039,
    "a write in doubt is not taken back": 1204,
    "a write in doubt is not refused": 1004,
    "a write in doubt is tried with the same token": 1016,
    "an answer in doubt stands for its call": 1050,
    "a server that has not looked for long lists more": 1021,
    "a read takes a look, once the lease is over": 1001,
    "a refusal takes a look, or a commit": 1029,
    "a server that begins waits": 1007,
}
#: scenarios for the other rules, whose absence few histories show
SCENARIOS = {
    "what stands before an opening keeps its number": scenarios.commit_in_doubt_is_not_repeated,
    "what was sent twice keeps its number": scenarios.duplicate_request_does_not_revive_a_tensor,
    "superseded commits stay for a while": scenarios.free_number_is_not_reused_within_a_lease,
    "late commits that no opening knows are not read": scenarios.late_commit_of_a_superseded_number_is_not_read,
    "the last object stays": scenarios.last_number_is_not_reused,
    "a server that released answers no more": scenarios.released_server_does_not_answer,
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


#: seeds for the rules of a cluster
CLUSTER_SEEDS = {
    "what may have reached an owner is not sent to the next": 1,
    "what may have reached an owner is unconfirmed": 1,
    "all names of a call are of one moment": 399,
    "a write waits for promises": 213,
    "an owner looks before it answers others": 538,
}


@pytest.mark.slow
@pytest.mark.parametrize("lease", [1.0, 0.0])
def test_cluster_histories_are_linearizable(lease: float) -> None:
    result = toll(range(150), lease=lease, cluster=True)
    assert not result.wrong
    assert not result.undecided
    assert result.answered > 0.7 * result.asked


@pytest.mark.parametrize("memory", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_histories_with_little_memory_are_linearizable(memory: int) -> None:
    """One register of two is in memory, or none; the others are read from the store."""
    result = toll(range(20 if memory else 150), cluster=True, memory=memory)
    assert not result.wrong
    assert not result.undecided
    assert result.answered > 0.7 * result.asked


@pytest.mark.parametrize("rule", CLUSTER_SEEDS)
def test_cluster_goes_wrong_without_a_rule(rule: str) -> None:
    assert toll([CLUSTER_SEEDS[rule]], rule, cluster=True).wrong
    assert not toll([CLUSTER_SEEDS[rule]], cluster=True).wrong


@pytest.mark.slow
@pytest.mark.parametrize("lease", [1.0, 0.0])
def test_histories_are_linearizable(lease: float) -> None:
    result = toll(range(200), lease=lease)
    assert not result.wrong
    assert not result.undecided
    assert result.answered > 0.6 * result.asked, "a checker is content with servers that do not answer"


@pytest.mark.parametrize("rule", SEEDS)
def test_history_goes_wrong_without_a_rule(rule: str) -> None:
    assert toll([SEEDS[rule]], rule).wrong
    assert not toll([SEEDS[rule]]).wrong


@pytest.mark.parametrize("rule", SCENARIOS)
def test_scenario_fails_without_its_rule(rule: str) -> None:
    SCENARIOS[rule]()
    with without(rule), pytest.raises(AssertionError):
        SCENARIOS[rule]()


def test_every_rule_has_a_seed_or_a_scenario() -> None:
    assert set(SEEDS) | set(SCENARIOS) == set(RULES)
    assert set(CLUSTER_SEEDS) == set(CLUSTER_RULES)


def test_history_is_reproducible_from_its_seed() -> None:
    first, second = (
        [(each.kind, each.called, each.returned, each.answer) for each in history(7).operations] for _ in range(2)
    )
    assert first == second


def write(called: float, returned: float, value: int, answer: object = "ok", **more: object) -> Operation:
    return Operation("write", called, (), {"x": value}, returned=returned, answer=answer, **more)  # type: ignore[arg-type]


def read(called: float, returned: float, value: int | None) -> Operation:
    return Operation("read", called, ("x",), returned=returned, answer=(value,))


@pytest.mark.parametrize(
    ("operations", "explained"),
    [
        ([write(0, 1, 1), read(2, 3, 1)], True),
        ([write(0, 1, 1), read(2, 3, None)], False),
        ([write(0, 2, 1), read(1, 3, None)], True),
        ([write(0, 1, 1), write(2, 3, 2), read(4, 5, 1)], False),
        ([write(0, 9, 1), read(1, 2, 1), read(3, 4, None)], False),
        ([write(0, 1, 1, "refused"), read(2, 3, 1)], False),
        ([write(0, float("inf"), 1, None), read(2, 3, None), read(4, 5, 1)], True),
        ([write(0, 1, 1), write(2, 3, 2, "412", match={"x": 1})], False),
        ([write(0, 1, 1), write(2, 3, 2, "412", match={"x": None})], True),
        ([write(0, 1, 1, durable=False), read(2, 3, None)], False),
        ([write(0, 1, 1, durable=False), Operation("begin", 1.5, returned=1.8), read(2, 3, None)], True),
        ([write(0, 1, 1), Operation("begin", 1.5, returned=1.8), read(2, 3, None)], False),
        ([write(0, 1, 1), write(2, 3, 2, durable=False), Operation("begin", 3, returned=4), read(5, 6, 1)], True),
        ([Operation("delete", 0, (), {"x": None}, returned=1, answer="404"), read(2, 3, None)], True),
        ([write(0, 1, 1), Operation("delete", 2, (), {"x": None}, returned=3, answer="404")], False),
    ],
)
def test_linearizability_checker(operations: list[Operation], explained: bool) -> None:
    assert is_linearizable(operations) is explained
