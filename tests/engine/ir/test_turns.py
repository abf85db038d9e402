"""Turns, on a time that is only counted: whoever waits has its share, nobody starves, and one alone has everything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.ir.fairness import Turns

OWNERS = "abcd"


@dataclass(frozen=True)
class Work:
    """An item that comes at a time, costs so much of a server, and is expected to cost something else."""

    owner: str
    comes: int
    cost: int
    expected: int


class Done(NamedTuple):
    """A work, and when it was begun and ended."""

    work: Work
    begun: int
    ended: int


works = st.lists(
    st.builds(
        Work,
        st.sampled_from(OWNERS),
        st.integers(0, 60),
        st.integers(1, 20),
        st.integers(0, 20),
    ),
    max_size=25,
)


def served(works: Sequence[Work], servers: int = 1) -> list[Done]:
    """What becomes of works: a server that is free takes the next one, and what it cost is charged when it is over."""
    turns: Turns[Work] = Turns()
    coming, running, done, now = sorted(works, key=lambda work: work.comes), list[tuple[int, int]](), list[Done](), 0
    while coming or running or turns.count:
        while running and running[0][0] <= now:
            work = done[heappop(running)[1]].work
            turns.charge(work.owner, work.cost - work.expected)
        while coming and coming[0].comes <= now:
            turns.put(coming[0].owner, coming.pop(0))
        while turns.count and len(running) < servers:
            owner = turns.first()
            work = turns.take_next(owner, turns.peek(owner).expected)
            heappush(running, (now + work.cost, len(done)))
            done.append(Done(work, now, now + work.cost))
        now = min([ended for ended, _ in running[:1]] + [work.comes for work in coming[:1]], default=now)
    return done


def waiting(done: Sequence[Done], owner: str, start: int, end: int) -> bool:
    """Whether this owner has something that waits, all the time between."""
    spans = sorted((each.work.comes, each.begun) for each in done if each.work.owner == owner)
    reached = start
    for comes, begun in spans:
        if comes <= reached:
            reached = max(reached, begun)
    return reached >= end


def had(done: Sequence[Done], owner: str, start: int, end: int) -> int:
    """What was begun of this owner's between, by what it cost."""
    return sum(each.work.cost for each in done if each.work.owner == owner and start <= each.begun < end)


@given(works)
def test_of_two_who_wait_neither_gets_ahead_by_more_than_an_item_of_each(works: list[Work]) -> None:
    done = served(works)
    moments = sorted({each.begun for each in done})
    for first, other in [(a, b) for a in OWNERS for b in OWNERS if a != b]:
        costs = [max((w.cost for w in works if w.owner == owner), default=0) for owner in (first, other)]
        for i, start in enumerate(moments):
            for end in moments[i + 1 :]:
                if waiting(done, first, start, end):
                    assert had(done, other, start, end) <= had(done, first, start, end) + sum(costs)


@given(works, st.integers(1, 3))
def test_nobody_starves_and_nothing_is_idle(works: list[Work], servers: int) -> None:
    done = served(works, servers)
    assert sorted(map(id, (each.work for each in done))) == sorted(map(id, works))
    for each in done:
        busy = [other for other in done if other.begun <= each.begun - 1 < other.ended]
        assert each.begun == each.work.comes or len(busy) == servers or each.begun in {o.ended for o in done}


@given(works, st.integers(1, 3))
def test_those_of_one_owner_are_taken_in_their_order(works: list[Work], servers: int) -> None:
    taken = defaultdict(list)
    for each in served(works, servers):
        taken[each.work.owner].append(each.work)
    for owner, order in taken.items():
        came = sorted((work for work in works if work.owner == owner), key=lambda work: work.comes)
        assert list(map(id, order)) == list(map(id, came))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_one_alone_has_everything(costs: list[int]) -> None:
    done = served([Work("a", 0, cost, 0) for cost in costs])
    assert [each.work.cost for each in done] == costs
    assert done[-1].ended == sum(costs)


def test_a_turn_that_was_not_taken_is_not_saved_up() -> None:
    """One who was there, and comes back late, shares from then on."""
    late = [Work("b", 30, 1, 1) for _ in range(15)]
    done = served([Work("b", 0, 1, 1), *(Work("a", 0, 1, 1) for _ in range(50)), *late])
    assert [each.work.owner for each in done[:30]].count("b") == 1
    assert 9 <= [each.work.owner for each in done[30:50]].count("b") <= 11


def test_one_who_is_seldom_there_is_next() -> None:
    """Whoever asks for little never waits for more than what is begun."""
    many = [Work("a", 0, 5, 0) for _ in range(100)]
    done = served([*many, *(Work("b", 50 * i, 1, 0) for i in range(1, 9))])
    assert max(each.begun - each.work.comes for each in done if each.work.owner == "b") <= 5


def test_what_is_put_back_comes_first() -> None:
    turns: Turns[str] = Turns()
    turns.put("a", "second")
    turns.put_back("a", "first")
    assert [turns.take_next("a"), turns.take_next("a")] == ["first", "second"]


def test_who_suits() -> None:
    turns: Turns[int] = Turns()
    turns.put("a", 1)
    turns.put("b", 2)
    assert turns.first(lambda item: item == 2) == "b"
    with pytest.raises(KeyError):
        turns.first(lambda item: item == 3)
    turns.drop("b", 2)
    with pytest.raises(ValueError, match="not in deque"):
        turns.drop("b", 2)
    assert (turns.count, turns.count_of("a"), turns.count_of("b"), turns.count_of("c")) == (1, 1, 0, 0)


def test_who_waits_for_most_gives_way() -> None:
    turns: Turns[int] = Turns()
    for item in range(3):
        turns.put("a", item)
    turns.put("b", 3)
    assert (turns.longest_queue(), turns.drop_last("a")) == ("a", 2)
    assert [(owner, list(items)) for owner, items in turns.lines()] == [("a", [0, 1]), ("b", [3])]
    assert turns.clear() == [0, 1, 3]
    assert not turns.count


@pytest.mark.slow
def test_owners_are_forgotten() -> None:
    turns: Turns[int] = Turns()
    for owner in range(10_000):
        turns.put(owner, 0)
        turns.take_next(owner, 1.0)
    assert len(turns._queues) < 200
    turns.put("always", 0)
    for owner in range(10_000):
        turns.put(owner, 0)
        turns.take_next(turns.first(), 1.0)
        turns.put("always", 0) if not turns.count_of("always") else None
    assert len(turns._queues) < 10_300
