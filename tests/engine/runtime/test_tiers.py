"""Execution tiers: when a plan is compiled, and which plan runs before and after."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from engine import Graph, Plan, Registry
from engine.codegen.native.machine_code import KernelUnavailable
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import graph_of
from engine.ir.op import Kernel
from engine.runtime import numpy_backend as kernels
from engine.runtime import tiers
from engine.runtime.numpy_backend import Kernels, NumPyExecutor
from engine.runtime.tiers import BackgroundCompiler, ExecutionTiers
from tests.engine.runtime.kernel_plans import FEED, assert_right, bits, counted, layers, warnings

TIMEOUT = 60.0


class Recording(Kernels):
    """Kernels that record the plans to compile, after running a callback."""

    def __init__(self, first: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.first = first
        self.asked: list[Plan] = []

    def compile(self, plan: Plan, stop: Callable[[], bool] = lambda: False, first: Iterable[Kernel] = ()) -> Any:
        self.asked.append(plan)
        self.first()
        return self.uncompiled_binder


def tiers_of(recorder: Kernels) -> ExecutionTiers:
    return ExecutionTiers(recorder, "fast", lambda plan: None)


def fail() -> None:
    raise KernelUnavailable("there is no compiler")


def test_compiled_plan_has_the_precision_and_digest() -> None:
    recorder, plan = Recording(), replace(layers(), digest=bytes(range(32)), precision="tf32")
    execution_tiers = tiers_of(recorder)
    for _ in range(2):
        execution_tiers.current(plan)
        execution_tiers.record_run(plan)
    execution_tiers.compiler.settle()
    assert [(each.digest, each.precision) for each in (*recorder.asked, execution_tiers.current(plan).plan)] == [
        (plan.digest, "tf32")
    ] * 2


def test_kernels_are_requested_at_the_second_run() -> None:
    recorder, plan = Recording(), layers()
    execution_tiers = tiers_of(recorder)
    for count in (0, 1, 1, 1):
        execution_tiers.current(plan)
        execution_tiers.record_run(plan)
        execution_tiers.compiler.settle()
        assert len(recorder.asked) == count
    assert execution_tiers.current(plan).plan is recorder.asked[0]


def test_large_plan_requests_kernels_at_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, plan = Recording(), layers()
    monkeypatch.setattr(tiers, "LARGE", plan.flops)
    execution_tiers = tiers_of(recorder)
    execution_tiers.current(plan)
    execution_tiers.record_run(plan)
    execution_tiers.compiler.settle()
    assert len(recorder.asked) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_new_plan_is_not_mistaken_for_a_failed_one() -> None:
    """Python may give a new object the `id` of a collected one."""
    recorder = Recording(fail)
    execution_tiers, failing = tiers_of(recorder), [layers(1) for _ in range(100)]
    for plan in failing * 2:
        execution_tiers.current(plan)
        execution_tiers.record_run(plan)
    execution_tiers.compiler.settle()
    assert len(recorder.asked) == 100
    recorder.first = lambda: None
    failed_ids, plans = {id(plan) for plan in failing}, [layers(1)]
    del failing, plan
    recorder.asked.clear()
    gc.collect()
    while id(plans[-1]) not in failed_ids:
        plans.append(layers(1))
        assert len(plans) < 3000
    for _ in range(2):
        execution_tiers.current(plans[-1])
        execution_tiers.record_run(plans[-1])
    execution_tiers.compiler.settle()
    assert execution_tiers.current(plans[-1]).plan is not plans[-1]


def test_failed_plan_is_not_retried() -> None:
    recorder, plan = Recording(fail), layers()
    execution_tiers = tiers_of(recorder)
    for _ in range(5):
        assert execution_tiers.current(plan).plan is plan
        execution_tiers.record_run(plan)
        execution_tiers.compiler.settle()
    assert len(recorder.asked) == 1


def test_plan_without_kernels_is_examined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    examined: list[Plan] = []

    def recording_graph_of(plan: Plan, known: Registry) -> Graph:
        examined.append(plan)
        return graph_of(plan, known)

    monkeypatch.setattr(tiers, "graph_of", recording_graph_of)
    execution_tiers, plan = tiers_of(Recording()), layers(0)
    for _ in range(5):
        execution_tiers.current(plan)
        execution_tiers.record_run(plan)
        execution_tiers.compiler.settle()
    assert examined == [plan]


def test_plan_requests_again_after_a_full_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "BackgroundCompiler", lambda: BackgroundCompiler(1))
    started, released = Event(), Event()

    def block() -> None:
        started.set()
        assert released.wait(TIMEOUT)

    recorder = Recording(block)
    execution_tiers, plans = tiers_of(recorder), [layers() for _ in range(3)]
    for plan in plans:
        for _ in range(3):
            execution_tiers.current(plan)
            execution_tiers.record_run(plan)
        assert started.wait(TIMEOUT)
    released.set()
    execution_tiers.compiler.settle()
    assert len(recorder.asked) == 2
    assert execution_tiers.current(plans[2]).plan is plans[2]
    execution_tiers.record_run(plans[2])
    execution_tiers.compiler.settle()
    assert all(execution_tiers.current(plan).plan is not plan for plan in plans)


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_collected_plan_is_not_compiled() -> None:
    started, released = Event(), Event()

    def block() -> None:
        started.set()
        assert released.wait(TIMEOUT)

    recorder = Recording(block)
    execution_tiers, first, second = tiers_of(recorder), layers(), layers()
    for plan in (first, first, second, second):
        execution_tiers.current(plan)
        execution_tiers.record_run(plan)
    assert started.wait(TIMEOUT)
    del second, plan
    gc.collect()
    released.set()
    execution_tiers.compiler.settle()
    assert len(recorder.asked) == 1


def test_instances_of_a_replaced_plan_are_dropped() -> None:
    pytest.importorskip("llvmlite")
    executor, plan = NumPyExecutor(determinism="fast", compile="on"), layers()
    for _ in range(2):
        executor.run(plan, FEED)
    executor.settle()
    assert executor.instances.idle_bytes == 0
    executor.run(plan, FEED)
    assert executor.instances.lend(plan) is None
    assert executor.instances.idle_bytes > 0


# ---------------------------------------------------------------- bits


@pytest.mark.parametrize("fused", [False, True])
def test_fast_changes_bits_once_when_the_kernels_arrive(fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any plans bound before, and even if the plan already has the kernels to be compiled."""
    pytest.importorskip("llvmlite")
    started, released, compile = Event(), Event(), kernels.machine_code

    def blocking(text: str) -> bytes:
        started.set()
        assert released.wait(TIMEOUT)
        return compile(text)

    counted(monkeypatch, blocking)
    executor, plan = NumPyExecutor(determinism="fast", compile="on"), layers(fused=fused)
    before = [bits(executor, plan) for _ in range(2)]
    assert started.wait(TIMEOUT)
    with ThreadPoolExecutor(4) as pool:
        before += list(pool.map(lambda _: bits(executor, plan), range(40)))
    released.set()
    executor.settle()
    with ThreadPoolExecutor(4) as pool:
        after = list(pool.map(lambda _: bits(executor, plan), range(40)))
    assert all(each == before[0] for each in before)
    assert all(each == after[0] for each in after)
    assert after[0] != before[0]
    assert_right(executor.run(plan, FEED), plan)


