"""Turns in simulated time: waiting owners get their share, no owner starves, and a single owner gets everything."""

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
    """An item with an arrival time, a cost in server time, and an expected cost."""

    owner: str
    comes: int
    cost: int
    expected: int


class Done(NamedTuple):
    """An item with the times of its begin and end."""

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
    """Simulate servers: a free one takes the next item, and its actual cost is charged when it ends."""
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
    """Whether this owner has a waiting item all the time between start and end."""
    spans = sorted((each.work.comes, each.begun) for each in done if each.work.owner == owner)
    reached = start
    for comes, begun in spans:
        if comes <= reached:
            reached = max(reached, begun)
    return reached >= end


def service_received(done: Sequence[Done], owner: str, start: int, end: int) -> int:
    """The total cost of this owner's items that began between start and end."""
    return sum(each.work.cost for each in done if each.work.owner == owner and start <= each.begun < end)


@given(works)
def test_waiting_owners_differ_by_at_most_one_item_each(works: list[Work]) -> None:
    done = served(works)
    moments = sorted({each.begun for each in done})
    for first, other in [(a, b) for a in OWNERS for b in OWNERS if a != b]:
        costs = [max((w.cost for w in works if w.owner == owner), default=0) for owner in (first, other)]
        for i, start in enumerate(moments):
            for end in moments[i + 1 :]:
                if waiting(done, first, start, end):
                    assert service_received(done, other, start, end) <= service_received(done, first, start, end) + sum(
                        costs
                    )


@given(works, st.integers(1, 3))
def test_all_items_run_and_servers_do_not_idle(works: list[Work], servers: int) -> None:
    done = served(works, servers)
    assert sorted(map(id, (each.work for each in done))) == sorted(map(id, works))
    for each in done:
        busy = [other for other in done if other.begun <= each.begun - 1 < other.ended]
        assert each.begun == each.work.comes or len(busy) == servers or each.begun in {o.ended for o in done}


@given(works, st.integers(1, 3))
def test_items_of_one_owner_run_in_order(works: list[Work], servers: int) -> None:
    taken = defaultdict(list)
    for each in served(works, servers):
        taken[each.work.owner].append(each.work)
    for owner, order in taken.items():
        came = sorted((work for work in works if work.owner == owner), key=lambda work: work.comes)
        assert list(map(id, order)) == list(map(id, came))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_single_owner_gets_all_turns(costs: list[int]) -> None:
    done = served([Work("a", 0, cost, 0) for cost in costs])
    assert [each.work.cost for each in done] == costs
    assert done[-1].ended == sum(costs)


def test_unused_turns_are_not_saved_up() -> None:
    """An owner that comes back late shares from then on."""
    late = [Work("b", 30, 1, 1) for _ in range(15)]
    done = served([Work("b", 0, 1, 1), *(Work("a", 0, 1, 1) for _ in range(50)), *late])
    assert [each.work.owner for each in done[:30]].count("b") == 1
    assert 9 <= [each.work.owner for each in done[30:50]].count("b") <= 11


def test_infrequent_owner_is_next() -> None:
    """An owner with few items waits at most for the running one."""
    many = [Work("a", 0, 5, 0) for _ in range(100)]
    done = served([*many, *(Work("b", 50 * i, 1, 0) for i in range(1, 9))])
    assert max(each.begun - each.work.comes for each in done if each.work.owner == "b") <= 5


def test_item_put_back_comes_first() -> None:
    turns: Turns[str] = Turns()
    turns.put("a", "second")
    turns.put_back("a", "first")
    assert [turns.take_next("a"), turns.take_next("a")] == ["first", "second"]


def test_first_with_a_predicate() -> None:
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


def test_longest_queue_drops_its_last_item() -> None:
    turns: Turns[int] = Turns()
    for item in range(3):
        turns.put("a", item)
    turns.put("b", 3)
    assert (turns.longest_queue(), turns.drop_last("a")) == ("a", 2)
    assert [(owner, list(items)) for owner, items in turns.lines()] == [("a", [0, 1]), ("b", [3])]
    assert turns.clear() == [0, 1, 3]
    assert not turns.count


@pytest.mark.slow
def test_idle_owners_are_dropped() -> None:
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
