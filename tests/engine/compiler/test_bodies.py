"""Bodies are planned once, within what a request may have; what is made of them is charged, and does not pile up."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

from engine import Batch, Call, Compiler, Gradients, Hessian, Limits, OverBudget, Values
from engine.compiler import body_plans as bodies
from engine.compiler.control_flow import RunsPlans
from engine.compiler.plan import Plan
from engine.ir.errors import IndexOutOfRange, ShapeMismatch, TooManyNodes
from engine.ir.program import Body, Function, FunctionTyping
from engine.ir.run_context import NO_DEADLINE, Deadline
from tests.engine.looping import Write, Writer, Written, run, written

DEEP = Limits(depth=64)


def waves(nodes: int) -> Write:
    """A body of so many nodes."""

    def body(g: Writer, k: int, x: int) -> list[int]:
        for i in range(nodes // 2):
            x = (g.sin, g.tanh, g.exp)[i % 3](g.mul(k, x))
        return [x]

    return body


def gradients_of(asked: Written) -> Plan:
    return Compiler(asked.program.limits).gradients(asked.program, asked.types).plan


def loops(plan: Plan) -> list[RunsPlans]:
    return [step.op for step in plan.steps if isinstance(step.op, RunsPlans)]


# ---------------------------------------------------------------- nodes


def of_many_types(body: Write, uses: int) -> Write:
    """A function in loops over vectors of as many lengths."""

    def write(g: Writer, x: int) -> list[int]:
        long, sums = g.function(body, 1), list[int]()
        for k in range(1, uses + 1):
            sums += g.scan(g.broadcast_to(x, shape=[k]), body=long, carries=1, length=2)
        return [g.sum(y) for y in sums]

    return write


def within_one(write: Write) -> Write:
    """All of it as a function that is called."""
    return lambda g, x: g.call(x, body=write, recompute=True)


def long_row(g: Writer, x: int) -> list[int]:
    for _ in range(100):
        x = g.sin(x)
    return [x]


@pytest.mark.parametrize("nested", [False, True])
def test_uses_of_a_function_on_other_types_are_counted_before_they_are_written(
    monkeypatch: pytest.MonkeyPatch, nested: bool
) -> None:
    write = of_many_types(long_row, 50)
    asked = written(within_one(write) if nested else write, 0.5, floats=(), limits=Limits(nodes=2_000))
    typed = list[int]()
    right = Function.build_body

    def build_body(self: Function, *rest: Any) -> Body:
        typed.append(self.weight)
        return right(self, *rest)

    monkeypatch.setattr(Function, "build_body", build_body)

    def refused() -> TooManyNodes:
        typed.clear()
        with pytest.raises(TooManyNodes) as caught:
            Compiler(asked.program.limits).forward(asked.program, asked.types, asked.results)
        return caught.value

    early, times = refused(), typed.count(101)
    monkeypatch.setattr(FunctionTyping, "may_be_many", lambda *_: False)
    late = refused()
    assert (early.detail, early.got, early.node) == (late.detail, late.got, late.node)
    assert times == 1 < typed.count(101)


def test_what_is_wrong_with_a_function_is_said_before_it_is_counted() -> None:
    def wrong(g: Writer, x: int) -> list[int]:
        return [g.reshape(*long_row(g, x), shape=[7])]

    asked = written(of_many_types(wrong, 50), 0.5, floats=(), limits=Limits(nodes=2_000))
    with pytest.raises(ShapeMismatch):
        Compiler(asked.program.limits).forward(asked.program, asked.types, asked.results)


@pytest.mark.parametrize("loops_within", [False, True])
def test_bodies_have_the_time_of_their_request_until_all_are_planned(
    monkeypatch: pytest.MonkeyPatch, loops_within: bool
) -> None:
    def twice(g: Writer, x: int) -> list[int]:
        return list(g.scan(x, body=waves_of_one, carries=1, length=2)) if loops_within else waves_of_one(g, x)

    def write(g: Writer, x: int) -> list[int]:
        (y,) = g.scan(x, body=twice, carries=1, length=20)
        return list(g.scan(y, body=lambda g, x: [g.cos(x)], carries=1, length=20))

    asked, deadline, seen = written(write, 0.5), Deadline(100), list[Body]()
    right = bodies._plan_of

    def plan_of(body: Body, *rest: Any) -> Plan:
        assert body.budget.deadline is deadline
        seen.append(body)
        return right(body, *rest)

    monkeypatch.setattr(bodies, "_plan_of", plan_of)
    Compiler(Limits()).forward(asked.program, asked.types, asked.results, deadline)
    assert len(seen) == (3 if loops_within else 2)
    assert all(body.budget.deadline is NO_DEADLINE for body in seen)


def waves_of_one(g: Writer, x: int) -> list[int]:
    return [g.sin(x)]


def doubling(op: str, levels: int) -> Write:
    """Functions of which each runs the one before it twice."""

    def ran(g: Writer, x: int, body: int) -> int:
        if op == "cond":
            return int(g.cond(g.less(x, g.number(0.0)), x, then=body, otherwise=body)[0])
        attrs = {"carries": 1, "length": 2} if op == "scan" else {}
        return int(getattr(g, op)(x, body=body, **attrs)[0])

    def write(g: Writer, x: int) -> list[int]:
        body = g.function(lambda g, x: [g.sin(x)], 1)
        for _ in range(levels):
            body = g.function(lambda g, x, body=body: [ran(g, ran(g, x, body), body)], 1)
        return [ran(g, x, body)]

    return write


def test_calls_that_double_are_refused_before_they_are_written() -> None:
    asked = written(doubling("call", 40), 0.3, floats=(), limits=DEEP)
    with pytest.raises(TooManyNodes):
        Compiler(DEEP).forward(asked.program, asked.types, asked.results)


def test_scans_that_double_are_refused_by_their_steps() -> None:
    asked = written(doubling("scan", 40), 0.3, floats=(), limits=DEEP)
    with pytest.raises(OverBudget, match="FLOPs"):
        Compiler(DEEP).forward(asked.program, asked.types, asked.results)


@pytest.mark.parametrize("op", ["call", "cond", "scan"])
def test_functions_within_functions_have_a_limit(op: str) -> None:
    asked = written(doubling(op, 16), 0.3, floats=())
    with pytest.raises(OverBudget, match="17 levels"):
        Compiler(Limits()).forward(asked.program, asked.types, asked.results)


def test_each_level_is_planned_once_for_all_who_run_it() -> None:
    """Twice as many uses at each level, and one plan."""
    asked = written(doubling("cond", 12), 0.3, floats=())
    plan = Compiler(Limits()).forward(asked.program, asked.types, asked.results).plan
    seen: set[Plan] = set()
    todo = [plan]
    while todo:
        for loop in loops(todo.pop()):
            todo += [inner for inner in loop.plans if inner not in seen]
            seen.update(loop.plans)
    assert len(seen) == 13


def test_each_typed_use_of_a_function_counts() -> None:
    def write(g: Writer, k: int, x: int, shapes: int) -> list[int]:
        body = g.function(waves(400), 2)
        return [g.scan(k, g.broadcast_to(x, shape=[n]), body=body, carries=1, length=2)[0] for n in range(shapes)]

    few = Limits(nodes=10_000)
    asked = written(lambda g, k, x: write(g, k, x, 5), 0.9, 0.3, floats=(), limits=few)
    Compiler(few).forward(asked.program, asked.types, asked.results)
    asked = written(lambda g, k, x: write(g, k, x, 50), 0.9, 0.3, floats=(), limits=few)
    with pytest.raises(TooManyNodes):
        Compiler(few).forward(asked.program, asked.types, asked.results)


def test_derivatives_of_large_bodies_count() -> None:
    """The values are within the limit; not so the gradient, or at least the second derivatives."""
    some = Limits(nodes=10_000)

    def write(g: Writer, k: int, x: int) -> list[int]:
        return g.scan(k, x, body=waves(400), carries=1, length=2)

    asked = written(write, 0.9, 0.3, limits=some)
    for call in (Values.of_program(asked.program), Gradients.of_program(asked.program)):
        Compiler(some).compile(asked.program, asked.types, call)
    with pytest.raises(TooManyNodes):
        Compiler(some).compile(asked.program, asked.types, Hessian.of_program(asked.program))


def test_planning_does_not_depend_on_the_length() -> None:
    made = []
    for length in (10, 10**6):
        asked = written(lambda g, k, x: g.scan(k, x, body=waves(20), carries=1, length=length), 0.9, 0.3)  # noqa: B023
        plan = gradients_of(asked)
        made.append([len(plan.steps), *[len(inner.steps) for loop in loops(plan) for inner in loop.plans]])
    assert made[0] == made[1]


# ---------------------------------------------------------------- what is kept


@pytest.mark.parametrize("nodes", [2, 200])
def test_a_plan_is_charged_for_its_bodies(nodes: int) -> None:
    """Within a factor of two."""
    asked = written(lambda g, k, x: g.scan(k, x, body=waves(nodes), carries=1, length=3), 0.9, 0.3)
    gradients_of(asked)  # what is remembered for the whole process is there then
    gc.collect()
    tracemalloc.start()
    try:
        plan = gradients_of(asked)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken / 2 < plan.nbytes < taken * 2


# ---------------------------------------------------------------- places


def gathered(g: Writer, i: int, x: int) -> list[int]:
    return [g.gather(x, i, axis=0)]


def twice(g: Writer, i: int, x: int) -> list[int]:
    return list(g.scan(i, x, body=gathered, carries=1, length=2))


USES: dict[str, Write] = {
    "scan": lambda g, i, x: g.scan(i, x, body=twice, carries=1, length=2),
    "while": lambda g, i, x: g.while_(
        i,
        x,
        condition=lambda g, i, x: [g.less(g.sum(x), g.number(1e9))],
        body=twice,
        carries=1,
        max_steps=3,
    )[:1],
    "cond": lambda g, i, x: g.cond(g.less(g.sum(x), g.number(1e9)), i, x, then=twice, otherwise=twice),
    "call": lambda g, i, x: g.call(i, x, body=twice),
    "a call that computes again": lambda g, i, x: g.call(i, x, body=twice, recompute=True),
    "map": lambda g, i, x: g.map(i, g.stacked([x, x]), body=twice, sequences=1, at_once=1),
    "fixed_point": lambda g, i, x: g.fixed_point(i, x, body=twice, carries=1, tolerance=0.0, max_steps=3)[:1],
}


def located(asked: Written, call: Call) -> tuple[int | None, int | None, int | None]:
    with pytest.raises(IndexOutOfRange) as caught:
        run(asked, call)
    return caught.value.node, caught.value.function, caught.value.function_node


def node_of(asked: Written) -> tuple[int, int]:
    """Of the outermost use, and of the function that gathers."""
    (node,) = [i for i, s in enumerate(asked.program.statements) if s.op.functions]
    names = [[s.op.name for s in function.statements] for function in asked.program.functions]
    return node, names.index(["input", "input", "gather"])


@pytest.mark.parametrize("use", USES)
def test_a_fault_of_data_within_functions_is_said_of_the_outermost_use(use: str) -> None:
    asked = written(USES[use], np.array([0, 9]), np.ones(2))
    node, function = node_of(asked)
    assert located(asked, Values.of_program(asked.program)) == (node, function, 2)
    asked = written(USES[use], np.array([[0, 9]]), np.ones(2))
    values_of = Batch.of_program(asked.program, asked.types, [0], outputs=asked.results)
    assert located(asked, values_of) == (node, function, 2)


@pytest.mark.parametrize("use", [use for use in USES if use != "fixed_point"])
def test_a_fault_of_data_on_the_way_back_is_said_of_the_same_place(use: str) -> None:
    """Where the gradient alone is asked for, nothing is gathered, but what arrives is added at the same indices."""

    def write(g: Writer, i: int, x: int) -> list[int]:
        return [g.grad(g.sum(USES[use](g, i, x)[0]), x)]

    asked = written(write, np.array([0, 9]), np.ones(2), floats=())
    node, function = node_of(asked)
    assert located(asked, Values.of_program(asked.program, asked.results)) == (node, function, 2)


def test_calls_within_calls_name_every_level() -> None:
    """Also where a call with a derivative of its own is written in its place at the last."""

    def own(g: Writer, i: int, x: int) -> list[int]:
        return list(
            g.call(
                i,
                x,
                body=gathered,
                derivative=lambda g, i, x, y, u: [g.grad(g.sum(g.mul(g.gather(x, i, axis=0), u)), x)],
            )
        )

    asked = written(
        lambda g, i, x: g.call(i, x, body=lambda g, i, x: g.call(i, x, body=own)), np.array([0, 9]), np.ones(2)
    )
    with pytest.raises(IndexOutOfRange) as caught:
        run(asked, Values.of_program(asked.program, asked.results))
    assert caught.value.detail.startswith(
        "node 2 (call): function 3, node 2 (call): function 2, node 2 (call): function 0, node 2 (gather): "
    )
