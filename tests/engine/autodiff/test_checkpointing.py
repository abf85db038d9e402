"""Checkpointing: which values of a loop body are saved for the backward pass, without effect on gradients."""

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
    """x ← x − k·x²: no op is costly."""
    return [g.sub(x, g.mul(k, g.mul(x, x)))]


def planned(*, checkpointing: bool) -> tuple[Plan, dict[int, np.ndarray]]:
    loop = written(
        lambda g, w, h, x: g.scan(w, h, x, body=cell, carries=1, sequences=1),
        0.3 * random(6, 6),
        random(5, 6),
        random(7, 5, 6),
    )
    compiler = Compiler(replace(Limits(), checkpointing=checkpointing))
    return compiler.compile(loop.program, loop.types, Gradients.of_program(loop.program)).plan, loop.feeds


def loops(plan: Plan) -> list[Counter[str]]:
    """Count the ops of each loop's body."""
    ops = [step.op for step in plan.steps if isinstance(step.op, RunsPlans)]
    return [Counter(step.op.name for step in op.plans[-1].steps) for op in ops]


def test_matmul_and_tanh_are_saved() -> None:
    forward, backward = loops(planned(checkpointing=True)[0])
    assert forward["matmul"] == 1
    assert forward["tanh"] == 1
    assert backward["tanh"] == 0
    assert backward["matmul"] == 2, "by h, and by w"


def test_tanh_and_matmul_are_recomputed_without_checkpointing() -> None:
    forward, backward = loops(planned(checkpointing=False)[0])
    assert forward["tanh"] == 1
    assert backward["tanh"] == 0, "its derivative is computed from its operand"
    assert backward["tanh_slope"] == 1
    assert backward["matmul"] == 3


def test_checkpointing_does_not_change_gradients() -> None:
    gradients = [
        EXECUTOR.run(plan, feeds) for plan, feeds in (planned(checkpointing=True), planned(checkpointing=False))
    ]
    for saved, recomputed in zip(*gradients, strict=True):
        np.testing.assert_array_equal(saved, recomputed)


def test_cheap_ops_are_not_saved() -> None:
    loop = written(lambda g, k, x: g.scan(k, x, body=polynomial, carries=1, length=9), 0.1, random(4))
    plan = Compiler(Limits()).gradients(loop.program, loop.types).plan
    forward, _ = (step for step in plan.steps if isinstance(step.op, RunsPlans))
    assert [type.shape for type in forward.types] == [(4,), (9, 4)], "the last carry, and what came to each step"
