"""Admission: excess jobs are refused with a Retry-After that follows the recent rate of replies."""

from __future__ import annotations

import math

import pytest

from service.workers.admission import Admission

NOW = 50.0


def admission_after(jobs: int, rates: list[int], seconds: float = 1.0) -> Admission:
    """Admission after looks this far apart, with these numbers of replies between them."""
    admission, now = Admission(jobs), NOW
    admission.look(now)
    for count in rates:
        for _ in range(count):
            admission.replied()
        now += seconds
        admission.look(now)
    return admission


def test_admission_is_full_beyond_its_limit() -> None:
    admission = Admission(3)
    assert [admission.full(jobs) for jobs in (0, 2, 3, 4)] == [False, False, True, True]
    assert Admission(0).full(0)


def test_refusal_states_the_number_of_jobs() -> None:
    refusal = Admission(3).crowded(3)
    assert (refusal.code, refusal.status) == ("queue_full", 503)
    assert "already holds 3 requests" in refusal.detail


def test_retry_after_is_one_second_without_a_rate() -> None:
    admission = Admission(1000)
    for _ in range(50):
        admission.replied()
    assert admission.crowded(1000).retry_after == 1
    admission.look(NOW)
    assert admission.crowded(1000).retry_after == 1, "one look measures nothing"
    assert admission_after(1000, [0]).crowded(1000).retry_after == 1, "nor does one in which nothing was done"


@pytest.mark.parametrize(("jobs", "rates"), [(100, [10]), (100, [10, 10]), (7, [1, 0, 5]), (200, [40, 2, 2, 2])])
def test_retry_after_covers_half_of_the_queue(jobs: int, rates: list[int]) -> None:
    """The rate is a moving average, in which each look has a weight of three tenths."""
    rate = 0.0
    for count in rates:
        rate = 0.7 * rate + 0.3 * count
    assert admission_after(jobs, rates).crowded(jobs).retry_after == min(60, math.ceil(jobs / (2 * rate)))


def test_look_measures_the_rate_since_the_last_one() -> None:
    assert (
        admission_after(100, [20], seconds=2.0).crowded(100).retry_after
        == admission_after(100, [10]).crowded(100).retry_after
    )
    assert admission_after(100, [10, 0]).crowded(100).retry_after == math.ceil(50 / (0.3 * 0.7 * 10)), (
        "replies count once"
    )


@pytest.mark.parametrize(("jobs", "wanted"), [(10**9, 60), (1, 1)])
def test_retry_after_is_between_a_second_and_a_minute(jobs: int, wanted: int) -> None:
    assert admission_after(jobs, [30]).crowded(jobs).retry_after == wanted


@pytest.mark.parametrize(
    ("needed", "left", "seconds"), [(12.4, 10.0, 3), (10.0, 9.999, 1), (11.0, 10.0, 1), (1e9, 1.0, 60), (61.0, 1.0, 60)]
)
def test_infeasible_deadline_states_the_required_time(needed: float, left: float, seconds: int) -> None:
    refusal = Admission.infeasible(needed, left)
    assert (refusal.code, refusal.retry_after) == ("queue_full", seconds)
    assert refusal.detail == (
        f"with the requests before it, this request would take {needed:.3g} s, but only {left:.3g} s are left"
    )
