"""The cost model: which jobs are of one kind, what a long one is expected to take, and what is remembered of whom."""

from __future__ import annotations

import time
from typing import Any

import pytest

from service.workers.admission import LARGE_BODY, QUICK, CostModel, TaskKind, kind_of
from service.workers.task import Estimate, Task

PLAN = Estimate(2.0, 5, 7)
KIND = TaskKind("a", "kind")


def job(body: bytes = b"{}", **stated: Any) -> Task:
    return Task("forward", body, "id", 60.0, time.monotonic() + 60.0, **stated)


def model(*seconds: float, plan: Estimate = PLAN, planned: bool = False) -> CostModel:
    """One that knows one kind's plan, and has measured it so often."""
    known = CostModel()
    known.add_plan(KIND, plan)
    for each in seconds:
        known.record(KIND, None, each, planned=planned)
    return known


def expected(known: CostModel, kind: TaskKind = KIND) -> float:
    """What a kind of its plan is expected to take."""
    return known.add_plan(kind, PLAN).seconds


def test_what_nobody_has_planned_costs_nothing_to_look_up() -> None:
    assert CostModel().estimate(job()) == (None, None)
    known = CostModel()
    known.add_plan(kind_of(job(tenant="a")), PLAN)
    assert known.estimate(job(tenant="b")) == (None, None), "of whom nothing is known, no kind is made out"
    assert known.estimate(job(tenant="a")) == (kind_of(job(tenant="a")), PLAN)
    assert known.estimate(job(b"[]", tenant="a")) == (kind_of(job(b"[]", tenant="a")), None)


def test_a_large_body_takes_what_reading_it_does() -> None:
    kind, estimate = CostModel().estimate(job(bytes(LARGE_BODY + 1)))
    assert kind == kind_of(job(bytes(LARGE_BODY + 1)))
    assert estimate == ((LARGE_BODY + 1) / 50e6, 0, 0)
    assert CostModel().estimate(job(bytes(LARGE_BODY))) == (None, None)


def test_a_kind_takes_what_it_was_measured_to_take_the_last_time_counting_three_tenths() -> None:
    assert expected(model(3.0)) == pytest.approx(3.0)
    assert expected(model(3.0, 5.0)) == pytest.approx(0.7 * 3 + 0.3 * 5)
    assert expected(model(3.0, 5.0, 1.0)) == pytest.approx(0.7 * (0.7 * 3 + 0.3 * 5) + 0.3 * 1)
    assert model(3.0).add_plan(KIND, Estimate(9.0, 1, 2)) == (3.0, 1, 2), "in the memory that the last plan says"


def test_a_run_that_planned_first_says_nothing_of_the_next_but_how_far_plans_are_off() -> None:
    assert expected(model(4.0, planned=True)) == pytest.approx(2.0 * (0.7 + 0.3 * 2.0))


@pytest.mark.parametrize(("seconds", "ratio"), [(3.0, 1.5), (8.0, 4.0), (1000.0, 4.0), (0.5, 0.25), (0.01, 0.25)])
def test_one_measurement_corrects_a_caller_s_plans_by_little(seconds: float, ratio: float) -> None:
    """By three tenths of what it differs by, which is believed up to a factor of four."""
    known = model(seconds)
    assert expected(known, TaskKind("a", "other")) == pytest.approx(2.0 * (0.7 + 0.3 * ratio))
    assert expected(known, TaskKind("b", "other")) == 2.0, "and nobody else's at all"


def test_the_margin_is_narrower_once_three_were_compared() -> None:
    margins = [model(*[2.0] * count).margin("a") for count in range(5)]
    assert margins == [1.25, 1.25, 1.25, 1.1, 1.1]
    assert model(2.0, 2.0, 2.0).margin("b") == 1.25


def test_what_no_plan_speaks_of_is_compared_with_nothing() -> None:
    known = CostModel()
    for _ in range(5):
        known.record(KIND, None, 3.0, planned=False)
    assert known.margin("a") == 1.25
    assert expected(known) == pytest.approx(3.0)


def test_a_kind_that_turns_out_to_be_short_is_forgotten() -> None:
    known = model(3.0)
    known.record(KIND, None, QUICK / 2, planned=False)
    assert known.lower_bound(KIND, 0) is not None, "that is not short yet"
    known.record(KIND, None, QUICK / 2.1, planned=False)
    assert known.estimate(job(tenant="a")) == (None, None)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_kind_is_settled_once_each_worker_has_planned_and_compiled_it(workers: int) -> None:
    known = model(*[9.0] * 2 * workers)
    assert known.lower_bound(KIND, workers) is None
    known.record(KIND, None, 4.0, planned=False)
    assert known.lower_bound(KIND, workers) == (4.0, 5, 7), "at the least, of the last three"
    for _ in range(3):
        known.record(KIND, None, 6.0, planned=False)
    assert known.lower_bound(KIND, workers) == (6.0, 5, 7)
    assert known.lower_bound(None, workers) is None
    assert known.lower_bound(TaskKind("a", "other"), workers) is None


def test_what_is_remembered_is_bounded_and_goes_from_who_has_most() -> None:
    known = CostModel()
    for tenant in ("modest", "greedy"):
        known.add_plan(kind_of(job(tenant=tenant)), PLAN)
    for number in range(4200):
        known.add_plan(TaskKind("greedy", number), PLAN)
    assert known.estimate(job(tenant="modest"))[1] == PLAN
    assert known.estimate(job(tenant="greedy"))[1] is None, "the first of them is the first to go"


@pytest.mark.slow
def test_of_callers_the_one_that_was_asked_about_longest_ago_is_forgotten() -> None:
    known = model(3.0, 3.0, 3.0)
    for number in range(4095):
        known.margin(f"caller {number}")
    assert known.margin("a") == 1.1, "4096 are remembered"
    for number in range(4095):
        known.margin(f"other {number}")
    assert known.margin("a") == 1.1, "it was asked about before those"
    for number in range(4096):
        known.margin(f"last {number}")
    assert known.margin("a") == 1.25


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (job(b"x" * 600), job(b"x" * 600), True),
        (job(b"x" * 600), job(b"x" * 601), False),
        (job(b"x" * 1024 + b"1"), job(b"x" * 512 + b"y" * 512 + b"1"), True),
        (job(b"x" * 512), job(b"x" * 511 + b"y"), False),
        (job(b"x" * 9000), job(b"x" * 4096 + b"y" * 4904), True),
        (job(b"x" * 9000), job(b"x" * 4095 + b"y" * 4905), False),
        (job(tenant="a"), job(tenant="b"), False),
        (job(b"xx", graph="g"), job(b"yy", graph="g"), True),
        (job(b"xx", graph="g"), job(b"xxx", graph="g"), False),
        (job(graph="g"), job(graph="h"), False),
    ],
)
def test_a_kind_is_known_by_its_caller_its_length_and_how_it_begins(one: Task, other: Task, alike: bool) -> None:
    assert (kind_of(one) == kind_of(other)) == alike
    other.call = "gradients"
    assert kind_of(one) != kind_of(other)
