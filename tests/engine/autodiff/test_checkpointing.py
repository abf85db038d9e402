"""What a loop keeps for its way back, and what it computes again; neither changes what comes of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from engine import Compiler, Gradients, Limits
from engine.compiler.control_flow import RunsPlans
from engine.compiler.plan import Plan
from tests.engine.looping import EXECUTOR, Writer, random, written


def cell(g: Writer, w: int, h: int, x: int) -> list[int]:
    """h ← tanh(h·w + x)."""
    new = g.tanh(g.add(g.matmul(h, w), x))
    return [new, new]


def polynomial(g: Writer, k: int, x: int) -> list[int]:
    """x ← x − k·x²: nothing is dear."""
    return [g.sub(x, g.mul(k, g.mul(x, x)))]


def planned(*, keeps: bool) -> tuple[Plan, dict[int, np.ndarray]]:
    asked = written(
        lambda g, w, h, x: g.scan(w, h, x, body=cell, carries=1, sequences=1),
        0.3 * random(6, 6),
        random(5, 6),
        random(7, 5, 6),
    )
    compiler = Compiler(replace(Limits(), checkpointing=keeps))
    return compiler.compile(asked.program, asked.types, Gradients.of_program(asked.program)).plan, asked.feeds


def loops(plan: Plan) -> list[Counter[str]]:
    """The ops of each loop's body."""
    ops = [step.op for step in plan.steps if isinstance(step.op, RunsPlans)]
    return [Counter(step.op.name for step in op.plans[-1].steps) for op in ops]


def test_products_and_functions_are_kept() -> None:
    there, back = loops(planned(keeps=True)[0])
    assert there["matmul"] == 1
    assert there["tanh"] == 1
    assert back["tanh"] == 0
    assert back["matmul"] == 2, "by h, and by w"


def test_where_memory_is_short_they_are_computed_again() -> None:
    there, back = loops(planned(keeps=False)[0])
    assert there["tanh"] == back["tanh"] == 1
    assert back["matmul"] == 3


def test_it_makes_no_difference_to_the_gradients() -> None:
    found = [EXECUTOR.run(plan, feeds) for plan, feeds in (planned(keeps=True), planned(keeps=False))]
    for kept, again in zip(*found, strict=True):
        np.testing.assert_array_equal(kept, again)


def test_what_is_cheap_is_not_kept() -> None:
    asked = written(lambda g, k, x: g.scan(k, x, body=polynomial, carries=1, length=9), 0.1, random(4))
    plan = Compiler(Limits()).gradients(asked.program, asked.types).plan
    there, _ = (step for step in plan.steps if isinstance(step.op, RunsPlans))
    assert [type.shape for type in there.types] == [(4,), (9, 4)], "the last carry, and what came to each step"
