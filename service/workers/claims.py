"""Claims: the bytes that the server holds for callers, and whose bytes are revoked if none are left.

A single caller may hold everything. If another caller finds no bytes left, and would hold less, the server revokes
claims of the caller that holds most: bodies that are being received or wait, and answers that are being sent. What a
worker reads is never revoked. After a refusal, bytes are reserved for the refused caller until it has had time to
retry: a caller that would hold more cannot take them.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Final, Protocol

from service.core.errors import Refusal

#: seconds for which bytes are reserved after a refusal: a little longer than the client is told to wait
_RESERVED_SECONDS: Final = 2.0
_RETRY_AFTER: Final = 1
_MOST_WAITING: Final = 1024


class Holder(Protocol):
    """Holder of the memory behind a claim, which can release it early."""

    @property
    def revocable(self) -> bool:
        """Whether the memory can be revoked now."""

    def revoke(self, refusal: Refusal) -> None:
        """Release the memory; the refusal is the answer to the request."""


class Claim:
    """Bytes that one request holds. `holder` can release them early; None if nobody can."""

    __slots__ = ("_claims", "held", "holder", "tenant")

    def __init__(self, claims: Claims, tenant: str) -> None:
        self._claims = claims
        self.tenant = tenant
        self.held = 0
        self.holder: Holder | None = None

    def grow(self, nbytes: int) -> None:
        """Claim more bytes. Raises Refusal (queue_full) if there are none left."""
        self._claims.admit(self, nbytes)

    def shrink(self, nbytes: int) -> None:
        """Claim fewer bytes."""
        self._claims.move(self, -nbytes)

    def end(self) -> None:
        """Release all bytes. May be called twice."""
        self.holder = None
        self._claims.move(self, -self.held)


class Claims:
    """All claims, `nbytes` together at most, unless a single request exceeds that."""

    def __init__(self, nbytes: int) -> None:
        self._most = nbytes
        self.held = 0
        self._held_by: Counter[str] = Counter()
        self._claims: dict[Claim, None] = {}  # those with any bytes
        self._waiting: dict[str, tuple[int, float]] = {}  # what a refused tenant would hold, and its deadline

    def claim(self, tenant: str, nbytes: int = 0) -> Claim:
        """Claim bytes for a tenant. Raises Refusal (queue_full)."""
        claim = Claim(self, tenant)
        if nbytes:
            claim.grow(nbytes)
        return claim

    def claim_existing(self, tenant: str, nbytes: int) -> Claim:
        """Claim bytes that exist already, and revoke claims of others if there are now too many."""
        claim = Claim(self, tenant)
        self.move(claim, nbytes)
        self._revoke(tenant, self._held_by[tenant], self.held - self._most)
        return claim

    def admit(self, claim: Claim, nbytes: int) -> None:
        """Raise a claim by `nbytes`. Raises Refusal (queue_full)."""
        tenant, alone = claim.tenant, self.held == claim.held
        after = self._held_by[tenant] + nbytes
        shortfall, reserved = self.held + nbytes - self._most, self._reserved_for_others(tenant, after)
        # A single request may exceed the limit: nobody else is hurt, and it could never be served otherwise.
        if not alone and shortfall + reserved > 0 and (reserved or not self._revoke(tenant, after, shortfall)):
            # The oldest reservation makes room, so that the table stays small.
            if len(self._waiting) >= _MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[tenant] = (after, time.monotonic() + _RESERVED_SECONDS)
            detail = f"the server holds {self.held} bytes of requests, and has no room for {nbytes} more"
            raise Refusal("queue_full", detail, retry_after=_RETRY_AFTER)
        self._waiting.pop(tenant, None)
        self.move(claim, nbytes)

    def move(self, claim: Claim, nbytes: int) -> None:
        """Count that a claim has `nbytes` more, or fewer."""
        claim.held += nbytes
        self.held += nbytes
        self._held_by[claim.tenant] += nbytes
        if claim.held:
            self._claims[claim] = None
        else:
            self._claims.pop(claim, None)
        if not self._held_by[claim.tenant]:
            del self._held_by[claim.tenant]

    def _reserved_for_others(self, tenant: str, after: int) -> int:
        """Return the bytes reserved for refused tenants that would hold less than this one: the most that one lacks."""
        if not self._waiting:
            return 0
        now, reserved = time.monotonic(), 0
        for other, (needed, until) in [*self._waiting.items()]:
            if until < now:
                del self._waiting[other]
            elif other != tenant and needed < after:
                reserved = max(reserved, needed - self._held_by[other])
        return reserved

    def _revoke(self, tenant: str, after: int, shortfall: int) -> bool:
        """Revoke claims of tenants that would still hold more than this one; none if that does not free enough."""
        victims = list[Claim]()
        for other, held in self._held_by.most_common():
            if other == tenant or held <= after or shortfall <= 0:
                break
            revocable = [c for c in self._claims if c.tenant == other and c.holder is not None and c.holder.revocable]
            # The largest first, so that the fewest requests are lost.
            for claim in sorted(revocable, key=lambda claim: claim.held, reverse=True):
                if held <= after or shortfall <= 0:
                    break
                victims.append(claim)
                held, shortfall = held - claim.held, shortfall - claim.held  # noqa: PLW2901 - what remains
        if shortfall <= 0:
            for claim in victims:
                holder = claim.holder
                if holder is not None and holder.revocable:  # checked again: revoking one may have started others
                    claim.end()
                    detail = (
                        "the server cannot hold this much for one caller while other callers wait; try again shortly"
                    )
                    holder.revoke(Refusal("queue_full", detail, retry_after=_RETRY_AFTER))
        return shortfall <= 0
