"""Claims on memory: they grow with the bytes that arrive, and callers share the memory fairly."""

from __future__ import annotations

import numpy as np
import pytest

from service.core.errors import Refusal
from service.workers.claims import Claim, Claims


class Holder:
    """A holder that can be revoked, and records it."""

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


def test_single_caller_may_hold_everything() -> None:
    claims = Claims(100)
    one = claims.claim("a", 1000)
    assert refused(claims.claim("a"), 1)
    one.grow(500)
    one.end()
    one.end()
    assert claims.held == 0
    assert [claims.claim("a", 60).held, claims.claim("a", 40).held] == [60, 40]
    assert refused(claims.claim("a"), 1)


def test_smaller_caller_revokes_from_the_largest() -> None:
    claims = Claims(100)
    small, large, other = (claims.claim("a", n) for n in (20, 50, 0)), claims.claim("b", 20), claims.claim("c")
    first, second, _ = small
    holders = [Holder(first), Holder(second), Holder(large)]
    assert not refused(other, 25)
    assert [len(one.refusals) for one in holders] == [0, 1, 0]
    assert (second.held, other.held, claims.held) == (0, 25, 65)


def test_caller_cannot_revoke_from_a_smaller_one() -> None:
    claims = Claims(100)
    holders = [Holder(claims.claim("a", 50)), Holder(claims.claim("b", 50))]
    assert refused(claims.claim("c"), 60)
    assert refused(claims.claim("b"), 10)
    assert not any(one.refusals for one in holders)


def test_irrevocable_claims_are_not_revoked() -> None:
    claims = Claims(100)
    irrevocable, waiting = Holder(claims.claim("a", 60), revocable=False), Holder(claims.claim("a", 40))
    assert refused(claims.claim("b"), 45)
    assert [irrevocable.refusals, waiting.refusals] == [[], []]
    assert not refused(claims.claim("b"), 30)
    assert (len(irrevocable.refusals), len(waiting.refusals)) == (0, 1)


def test_memory_is_reserved_for_a_refused_caller(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_reservation_of_a_refused_caller_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    claims, now = Claims(100), 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    one, other = claims.claim("a", 50), claims.claim("a", 50)
    assert refused(claims.claim("b"), 40)
    other.end()
    assert refused(claims.claim("a"), 50)
    now = 3.0
    assert not refused(claims.claim("a"), 50)
    assert one.held == 50


def test_existing_answer_revokes_other_claims() -> None:
    claims = Claims(100)
    large = Holder(claims.claim("a", 90))
    claims.claim_existing("b", 30)
    assert len(large.refusals) == 1
    assert claims.held == 30


@pytest.mark.slow
def test_two_greedy_callers_share_the_memory() -> None:
    """Take random steps: each caller gets nearly half, and the total never exceeds the memory."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        claims = Claims(1000)
        by_tenant: dict[str, list[Claim]] = {"a": [], "b": []}
        for _ in range(300):
            tenant = "ab"[rng.integers(2)]
            claim = claims.claim(tenant)
            if not refused(claim, int(rng.integers(1, 50))):
                Holder(claim)
                by_tenant[tenant].append(claim)
            assert claims.held == sum(claim.held for some in by_tenant.values() for claim in some) <= 1000
        shares = [sum(claim.held for claim in some) for some in by_tenant.values()]
        assert min(shares) >= 400, shares
