"""Bursts of equal length alternate between the sides, and differing results are not timed."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.compare import Differs, largest_difference
from benchmarks.goals import verdict
from benchmarks.page import END, START, written
from benchmarks.turns import bursts, median_of_ratios, ratio_of_medians, spread


def test_rounds_include_every_side_and_rotate_the_first() -> None:
    asked: list[tuple[str, int]] = []

    def side(name: str, seconds: float):
        def burst(count: int) -> float:
            asked.append((name, count))
            return seconds

        return burst

    times = bursts({"a": side("a", 0.003), "b": side("b", 0.1)}, rounds=3, seconds=9)
    assert times == {"a": [3.0] * 3, "b": [100.0] * 3}
    assert asked[-6:] == [("a", 20), ("b", 1), ("b", 1), ("a", 20), ("a", 20), ("b", 1)]


def test_slow_workload_has_fewer_rounds() -> None:
    assert len(bursts({"a": lambda count: 0.1}, rounds=50, seconds=0.0)["a"]) == 5


def test_disturbed_round_does_not_change_the_ratio() -> None:
    ours, theirs = [1.0, 1.0, 8.0, 8.0, 1.0], [2.0, 2.0, 16.0, 16.0, 2.0]
    assert median_of_ratios(ours, theirs) == ratio_of_medians(ours, theirs) == 0.5
    assert spread([4.0, 1.0, 2.0, 3.0, 5.0]).lower == 2.0


def test_differing_results_are_refused() -> None:
    one = [np.array([1.0, 2.0])]
    assert largest_difference(one, [np.array([1.0, 2.0 + 1e-12])], "float64") < 1e-11
    for other in ([np.array([1.0, 2.1])], [np.array([1.0, np.nan])], [np.array([1.0])], []):
        with pytest.raises(Differs):
            largest_difference(one, other, "float64")


def test_goals_are_judged_by_the_measured_peers() -> None:
    assert verdict("W1", {"sides": {"jax": {"ratio": 0.4}}}) == "met"
    assert verdict("W1", {"sides": {"jax": {"ratio": 0.6}}}) == "missed: jax 0.60 > 0.5"
    assert verdict("W1", {"sides": {"torch": {"ratio": 0.1}}}) == "not measured"
    assert not verdict("op-add", {"sides": {"torch": {"ratio": 3.0}}})


def test_only_the_measured_part_of_the_page_is_replaced() -> None:
    page = f"before\n{START}old\n{END}\nafter\n"
    assert written(page, iter(["new"])) == f"before\n{START}\nnew\n{END}\nafter\n"
    with pytest.raises(ValueError, match="no place"):
        written("a page", iter(["new"]))
