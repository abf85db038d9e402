"""Estimate of what a task takes, before it is done."""

from __future__ import annotations

from typing import Final, NamedTuple

#: bytes of JSON that are read, or of elements that are written as JSON, in a second
TEXT_RATE: Final = 50e6


class Estimate(NamedTuple):
    """Needs of a plan, as they are known before it runs: seconds, and bytes at the peak and, at most, in the answer."""

    seconds: float
    peak_bytes: int = 0
    response_bytes: int = 0
