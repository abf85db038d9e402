"""The pool of idle plan instances: bounded, most recently used, and dropped with its plan."""

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
def prepared_plans(monkeypatch: pytest.MonkeyPatch) -> list[PreparedPlan]:
    """Prepared plans that executors bind."""
    plans: list[PreparedPlan] = []

    class RecordedPlan(PreparedPlan):
        def __init__(self, *rest: Any) -> None:
            super().__init__(*rest)
            plans.append(self)

    monkeypatch.setattr(numpy_backend, "PreparedPlan", RecordedPlan)
    return plans


# ---------------------------------------------------------------- instances


def test_instance_is_lent_once() -> None:
    plan, other, instances = sine(), sine(), InstancePool()
    one = bound(plan)
    assert instances.lend(plan) is None
    instances.give(plan, one)
    assert instances.idle_bytes == one.nbytes > 0
    assert instances.lend(other) is None
    assert instances.lend(plan) is one
    assert instances.lend(plan) is None
    assert instances.idle_bytes == 0


def test_least_recently_used_instance_is_evicted() -> None:
    plans = [sine() for _ in range(4)]
    bound_plans = [bound(plan) for plan in plans]
    instances = InstancePool(3 * bound_plans[0].nbytes)
    for plan, instance in zip(plans[:3], bound_plans, strict=False):
        instances.give(plan, instance)
    instances.give(plans[0], instances.lend(plans[0]) or bound_plans[0])
    instances.give(plans[3], bound_plans[3])
    assert instances.idle_bytes == instances.bytes
    assert instances.lend(plans[1]) is None
    assert [instances.lend(plans[i]) for i in (0, 2, 3)] == [bound_plans[i] for i in (0, 2, 3)]
    assert instances.idle_bytes == 0


def test_other_owners_do_not_evict_within_a_share() -> None:
    own, others = sine(), [sine() for _ in range(10)]
    instance = bound(own)
    instances = InstancePool(4 * instance.nbytes)
    try:
        charge_to("modest")
        instances.give(own, instance)
        charge_to("greedy")
        for plan in others:
            instances.give(plan, bound(plan))
        assert instances.idle_bytes == instances.bytes
        assert instances.lend(own) is instance
    finally:
        charge_to(None)


def test_too_large_instance_evicts_nothing() -> None:
    small, large = sine(), sine(10_000)
    kept, dropped = bound(small), bound(large)
    instances = InstancePool(dropped.nbytes - 1)
    instances.give(small, kept)
    instances.give(large, dropped)
    assert instances.lend(large) is None
    assert instances.lend(small) is kept


def test_instances_of_one_plan_are_bounded() -> None:
    plan, instances = sine(), InstancePool()
    for _ in range(MOST_OF_A_PLAN + 2):
        instances.give(plan, bound(plan))
    assert instances.idle_bytes == MOST_OF_A_PLAN * bound(plan).nbytes


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_instances_are_dropped_with_their_plan() -> None:
    plan, other, instances = sine(), sine(), InstancePool()
    instances.give(plan, bound(plan))
    instances.give(other, bound(other))
    bytes_before = instances.idle_bytes
    del plan
    gc.collect()
    assert instances.idle_bytes == bytes_before / 2
    assert instances.lend(other) is not None
    assert instances.idle_bytes == 0


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_plan_collected_under_the_lock_is_dropped_later() -> None:
    plan, other, instances = sine(), sine(), InstancePool()
    instances.give(plan, bound(plan))
    bytes_before = instances.idle_bytes
    with instances._lock:
        del plan
        gc.collect()
        assert instances.idle_bytes == bytes_before
    instances.give(other, bound(other))
    assert instances.idle_bytes == bytes_before


def test_clear_drops_all_instances() -> None:
    plan, instances = sine(), InstancePool()
    instances.give(plan, bound(plan))
    instances.clear()
    assert (instances.idle_bytes, instances.lend(plan)) == (0, None)


def test_threads_never_share_an_instance() -> None:
    plans, instances, lent = [sine() for _ in range(3)], InstancePool(), set()
    size = bound(plans[0]).nbytes

    def borrow(k: int) -> bool:
        plan = plans[k % 3]
        instance = instances.lend(plan) or bound(plan)
        is_exclusive = id(instance) not in lent
        lent.add(id(instance))
        instance.run(FEED)
        lent.discard(id(instance))
        instances.give(plan, instance)
        return is_exclusive

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(borrow, range(500)))
    assert instances.idle_bytes % size == 0
    assert instances.idle_bytes <= 3 * MOST_OF_A_PLAN * size


# ---------------------------------------------------------------- executors


def test_plan_is_bound_once(prepared_plans: list[PreparedPlan]) -> None:
    plan, executor = sine(), NumPyExecutor()
    for _ in range(3):
        executor.run(plan, FEED)
        executor.execute(plan, FEED)
    assert len(prepared_plans) == 1
    executor.run(sine(), FEED)
    assert len(prepared_plans) == 2


def test_plan_too_large_for_the_pool_is_bound_each_run(prepared_plans: list[PreparedPlan]) -> None:
    plan = sine(1000)
    executor = NumPyExecutor(instances=InstancePool(8000))
    for count in (1, 2):
        (y,) = executor.run(plan, {0: np.ones(1000)})
        assert (len(prepared_plans), executor.instances.idle_bytes) == (count, 0)
        np.testing.assert_array_equal(y, np.cos(np.sin(1.0)))


def test_retired_plan_is_not_pooled() -> None:
    plan, instances = sine(), InstancePool()
    running, idle = bound(plan), bound(plan)
    instances.give(plan, idle)
    instances.retire(plan)
    assert instances.idle_bytes == 0
    instances.give(plan, running)
    assert instances.idle_bytes == 0
    assert instances.lend(plan) is None


def test_watch_sees_every_step(prepared_plans: list[PreparedPlan]) -> None:
    ops = registry().ops
    program = Program(registry(), [Statement(ops["input"]), Statement(ops["sin"], (0,)), Statement(ops["cos"], (1,))])
    plan, executor = sine(), NumPyExecutor()
    watch = NonfiniteWatch(program, {}, plan, executor)
    seen: list[str] = []

    def record(run: Any, step: Any, operands: Any, result: Any) -> None:
        watch(run, step, operands, result)
        seen.append(step.op.name)

    executor.run(plan, FEED, watch=record)
    assert seen == ["sin", "cos"]
    assert not prepared_plans


def test_binder_can_return_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Used for fused steps: each op outside a kernel is a call of its own, here with one more call before it."""
    names: list[str] = []

    def twice(run: Any, step: Any, operands: Any, out: Any) -> list[Any]:
        return [(names.append, (step.op.name,)), step.op.bind(run, operands, out, step.attrs)]

    monkeypatch.setattr(kernels, "bind_step", twice)
    executor = NumPyExecutor()
    for size in (3, 50_000):
        x = Builder(registry()).leaf(TensorType((size,), np.dtype("float64")), 0)
        plan = make_plan(x.builder.graph([x.sort(axis=0).cumsum(axis=0)]), Limits())
        for _ in range(2):
            (y,) = executor.run(plan, {0: np.ones(size)})
            np.testing.assert_array_equal(y, np.arange(1.0, size + 1))
    assert names == ["sort", "cumsum"] * 4


def test_threads_are_a_setting_of_the_cpu_executor() -> None:
    executor = open_executor("cpu", threads=3)
    assert isinstance(executor, NumPyExecutor)
    assert executor.threads == 3
