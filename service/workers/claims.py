"""Claims: the bytes that the server holds for callers, and who gives way when there are none left.

A caller alone may hold everything. When another finds none left, and would hold less, the server takes bytes back from
the one who holds most: bodies that are received or wait, and answers that are sent. What a worker has is not taken
back. Bytes are kept free for a moment for a caller who was refused: nobody else takes what would be more than its own.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Final, Protocol

from service.core.errors import Refusal

#: seconds for which bytes are kept for one who was refused: a little longer than it is told to wait
_KEPT_FOR: Final = 2.0
_RETRY_AFTER: Final = 1
_MOST_WAITING: Final = 1024


class Holder(Protocol):
    """Holder of the bytes of a claim, for as long as they may be taken back."""

    @property
    def revocable(self) -> bool:
        """Whether the bytes may be taken back now."""

    def revoke(self, refusal: Refusal) -> None:
        """Let go of them, and say why to whoever asks for more."""


class Claim:
    """Bytes that one request holds. `holder` is who can let go of them, None where nobody can."""

    __slots__ = ("_claims", "held", "holder", "tenant")

    def __init__(self, claims: Claims, tenant: str) -> None:
        self._claims = claims
        self.tenant = tenant
        self.held = 0
        self.holder: Holder | None = None

    def grow(self, nbytes: int) -> None:
        """Hold so many bytes more. Raises Refusal (queue_full) where there is no memory for them."""
        self._claims.admit(self, nbytes)

    def shrink(self, nbytes: int) -> None:
        """Hold so many bytes less."""
        self._claims.move(self, -nbytes)

    def end(self) -> None:
        """Hold nothing any more. May be called twice."""
        self.holder = None
        self._claims.move(self, -self.held)


class Claims:
    """All claims, within `nbytes`; more, where a single request has them."""

    def __init__(self, nbytes: int) -> None:
        self._most = nbytes
        self.held = 0
        self._of: Counter[str] = Counter()
        self._claims: dict[Claim, None] = {}  # those that hold anything
        self._waiting: dict[str, tuple[int, float]] = {}  # what a tenant would hold, and until when that is kept free

    def claim(self, tenant: str, nbytes: int = 0) -> Claim:
        """Claim bytes for a tenant. Raises Refusal (queue_full)."""
        claim = Claim(self, tenant)
        if nbytes:
            claim.grow(nbytes)
        return claim

    def held_anyway(self, tenant: str, nbytes: int) -> Claim:
        """Claim bytes that are there already; others have to give way where they can."""
        claim = Claim(self, tenant)
        self.move(claim, nbytes)
        self._take_back(tenant, self._of[tenant], self.held - self._most)
        return claim

    def admit(self, claim: Claim, nbytes: int) -> None:
        """Let a claim have so many bytes more. Raises Refusal (queue_full)."""
        tenant, alone = claim.tenant, self.held == claim.held
        after = self._of[tenant] + nbytes
        lacking, kept_free = self.held + nbytes - self._most, self._kept_free(tenant, after)
        if not alone and lacking + kept_free > 0 and (kept_free or not self._take_back(tenant, after, lacking)):
            if len(self._waiting) >= _MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[tenant] = (after, time.monotonic() + _KEPT_FOR)
            detail = f"the server holds {self.held} bytes of requests, and has no room for {nbytes} more"
            raise Refusal("queue_full", detail, retry_after=_RETRY_AFTER)
        self._waiting.pop(tenant, None)
        self.move(claim, nbytes)

    def move(self, claim: Claim, nbytes: int) -> None:
        """Count that a claim has so many bytes more, or less."""
        claim.held += nbytes
        self.held += nbytes
        self._of[claim.tenant] += nbytes
        if claim.held:
            self._claims[claim] = None
        else:
            self._claims.pop(claim, None)
        if not self._of[claim.tenant]:
            del self._of[claim.tenant]

    def _kept_free(self, tenant: str, after: int) -> int:
        """Return the bytes that the other tenant lacks who waits, would hold less than this one, and lacks most."""
        if not self._waiting:
            return 0
        now, most = time.monotonic(), 0
        for other, (wanted, until) in [*self._waiting.items()]:
            if until < now:
                del self._waiting[other]
            elif other != tenant and wanted < after:
                most = max(most, wanted - self._of[other])
        return most

    def _take_back(self, tenant: str, after: int, lacking: int) -> bool:
        """Take so many bytes back from those who hold more than this tenant would; none, where that is too little."""
        chosen = list[Claim]()
        for other, held in self._of.most_common():
            if other == tenant or held <= after or lacking <= 0:
                break
            revocable = [c for c in self._claims if c.tenant == other and c.holder is not None and c.holder.revocable]
            # The largest first: so the fewest requests are lost.
            for claim in sorted(revocable, key=lambda claim: claim.held, reverse=True):
                if held <= after or lacking <= 0:
                    break
                chosen.append(claim)
                held, lacking = held - claim.held, lacking - claim.held  # noqa: PLW2901 - what the tenant is left with
        if lacking <= 0:
            for claim in chosen:
                holder = claim.holder
                if holder is not None and holder.revocable:  # still: to let go of one may set others going
                    claim.end()
                    detail = "the server has no room for so much of one caller while others wait; try again shortly"
                    holder.revoke(Refusal("queue_full", detail, retry_after=_RETRY_AFTER))
        return lacking <= 0
