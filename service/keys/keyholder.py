"""Holder of a key: who that is to the server, and how much of their share is used up."""

from __future__ import annotations

import math
import time
from typing import Final

from service.errors import Refusal
from service.keys.caller import ANYONE, Caller
from service.keys.record import Rate, rate_of


class Keyholder:
    """Count of the requests of one key. For one thread.

    The rate is a bucket of tokens, kept as one number (GCRA): until when those that are taken would suffice, at one
    token in `seconds / requests`. It lies at most `seconds` ahead, so that the whole bucket may go at once.
    """

    __slots__ = ("_concurrency", "_in_work", "_rate", "_spent_until", "caller")

    def __init__(self, caller: Caller, rate: str | None = None, concurrency: int | None = None) -> None:
        self.caller = caller
        self._rate: Rate | None = None if rate is None else rate_of(rate)
        self._concurrency = concurrency
        self._in_work = 0
        self._spent_until = 0.0

    def enter(self) -> None:
        """Count a request, until it leaves. Raises Refusal (rate_limited), and counts nothing then."""
        if self._concurrency is not None and self._in_work >= self._concurrency:
            shown = f"{self._concurrency} {'request' if self._concurrency == 1 else 'requests'}"
            detail = f"this key has {shown} in work, its limit; send the next one when one of them is answered"
            raise Refusal("rate_limited", detail, expected=f"at most {shown} at a time", got="one more", retry_after=1)
        if self._rate is not None:
            self._take_one(self._rate, time.monotonic())
        self._in_work += 1

    def leave(self) -> None:
        """A request that was counted is answered, or its client is gone."""
        self._in_work -= 1

    def _take_one(self, rate: Rate, now: float) -> None:
        spent_until = max(self._spent_until, now) + rate.seconds / rate.requests
        wait = spent_until - now - rate.seconds
        if wait > 1e-6:  # the sum of tokens is a hair longer than the bucket
            shown = f"{rate.requests} in {rate.seconds:g} s"
            detail = f"this key has used up its rate of {shown}; try again after the seconds in Retry-After"
            raise Refusal(
                "rate_limited", detail, expected=f"at most {shown}", got="more", retry_after=max(1, math.ceil(wait))
            )
        self._spent_until = spent_until


#: everybody, where no key is asked for
EVERYBODY: Final = Keyholder(ANYONE)
