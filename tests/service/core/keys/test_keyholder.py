"""How much of its share a key has used up."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from service.core.errors import Refusal
from service.core.keys.authentication import ANONYMOUS_HOLDER, Keyholder
from service.core.keys.caller import ANONYMOUS, Caller, KeyScope
from service.core.keys.key_file import rate_of


class Clock:
    """A clock that stands still, but for what the test says."""

    def __init__(self) -> None:
        self.now = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("service.core.keys.authentication.time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def passes(holder: Keyholder) -> int:
    """How many requests get in now, one after the other."""
    count = 0
    while True:
        try:
            holder.enter()
        except Refusal:
            return count
        holder.leave()
        count += 1


def refusal(holder: Keyholder) -> Refusal:
    with pytest.raises(Refusal) as told:
        holder.enter()
    return told.value


class TestRate:
    """A bucket of tokens."""

    @pytest.mark.parametrize(("rate", "count"), [("1/s", 1), ("10/s", 10), ("7/min", 7), ("1000/h", 1000), ("3/h", 3)])
    def test_the_bucket_may_go_at_once_and_fills_again(self, clock: Clock, rate: str, count: int) -> None:
        holder = Keyholder(ANONYMOUS, rate)
        requests, seconds = rate_of(rate)
        assert passes(holder) == count == requests
        clock.now += seconds / requests
        assert passes(holder) == 1
        clock.now += seconds
        assert passes(holder) == count
        clock.now += 100 * seconds
        assert passes(holder) == count, "no more than a bucket is saved up"

    def test_over_a_long_time_it_is_the_rate(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "10/s")
        total = 0
        for _ in range(1000):
            clock.now += 0.037
            total += passes(holder)
        assert abs(total - 370) <= 10

    def test_what_is_refused_does_not_count(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "2/s")
        assert passes(holder) == 2
        for _ in range(100):
            refusal(holder)
        clock.now += 0.5
        assert passes(holder) == 1

    def test_after_the_seconds_that_it_says_it_goes_on(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "2/h")
        assert passes(holder) == 2
        told = refusal(holder)
        assert told.retry_after == 1800
        clock.now += told.retry_after
        assert passes(holder) == 1

    def test_the_least_wait_is_a_second(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "1000/s")
        passes(holder)
        told = refusal(holder)
        assert (told.code, told.status, told.headers["Retry-After"]) == ("rate_limited", 429, "1")
        assert told.detail == "this key has used up its rate of 1000 in 1 s; try again after the seconds in Retry-After"

    @pytest.mark.parametrize(
        "text", ["", "10", "/s", "0/s", "-1/s", "1.5/s", "10/d", "10 /s", "10/s ", "١/s", "9" * 10 + "/s"]
    )
    def test_what_is_no_rate(self, text: str) -> None:
        with pytest.raises(ValueError, match="a rate is a whole number"):
            rate_of(text)


class TestConcurrency:
    """Requests in work."""

    def test_no_more_than_so_many(self) -> None:
        holder = Keyholder(ANONYMOUS, concurrency=2)
        holder.enter()
        holder.enter()
        told = refusal(holder)
        assert (told.code, told.headers["Retry-After"]) == ("rate_limited", "1")
        assert "has 2 requests in work" in told.detail
        holder.leave()
        holder.enter()
        refusal(holder)

    def test_what_is_refused_for_its_rate_is_not_in_work(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "1/s", concurrency=1)
        assert passes(holder) == 1
        refusal(holder)
        clock.now += 1
        assert passes(holder) == 1

    def test_what_is_refused_for_others_in_work_costs_no_rate(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "2/h", concurrency=1)
        holder.enter()
        for _ in range(10):
            refusal(holder)
        holder.leave()
        holder.enter()


def test_everybody_has_no_limit() -> None:
    for _ in range(10_000):
        ANONYMOUS_HOLDER.enter()
    for _ in range(10_000):
        ANONYMOUS_HOLDER.leave()


def test_a_scope_is_there_or_named() -> None:
    caller = Caller("a", "a", frozenset({KeyScope.WRITE, KeyScope.COMPUTE}))
    caller.require(KeyScope.WRITE)
    with pytest.raises(Refusal) as told:
        caller.require(KeyScope.READ)
    assert (told.value.code, told.value.expected, told.value.got) == ("forbidden", "read", "compute, write")
