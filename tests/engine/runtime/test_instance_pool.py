"""What is kept idle between runs: bounded, the most recently used, and no longer than its plan."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, NonfiniteWatch, Plan, Program, Statement, TensorType, open_executor, registry
from engine.compiler.plan import make_plan
from engine.ir.fairness import charge_to
from engine.runtime import numpy_backend
from engine.runtime import numpy_backend as kernels
from engine.runtime.interpreter import MOST_OF_A_PLAN, InstancePool
from engine.runtime.numpy_backend import NumPyExecutor
from engine.runtime.prepared_plan import PreparedPlan

FEED = {0: np.ones(3)}


def sine(size: int = 3) -> Plan:
    x = Builder(registry()).leaf(TensorType((size,), np.dtype("float64")), 0)
    return make_plan(x.builder.graph([x.sin().cos()]), Limits())


def bound(plan: Plan) -> PreparedPlan:
    return PreparedPlan(plan, NumPyExecutor())


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[PreparedPlan]:
    """What executors bind."""
    found: list[PreparedPlan] = []

    class Listed(PreparedPlan):
        def __init__(self, *rest: Any) -> None:
            super().__init__(*rest)
            found.append(self)

    monkeypatch.setattr(numpy_backend, "PreparedPlan", Listed)
    return found


# ---------------------------------------------------------------- instances


def test_what_is_given_is_taken_once() -> None:
    plan, other, instances = sine(), sine(), InstancePool()
    one = bound(plan)
    assert instances.lend(plan) is None
    instances.give(plan, one)
    assert instances.idle_bytes == one.nbytes > 0
    assert instances.lend(other) is None
    assert instances.lend(plan) is one
    assert instances.lend(plan) is None
    assert instances.idle_bytes == 0


def test_the_least_recently_used_makes_room() -> None:
    plans = [sine() for _ in range(4)]
    bounds = [bound(plan) for plan in plans]
    instances = InstancePool(3 * bounds[0].nbytes)
    for plan, one in zip(plans[:3], bounds, strict=False):
        instances.give(plan, one)
    instances.give(plans[0], instances.lend(plans[0]) or bounds[0])
    instances.give(plans[3], bounds[3])
    assert instances.idle_bytes == instances.bytes
    assert instances.lend(plans[1]) is None
    assert [instances.lend(plans[i]) for i in (0, 2, 3)] == [bounds[i] for i in (0, 2, 3)]
    assert instances.idle_bytes == 0


def test_what_is_anothers_displaces_nothing_within_a_share() -> None:
    own, others = sine(), [sine() for _ in range(10)]
    kept = bound(own)
    instances = InstancePool(4 * kept.nbytes)
    try:
        charge_to("modest")
        instances.give(own, kept)
        charge_to("greedy")
        for plan in others:
            instances.give(plan, bound(plan))
        assert instances.idle_bytes == instances.bytes
        assert instances.lend(own) is kept
    finally:
        charge_to(None)


def test_what_is_too_large_displaces_nothing() -> None:
    small, large = sine(), sine(10_000)
    kept, dropped = bound(small), bound(large)
    instances = InstancePool(dropped.nbytes - 1)
    instances.give(small, kept)
    instances.give(large, dropped)
    assert instances.lend(large) is None
    assert instances.lend(small) is kept


def test_of_one_plan_only_so_many_are_kept() -> None:
    plan, instances = sine(), InstancePool()
    for _ in range(MOST_OF_A_PLAN + 2):
        instances.give(plan, bound(plan))
    assert instances.idle_bytes == MOST_OF_A_PLAN * bound(plan).nbytes


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_a_plan_that_is_gone_takes_its_own_along() -> None:
    plan, other, instances = sine(), sine(), InstancePool()
    instances.give(plan, bound(plan))
    instances.give(other, bound(other))
    held = instances.idle_bytes
    del plan
    gc.collect()
    assert instances.idle_bytes == held / 2
    assert instances.lend(other) is not None
    assert instances.idle_bytes == 0


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_a_plan_that_goes_while_leases_are_in_use_is_noticed_next_time() -> None:
    plan, other, instances = sine(), sine(), InstancePool()
    instances.give(plan, bound(plan))
    held = instances.idle_bytes
    with instances._lock:
        del plan
        gc.collect()
        assert instances.idle_bytes == held
    instances.give(other, bound(other))
    assert instances.idle_bytes == held


def test_clearing_drops_all() -> None:
    plan, instances = sine(), InstancePool()
    instances.give(plan, bound(plan))
    instances.clear()
    assert (instances.idle_bytes, instances.lend(plan)) == (0, None)


def test_threads_never_hold_the_same_one() -> None:
    plans, instances, out = [sine() for _ in range(3)], InstancePool(), set()
    every = bound(plans[0]).nbytes

    def borrow(k: int) -> bool:
        plan = plans[k % 3]
        one = instances.lend(plan) or bound(plan)
        alone = id(one) not in out
        out.add(id(one))
        one.run(FEED)
        out.discard(id(one))
        instances.give(plan, one)
        return alone

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(borrow, range(500)))
    assert instances.idle_bytes % every == 0
    assert instances.idle_bytes <= 3 * MOST_OF_A_PLAN * every


# ---------------------------------------------------------------- executors


def test_a_plan_is_bound_once(made: list[PreparedPlan]) -> None:
    plan, executor = sine(), NumPyExecutor()
    for _ in range(3):
        executor.run(plan, FEED)
        executor.execute(plan, FEED)
    assert len(made) == 1
    executor.run(sine(), FEED)
    assert len(made) == 2


def test_what_cannot_be_kept_is_bound_for_each_run(made: list[PreparedPlan]) -> None:
    plan = sine(1000)
    executor = NumPyExecutor(instances=InstancePool(8000))
    for count in (1, 2):
        (y,) = executor.run(plan, {0: np.ones(1000)})
        assert (len(made), executor.instances.idle_bytes) == (count, 0)
        np.testing.assert_array_equal(y, np.cos(np.sin(1.0)))


def test_a_plan_that_was_replaced_is_not_kept() -> None:
    plan, instances = sine(), InstancePool()
    running, idle = bound(plan), bound(plan)
    instances.give(plan, idle)
    instances.retire(plan)
    assert instances.idle_bytes == 0
    instances.give(plan, running)
    assert instances.idle_bytes == 0
    assert instances.lend(plan) is None


def test_who_looks_on_sees_every_step(made: list[PreparedPlan]) -> None:
    ops = registry().ops
    program = Program(registry(), [Statement(ops["input"]), Statement(ops["sin"], (0,)), Statement(ops["cos"], (1,))])
    plan, executor = sine(), NumPyExecutor()
    watch = NonfiniteWatch(program, {}, plan, executor)
    seen: list[str] = []

    def look(run: Any, step: Any, operands: Any, result: Any) -> None:
        watch(run, step, operands, result)
        seen.append(step.op.name)

    executor.run(plan, FEED, watch=look)
    assert seen == ["sin", "cos"]
    assert not made


def test_a_binder_may_make_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seam for what is fused: each op that is in no loop as its own call, and one more before it."""
    counted: list[str] = []

    def twice(run: Any, step: Any, operands: Any, out: Any) -> list[Any]:
        return [(counted.append, (step.op.name,)), step.op.bind(run, operands, out, step.attrs)]

    monkeypatch.setattr(kernels, "bind_step", twice)
    executor = NumPyExecutor()
    for size in (3, 50_000):
        x = Builder(registry()).leaf(TensorType((size,), np.dtype("float64")), 0)
        plan = make_plan(x.builder.graph([x.sort(axis=0).cumsum(axis=0)]), Limits())
        for _ in range(2):
            (y,) = executor.run(plan, {0: np.ones(size)})
            np.testing.assert_array_equal(y, np.arange(1.0, size + 1))
    assert counted == ["sort", "cumsum"] * 4


def test_threads_are_a_setting_of_the_cpu() -> None:
    executor = open_executor("cpu", threads=3)
    assert isinstance(executor, NumPyExecutor)
    assert executor.threads == 3
