"""The plan for many runs of a plan at once gives, row by row, what the plan gives."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from engine import Compiler, Deadline, DeadlineExceeded, Limits, OverBudget, Plan, Program, Statement, registry
from engine.graph.tensor_type import HostArray, TensorType
from engine.planning.fuse import fuse
from engine.planning.fused import Fused
from engine.planning.many import plan_of_many
from engine.planning.plan import graph_of, make_plan
from tests.contract.cases import EXECUTOR, LIMITS, Array, Case, sample
from tests.engine.printers import COMPILED

SIZE = 4


def types_of(case: Case) -> dict[int, TensorType]:
    return dict(enumerate(map(TensorType.of, case.arrays())))


def plans(case: Case) -> list[Plan]:
    """Of the values, and where there is a way of the gradients, too."""
    program, types, compiler = case.program(), types_of(case), Compiler(LIMITS)
    count = len(types)
    outputs = range(count + 1, len(program.statements)) if case.op.several else [count]
    found = [compiler.forward(program, types, list(outputs)).plan]
    real = [i for i, type in types.items() if type.is_differentiable]
    result = case.result_types()[0]
    if real and result.is_differentiable and not case.op.several:
        ops = registry().ops
        statements = list(program.statements)
        if result.is_complex:
            statements.append(Statement(ops["real"], (count,)))
        statements.append(Statement(ops["sum"], (len(statements) - 1,)))
        summed = Program(registry(), statements, opset=program.opset)
        found.append(compiler.gradients(summed, types, wrt=real).plan)
    return found


def assert_rows(plan: Plan, many: Plan, single: list[dict[Hashable, HostArray]], rtol: float = 1e-10) -> None:
    feeds = {feed: np.stack([each[feed] for each in single]) for feed in plan.feeds}
    rows = EXECUTOR.run(many, feeds)
    for i, fed in enumerate(single):
        for row, alone in zip(rows, EXECUTOR.run(plan, fed), strict=True):
            assert row.dtype == alone.dtype
            assert row.shape == (len(single), *alone.shape)
            np.testing.assert_allclose(row[i], alone, max(rtol, _last_bit(alone)), 1e-12)


def _last_bit(array: HostArray) -> float:
    """By how much functions may differ: a single element stays with NumPy's where rows are a kernel's."""
    return float(np.finfo(array.dtype).eps) if COMPILED and array.dtype.kind == "f" else 0.0


@sample(lambda case: len(case.sample.operands) > 0)
def test_rows_are_runs(case: Case) -> None:
    single = [dict[Hashable, Array](enumerate(case.arrays(salt=i))) for i in range(SIZE)]
    for plan in plans(case):
        many = plan_of_many(plan, SIZE, registry(), LIMITS) if plan.feeds else None
        if many is not None:
            assert_rows(plan, many, single)
        else:
            assert not plan.feeds or any(isinstance(step.op, Fused) for step in plan.steps)


def product(extent: int) -> Plan:
    """sum(tanh(x · y)), and the sum of x."""
    ops = registry().ops
    written = [("input", ()), ("input", ()), ("mul", (0, 1)), ("tanh", (2,)), ("sum", (3,)), ("sum", (0,))]
    statements = [Statement(ops[name], operands) for name, operands in written]
    type = TensorType((extent,), np.dtype("float64"))
    return Compiler(Limits()).forward(Program(registry(), statements), {0: type, 1: type}, [4, 5]).plan


def test_one_run() -> None:
    many = plan_of_many(product(3), 1, registry(), LIMITS)
    assert many is not None
    feeds: dict[Hashable, Array] = {0: np.array([1.0, 2.0, 3.0]), 1: np.array([0.5, 0.25, 0.125])}
    assert_rows(product(3), many, [feeds])


def test_limits_are_those_of_all_runs_together() -> None:
    plan = product(100)
    limits = Limits(bytes=10 * plan.peak_bytes)
    assert plan_of_many(plan, 4, registry(), limits)
    with pytest.raises(OverBudget):
        plan_of_many(plan, 64, registry(), limits)


def test_no_plan_after_the_deadline() -> None:
    with pytest.raises(DeadlineExceeded):
        plan_of_many(product(3), 4, registry(), LIMITS, Deadline(0.0, start=0.0))


def test_loops_have_no_rule_for_many() -> None:
    fused = make_plan(fuse(graph_of(product(3), registry()), 0), LIMITS)
    assert any(isinstance(step.op, Fused) for step in fused.steps)
    assert plan_of_many(fused, 4, registry(), LIMITS) is None
