"""Compile order of kernels: those that save the most time come first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from engine import Builder, Limits, Plan, TensorType, Value, registry
from engine.compiler import fused_kernel as ordering
from engine.compiler.fit_memory import Compilable, compiled_within
from engine.compiler.fused_kernel import Fused, SharedKernels, compile_order, first_parts
from engine.compiler.plan import graph_of, make_plan

PLENTY = 1 << 40
FUNCTIONS = ("tanh", "sin", "cos", "exp", "sqrt", "log", "expm1", "log1p", "erf", "square")


def branches(sizes: Mapping[str, int], times: int = 1) -> Plan:
    """For each function, a leaf of this size, then `times` kernels with it, separated by running sums."""
    builder = Builder(registry())
    outputs = []
    for number, (name, size) in enumerate(sizes.items()):
        y: Value = builder.leaf(TensorType((size,), np.dtype("float32")), number)
        for _ in range(times):
            y = (getattr(y, name)() * 0.5).cumsum(axis=0)
        outputs.append(y)
    return make_plan(builder.graph(outputs), Limits())


def compilable_of(plan: Plan) -> Compilable:
    compilable = compiled_within(graph_of(plan, registry()), PLENTY, 1)
    assert compilable is not None
    return compilable


def functions_of(plan: Plan, shared: SharedKernels) -> set[str]:
    """The functions of the nodes that these kernels compute."""
    ops = {step.result: step.op.name for step in plan.steps}
    nodes = {node for op in shared.ops if isinstance(op, Fused) for node in op.nodes}
    return {ops[node] for node in nodes} & {*FUNCTIONS}


def function_order(plan: Plan, seconds: list[float]) -> list[str]:
    """The functions in the order in which their kernels are compiled."""
    ordered = compile_order(compilable_of(plan).plan, plan, seconds)
    return [name for shared in ordered for name in sorted(functions_of(plan, shared))]


def step_seconds(plan: Plan, seconds: Mapping[str, float]) -> list[float]:
    """Seconds of each step of a plan: a microsecond by default."""
    return [seconds.get(step.op.name, 1e-6) for step in plan.steps]


def test_slowest_steps_are_compiled_first() -> None:
    plan = branches(dict.fromkeys(FUNCTIONS[:5], 100))
    longest = {name: 1e-6 * (5 + k) for k, name in enumerate(FUNCTIONS[:5])}
    assert function_order(plan, step_seconds(plan, longest)) == [*FUNCTIONS[4::-1]]
    assert function_order(plan, step_seconds(plan, {"cos": 9e-6, "exp": 5e-6})) == ["cos", "exp", "tanh", "sin", "sqrt"]


def test_kernel_time_is_the_sum_of_all_its_uses() -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((100,), np.dtype("float32")), 0)
    other = builder.leaf(TensorType((101,), np.dtype("float32")), 1)
    often = x
    for _ in range(4):
        often = (often.sin() * 0.5).cumsum(axis=0)
    plan = make_plan(builder.graph([often, (other.cos() * 0.5).cumsum(axis=0)]), Limits())
    assert function_order(plan, step_seconds(plan, {"sin": 3e-6, "cos": 9e-6})) == ["sin", "cos"]
    assert function_order(plan, step_seconds(plan, {"sin": 3e-6, "cos": 30e-6})) == ["cos", "sin"]
    (first, _) = compile_order(compilable_of(plan).plan, plan, step_seconds(plan, {"sin": 3e-6}))
    assert len(first.ops) == 4
    assert first.seconds == pytest.approx(4 * (3e-6 + 1e-6))


def test_order_is_estimated_without_measurements() -> None:
    sizes = {name: 1000 * (k + 1) for k, name in enumerate(("neg", "abs", "sign"))}
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType((size,), np.dtype("float32")), k) for k, size in enumerate(sizes.values())]
    ys = [getattr(x, name)().sqrt().cumsum(axis=0) for name, x in zip(sizes, leaves, strict=True)]
    plan = make_plan(builder.graph(ys), Limits())
    ordered = compile_order(compilable_of(plan).plan, plan)
    lengths = [op.iteration_space.length for each in ordered for op in each.ops if isinstance(op, Fused)]
    assert lengths == [3000, 2000, 1000]


def test_outlier_measurement_is_not_trusted() -> None:
    """The first step of a process waits until a library is loaded."""
    plan = branches(dict.fromkeys(FUNCTIONS[:3], 100_000))
    seconds = step_seconds(plan, {"tanh": 1e-3, "sin": 2e-3, "cos": 3e-3})
    waited = next(k for k, step in enumerate(plan.steps) if step.op.name == "tanh")
    seconds[waited] = 3600.0
    ordered = compile_order(compilable_of(plan).plan, plan, seconds)
    assert max(each.seconds for each in ordered) < 1.0


@pytest.mark.parametrize("which", [0, 1, 2])
def test_fastest_of_equal_steps_counts(which: int) -> None:
    plan = branches({"tanh": 100, "sin": 100}, times=3)
    seconds = step_seconds(plan, {"tanh": 4e-6, "sin": 8e-6})
    seconds[[k for k, step in enumerate(plan.steps) if step.op.name == "tanh"][which]] = 90e-6
    assert function_order(plan, seconds) == ["sin", "tanh"]


def test_few_kernels_are_compiled_in_one_part() -> None:
    for count in (1, ordering.FEW):
        assert first_parts([SharedKernels([], 1.0)] * count) == []


def test_first_parts_are_the_fewest_kernels_for_their_share() -> None:
    plan = branches(dict.fromkeys(FUNCTIONS, 100))
    ordered = compile_order(compilable_of(plan).plan, plan, step_seconds(plan, {"cos": 30e-6, "exp": 20e-6}))
    assert len(ordered) > ordering.FEW
    whole = sum(each.seconds for each in ordered)
    for share, first in zip(ordering.FIRST_SHARES, first_parts(ordered), strict=True):
        taken = [each.seconds for each in ordered if each.ops[0] in first]
        assert sum(taken[:-1]) < share * whole <= sum(taken)
        assert taken == [each.seconds for each in ordered][: len(taken)]
    assert [functions_of(plan, each) for each in ordered[:2]] == [{"cos"}, {"exp"}]
