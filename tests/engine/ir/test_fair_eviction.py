"""Fair eviction: the owner that holds most loses an entry first."""

from __future__ import annotations

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from engine.ir.fairness import FORGOTTEN, MOST_OWNERS, FairEviction, charge_to, current_owner

uses = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12)), max_size=80)


@given(uses)
def test_single_owner_gets_plain_lru(uses: list[tuple[str, int]]) -> None:
    claims, expected = FairEviction(), OrderedDict[int, None]()
    for _, key in uses:
        claims.use(key, "a")
        expected[key] = None
        expected.move_to_end(key)
        if len(expected) > 4:
            assert claims.evict() == expected.popitem(last=False)[0]
    assert len(claims) == len(expected)


@given(uses, st.integers(3, 9))
def test_owner_below_its_share_loses_no_entry(uses: list[tuple[str, int]], room: int) -> None:
    """Each owner has its own entries."""
    claims, held = FairEviction(), {owner: set[tuple[str, int]]() for owner in "abc"}
    for use in uses:
        owner = use[0]
        claims.use(use, owner)
        held[owner].add(use)
        while len(claims) > room:
            evicted = claims.evict()
            assert isinstance(evicted, tuple)
            assert len(held[evicted[0]]) > room / 3
            assert len(held[evicted[0]]) == max(map(len, held.values()))
            held[evicted[0]].discard(evicted)


def test_eviction_by_size() -> None:
    claims = FairEviction()
    claims.use("large", "a", 100)
    for key in range(3):
        claims.use(key, "b", 10)
    assert claims.evict(by_size=True) == "large"
    claims.use(0, "b", 5)
    assert claims.evict() == 1, "used longest ago"


def test_shared_entry_stays_until_its_last_owner_drops_it() -> None:
    claims = FairEviction()
    claims.use("shared", "a")
    claims.use("shared", "b")
    for key in range(5):
        claims.use(key, "a")
    assert [claims.evict() for _ in range(4)] == [None, 0, 1, 2]
    assert "shared" in claims
    claims.drop("shared")
    assert "shared" not in claims
    assert not claims.has("b")


def test_idle_owner_is_evicted_first() -> None:
    now = 0.0
    claims = FairEviction(lambda: now)
    claims.use("old", "a")
    now = FORGOTTEN + 1
    for key in range(3):
        claims.use(key, "b")
    assert claims.evict() == "old"


def test_owners_of_one_entry_are_bounded() -> None:
    claims = FairEviction()
    for owner in range(3 * MOST_OWNERS):
        claims.use("shared", owner)
    assert len(claims._owners["shared"]) == MOST_OWNERS == len(claims._by_owner)


def test_charge_to_sets_the_current_owner() -> None:
    charge_to("a")
    try:
        assert current_owner() == "a"
    finally:
        charge_to(None)
