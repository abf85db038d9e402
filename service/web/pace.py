"""How slow a client may be: in silence, and on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: seconds in which as much has to move as is held: who has the server hold much is fast, or makes room
TURNOVER: Final = 240.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds of credit, which pass as time does, and the bytes a second that earn them back: more where much is held.

    At `rate` or faster a client is never late, for as long as it takes. One that falls silent is, when its credit is
    spent; so is one that trickles, a little later. Credit never exceeds its first amount: what came fast once does not
    pay for hours of silence.
    """

    credit: float
    rate: float

    def after(self, due: float, now: float, nbytes: int, held: int = 0) -> float:
        """When the client is late, if that was `due` before it moved so many bytes, and so many are held for it."""
        return min(due + nbytes / max(self.rate, held / TURNOVER), now + self.credit)
