"""Workspace of kernels besides operands and results: within the plan, and released by idle plans."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, Limits, Plan, TensorType, Value, registry
from engine.codegen.kernels import compiled as native
from engine.compiler.fit_memory import compiled_within
from engine.compiler.fused_kernel import Fused
from engine.compiler.fusion import fuse
from engine.compiler.plan import make_plan
from engine.runtime.numpy_backend import Kernels, NumPyExecutor
from engine.runtime.prepared_plan import PreparedPlan
from tests.contract.cases import SLACK, Array, assert_planned_peak_holds
from tests.engine.printers import PRINTERS, printing
from tests.engine.runtime.kernel_plans import warnings

LIMITS = Limits()
LOOPS = 24
SHAPE = (40, 8192)


def chain(step: Callable[[Value], Value], *shape: int) -> Value:
    """Chain many kernels, with an op that is not fused between each two."""
    y = Builder(registry()).leaf(TensorType(shape, np.dtype("float64")), 0)
    for _ in range(LOOPS):
        y = step(y).cumsum(axis=0) * 0.01
    return y


def softmax_step(y: Value) -> Value:
    return y.softmax(axis=-1)


def column_sum_step(y: Value) -> Value:
    return y + (y * y).sum(axes=(0,), keepdims=True)


STEPS = [softmax_step, column_sum_step]


def plan_of(y: Value, threads: int) -> Plan:
    return make_plan(fuse(y.builder.graph([y]), 0, compiled=True, threads=threads), LIMITS)


def native_workspace(op: Fused) -> int:
    return native.native_workspace(op.expanded, op.iteration_space, 1)


def traced_memory(run: Callable[[], object]) -> tuple[int, int]:
    """Return the bytes held after the run, and the peak during it."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.skipif("llvm" not in PRINTERS, reason="there is no LLVM")
