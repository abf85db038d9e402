"""Who gives way in something bounded: nobody to an owner who holds no more."""

from __future__ import annotations

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from engine.ir.fairness import FORGOTTEN, MOST_OWNERS, FairEviction, charge_to, current_owner

uses = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12)), max_size=80)


@given(uses)
def test_one_alone_keeps_what_it_used_last(uses: list[tuple[str, int]]) -> None:
    claims, wanted = FairEviction(), OrderedDict[int, None]()
    for _, key in uses:
        claims.use(key, "a")
        wanted[key] = None
        wanted.move_to_end(key)
        if len(wanted) > 4:
            assert claims.evict() == wanted.popitem(last=False)[0]
    assert len(claims) == len(wanted)


@given(uses, st.integers(3, 9))
def test_who_holds_less_than_its_share_loses_nothing(uses: list[tuple[str, int]], room: int) -> None:
    """Where each has things of its own."""
    claims, held = FairEviction(), {owner: set[tuple[str, int]]() for owner in "abc"}
    for use in uses:
        owner = use[0]
        claims.use(use, owner)
        held[owner].add(use)
        while len(claims) > room:
            gone = claims.evict()
            assert isinstance(gone, tuple)
            assert len(held[gone[0]]) > room / 3
            assert len(held[gone[0]]) == max(map(len, held.values()))
            held[gone[0]].discard(gone)


def test_by_size() -> None:
    claims = FairEviction()
    claims.use("large", "a", 100)
    for key in range(3):
        claims.use(key, "b", 10)
    assert claims.evict(by_size=True) == "large"
    claims.use(0, "b", 5)
    assert claims.evict() == 1, "used longest ago"


def test_what_several_hold_stays_until_the_last_lets_go() -> None:
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


def test_who_has_long_not_been_there_goes_first() -> None:
    now = 0.0
    claims = FairEviction(lambda: now)
    claims.use("old", "a")
    now = FORGOTTEN + 1
    for key in range(3):
        claims.use(key, "b")
    assert claims.evict() == "old"


def test_owners_of_one_thing_are_bounded() -> None:
    claims = FairEviction()
    for owner in range(3 * MOST_OWNERS):
        claims.use("shared", owner)
    assert len(claims._owners["shared"]) == MOST_OWNERS == len(claims._by_owner)


def test_whose_it_is() -> None:
    charge_to("a")
    try:
        assert current_owner() == "a"
    finally:
        charge_to(None)
