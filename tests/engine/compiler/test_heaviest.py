"""What is compiled first: what a run spends most time without."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from engine import Builder, Limits, Plan, TensorType, Value, registry
from engine.compiler import fused_kernel as heaviest
from engine.compiler.fit_memory import Compilable, compiled_within
from engine.compiler.fused_kernel import Fused, SharedKernels, compile_order, first_parts
from engine.compiler.plan import graph_of, make_plan

PLENTY = 1 << 40
FUNCTIONS = ("tanh", "sin", "cos", "exp", "sqrt", "log", "expm1", "log1p", "erf", "square")


def branches(sizes: Mapping[str, int], times: int = 1) -> Plan:
    """For each function a leaf of so many numbers, then so many loops with it, a running sum between two."""
    builder = Builder(registry())
    found = []
    for number, (name, size) in enumerate(sizes.items()):
        y: Value = builder.leaf(TensorType((size,), np.dtype("float32")), number)
        for _ in range(times):
            y = (getattr(y, name)() * 0.5).cumsum(axis=0)
        found.append(y)
    return make_plan(builder.graph(found), Limits())


def within(plan: Plan) -> Compilable:
    found = compiled_within(graph_of(plan, registry()), PLENTY, 1)
    assert found is not None
    return found


def functions(plan: Plan, found: SharedKernels) -> set[str]:
    """The functions of the nodes that these kernels compute."""
    ops = {step.result: step.op.name for step in plan.steps}
    nodes = {node for op in found.ops if isinstance(op, Fused) for node in op.nodes}
    return {ops[node] for node in nodes} & {*FUNCTIONS}


def order(plan: Plan, seconds: list[float]) -> list[str]:
    """The functions in the order in which their kernels are made."""
    found = compile_order(within(plan).plan, plan, seconds)
    return [name for each in found for name in sorted(functions(plan, each))]


def taking(plan: Plan, seconds: Mapping[str, float]) -> list[float]:
    """Steps that take so long: a microsecond, where nothing is said."""
    return [seconds.get(step.op.name, 1e-6) for step in plan.steps]


def test_what_took_longest_comes_first() -> None:
    plan = branches(dict.fromkeys(FUNCTIONS[:5], 100))
    longest = {name: 1e-6 * (5 + k) for k, name in enumerate(FUNCTIONS[:5])}
    assert order(plan, taking(plan, longest)) == [*FUNCTIONS[4::-1]]
    assert order(plan, taking(plan, {"cos": 9e-6, "exp": 5e-6})) == ["cos", "exp", "tanh", "sin", "sqrt"]


def test_the_time_of_a_kernel_is_that_of_all_its_uses() -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((100,), np.dtype("float32")), 0)
    other = builder.leaf(TensorType((101,), np.dtype("float32")), 1)
    often = x
    for _ in range(4):
        often = (often.sin() * 0.5).cumsum(axis=0)
    plan = make_plan(builder.graph([often, (other.cos() * 0.5).cumsum(axis=0)]), Limits())
    assert order(plan, taking(plan, {"sin": 3e-6, "cos": 9e-6})) == ["sin", "cos"]
    assert order(plan, taking(plan, {"sin": 3e-6, "cos": 30e-6})) == ["cos", "sin"]
    (first, _) = compile_order(within(plan).plan, plan, taking(plan, {"sin": 3e-6}))
    assert len(first.ops) == 4
    assert first.seconds == pytest.approx(4 * (3e-6 + 1e-6))


def test_it_is_estimated_where_nobody_has_looked() -> None:
    sizes = {name: 1000 * (k + 1) for k, name in enumerate(("neg", "abs", "sign"))}
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType((size,), np.dtype("float32")), k) for k, size in enumerate(sizes.values())]
    ys = [getattr(x, name)().sqrt().cumsum(axis=0) for name, x in zip(sizes, leaves, strict=True)]
    plan = make_plan(builder.graph(ys), Limits())
    found = compile_order(within(plan).plan, plan)
    lengths = [op.iteration_space.length for each in found for op in each.ops if isinstance(op, Fused)]
    assert lengths == [3000, 2000, 1000]


def test_what_waited_for_something_else_is_not_believed() -> None:
    """The first of a process waits until a library is there."""
    plan = branches(dict.fromkeys(FUNCTIONS[:3], 100_000))
    seconds = taking(plan, {"tanh": 1e-3, "sin": 2e-3, "cos": 3e-3})
    waited = next(k for k, step in enumerate(plan.steps) if step.op.name == "tanh")
    seconds[waited] = 3600.0
    found = compile_order(within(plan).plan, plan, seconds)
    assert max(each.seconds for each in found) < 1.0


@pytest.mark.parametrize("which", [0, 1, 2])
def test_of_steps_that_are_alike_the_quickest_counts(which: int) -> None:
    plan = branches({"tanh": 100, "sin": 100}, times=3)
    seconds = taking(plan, {"tanh": 4e-6, "sin": 8e-6})
    seconds[[k for k, step in enumerate(plan.steps) if step.op.name == "tanh"][which]] = 90e-6
    assert order(plan, seconds) == ["sin", "tanh"]


def test_few_kernels_are_waited_for() -> None:
    for count in (1, heaviest.FEW):
        assert first_parts([SharedKernels([], 1.0)] * count) == []


def test_the_first_part_is_as_few_as_take_most_of_the_time() -> None:
    plan = branches(dict.fromkeys(FUNCTIONS, 100))
    found = compile_order(within(plan).plan, plan, taking(plan, {"cos": 30e-6, "exp": 20e-6}))
    assert len(found) > heaviest.FEW
    whole = sum(each.seconds for each in found)
    for share, first in zip(heaviest.FIRST_SHARES, first_parts(found), strict=True):
        taken = [each.seconds for each in found if each.ops[0] in first]
        assert sum(taken[:-1]) < share * whole <= sum(taken)
        assert taken == [each.seconds for each in found][: len(taken)]
    assert [functions(plan, each) for each in found[:2]] == [{"cos"}, {"exp"}]