def test_kernels_of_a_plan_share_their_workspace(
    step: Callable[[Value], Value], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "WORTH_THREADS", 0)
    plan, executor = plan_of(chain(step, *SHAPE), threads), NumPyExecutor()
    workspaces = [step.op.workspace(step.types) for step in plan.steps if isinstance(step.op, Fused)]
    assert sum(workspaces) > max(workspaces) + 2 * SLACK
    binder = Kernels(threads=threads).compile(plan)
    assert binder is not None
    bound: list[PreparedPlan] = []
    held_bytes, _ = traced_memory(lambda: bound.append(PreparedPlan(plan, executor, binder)))
    result_bytes = plan.buffers[-1]
    assert sum(plan.buffers) + max(workspaces) <= bound[0].nbytes <= sum(plan.buffers) + max(workspaces) + SLACK
    assert held_bytes + result_bytes <= bound[0].nbytes + SLACK
    feed = np.random.default_rng(0).normal(size=SHAPE)
    results: list[Array] = []
    _, peak = traced_memory(lambda: results.extend(bound[0].run({0: feed})))
    assert held_bytes + peak + feed.nbytes <= plan.peak_bytes + SLACK
    np.testing.assert_allclose(results, executor.interpret(plan, {0: feed}), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("printer", PRINTERS)
def test_many_small_kernels_stay_within_planned_memory(printer: str) -> None:
    y = chain(lambda y: (y.sin() * y.cos() + y).exp() / (y.tanh() + 2.0), 2, 8000)
    feeds: dict[object, Array] = {0: np.random.default_rng(0).normal(size=(2, 8000))}
    with printing(printer):
        assert_planned_peak_holds(make_plan(y.builder.graph([y]), LIMITS), feeds)


def test_workspace_is_planned_for_each_thread() -> None:
    """Compiled or not, so that the replacement of a plan fits in its place."""
    y = chain(softmax_step, 1 << 8, 1 << 13)
    graph = y.builder.graph([y])
    for compiled in (True, False):
        one, four = (make_plan(fuse(graph, 0, compiled=compiled, threads=n), LIMITS) for n in (1, 4))
        assert four.peak_bytes - one.peak_bytes >= 3 * 8 * SHAPE[1]
    within = compiled_within(graph, plan_of(y, 1).peak_bytes, 4)
    assert within is None or within.plan.peak_bytes <= plan_of(y, 1).peak_bytes


@pytest.mark.skipif("llvm" not in PRINTERS, reason="there is no LLVM")
def test_kernel_uses_only_planned_threads() -> None:
    plan = plan_of(chain(softmax_step, 1 << 8, 1 << 13), 1)
    step = next(step for step in plan.steps if isinstance(step.op, Fused))
    binder = Kernels(threads=4).compile(plan)
    assert binder is not None
    assert binder.workspace(step) <= step.op.workspace(step.types[0])


@pytest.mark.parametrize("columns", [64, 4096, 1 << 16])
def test_planned_workspace_covers_numpy_and_kernels(columns: int) -> None:
    """NumPy or kernels may be chosen after planning."""
    shape = (1 << 22) // columns, columns
    builder = Builder(registry())
    x, y = (builder.leaf(TensorType(shape, np.dtype("float32")), index) for index in range(2))
    for values in ([(x * y).sum(axes=(0,))], [(x.sin() * y).tanh().sum(axes=(0,))], [x.softmax(axis=-1) * y]):
        loops = [node.op for node in fuse(builder.graph(values), threads=3).nodes if isinstance(node.op, Fused)]
        assert loops
        for op in loops:
            for threads in (1, 3):
                assert native.native_workspace(op.expanded, op.iteration_space, threads) <= op.workspace_for(threads)


@pytest.mark.skipif("llvm" not in PRINTERS, reason="there is no LLVM")
def test_kernels_beyond_the_planned_workspace_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(chain(softmax_step, 1 << 8, 1 << 13), 1)
    monkeypatch.setattr(Fused, "workspace_for", lambda *_: 100)
    binder = Kernels().compile(plan)
    assert binder is not None
    softmaxes = [step.op for step in plan.steps if isinstance(step.op, Fused) and native_workspace(step.op) == 65_536]
    assert len(softmaxes) == LOOPS
    assert binder.compiled.keys().isdisjoint(softmaxes)
    assert max(map(binder.workspace, plan.steps)) <= 100


@pytest.mark.skipif("llvm" not in PRINTERS, reason="there is no LLVM")
@pytest.mark.parametrize("threads", [1, 3])
def test_numpy_runs_a_step_whose_kernel_needs_more_workspace(threads: int, caplog: pytest.LogCaptureFixture) -> None:
    """For a single row, the kernel needs two arrays and NumPy one: all others are compiled, without a warning."""
    builder = Builder(registry())
    x, y = (
        builder.leaf(TensorType((64,), np.dtype("float64")), 0),
        builder.leaf(TensorType((2, 3), np.dtype("float64")), 1),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.compiler.fusion._COSTLY", 0)
        s = x.softmax(axis=-1)
        outputs = [s, s * (s - (s * s).sum(axes=(0,), keepdims=True)), y.tanh().exp() * y]
        graph = fuse(builder.graph(outputs), 0, threads=threads)
    one, other = [step.op for step in make_plan(graph, LIMITS).steps if isinstance(step.op, Fused)]
    assert native_workspace(one) > max(op.workspace_for(1) for op in (one, other))
    plan, executor = make_plan(graph, LIMITS), NumPyExecutor(threads, determinism="bitwise", compile="on")
    feeds = {0: np.linspace(-1, 1, 64), 1: np.linspace(-1, 1, 6).reshape(2, 3)}
    for _ in range(2):
        for actual, expected in zip(executor.run(plan, feeds), NumPyExecutor().interpret(plan, feeds), strict=True):
            np.testing.assert_allclose(actual, expected, 1e-14)
    assert executor.kernels == 1
    assert not warnings(caplog)
