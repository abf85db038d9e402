"""How slow a client may be: in silence, and on average."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of credit, which pass as time does, and the bytes a second that earn them back.

    At `rate` or faster a client is never late, for as long as it takes. One that falls silent is, when its credit is
    spent; so is one that trickles, a little later. Credit never exceeds its first amount: what came fast once does not
    pay for hours of silence.
    """

    credit: float
    rate: float

    def after(self, due: float, now: float, nbytes: int) -> float:
        """When the client is late, if that was `due` before it moved so many bytes."""
        return min(due + nbytes / self.rate, now + self.credit)
