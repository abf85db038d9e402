"""Admission: what is too much is refused with the seconds to wait, by how fast jobs were done lately."""

from __future__ import annotations

import math

import pytest

from service.workers.admission import Admission

NOW = 50.0


def looked(jobs: int, rates: list[int], seconds: float = 1.0) -> Admission:
    """After looks this far apart, between which so many replies were given."""
    admission, now = Admission(jobs), NOW
    admission.look(now)
    for count in rates:
        for _ in range(count):
            admission.replied()
        now += seconds
        admission.look(now)
    return admission


def test_so_many_jobs_are_held_and_not_one_more() -> None:
    admission = Admission(3)
    assert [admission.full(jobs) for jobs in (0, 2, 3, 4)] == [False, False, True, True]
    assert Admission(0).full(0)


def test_the_refusal_of_one_more_says_how_many_there_are() -> None:
    refusal = Admission(3).crowded(3)
    assert (refusal.code, refusal.status) == ("queue_full", 503)
    assert "already holds 3 requests" in refusal.detail


def test_where_no_rate_is_known_yet_a_second_is_asked_for() -> None:
    admission = Admission(1000)
    for _ in range(50):
        admission.replied()
    assert admission.crowded(1000).retry_after == 1
    admission.look(NOW)
    assert admission.crowded(1000).retry_after == 1, "one look measures nothing"
    assert looked(1000, [0]).crowded(1000).retry_after == 1, "nor does one in which nothing was done"


@pytest.mark.parametrize(("jobs", "rates"), [(100, [10]), (100, [10, 10]), (7, [1, 0, 5]), (200, [40, 2, 2, 2])])
def test_half_of_what_waits_is_to_be_done_by_then(jobs: int, rates: list[int]) -> None:
    """At a rate of which each look is three tenths, and all looks before it are the rest."""
    rate = 0.0
    for count in rates:
        rate = 0.7 * rate + 0.3 * count
    assert looked(jobs, rates).crowded(jobs).retry_after == min(60, math.ceil(jobs / (2 * rate)))


def test_a_look_measures_by_the_time_since_the_last_one() -> None:
    assert looked(100, [20], seconds=2.0).crowded(100).retry_after == looked(100, [10]).crowded(100).retry_after
    assert looked(100, [10, 0]).crowded(100).retry_after == math.ceil(50 / (0.3 * 0.7 * 10)), "replies count once"


@pytest.mark.parametrize(("jobs", "wanted"), [(10**9, 60), (1, 1)])
def test_nobody_is_sent_away_for_longer_than_a_minute_or_for_no_time(jobs: int, wanted: int) -> None:
    assert looked(jobs, [30]).crowded(jobs).retry_after == wanted


@pytest.mark.parametrize(
    ("needed", "left", "seconds"), [(12.4, 10.0, 3), (10.0, 9.999, 1), (11.0, 10.0, 1), (1e9, 1.0, 60), (61.0, 1.0, 60)]
)
def test_what_cannot_be_in_time_is_told_by_how_much(needed: float, left: float, seconds: int) -> None:
    refusal = Admission.infeasible(needed, left)
    assert (refusal.code, refusal.retry_after) == ("queue_full", seconds)
    assert refusal.detail == (f"what waits already would take this request to {needed:.3g} s, and it has {left:.3g} s")
