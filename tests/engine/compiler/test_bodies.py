"""Loop bodies: planned once, within the limits of the request, and charged to the plan that runs them."""

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
    """A body of this many nodes."""

    def body(g: Writer, k: int, x: int) -> list[int]:
        for i in range(nodes // 2):
            x = (g.sin, g.tanh, g.exp)[i % 3](g.mul(k, x))
        return [x]

    return body


def gradients_of(case: Written) -> Plan:
    return Compiler(case.program.limits).gradients(case.program, case.types).plan


def loops(plan: Plan) -> list[RunsPlans]:
    return [step.op for step in plan.steps if isinstance(step.op, RunsPlans)]


# ---------------------------------------------------------------- nodes


def of_many_types(body: Write, uses: int) -> Write:
    """Run a function in loops over vectors of `uses` different lengths."""

    def write(g: Writer, x: int) -> list[int]:
        function, sums = g.function(body, 1), list[int]()
        for k in range(1, uses + 1):
            sums += g.scan(g.broadcast_to(x, shape=[k]), body=function, carries=1, length=2)
        return [g.sum(y) for y in sums]

    return write


def in_one_call(write: Write) -> Write:
    """Wrap the whole in a function that is called."""
    return lambda g, x: g.call(x, body=write, recompute=True)


def long_row(g: Writer, x: int) -> list[int]:
    for _ in range(100):
        x = g.sin(x)
    return [x]


@pytest.mark.parametrize("nested", [False, True])
def test_function_uses_are_counted_before_they_are_built(monkeypatch: pytest.MonkeyPatch, nested: bool) -> None:
    write = of_many_types(long_row, 50)
    case = written(in_one_call(write) if nested else write, 0.5, floats=(), limits=Limits(nodes=2_000))
    typed = list[int]()
    original = Function.build_body

    def build_body(self: Function, *rest: Any) -> Body:
        typed.append(self.weight)
        return original(self, *rest)

    monkeypatch.setattr(Function, "build_body", build_body)

    def refusal() -> TooManyNodes:
        typed.clear()
        with pytest.raises(TooManyNodes) as caught:
            Compiler(case.program.limits).forward(case.program, case.types, case.results)
        return caught.value

    early, times = refusal(), typed.count(101)
    monkeypatch.setattr(FunctionTyping, "may_be_many", lambda *_: False)
    late = refusal()
    assert (early.detail, early.got, early.node) == (late.detail, late.got, late.node)
    assert times == 1 < typed.count(101)


def test_function_errors_are_reported_before_the_node_limit() -> None:
    def wrong(g: Writer, x: int) -> list[int]:
        return [g.reshape(*long_row(g, x), shape=[7])]

    case = written(of_many_types(wrong, 50), 0.5, floats=(), limits=Limits(nodes=2_000))
    with pytest.raises(ShapeMismatch):
        Compiler(case.program.limits).forward(case.program, case.types, case.results)


@pytest.mark.parametrize("loops_within", [False, True])
def test_bodies_have_the_request_deadline_while_planning(monkeypatch: pytest.MonkeyPatch, loops_within: bool) -> None:
    def twice(g: Writer, x: int) -> list[int]:
        return list(g.scan(x, body=waves_of_one, carries=1, length=2)) if loops_within else waves_of_one(g, x)

    def write(g: Writer, x: int) -> list[int]:
        (y,) = g.scan(x, body=twice, carries=1, length=20)
        return list(g.scan(y, body=lambda g, x: [g.cos(x)], carries=1, length=20))

    case, deadline, seen = written(write, 0.5), Deadline(100), list[Body]()
    original = bodies._plan_of

    def plan_of(body: Body, *rest: Any) -> Plan:
        assert body.budget.deadline is deadline
        seen.append(body)
        return original(body, *rest)

    monkeypatch.setattr(bodies, "_plan_of", plan_of)
    Compiler(Limits()).forward(case.program, case.types, case.results, deadline)
    assert len(seen) == (3 if loops_within else 2)
    assert all(body.budget.deadline is NO_DEADLINE for body in seen)


def waves_of_one(g: Writer, x: int) -> list[int]:
    return [g.sin(x)]


def doubling(op: str, levels: int) -> Write:
    """Functions, each of which runs the previous one twice."""

    def apply(g: Writer, x: int, body: int) -> int:
        if op == "cond":
            return int(g.cond(g.less(x, g.number(0.0)), x, then=body, otherwise=body)[0])
        attrs = {"carries": 1, "length": 2} if op == "scan" else {}
        return int(getattr(g, op)(x, body=body, **attrs)[0])

    def write(g: Writer, x: int) -> list[int]:
        body = g.function(lambda g, x: [g.sin(x)], 1)
        for _ in range(levels):
            body = g.function(lambda g, x, body=body: [apply(g, apply(g, x, body), body)], 1)
        return [apply(g, x, body)]

    return write


def test_exponential_calls_are_refused_before_expansion() -> None:
    case = written(doubling("call", 40), 0.3, floats=(), limits=DEEP)
    with pytest.raises(TooManyNodes):
        Compiler(DEEP).forward(case.program, case.types, case.results)


def test_exponential_scans_are_refused_by_their_flops() -> None:
    case = written(doubling("scan", 40), 0.3, floats=(), limits=DEEP)
    with pytest.raises(OverBudget, match="FLOPs"):
        Compiler(DEEP).forward(case.program, case.types, case.results)


@pytest.mark.parametrize("op", ["call", "cond", "scan"])
def test_nesting_depth_of_functions_is_limited(op: str) -> None:
    case = written(doubling(op, 16), 0.3, floats=())
    with pytest.raises(OverBudget, match="17 levels"):
        Compiler(Limits()).forward(case.program, case.types, case.results)


def test_each_nested_body_is_planned_once() -> None:
    """Uses double at each level, and each level has one plan."""
    case = written(doubling("cond", 12), 0.3, floats=())
    plan = Compiler(Limits()).forward(case.program, case.types, case.results).plan
    seen: set[Plan] = set()
    todo = [plan]
    while todo:
        for loop in loops(todo.pop()):
            todo += [inner for inner in loop.plans if inner not in seen]
            seen.update(loop.plans)
    assert len(seen) == 13


def test_each_typing_of_a_function_counts_towards_the_limit() -> None:
    def write(g: Writer, k: int, x: int, shapes: int) -> list[int]:
        body = g.function(waves(400), 2)
        return [g.scan(k, g.broadcast_to(x, shape=[n]), body=body, carries=1, length=2)[0] for n in range(shapes)]

    few = Limits(nodes=10_000)
    case = written(lambda g, k, x: write(g, k, x, 5), 0.9, 0.3, floats=(), limits=few)
    Compiler(few).forward(case.program, case.types, case.results)
    case = written(lambda g, k, x: write(g, k, x, 50), 0.9, 0.3, floats=(), limits=few)
    with pytest.raises(TooManyNodes):
        Compiler(few).forward(case.program, case.types, case.results)


def test_derivative_nodes_of_bodies_count_towards_the_limit() -> None:
    """Values and gradients are within the limit; second derivatives are not."""
    some = Limits(nodes=10_000)

    def write(g: Writer, k: int, x: int) -> list[int]:
        return g.scan(k, x, body=waves(400), carries=1, length=2)

    case = written(write, 0.9, 0.3, limits=some)
    for call in (Values.of_program(case.program), Gradients.of_program(case.program)):
        Compiler(some).compile(case.program, case.types, call)
    with pytest.raises(TooManyNodes):
        Compiler(some).compile(case.program, case.types, Hessian.of_program(case.program))


def test_plan_size_does_not_depend_on_the_length() -> None:
    sizes = []
    for length in (10, 10**6):
        case = written(lambda g, k, x: g.scan(k, x, body=waves(20), carries=1, length=length), 0.9, 0.3)  # noqa: B023
        plan = gradients_of(case)
        sizes.append([len(plan.steps), *[len(inner.steps) for loop in loops(plan) for inner in loop.plans]])
    assert sizes[0] == sizes[1]


# ---------------------------------------------------------------- memory of plans


@pytest.mark.parametrize("nodes", [2, 200])
def test_plan_size_includes_its_bodies(nodes: int) -> None:
    """Within a factor of two."""
    case = written(lambda g, k, x: g.scan(k, x, body=waves(nodes), carries=1, length=3), 0.9, 0.3)
    gradients_of(case)  # fills the caches of the process
    gc.collect()
    tracemalloc.start()
    try:
        plan = gradients_of(case)
        gc.collect()
        measured = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert measured / 2 < plan.nbytes < measured * 2


# ---------------------------------------------------------------- locations of errors


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


def error_location(case: Written, call: Call) -> tuple[int | None, int | None, int | None]:
    with pytest.raises(IndexOutOfRange) as caught:
        run(case, call)
    return caught.value.node, caught.value.function, caught.value.function_node


def node_of(case: Written) -> tuple[int, int]:
    """The node of the outermost use, and the function that gathers."""
    (node,) = [i for i, s in enumerate(case.program.statements) if s.op.functions]
    names = [[s.op.name for s in function.statements] for function in case.program.functions]
    return node, names.index(["input", "input", "gather"])


@pytest.mark.parametrize("use", USES)
def test_data_error_in_a_function_names_the_outermost_node(use: str) -> None:
    case = written(USES[use], np.array([0, 9]), np.ones(2))
    node, function = node_of(case)
    assert error_location(case, Values.of_program(case.program)) == (node, function, 2)
    case = written(USES[use], np.array([[0, 9]]), np.ones(2))
    values_of = Batch.of_program(case.program, case.types, [0], outputs=case.results)
    assert error_location(case, values_of) == (node, function, 2)


@pytest.mark.parametrize("use", [use for use in USES if use != "fixed_point"])
def test_data_error_in_the_backward_pass_names_the_same_node(use: str) -> None:
    """A gradient alone gathers nothing, but scatters the cotangent to the same indices."""

    def write(g: Writer, i: int, x: int) -> list[int]:
        return [g.grad(g.sum(USES[use](g, i, x)[0]), x)]

    case = written(write, np.array([0, 9]), np.ones(2), floats=())
    node, function = node_of(case)
    assert error_location(case, Values.of_program(case.program, case.results)) == (node, function, 2)


def test_nested_calls_name_every_level() -> None:
    """Also if the innermost call has a custom derivative and is expanded last."""

    def own(g: Writer, i: int, x: int) -> list[int]:
        return list(
            g.call(
                i,
                x,
                body=gathered,
                derivative=lambda g, i, x, y, u: [g.grad(g.sum(g.mul(g.gather(x, i, axis=0), u)), x)],
            )
        )

    case = written(
        lambda g, i, x: g.call(i, x, body=lambda g, i, x: g.call(i, x, body=own)), np.array([0, 9]), np.ones(2)
    )
    with pytest.raises(IndexOutOfRange) as caught:
        run(case, Values.of_program(case.program, case.results))
    assert caught.value.detail.startswith(
        "node 2 (call): function 3, node 2 (call): function 2, node 2 (call): function 0, node 2 (gather): "
    )
