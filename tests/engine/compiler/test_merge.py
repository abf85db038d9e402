"""Merging loops over the same steps: the backward pass needs no second forward loop."""

from __future__ import annotations

import numpy as np

from engine import HVP, Builder, Compiler, Gradients, Limits, TensorType, registry
from engine.compiler.control_flow import RunsPlans, merge
from engine.compiler.plan import Plan
from engine.ir.tensor_type import FLOAT64
from engine.ops.control.while_loop import StackingWhile
from tests.engine.looping import Write, Writer, random, written
from tests.engine.ops.values import body_of


def curve(g: Writer, k: int, x: int) -> list[int]:
    """x ← sin(k·x), stacked as well."""
    new = g.sin(g.mul(k, x))
    return [new, new]


def below(g: Writer, _: int, x: int) -> list[int]:
    return [g.less(x, g.number(100.0))]


def doubled(g: Writer, k: int, x: int) -> list[int]:
    return [g.add(x, g.mul(k, g.mul(x, x)))]


def names(plan: Plan) -> list[str]:
    return [step.op.name for step in plan.steps if isinstance(step.op, RunsPlans)]


def gradients_of(write: Write, *arrays: object) -> Plan:
    case = written(write, *arrays)
    return Compiler(Limits()).compile(case.program, case.types, Gradients.of_program(case.program)).plan


def test_scan_gradient_has_one_forward_and_one_backward_loop() -> None:
    plan = gradients_of(lambda g, k, x: g.scan(k, x, body=curve, carries=1, length=5), 0.7, random(3))
    assert names(plan) == ["scan", "scan"]


def test_while_gradient_has_one_forward_and_one_backward_loop() -> None:
    def write(g: Writer, k: int, x: int) -> list[int]:
        return list(g.while_(k, x, condition=below, body=doubled, carries=1, max_steps=20)[:1])

    assert names(gradients_of(write, 0.7, 1.5)) == ["stacking_while", "counted_scan"]


def test_second_derivatives_share_the_forward_loop() -> None:
    case = written(lambda g, k, x: g.scan(k, x, body=curve, carries=1, length=5), 0.7, random(3))
    types = tuple((node, TensorType.of(case.feeds[node])) for node in case.floats)
    plan = Compiler(Limits()).compile(case.program, case.types, HVP.along(case.program, types)).plan
    fed = set(plan.feeds.values()) - {plan.feeds[feed] for feed in plan.feeds if isinstance(feed, tuple)}
    loops = [step for step in plan.steps if isinstance(step.op, RunsPlans)]
    assert sum(fed.issuperset(step.operands) for step in loops) == 1


def test_loops_over_different_values_are_not_merged() -> None:
    def write(g: Writer, k: int, x: int, y: int) -> list[int]:
        return [
            *g.scan(k, x, body=curve, carries=1, length=5),
            *g.scan(k, y, body=curve, carries=1, length=5),
            *g.scan(k, x, body=curve, carries=1, length=6),
        ]

    case = written(write, 0.7, random(3), np.ones(3), floats=())
    plan = Compiler(Limits()).forward(case.program, case.types, case.results).plan
    assert names(plan) == ["scan"] * 3


def test_merged_while_stacks_follow_the_other_results() -> None:
    number = TensorType((), FLOAT64)
    above = body_of([number], lambda x: [x.greater(1.0)])
    halved = [body_of([number], lambda x, ahead=ahead: [x * 0.5, x + ahead]) for ahead in (1.0, 2.0)]
    builder = Builder(registry())
    x = builder.leaf(number, "x")
    attrs = {"condition": above, "carries": 1, "max_steps": 5}
    loops = [builder.emit(StackingWhile(), (x,), {**attrs, "body": body}) for body in halved]
    merged = merge(builder.graph([loop.output(k) for loop in loops for k in range(4)]))
    assert [node.op.name for node in merged.nodes].count("stacking_while") == 1
    assert [merged.nodes[o].attrs["index"] for o in merged.outputs] == [0, 1, 2, 3, 0, 1, 2, 4]


def test_loops_without_operands_are_merged() -> None:
    """Only stacks of constants are read, so the carry is dropped, and the loops have no operands left."""

    def write(g: Writer, x: int) -> list[int]:
        def stacking(number: float) -> Write:
            return lambda inner, carry: [carry, inner.exp(inner.number(number))]

        return [g.scan(x, body=stacking(number), carries=1, length=3)[1] for number in (2.0, 3.0)]

    case = written(write, 0.5, floats=())
    plan = Compiler(Limits()).forward(case.program, case.types, case.results).plan
    assert names(plan) == ["scan"]