@pytest.mark.parametrize("fused", [False, True])
def test_bitwise_never_changes_bits(fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    texts = counted(monkeypatch)
    executor, plan = NumPyExecutor(determinism="bitwise", compile="on"), layers(fused=fused)
    first = bits(executor, plan)
    before = len(texts)
    assert bool(before) is fused
    assert all(bits(executor, plan) == first for _ in range(999))
    executor.settle()
    assert bits(executor, plan) == first
    assert len(texts) == before
    assert_right(executor.run(plan, FEED), plan)


def test_bitwise_decides_once_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    texts = counted(monkeypatch)
    plan = layers(fused=True)
    loops = sum(isinstance(step.op, Fused) for step in plan.steps)
    executor = NumPyExecutor(determinism="bitwise", compile="on")
    with ThreadPoolExecutor(4) as pool:
        assert len({tuple(each) for each in pool.map(lambda _: bits(executor, plan), range(20))}) == 1
    assert len(texts) == len(set(texts)) <= loops


@pytest.mark.parametrize("error", [KernelUnavailable("there is no compiler"), RuntimeError("a fault")])
def test_bitwise_without_a_compiler(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: str) -> bytes:
        raise error

    counted(monkeypatch, broken)
    executor = NumPyExecutor(determinism="bitwise", compile="on")
    for plan in (layers(fused=True), layers(fused=True)):
        assert bits(executor, plan) == [array.tobytes() for array in NumPyExecutor().interpret(plan, FEED)]
    (warning,) = warnings(caplog)
    assert str(error) in warning
