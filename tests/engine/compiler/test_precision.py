"""Plans of a precision: it is part of what they are known by, and of all plans that they run and that replace them."""

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


ASKED: Written = written(nested, np.array([[0.5, 0.1], [0.2, 0.3]]))


def plan_of(precision: Precision = IEEE, compiler: Compiler | None = None) -> Plan:
    compiler = compiler or Compiler(Limits())
    call = Values.of_program(ASKED.program, list(ASKED.results))
    return compiler.compile(ASKED.program, ASKED.types, call, precision=precision).plan


def within(plan: Plan) -> Iterator[Plan]:
    """The plan, and all that it runs."""
    yield plan
    for step in plan.steps:
        for inner in step.op.runs:
            yield from within(inner)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_bodies_at_every_depth_have_it(precision: Precision) -> None:
    found = list(within(plan_of(precision)))
    assert len(found) >= 3
    assert {plan.precision for plan in found} == {precision}


def test_each_is_a_plan_of_its_own_with_a_key_and_a_digest() -> None:
    compiler = Compiler(Limits())
    call = Values.of_program(ASKED.program)
    found = [compiler.compile(ASKED.program, ASKED.types, call, precision=each) for each in PRECISIONS]
    assert len({each.key for each in found}) == len({each.plan.digest for each in found}) == len(PRECISIONS)
    again = [compiler.compile(ASKED.program, ASKED.types, call, precision=each) for each in PRECISIONS]
    assert all(each.cached for each in again)
    assert [each.plan for each in again] == [each.plan for each in found]
    assert compiler.compile(ASKED.program, ASKED.types, call).plan is found[0].plan


def test_with_less_memory_it_has_another_digest_as_well() -> None:
    compiler, call = Compiler(Limits()), Values.of_program(ASKED.program)
    found = [
        compiler.compile(ASKED.program, ASKED.types, call, memory=memory, precision=precision).plan.digest
        for memory in (None, 1 << 20)
        for precision in PRECISIONS
    ]
    assert len(set(found)) == len(found)


def test_nothing_else_of_a_plan_depends_on_it() -> None:
    exact, coarse = plan_of(), plan_of("bfloat16")
    assert (exact.peak_bytes, exact.flops, exact.buffers) == (coarse.peak_bytes, coarse.flops, coarse.buffers)
    for one, other in zip(EXECUTOR.run(exact, dict(ASKED.feeds)), EXECUTOR.run(coarse, dict(ASKED.feeds)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_plan_that_has_it_is_left_as_it_is() -> None:
    plan = plan_of()
    assert with_precision(plan, IEEE) is plan
    back = with_precision(with_precision(plan, "tf32"), IEEE)
    assert {each.precision for each in within(back)} == {IEEE}
    assert {each.precision for each in within(plan)} == {IEEE}


def test_a_body_that_runs_twice_is_one_plan_still() -> None:
    count = len({*within(plan_of())})
    assert len({*within(plan_of("tf32"))}) == count


def test_so_have_bodies_that_are_compiled() -> None:
    graph = with_compiled_bodies(graph_of(plan_of("tf32x3"), registry()), microkernels=True)
    plan = make_plan(graph, NO_LIMITS)
    bodies = [inner for each in within(plan) for inner in within(each) if inner is not plan]
    assert bodies
    assert {each.precision for each in bodies} == {"tf32x3"}


def test_a_type_of_a_leaf_alone_makes_no_precision() -> None:
    types = {node: TensorType(type.shape, np.dtype("float32")) for node, type in ASKED.types.items()}
    call = Values.of_program(ASKED.program)
    assert Compiler(Limits()).compile(ASKED.program, types, call).plan.precision == IEEE
