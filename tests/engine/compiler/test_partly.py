"""Plans with a subset of their kernels: the rest is computed node by node, with the same results."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from engine import Builder, Gradients, Graph, Limits, Plan, TensorType, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.compiler import CompileRequest, plan_call
from engine.compiler.fit_memory import Compilable, compiled_within
from engine.compiler.fused_kernel import Fused, MicrokernelOp, _kernel_key
from engine.compiler.plan import graph_of, make_plan
from engine.ir.op import Kernel
from engine.ir.passes import optimise
from engine.ir.run_context import NO_DEADLINE
from engine.runtime.numpy_backend import Kernels, NumPyExecutor
from engine.runtime.tiers import ExecutionTier
from tests.contract.cases import Array, Case, all_cases, complex_cases, has_rule
from tests.engine.analysis.real_networks import REAL_NETWORKS
from tests.engine.runtime.kernel_plans import FEED, layers
from tests.sampling import sampled, together

PLENTY = 1 << 40
LIMITS = Limits()
#: relative to the largest number of an answer, by itemsize: some gradients are 0 up to rounding
TOLERANCES = {2: 2e-2, 4: 1e-4, 8: 1e-9}
COMPILED = ("mlp 3 relu batch_norm", "convnet 2 relu", "transformer 1", "recurrent 6 lstm")


def kernels(plan: Plan) -> dict[Hashable, list[Kernel]]:
    """The ops that can be compiled, grouped by the kernel that they share."""
    ops: dict[Hashable, list[Kernel]] = {}
    for step in plan.steps:
        if isinstance(step.op, Fused | MicrokernelOp):
            ops.setdefault(_kernel_key(step.op), []).append(step.op)
    return ops


def subsets(compilable: Compilable) -> list[list[Kernel]]:
    """The ops of four subsets of the kernels: none, every second, the others, and all."""
    ops = [*kernels(compilable.plan).values()]
    return [[*chain(*some)] for some in ([], ops[::2], ops[1::2], ops)]


def two_subsets(compilable: Compilable, number: int) -> list[list[Kernel]]:
    """Two of the four subsets, by the parity of a number: either half of the kernels, and none or all."""
    return subsets(compilable)[number % 2 :: 2]


def plan_with(compilable: Compilable, selected: Sequence[Kernel]) -> Plan:
    """A plan with only the selected kernels."""
    plan = compilable.plan_part(selected)
    assert plan is not None
    assert {*chain(*kernels(plan).values())} <= {*selected}
    return plan


def assert_alike(actual: Sequence[Array], expected: Sequence[Array]) -> None:
    floats = [array[np.isfinite(array)] for array in expected if array.dtype.kind in "fc"]
    scale = max((float(np.abs(array).max(initial=0.0)) for array in floats), default=0.0)
    for one, other in zip(actual, expected, strict=True):
        tolerance = TOLERANCES[other.real.itemsize] if other.dtype.kind in "fc" else 0
        np.testing.assert_allclose(one, other, tolerance, tolerance * scale)


def graph_of_case(case: Case, arrays: list[Array]) -> Graph:
    """The values and gradients of an op, with nodes after it that can be compiled."""
    built = case.write(arrays)
    floats = [(y * 0.5).tanh() for y in built.float_outputs]
    if not floats:
        return optimise(built.builder.graph(built.outputs))
    total = reduce(operator.add, (y.sum() for y in floats))
    seeds = [(total, total.full_like(1.0))]
    gradients = vjp_or_zeros(built.builder, seeds, built.float_operands) if has_rule(case) else []
    return optimise(built.builder.graph([*built.outputs, *floats, *gradients]))


def network(name: str) -> tuple[Plan, Mapping[Any, Array]]:
    net = REAL_NETWORKS[name]()
    return plan_call(CompileRequest(net.program, net.types, Gradients.of_program(net.program), LIMITS))[1], net.feeds


@together
@pytest.mark.parametrize("case", sampled([*all_cases(), *complex_cases()], lambda case: [case.op.name]), ids=str)
def test_every_op_beside_a_subset_of_kernels(case: Case) -> None:
    arrays = case.arrays("float32")
    graph, feeds = graph_of_case(case, arrays), dict(enumerate(arrays))
    compilable = compiled_within(graph, PLENTY, 1)
    if compilable is None:
        return
    executor = NumPyExecutor()
    expected = executor.interpret(make_plan(graph, LIMITS), feeds)
    for selected in two_subsets(compilable, crc32(str(case).encode())):
        assert_alike(executor.interpret(plan_with(compilable, selected), feeds), expected)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "name"), list(enumerate(REAL_NETWORKS)))
def test_every_network_with_a_subset_of_its_kernels(number: int, name: str) -> None:
    plan, feeds = network(name)
    compilable = compiled_within(graph_of(plan, registry()), PLENTY, 1)
    if compilable is None:
        return
    executor = NumPyExecutor()
    expected = executor.interpret(plan, feeds)
    for selected in two_subsets(compilable, number):
        assert_alike(executor.interpret(plan_with(compilable, selected), feeds), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_network_runs_with_a_compiled_subset_of_kernels(name: str) -> None:
    pytest.importorskip("llvmlite")
    plan, feeds = network(name)
    compilable = compiled_within(graph_of(plan, registry()), PLENTY, 1)
    assert compilable is not None
    executor, compiler = NumPyExecutor(), Kernels()
    expected = executor.interpret(plan, feeds)
    for selected in subsets(compilable):
        part = plan_with(compilable, selected)
        binder = compiler.compile(part)
        assert binder is not None
        for _ in range(2):
            assert_alike(executor._run_prepared(ExecutionTier(part, binder), feeds, NO_DEADLINE), expected)


def test_all_kernels_give_the_whole_plan() -> None:
    compilable = compiled_within(graph_of(layers(4), registry()), PLENTY, 1)
    assert compilable is not None
    rebuilt = plan_with(compilable, [*chain(*kernels(compilable.plan).values())])
    one, other = (
        [(step.op.name, step.types, step.places) for step in each.steps] for each in (rebuilt, compilable.plan)
    )
    assert one == other
    assert kernels(rebuilt).keys() == kernels(compilable.plan).keys()


def test_subset_uses_the_same_kernels_as_the_whole() -> None:
    """So nothing is compiled only for the interim plan."""
    plan = layers(4)
    compilable = compiled_within(graph_of(plan, registry()), PLENTY, 1)
    assert compilable is not None
    for selected in subsets(compilable):
        assert kernels(plan_with(compilable, selected)).keys() == {
            _kernel_key(op) for op in selected if isinstance(op, Fused | MicrokernelOp)
        }
        assert_alike(
            NumPyExecutor().interpret(plan_with(compilable, selected), FEED), NumPyExecutor().interpret(plan, FEED)
        )


def test_value_private_to_a_kernel_is_computed_for_other_nodes() -> None:
    """The backward pass recomputes forward values; without its kernel, it needs them in memory."""
    builder = Builder(registry())
    x, w = (builder.leaf(TensorType((64, 64), np.dtype("float32")), k) for k in (0, 1))
    h = (x * 2.0).exp().sin()
    y = h @ w
    back = y @ w.transpose()
    graph = builder.graph([y.sum(), (back * h.cos() * (x * 2.0).exp()).tanh()])
    compilable = compiled_within(graph, PLENTY, 1)
    assert compilable is not None
    rng = np.random.default_rng(0)
    feeds = {k: rng.uniform(-1, 1, (64, 64)).astype("float32") for k in (0, 1)}
    executor = NumPyExecutor()
    expected = executor.interpret(make_plan(graph, LIMITS), feeds)
    ops = kernels(compilable.plan)
    for left_out in ops:
        selected = [op for key in ops if key != left_out for op in ops[key]]
        assert_alike(executor.interpret(plan_with(compilable, selected), feeds), expected)


def test_no_plan_for_a_subset_over_the_memory_limit() -> None:
    compilable = compiled_within(graph_of(layers(4), registry()), PLENTY, 1)
    assert compilable is not None
    part = plan_with(compilable, [])
    assert compilable._replace(most_bytes=part.peak_bytes).plan_part([]) is not None
    assert compilable._replace(most_bytes=part.peak_bytes - 1).plan_part([]) is None
