"""Benchmark loops match Python loops, their gradients match finite differences, and their plans fit the memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks.goals import GOALS
from benchmarks.page import planning
from benchmarks.planning import in_groups
from benchmarks.problems import loops
from benchmarks.problems.loops import BOTH, LOOPS, MEMORY, PLANNED
from benchmarks.sides import LIMITS, gradserve, recorded
from benchmarks.suite import find
from benchmarks.vocabularies import Vocabulary, looping, numpy_like
from benchmarks.workload import Array, Workload
from engine import Compiler, Plan
from tests.engine.ops.run import run

DRAWS = ("random_key", "random_split", "random_normal", "random_uniform")
#: tolerances relative to the largest number, after a thousand steps
NEAR = {"float32": 1e-5, "float64": 1e-11}


def numpy_ops() -> Vocabulary:
    """NumPy functions and Python loops; random numbers are the engine's, drawn one by one."""
    functions = numpy_like(np) | {name: partial(run, name) for name in DRAWS}
    return looping(**functions, sigmoid=lambda x: 1 / (1 + np.exp(-x)), checkpoint=lambda step: step)


def by_numpy(work: Workload, arrays: list[Array]) -> float | Array:
    return np.asarray(work.function(numpy_ops(), *[a.astype("float64") if a.dtype.kind == "f" else a for a in arrays]))


def by_engine(work: Workload) -> list[Array]:
    prepared = gradserve(work, "cpu")
    return prepared.read(prepared.call())


def slope(work: Workload, along: list[Array], step: float) -> float:
    """The derivative along a direction, by finite differences."""
    ends = [[x + distance * v for x, v in zip(work.parameters, along, strict=True)] for distance in (step, -step)]
    above, below = (by_numpy(work, [*moved, *work.data]) for moved in ends)
    return float(above - below) / (2 * step)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_values_and_gradients_match_python_loops(name: str) -> None:
    work = LOOPS[name]()
    value, *gradients = by_engine(work)
    expected = by_numpy(work, work.arrays)
    np.testing.assert_allclose(value, expected, NEAR[work.dtype])
    (alone,) = by_engine(LOOPS[f"{name}-values"]())
    np.testing.assert_allclose(alone, expected, NEAR[work.dtype])
    rng = np.random.default_rng(0)
    along = [rng.standard_normal(a.shape) for a in work.parameters]
    derivative = sum(float((g * v).sum()) for g, v in zip(gradients, along, strict=True))
    assert derivative == pytest.approx(slope(work, along, 1e-6), rel=1e-3)


@pytest.mark.slow
def test_sampler_matches_a_python_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "DRAWS", 20)
    work = LOOPS["hmc"]()
    (draws,) = by_engine(work)
    np.testing.assert_allclose(draws, by_numpy(work, work.arrays), 1e-9, 1e-12)
    assert len(np.unique(draws)) == draws.size


def test_loop_in_pieces_equals_the_whole_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MILLION", 3 * loops.STEPS)
    whole, pieces = LOOPS["rk4-million"](), replace(PLANNED["loop-10"](), function=loops.pair_in_pieces)
    np.testing.assert_allclose(by_numpy(whole, whole.arrays), by_numpy(pieces, pieces.arrays), 1e-12)


def planned(name: str) -> Plan:
    work = find(name)()
    program, types, call = recorded(work)
    return Compiler(LIMITS).compile(program, types, call, memory=work.memory).plan


def test_million_steps_fit_the_memory_limit() -> None:
    assert planned("loop-1000000").peak_bytes > MEMORY >= planned("rk4-million").peak_bytes


def test_plan_does_not_depend_on_the_loop_length() -> None:
    few, many, body = map(planned, PLANNED)
    assert len(few.steps) == len(many.steps)
    assert len(body.result_types) == len(many.result_types)


def test_loop_plans_are_timed_in_one_group() -> None:
    assert in_groups(["W2", *PLANNED, "W6"]) == [["W2"], ["W6"], [*PLANNED]]
    assert in_groups(["W2"]) == [["W2"]]


def test_every_loop_has_a_goal() -> None:
    assert {*LOOPS} <= {*GOALS}


def test_page_compares_the_planning_times_of_loops() -> None:
    rows = {name: {"gradserve": {"median": time}} for name, time in zip(PLANNED, (8.0, 10.0, 5.0), strict=True)}
    assert "in 1.25 × the time of one of ten, and in 2.00 × that" in planning(rows)
    assert "million" not in planning({"W2": rows["loop-10"]})
