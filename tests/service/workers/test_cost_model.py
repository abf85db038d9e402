"""The cost model: kinds of jobs, expected times of long ones, and limits on what it remembers."""

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
    """A cost model with the plan of one kind and these measurements of it."""
    costs = CostModel()
    costs.add_plan(KIND, plan)
    for measured in seconds:
        costs.record(KIND, None, measured, planned=planned)
    return costs


def expected(costs: CostModel, kind: TaskKind = KIND) -> float:
    """Expected seconds of a kind with this plan."""
    return costs.add_plan(kind, PLAN).seconds


def test_unplanned_jobs_have_no_kind_and_no_estimate() -> None:
    assert CostModel().estimate(job()) == (None, None)
    costs = CostModel()
    costs.add_plan(kind_of(job(tenant="a")), PLAN)
    assert costs.estimate(job(tenant="b")) == (None, None), "of whom nothing is known, no kind is made out"
    assert costs.estimate(job(tenant="a")) == (kind_of(job(tenant="a")), PLAN)
    assert costs.estimate(job(b"[]", tenant="a")) == (kind_of(job(b"[]", tenant="a")), None)


def test_large_body_is_estimated_by_its_size() -> None:
    kind, estimate = CostModel().estimate(job(bytes(LARGE_BODY + 1)))
    assert kind == kind_of(job(bytes(LARGE_BODY + 1)))
    assert estimate == ((LARGE_BODY + 1) / 50e6, 0, 0)
    assert CostModel().estimate(job(bytes(LARGE_BODY))) == (None, None)


def test_measurements_are_averaged_with_weight_0_3() -> None:
    assert expected(model(3.0)) == pytest.approx(3.0)
    assert expected(model(3.0, 5.0)) == pytest.approx(0.7 * 3 + 0.3 * 5)
    assert expected(model(3.0, 5.0, 1.0)) == pytest.approx(0.7 * (0.7 * 3 + 0.3 * 5) + 0.3 * 1)
    assert model(3.0).add_plan(KIND, Estimate(9.0, 1, 2)) == (3.0, 1, 2), "in the memory that the last plan says"


def test_run_that_planned_only_corrects_the_plans() -> None:
    assert expected(model(4.0, planned=True)) == pytest.approx(2.0 * (0.7 + 0.3 * 2.0))


@pytest.mark.parametrize(("seconds", "ratio"), [(3.0, 1.5), (8.0, 4.0), (1000.0, 4.0), (0.5, 0.25), (0.01, 0.25)])
def test_one_measurement_corrects_plans_of_its_caller_slightly(seconds: float, ratio: float) -> None:
    """The ratio has a weight of three tenths, and is limited to a factor of four."""
    costs = model(seconds)
    assert expected(costs, TaskKind("a", "other")) == pytest.approx(2.0 * (0.7 + 0.3 * ratio))
    assert expected(costs, TaskKind("b", "other")) == 2.0, "and nobody else's at all"


def test_margin_narrows_after_three_comparisons() -> None:
    margins = [model(*[2.0] * count).margin("a") for count in range(5)]
    assert margins == [1.25, 1.25, 1.25, 1.1, 1.1]
    assert model(2.0, 2.0, 2.0).margin("b") == 1.25


def test_measurements_without_a_plan_keep_the_margin() -> None:
    costs = CostModel()
    for _ in range(5):
        costs.record(KIND, None, 3.0, planned=False)
    assert costs.margin("a") == 1.25
    assert expected(costs) == pytest.approx(3.0)


def test_kind_that_turns_out_short_is_dropped() -> None:
    costs = model(3.0)
    costs.record(KIND, None, QUICK / 2, planned=False)
    assert costs.lower_bound(KIND, 0) is not None, "that is not short yet"
    costs.record(KIND, None, QUICK / 2.1, planned=False)
    assert costs.estimate(job(tenant="a")) == (None, None)


@pytest.mark.parametrize("workers", [1, 3])
def test_lower_bound_needs_more_than_two_runs_per_worker(workers: int) -> None:
    costs = model(*[9.0] * 2 * workers)
    assert costs.lower_bound(KIND, workers) is None
    costs.record(KIND, None, 4.0, planned=False)
    assert costs.lower_bound(KIND, workers) == (4.0, 5, 7), "at the least, of the last three"
    for _ in range(3):
        costs.record(KIND, None, 6.0, planned=False)
    assert costs.lower_bound(KIND, workers) == (6.0, 5, 7)
    assert costs.lower_bound(None, workers) is None
    assert costs.lower_bound(TaskKind("a", "other"), workers) is None


def test_oldest_kind_of_the_largest_caller_is_evicted() -> None:
    costs = CostModel()
    for tenant in ("modest", "greedy"):
        costs.add_plan(kind_of(job(tenant=tenant)), PLAN)
    for number in range(4200):
        costs.add_plan(TaskKind("greedy", number), PLAN)
    assert costs.estimate(job(tenant="modest"))[1] == PLAN
    assert costs.estimate(job(tenant="greedy"))[1] is None, "the first of them is the first to go"


@pytest.mark.slow
def test_least_recently_used_caller_is_evicted() -> None:
    costs = model(3.0, 3.0, 3.0)
    for number in range(4095):
        costs.margin(f"caller {number}")
    assert costs.margin("a") == 1.1, "4096 are remembered"
    for number in range(4095):
        costs.margin(f"other {number}")
    assert costs.margin("a") == 1.1, "it was asked about before those"
    for number in range(4096):
        costs.margin(f"last {number}")
    assert costs.margin("a") == 1.25


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
def test_kind_is_caller_length_and_prefix(one: Task, other: Task, alike: bool) -> None:
    assert (kind_of(one) == kind_of(other)) == alike
    other.call = "gradients"
    assert kind_of(one) != kind_of(other)
