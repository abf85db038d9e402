"""Precision of a plan: how its products and convolutions, and those of its bodies, may read float32."""

from __future__ import annotations

from dataclasses import replace

from engine.graph.precision import Precision
from engine.planning.looped import RunsPlans
from engine.planning.plan import Plan, Step


def with_precision(plan: Plan, precision: Precision) -> Plan:
    """`plan` with this precision, and all plans that it runs; itself, where it has that.

    Nothing else of it depends on the precision: neither where results lie nor what they take.
    """
    return _with_precision(plan, precision, {})


def _with_precision(plan: Plan, precision: Precision, made: dict[Plan, Plan]) -> Plan:
    if plan.precision == precision:
        return plan
    if plan not in made:
        steps = tuple(_step(step, precision, made) if step.op.runs else step for step in plan.steps)
        made[plan] = replace(plan, steps=steps, precision=precision)
    return made[plan]


def _step(step: Step, precision: Precision, made: dict[Plan, Plan]) -> Step:
    op = step.op
    assert isinstance(op, RunsPlans)
    return step._replace(op=replace(op, plans=tuple(_with_precision(each, precision, made) for each in op.plans)))
