"""When a plan is compiled, and what runs before and after."""

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

PATIENCE = 60.0


class Recording(Kernels):
    """Kernels that note what is compiled, after doing something else."""

    def __init__(self, first: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.first = first
        self.asked: list[Plan] = []

    def compile(self, plan: Plan, stop: Callable[[], bool] = lambda: False, first: Iterable[Kernel] = ()) -> Any:
        self.asked.append(plan)
        self.first()
        return self.uncompiled_binder


def tiers_of(made: Kernels) -> ExecutionTiers:
    return ExecutionTiers(made, "fast", lambda plan: None)


def fail() -> None:
    raise KernelUnavailable("there is no compiler")


def test_what_is_compiled_has_the_precision_of_the_plan_and_its_digest() -> None:
    made, plan = Recording(), replace(layers(), digest=bytes(range(32)), precision="tf32")
    found = tiers_of(made)
    for _ in range(2):
        found.current(plan)
        found.record_run(plan)
    found.compiler.settle()
    assert [(each.digest, each.precision) for each in (*made.asked, found.current(plan).plan)] == [
        (plan.digest, "tf32")
    ] * 2


def test_a_second_run_asks_for_kernels_and_a_first_does_not() -> None:
    made, plan = Recording(), layers()
    found = tiers_of(made)
    for count in (0, 1, 1, 1):
        found.current(plan)
        found.record_run(plan)
        found.compiler.settle()
        assert len(made.asked) == count
    assert found.current(plan).plan is made.asked[0]


def test_a_large_plan_asks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, plan = Recording(), layers()
    monkeypatch.setattr(tiers, "LARGE", plan.flops)
    found = tiers_of(made)
    found.current(plan)
    found.record_run(plan)
    found.compiler.settle()
    assert len(made.asked) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_a_plan_is_not_taken_for_one_that_failed_and_is_gone() -> None:
    """Python gives a new object the place, and so the `id`, of one that is gone."""
    made = Recording(fail)
    found, failing = tiers_of(made), [layers(1) for _ in range(100)]
    for plan in failing * 2:
        found.current(plan)
        found.record_run(plan)
    found.compiler.settle()
    assert len(made.asked) == 100
    made.first = lambda: None
    places, kept = {id(plan) for plan in failing}, [layers(1)]
    del failing, plan
    made.asked.clear()
    gc.collect()
    while id(kept[-1]) not in places:
        kept.append(layers(1))
        assert len(kept) < 3000
    for _ in range(2):
        found.current(kept[-1])
        found.record_run(kept[-1])
    found.compiler.settle()
    assert found.current(kept[-1]).plan is not kept[-1]


def test_a_plan_that_failed_is_not_tried_again() -> None:
    made, plan = Recording(fail), layers()
    found = tiers_of(made)
    for _ in range(5):
        assert found.current(plan).plan is plan
        found.record_run(plan)
        found.compiler.settle()
    assert len(made.asked) == 1


def test_a_plan_without_loops_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Plan] = []

    def looking(plan: Plan, known: Registry) -> Graph:
        looked.append(plan)
        return graph_of(plan, known)

    monkeypatch.setattr(tiers, "graph_of", looking)
    found, plan = tiers_of(Recording()), layers(0)
    for _ in range(5):
        found.current(plan)
        found.record_run(plan)
        found.compiler.settle()
    assert looked == [plan]


def test_a_plan_asks_again_where_the_queue_was_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "BackgroundCompiler", lambda: BackgroundCompiler(1))
    begun, told = Event(), Event()

    def hold() -> None:
        begun.set()
        assert told.wait(PATIENCE)

    made = Recording(hold)
    found, plans = tiers_of(made), [layers() for _ in range(3)]
    for plan in plans:
        for _ in range(3):
            found.current(plan)
            found.record_run(plan)
        assert begun.wait(PATIENCE)
    told.set()
    found.compiler.settle()
    assert len(made.asked) == 2
    assert found.current(plans[2]).plan is plans[2]
    found.record_run(plans[2])
    found.compiler.settle()
    assert all(found.current(plan).plan is not plan for plan in plans)


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_a_plan_that_nobody_wants_any_more_is_not_compiled() -> None:
    begun, told = Event(), Event()

    def hold() -> None:
        begun.set()
        assert told.wait(PATIENCE)

    made = Recording(hold)
    found, first, second = tiers_of(made), layers(), layers()
    for plan in (first, first, second, second):
        found.current(plan)
        found.record_run(plan)
    assert begun.wait(PATIENCE)
    del second, plan
    gc.collect()
    told.set()
    found.compiler.settle()
    assert len(made.asked) == 1


def test_what_was_bound_for_a_plan_that_is_replaced_is_dropped() -> None:
    pytest.importorskip("llvmlite")
    executor, plan = NumPyExecutor(determinism="fast", compile="on"), layers()
    for _ in range(2):
        executor.run(plan, FEED)
    executor.settle()
    assert executor.instances.idle_bytes == 0
    executor.run(plan, FEED)
    assert executor.instances.lend(plan) is None
    assert executor.instances.idle_bytes > 0


# ---------------------------------------------------------------- the bits


@pytest.mark.parametrize("fused", [False, True])
def test_fast_changes_bits_once_when_the_kernels_arrive(fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever threads have bound before, and even where the plan has the very loops that are compiled."""
    pytest.importorskip("llvmlite")
    begun, told, compile = Event(), Event(), kernels.machine_code

    def held(text: str) -> bytes:
        begun.set()
        assert told.wait(PATIENCE)
        return compile(text)

    counted(monkeypatch, held)
    executor, plan = NumPyExecutor(determinism="fast", compile="on"), layers(fused=fused)
    before = [bits(executor, plan) for _ in range(2)]
    assert begun.wait(PATIENCE)
    with ThreadPoolExecutor(4) as pool:
        before += list(pool.map(lambda _: bits(executor, plan), range(40)))
    told.set()
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
    (said,) = warnings(caplog)
    assert str(error) in said
