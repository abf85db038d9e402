"""Plans with a part of their kernels: what is left out is computed node by node, and all of it comes out right."""

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
from tests.contract.cases import Array, Case, has_rule, sample
from tests.engine.analysis.real_networks import REAL_NETWORKS
from tests.engine.runtime.kernel_plans import FEED, layers
from tests.sampling import together

PLENTY = 1 << 40
LIMITS = Limits()
#: of the largest number of an answer, by the bytes of a number: some gradients are 0 but for rounding
TOLERANCES = {2: 2e-2, 4: 1e-4, 8: 1e-9}
COMPILED = ("mlp 3 relu batch_norm", "convnet 2 relu", "transformer 1", "recurrent 6 lstm")


def kernels(plan: Plan) -> dict[Hashable, list[Kernel]]:
    """The ops that can be compiled, by the kernels that they share."""
    found: dict[Hashable, list[Kernel]] = {}
    for step in plan.steps:
        if isinstance(step.op, Fused | MicrokernelOp):
            found.setdefault(_kernel_key(step.op), []).append(step.op)
    return found


def parts(within: Compilable) -> list[list[Kernel]]:
    """The ops of no kernels, of every second, of the others, and of all."""
    ops = [*kernels(within.plan).values()]
    return [[*chain(*some)] for some in ([], ops[::2], ops[1::2], ops)]


def some_parts(within: Compilable, number: int) -> list[list[Kernel]]:
    """Two of them, in turn: the first or second half of the kernels that alternate, and none or all."""
    return parts(within)[number % 2 :: 2]


def partly(within: Compilable, kept: Sequence[Kernel]) -> Plan:
    """A plan with no kernels but those that are kept."""
    plan = within.plan_part(kept)
    assert plan is not None
    assert {*chain(*kernels(plan).values())} <= {*kept}
    return plan


def assert_alike(found: Sequence[Array], expected: Sequence[Array]) -> None:
    floats = [array[np.isfinite(array)] for array in expected if array.dtype.kind in "fc"]
    scale = max((float(np.abs(array).max(initial=0.0)) for array in floats), default=0.0)
    for one, other in zip(found, expected, strict=True):
        tolerance = TOLERANCES[other.real.itemsize] if other.dtype.kind in "fc" else 0
        np.testing.assert_allclose(one, other, tolerance, tolerance * scale)


def of_case(case: Case, arrays: list[Array]) -> Graph:
    """An op's values and gradients, from what is compiled and to what is."""
    written = case.write(arrays)
    floats = [(y * 0.5).tanh() for y in written.float_outputs]
    if not floats:
        return optimise(written.builder.graph(written.outputs))
    total = reduce(operator.add, (y.sum() for y in floats))
    seeds = [(total, total.full_like(1.0))]
    gradients = vjp_or_zeros(written.builder, seeds, written.float_operands) if has_rule(case) else []
    return optimise(written.builder.graph([*written.outputs, *floats, *gradients]))


def network(name: str) -> tuple[Plan, Mapping[Any, Array]]:
    net = REAL_NETWORKS[name]()
    return plan_call(CompileRequest(net.program, net.types, Gradients.of_program(net.program), LIMITS))[1], net.feeds


@together
@sample()
def test_every_op_beside_kernels_that_are_there(case: Case) -> None:
    arrays = case.arrays("float32")
    graph, feeds = of_case(case, arrays), dict(enumerate(arrays))
    within = compiled_within(graph, PLENTY, 1)
    if within is None:
        return
    executor = NumPyExecutor()
    expected = executor.interpret(make_plan(graph, LIMITS), feeds)
    for kept in some_parts(within, crc32(str(case).encode())):
        assert_alike(executor.interpret(partly(within, kept), feeds), expected)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "name"), list(enumerate(REAL_NETWORKS)))
def test_every_network_with_a_part_of_its_kernels(number: int, name: str) -> None:
    plan, feeds = network(name)
    within = compiled_within(graph_of(plan, registry()), PLENTY, 1)
    if within is None:
        return
    executor = NumPyExecutor()
    expected = executor.interpret(plan, feeds)
    for kept in some_parts(within, number):
        assert_alike(executor.interpret(partly(within, kept), feeds), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_a_part_of_the_kernels_of_a_network_is_compiled(name: str) -> None:
    pytest.importorskip("llvmlite")
    plan, feeds = network(name)
    within = compiled_within(graph_of(plan, registry()), PLENTY, 1)
    assert within is not None
    executor, made = NumPyExecutor(), Kernels()
    expected = executor.interpret(plan, feeds)
    for kept in parts(within):
        part = partly(within, kept)
        binder = made.compile(part)
        assert binder is not None
        for _ in range(2):
            assert_alike(executor._run_prepared(ExecutionTier(part, binder), feeds, NO_DEADLINE), expected)


def test_with_all_that_can_be_compiled_it_is_the_whole_plan() -> None:
    within = compiled_within(graph_of(layers(4), registry()), PLENTY, 1)
    assert within is not None
    again = partly(within, [*chain(*kernels(within.plan).values())])
    one, other = ([(step.op.name, step.types, step.places) for step in each.steps] for each in (again, within.plan))
    assert one == other
    assert kernels(again).keys() == kernels(within.plan).keys()


def test_what_is_kept_is_the_same_kernels_as_in_the_whole() -> None:
    """So nothing is compiled for the time in between alone."""
    plan = layers(4)
    within = compiled_within(graph_of(plan, registry()), PLENTY, 1)
    assert within is not None
    for kept in parts(within):
        assert kernels(partly(within, kept)).keys() == {
            _kernel_key(op) for op in kept if isinstance(op, Fused | MicrokernelOp)
        }
        assert_alike(NumPyExecutor().interpret(partly(within, kept), FEED), NumPyExecutor().interpret(plan, FEED))


def test_a_value_that_a_kernel_has_for_itself_is_computed_for_those_beside_it() -> None:
    """The way back computes the way there once more; where it has no kernel, it needs its values in memory."""
    builder = Builder(registry())
    x, w = (builder.leaf(TensorType((64, 64), np.dtype("float32")), k) for k in (0, 1))
    h = (x * 2.0).exp().sin()
    y = h @ w
    back = y @ w.transpose()
    graph = builder.graph([y.sum(), (back * h.cos() * (x * 2.0).exp()).tanh()])
    within = compiled_within(graph, PLENTY, 1)
    assert within is not None
    rng = np.random.default_rng(0)
    feeds = {k: rng.uniform(-1, 1, (64, 64)).astype("float32") for k in (0, 1)}
    executor = NumPyExecutor()
    expected = executor.interpret(make_plan(graph, LIMITS), feeds)
    ops = kernels(within.plan)
    for left_out in ops:
        kept = [op for key in ops if key != left_out for op in ops[key]]
        assert_alike(executor.interpret(partly(within, kept), feeds), expected)


def test_a_part_that_takes_more_memory_than_it_may_is_none() -> None:
    within = compiled_within(graph_of(layers(4), registry()), PLENTY, 1)
    assert within is not None
    part = partly(within, [])
    assert within._replace(most_bytes=part.peak_bytes).plan_part([]) is not None
    assert within._replace(most_bytes=part.peak_bytes - 1).plan_part([]) is None
