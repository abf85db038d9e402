"""Rate and concurrency limits of a key."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from service.core.errors import Refusal
from service.core.keys.authentication import ANONYMOUS_HOLDER, Keyholder
from service.core.keys.caller import ANONYMOUS, Caller, KeyScope
from service.core.keys.key_file import rate_of


class Clock:
    """Clock that only the test advances."""

    def __init__(self) -> None:
        self.now = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake_clock = Clock()
    monkeypatch.setattr("service.core.keys.authentication.time", SimpleNamespace(monotonic=lambda: fake_clock.now))
    return fake_clock


def passes(holder: Keyholder) -> int:
    """Count the sequential requests that are accepted now."""
    count = 0
    while True:
        try:
            holder.enter()
        except Refusal:
            return count
        holder.leave()
        count += 1


def refusal(holder: Keyholder) -> Refusal:
    with pytest.raises(Refusal) as raised:
        holder.enter()
    return raised.value


class TestRate:
    """Token bucket."""

    @pytest.mark.parametrize(("rate", "count"), [("1/s", 1), ("10/s", 10), ("7/min", 7), ("1000/h", 1000), ("3/h", 3)])
    def test_full_bucket_may_be_used_at_once_and_refills(self, clock: Clock, rate: str, count: int) -> None:
        holder = Keyholder(ANONYMOUS, rate)
        requests, seconds = rate_of(rate)
        assert passes(holder) == count == requests
        clock.now += seconds / requests
        assert passes(holder) == 1
        clock.now += seconds
        assert passes(holder) == count
        clock.now += 100 * seconds
        assert passes(holder) == count, "no more than a bucket is saved up"

    def test_long_term_average_is_the_rate(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "10/s")
        total = 0
        for _ in range(1000):
            clock.now += 0.037
            total += passes(holder)
        assert abs(total - 370) <= 10

    def test_refused_requests_use_no_rate(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "2/s")
        assert passes(holder) == 2
        for _ in range(100):
            refusal(holder)
        clock.now += 0.5
        assert passes(holder) == 1

    def test_request_is_accepted_after_retry_after(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "2/h")
        assert passes(holder) == 2
        refused = refusal(holder)
        assert refused.retry_after == 1800
        clock.now += refused.retry_after
        assert passes(holder) == 1

    def test_retry_after_is_at_least_one_second(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "1000/s")
        passes(holder)
        refused = refusal(holder)
        assert (refused.code, refused.status, refused.headers["Retry-After"]) == ("rate_limited", 429, "1")
        assert (
            refused.detail
            == "this key has reached its rate limit of 1000 in 1 s; try again after the number of seconds in "
            "Retry-After"
        )

    @pytest.mark.parametrize(
        "text", ["", "10", "/s", "0/s", "-1/s", "1.5/s", "10/d", "10 /s", "10/s ", "١/s", "9" * 10 + "/s"]
    )
    def test_malformed_rate_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="a rate is a whole number"):
            rate_of(text)


class TestConcurrency:
    """Requests in progress."""

    def test_concurrency_is_limited(self) -> None:
        holder = Keyholder(ANONYMOUS, concurrency=2)
        holder.enter()
        holder.enter()
        refused = refusal(holder)
        assert (refused.code, refused.headers["Retry-After"]) == ("rate_limited", "1")
        assert "has 2 requests in progress" in refused.detail
        holder.leave()
        holder.enter()
        refusal(holder)

    def test_request_refused_for_its_rate_is_not_in_progress(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "1/s", concurrency=1)
        assert passes(holder) == 1
        refusal(holder)
        clock.now += 1
        assert passes(holder) == 1

    def test_request_refused_for_concurrency_uses_no_rate(self, clock: Clock) -> None:
        holder = Keyholder(ANONYMOUS, "2/h", concurrency=1)
        holder.enter()
        for _ in range(10):
            refusal(holder)
        holder.leave()
        holder.enter()


def test_anonymous_caller_has_no_limits() -> None:
    for _ in range(10_000):
        ANONYMOUS_HOLDER.enter()
    for _ in range(10_000):
        ANONYMOUS_HOLDER.leave()


def test_missing_scope_is_named() -> None:
    caller = Caller("a", "a", frozenset({KeyScope.WRITE, KeyScope.COMPUTE}))
    caller.require(KeyScope.WRITE)
    with pytest.raises(Refusal) as refused:
        caller.require(KeyScope.READ)
    assert (refused.value.code, refused.value.expected, refused.value.got) == ("forbidden", "read", "compute, write")
