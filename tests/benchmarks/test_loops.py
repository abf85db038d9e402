"""Loops of the benchmark compute what loops of Python do; their gradients are those of differences; memory suffices."""

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
#: relative to the largest number, after a thousand steps
NEAR = {"float32": 1e-5, "float64": 1e-11}


def numpy_ops() -> Vocabulary:
    """NumPy's functions and loops of Python; random numbers are the engine's, drawn one by one."""
    functions = numpy_like(np) | {name: partial(run, name) for name in DRAWS}
    return looping(**functions, sigmoid=lambda x: 1 / (1 + np.exp(-x)), checkpoint=lambda step: step)


def by_numpy(work: Workload, arrays: list[Array]) -> float | Array:
    return np.asarray(work.function(numpy_ops(), *[a.astype("float64") if a.dtype.kind == "f" else a for a in arrays]))


def by_engine(work: Workload) -> list[Array]:
    prepared = gradserve(work, "cpu")
    return prepared.read(prepared.call())


def slope(work: Workload, along: list[Array], step: float) -> float:
    """The derivative along a direction, by differences."""
    ends = [[x + by * v for x, v in zip(work.parameters, along, strict=True)] for by in (step, -step)]
    above, below = (by_numpy(work, [*moved, *work.data]) for moved in ends)
    return float(above - below) / (2 * step)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_values_and_gradients_are_those_of_loops_of_python(name: str) -> None:
    work = LOOPS[name]()
    value, *gradients = by_engine(work)
    wanted = by_numpy(work, work.arrays)
    np.testing.assert_allclose(value, wanted, NEAR[work.dtype])
    (alone,) = by_engine(LOOPS[f"{name}-values"]())
    np.testing.assert_allclose(alone, wanted, NEAR[work.dtype])
    rng = np.random.default_rng(0)
    along = [rng.standard_normal(a.shape) for a in work.parameters]
    found = sum(float((g * v).sum()) for g, v in zip(gradients, along, strict=True))
    assert found == pytest.approx(slope(work, along, 1e-6), rel=1e-3)


@pytest.mark.slow
def test_a_sampler_draws_what_a_loop_of_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "DRAWS", 20)
    work = LOOPS["hmc"]()
    (found,) = by_engine(work)
    np.testing.assert_allclose(found, by_numpy(work, work.arrays), 1e-9, 1e-12)
    assert len(np.unique(found)) == found.size


def test_pieces_are_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MILLION", 3 * loops.STEPS)
    whole, pieces = LOOPS["rk4-million"](), replace(PLANNED["loop-10"](), function=loops.pair_in_pieces)
    np.testing.assert_allclose(by_numpy(whole, whole.arrays), by_numpy(pieces, pieces.arrays), 1e-12)


def planned(name: str) -> Plan:
    work = find(name)()
    program, types, asked = recorded(work)
    return Compiler(LIMITS).compile(program, types, asked, memory=work.memory).plan


def test_a_million_steps_fit_what_they_may_take() -> None:
    assert planned("loop-1000000").peak_bytes > MEMORY >= planned("rk4-million").peak_bytes


def test_a_plan_of_a_loop_does_not_know_how_long_it_is() -> None:
    few, many, body = map(planned, PLANNED)
    assert len(few.steps) == len(many.steps)
    assert len(body.result_types) == len(many.result_types)


def test_plans_of_loops_are_timed_in_turns() -> None:
    assert in_groups(["W2", *PLANNED, "W6"]) == [["W2"], ["W6"], [*PLANNED]]
    assert in_groups(["W2"]) == [["W2"]]


def test_every_loop_has_a_goal() -> None:
    assert {*LOOPS} <= {*GOALS}


def test_the_page_says_how_long_a_loop_is_planned() -> None:
    rows = {name: {"gradserve": {"median": time}} for name, time in zip(PLANNED, (8.0, 10.0, 5.0), strict=True)}
    assert "in 1.25 × the time of one of ten, and in 2.00 × that" in planning(rows)
    assert "million" not in planning({"W2": rows["loop-10"]})
