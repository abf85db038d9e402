"""Unread results of loops are removed, with everything that only they need; the rest is unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from engine import HVP, JVP, Compiler, Gradients, Limits, TensorType, Values
from engine.autodiff.calls import Call
from engine.autodiff.jvp import Dummy
from engine.compiler.control_flow import RunsPlans
from engine.compiler.plan import Plan, Step
from tests.engine.looping import Write, Writer, Written, random, written


def plan_of(asked: Written, call: Call) -> Plan:
    return Compiler(Limits()).compile(asked.program, asked.types, call).plan


def loops(plan: Plan) -> list[Step]:
    return [step for step in plan.steps if isinstance(step.op, RunsPlans)]


def loop_of(write: Write, *arrays: object) -> Step:
    """Return the only loop of a plan."""
    asked = written(write, *arrays, floats=())
    (loop,) = loops(plan_of(asked, Values.of_program(asked.program, asked.results)))
    return loop


def chain(g: Writer, k: int, unread: int, a: int, b: int, c: int, s: int, u: int) -> list[int]:
    """a ← b, b ← c·s, c ← c + a·k; stacks a, a function of a sequence, and the square of a constant."""
    return [b, g.mul(c, s), g.add(c, g.mul(a, k)), a, g.sin(u), g.mul(unread, unread)]


def independent(g: Writer, k: int, unread: int, a: int, b: int, c: int, s: int, u: int) -> list[int]:
    """Independent carries."""
    return [g.sin(a), g.mul(b, k), g.add(c, s), g.exp(b), g.sin(u), g.mul(unread, unread)]


ARRAYS = (0.3, 0.4, 0.5, 0.6, 0.7, random(4), random(4, seed=1))


@pytest.mark.parametrize(
    ("read", "carries", "stacks", "operands"),
    [
        ([0], 1, 0, 1),  # a
        ([1], 1, 0, 2),  # b, with k
        ([2], 1, 0, 2),  # c, with s
        ([3], 1, 1, 2),  # a stack of b
        ([4], 0, 1, 1),  # a stack of u only
        ([5], 0, 1, 1),  # a stack of a const
        ([0, 4], 1, 1, 2),
    ],
)
def test_scan_keeps_only_needed_carries(read: list[int], carries: int, stacks: int, operands: int) -> None:
    def write(g: Writer, *given: int) -> list[int]:
        results = g.scan(*given, body=independent, carries=3, sequences=2)
        return [results[k] for k in read]

    step = loop_of(write, *ARRAYS)
    assert step.attrs["carries"] == carries
    assert len(step.types) == carries + stacks
    assert len(step.operands) <= operands + 1  # loop invariants may be computed before the loop


@pytest.mark.parametrize("read", [0, 1, 2, 3])
def test_carry_needed_by_another_carry_stays(read: int) -> None:
    def write(g: Writer, *given: int) -> list[int]:
        return [g.scan(*given, body=chain, carries=3, sequences=2)[read]]

    assert loop_of(write, *ARRAYS).attrs["carries"] == 3


def test_while_keeps_the_carries_of_its_condition() -> None:
    def write(g: Writer, k: int, a: int, b: int, i: int) -> list[int]:
        return g.while_(
            k,
            a,
            b,
            i,
            condition=lambda g, k, a, b, i: [g.less(i, g.number(3, "int64"))],
            body=lambda g, k, a, b, i: [g.mul(a, k), g.mul(b, b), g.add(i, g.number(1, "int64"))],
            carries=3,
            max_steps=5,
        )[:1]

    step = loop_of(write, 0.3, 0.5, 0.7, np.int64(0))
    assert step.attrs["carries"] == 2
    assert len(step.types) == 4


def test_cond_keeps_the_operands_of_either_branch() -> None:
    def write(g: Writer, p: int, a: int, b: int, c: int) -> list[int]:
        return g.cond(
            p,
            a,
            b,
            c,
            then=lambda g, a, b, c: [g.sin(a), g.mul(b, c)],
            otherwise=lambda g, a, b, c: [g.cos(b), g.mul(b, c)],
        )[:1]

    step = loop_of(write, np.bool_(True), 0.3, 0.4, 0.5)
    assert len(step.operands) == 3
    assert len(step.types) == 1


def step_of(g: Writer, k: int, y: int) -> list[int]:
    return [g.add(y, g.mul(k, g.sin(y)))]


LOOPS: dict[str, Write] = {
    "scan": lambda g, k, y: g.scan(k, y, body=step_of, carries=1, length=3),
    "while": lambda g, k, y: g.while_(
        k, y, condition=lambda g, k, y: [g.less(y, k)], body=step_of, carries=1, max_steps=4
    )[:1],
    "cond": lambda g, k, y: g.cond(g.less(k, y), k, y, then=step_of, otherwise=step_of),
    "call": lambda g, k, y: g.call(k, y, body=step_of, recompute=True),
    "map": lambda g, k, y: g.map(k, g.stacked([y, y, y]), body=step_of, sequences=1, at_once=2),
    "fixed_point": lambda g, k, y: g.fixed_point(k, y, body=step_of, carries=1, tolerance=1e-3, max_steps=9)[:1],
}


@pytest.mark.parametrize("op", LOOPS)
def test_forward_mode_leaves_no_placeholder_cotangents(op: str) -> None:
    """Forward mode is two backward passes; the placeholder cotangents of the first are gone."""
    asked = written(LOOPS[op], 0.4, 0.7)
    vectors = tuple((node, TensorType((), np.dtype("float64"))) for node in asked.floats)
    for call in (HVP.along(asked.program, vectors), JVP.of_program(asked.program, vectors)):
        feeds = plan_of(asked, call).feeds
        assert not [feed for feed in feeds if isinstance(feed, Dummy)]


def test_gradient_wrt_one_leaf_carries_no_sum_for_others() -> None:
    """With respect to the initial value only, no sum for the constant is carried."""
    asked = written(LOOPS["scan"], 0.4, 0.7)
    of_both = loops(plan_of(asked, Gradients.of_program(asked.program)))
    of_one = loops(plan_of(asked, Gradients.of_program(asked.program, wrt=[1])))
    assert max(step.attrs["carries"] for step in of_both) == 2
    assert max(step.attrs["carries"] for step in of_one) == 1
