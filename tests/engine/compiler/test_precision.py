"""Precision of plans: part of their cache key, and shared by the plans that they run and that replace them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine import Compiler, Limits, Plan, TensorType, registry
from engine.autodiff.calls import Values
from engine.compiler.body_plans import with_compiled_bodies
from engine.compiler.compiler import with_precision
from engine.compiler.plan import graph_of, make_plan
from engine.ir.run_context import NO_LIMITS
from engine.ir.run_report import IEEE, PRECISIONS, Precision
from tests.engine.looping import EXECUTOR, Writer, Written, written


def nested(g: Writer, x: int) -> list[int]:
    """Two loops, one within the other, and a branch."""

    def inner(h: Writer, y: int) -> list[int]:
        return [h.matmul(y, h.matmul(y, y))]

    def outer(h: Writer, y: int) -> list[int]:
        (z,) = h.scan(y, body=inner, carries=1, length=2)
        return [h.tanh(z)]

    return [*g.scan(x, body=outer, carries=1, length=3), *g.call(x, body=outer)]


CASE: Written = written(nested, np.array([[0.5, 0.1], [0.2, 0.3]]))


def plan_of(precision: Precision = IEEE, compiler: Compiler | None = None) -> Plan:
    compiler = compiler or Compiler(Limits())
    call = Values.of_program(CASE.program, list(CASE.results))
    return compiler.compile(CASE.program, CASE.types, call, precision=precision).plan


def nested_plans(plan: Plan) -> Iterator[Plan]:
    """Yield the plan, and all plans that it runs."""
    yield plan
    for step in plan.steps:
        for inner in step.op.runs:
            yield from nested_plans(inner)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_bodies_at_every_depth_have_the_precision(precision: Precision) -> None:
    plans = list(nested_plans(plan_of(precision)))
    assert len(plans) >= 3
    assert {plan.precision for plan in plans} == {precision}


def test_each_precision_has_its_own_plan_key_and_digest() -> None:
    compiler = Compiler(Limits())
    call = Values.of_program(CASE.program)
    compiled = [compiler.compile(CASE.program, CASE.types, call, precision=each) for each in PRECISIONS]
    assert len({each.key for each in compiled}) == len({each.plan.digest for each in compiled}) == len(PRECISIONS)
    repeated = [compiler.compile(CASE.program, CASE.types, call, precision=each) for each in PRECISIONS]
    assert all(each.cached for each in repeated)
    assert [each.plan for each in repeated] == [each.plan for each in compiled]
    assert compiler.compile(CASE.program, CASE.types, call).plan is compiled[0].plan


def test_digest_depends_on_both_memory_and_precision() -> None:
    compiler, call = Compiler(Limits()), Values.of_program(CASE.program)
    digests = [
        compiler.compile(CASE.program, CASE.types, call, memory=memory, precision=precision).plan.digest
        for memory in (None, 1 << 20)
        for precision in PRECISIONS
    ]
    assert len(set(digests)) == len(digests)


def test_precision_changes_no_other_property_of_a_plan() -> None:
    exact, coarse = plan_of(), plan_of("bfloat16")
    assert (exact.peak_bytes, exact.flops, exact.buffers) == (coarse.peak_bytes, coarse.flops, coarse.buffers)
    for one, other in zip(EXECUTOR.run(exact, dict(CASE.feeds)), EXECUTOR.run(coarse, dict(CASE.feeds)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_setting_the_same_precision_returns_the_same_plan() -> None:
    plan = plan_of()
    assert with_precision(plan, IEEE) is plan
    back = with_precision(with_precision(plan, "tf32"), IEEE)
    assert {each.precision for each in nested_plans(back)} == {IEEE}
    assert {each.precision for each in nested_plans(plan)} == {IEEE}


def test_shared_body_stays_one_plan() -> None:
    count = len({*nested_plans(plan_of())})
    assert len({*nested_plans(plan_of("tf32"))}) == count


def test_compiled_bodies_have_the_precision() -> None:
    graph = with_compiled_bodies(graph_of(plan_of("tf32x3"), registry()), microkernels=True)
    plan = make_plan(graph, NO_LIMITS)
    bodies = [inner for each in nested_plans(plan) for inner in nested_plans(each) if inner is not plan]
    assert bodies
    assert {each.precision for each in bodies} == {"tf32x3"}


def test_float32_leaves_do_not_change_the_precision() -> None:
    types = {node: TensorType(type.shape, np.dtype("float32")) for node, type in CASE.types.items()}
    call = Values.of_program(CASE.program)
    assert Compiler(Limits()).compile(CASE.program, types, call).plan.precision == IEEE
