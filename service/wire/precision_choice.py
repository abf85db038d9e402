"""Choice of a precision that a server leaves to requests: what one gets that asks for none, and where it ends."""

from __future__ import annotations

from typing import NamedTuple

from engine.graph.precision import IEEE, PRECISIONS, Precision
from service.errors import Refusal


class PrecisionChoice(NamedTuple):
    """The precision of requests that ask for none, and the coarsest that one may ask for."""

    default: Precision = IEEE
    least: Precision = PRECISIONS[-1]

    def of(self, stated: Precision | None) -> Precision:
        """The precision of a request that states this one, or none. Raises Refusal."""
        asked = self.default if stated is None else stated
        allowed = PRECISIONS[: PRECISIONS.index(self.least) + 1]
        if asked in allowed:
            return asked
        expected, got = f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0], f"“{asked}”"
        sentence = f"precision must be {expected} on this server, but is {got}"
        raise Refusal("invalid_field", sentence, expected=expected, got=got, pointer="/precision")
