"""The bytes that are held for callers: as they come, and no more for one than for another who waits."""

from __future__ import annotations

import numpy as np
import pytest

from service.core.errors import Refusal
from service.workers.claims import Claim, Claims


class Letting:
    """Lets go when it is told to, and remembers that."""

    def __init__(self, claim: Claim, *, revocable: bool = True) -> None:
        self.revocable = revocable
        self.refusals: list[Refusal] = []
        claim.holder = self

    def revoke(self, refusal: Refusal) -> None:
        self.refusals.append(refusal)


def refused(claim: Claim, nbytes: int) -> bool:
    """Whether a claim cannot grow."""
    before = claim.held
    try:
        claim.grow(nbytes)
    except Refusal as refusal:
        return (refusal.code, refusal.retry_after, claim.held) == ("queue_full", 1, before)
    return False


def test_one_alone_may_hold_everything_and_a_single_request_more() -> None:
    claims = Claims(100)
    one = claims.claim("a", 1000)
    assert refused(claims.claim("a"), 1)
    one.grow(500)
    one.end()
    one.end()
    assert claims.held == 0
    assert [claims.claim("a", 60).held, claims.claim("a", 40).held] == [60, 40]
    assert refused(claims.claim("a"), 1)


def test_who_would_hold_less_takes_from_who_holds_most() -> None:
    claims = Claims(100)
    small, large, other = (claims.claim("a", n) for n in (20, 50, 0)), claims.claim("b", 20), claims.claim("c")
    first, second, _ = small
    held = [Letting(first), Letting(second), Letting(large)]
    assert not refused(other, 25)
    assert [len(one.refusals) for one in held] == [0, 1, 0]
    assert (second.held, other.held, claims.held) == (0, 25, 65)


def test_nobody_takes_from_who_would_be_left_with_less() -> None:
    claims = Claims(100)
    kept = [Letting(claims.claim("a", 50)), Letting(claims.claim("b", 50))]
    assert refused(claims.claim("c"), 60)
    assert refused(claims.claim("b"), 10)
    assert not any(one.refusals for one in kept)


def test_what_is_in_work_is_not_taken_and_nothing_else_in_vain() -> None:
    claims = Claims(100)
    at_work, waiting = Letting(claims.claim("a", 60), revocable=False), Letting(claims.claim("a", 40))
    assert refused(claims.claim("b"), 45)
    assert [at_work.refusals, waiting.refusals] == [[], []]
    assert not refused(claims.claim("b"), 30)
    assert (len(at_work.refusals), len(waiting.refusals)) == (0, 1)


def test_room_is_kept_for_who_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    claims, now = Claims(100), 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    greedy = [claims.claim("a", 50), claims.claim("a", 50)]  # nobody can take these
    honest = claims.claim("b")
    assert refused(honest, 40)
    greedy[0].end()
    assert refused(claims.claim("a"), 20), "b waits for 40"
    assert not refused(claims.claim("a"), 10), "and these are beside them"
    assert not refused(honest, 40)
    now = 10.0
    honest.end()
    assert not refused(claims.claim("a"), 40)


def test_who_waits_and_does_not_come_back_is_waited_for_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    claims, now = Claims(100), 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    one, other = claims.claim("a", 50), claims.claim("a", 50)
    assert refused(claims.claim("b"), 40)
    other.end()
    assert refused(claims.claim("a"), 50)
    now = 3.0
    assert not refused(claims.claim("a"), 50)
    assert one.held == 50


def test_answers_that_are_there_make_others_let_go() -> None:
    claims = Claims(100)
    large = Letting(claims.claim("a", 90))
    claims.claim_existing("b", 30)
    assert len(large.refusals) == 1
    assert claims.held == 30


@pytest.mark.slow
def test_two_who_ask_for_all_share_it() -> None:
    """Steps in any order: neither is left with much less than half, and never is more held than there is."""
    draw = np.random.default_rng(3)
    for _ in range(200):
        claims = Claims(1000)
        mine: dict[str, list[Claim]] = {"a": [], "b": []}
        for _ in range(300):
            tenant = "ab"[draw.integers(2)]
            claim = claims.claim(tenant)
            if not refused(claim, int(draw.integers(1, 50))):
                Letting(claim)
                mine[tenant].append(claim)
            assert claims.held == sum(claim.held for some in mine.values() for claim in some) <= 1000
        shares = [sum(claim.held for claim in some) for some in mine.values()]
        assert min(shares) >= 400, shares
