"""Loop-invariant values are computed once, before the loop."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Compiler, Limits
from engine.compiler.control_flow import RunsPlans
from engine.compiler.plan import Plan
from tests.engine.looping import EXECUTOR, Write, Writer, random, written


def turned(g: Writer, w: int, x: int) -> list[int]:
    """x ← tanh(x·wᵀw): wᵀw is loop-invariant."""
    return [g.tanh(g.matmul(x, g.matmul(g.transpose(w), w)))]


def spread(g: Writer, k: int, x: int) -> list[int]:
    """x ← x + exp(k), broadcast to its shape: only the number is hoisted."""
    return [g.add(x, g.broadcast_to(g.exp(k), shape=[200, 200]))]


def planned(write: Write, *arrays: object) -> Plan:
    case = written(write, *arrays, floats=())
    return Compiler(Limits()).forward(case.program, case.types, case.results).plan


def inside(plan: Plan) -> list[str]:
    (loop,) = (step.op for step in plan.steps if isinstance(step.op, RunsPlans))
    return [step.op.name for step in loop.plans[-1].steps]


def outside(plan: Plan) -> list[str]:
    return [step.op.name for step in plan.steps if not isinstance(step.op, RunsPlans)]


def test_invariant_matmul_is_hoisted() -> None:
    plan = planned(lambda g, w, x: g.scan(w, x, body=turned, carries=1, length=4), random(3, 3), random(2, 3))
    assert inside(plan).count("matmul") == 1
    assert outside(plan).count("matmul") == 1


@pytest.mark.parametrize("length", [0, 1, 4])
def test_hoisting_does_not_change_results(length: int) -> None:
    w, x = random(3, 3), random(2, 3, seed=1)
    plan = planned(lambda g, w, x: g.scan(w, x, body=turned, carries=1, length=length), w, x)
    (actual,) = EXECUTOR.run(plan, {0: w, 1: x})
    for _ in range(length):
        x = np.tanh(x @ (w.T @ w))
    np.testing.assert_allclose(actual, x, rtol=1e-13)


def test_value_larger_than_its_operands_is_not_hoisted() -> None:
    plan = planned(lambda g, k, x: g.scan(k, x, body=spread, carries=1, length=4), 0.5, random(200, 200))
    assert "broadcast_to" not in outside(plan)
    assert outside(plan).count("exp") == 1
    assert inside(plan) == ["add"], "which broadcasts by itself"


def test_while_condition_gets_the_hoisted_operands() -> None:
    def write(g: Writer, w: int, x: int) -> list[int]:
        return list(
            g.while_(
                w,
                x,
                condition=lambda g, w, x: [g.less(g.sum(x), g.sum(w))],
                body=lambda g, w, x: [g.add(x, g.exp(g.mul(w, w)))],
                carries=1,
                max_steps=9,
            )
        )

    w, x = np.full(3, 4.0), np.zeros(3)
    actual, steps, finished = EXECUTOR.run(planned(write, w, x), {0: w, 1: x})
    np.testing.assert_allclose(actual, np.exp(w * w))
    assert (steps, finished) == (1, True)
