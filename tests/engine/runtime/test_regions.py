"""Plans whose native calls run in regions: few regions, and the same bits as a list of calls, for any feeds."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from engine import Builder, Deadline, DeadlineExceeded, Limits, Plan, TensorType, Value, registry
from engine.codegen.kernels import compiled as native
from engine.codegen.native.native_call import IS_SUPPORTED
from engine.compiler.fusion import fuse
from engine.compiler.plan import make_plan
from engine.runtime import memory_layout as lifetimes
from engine.runtime import numpy_backend as kernels
from engine.runtime.numpy_backend import KernelBinder, Kernels, NumPyExecutor
from engine.runtime.prepared_plan import PreparedPlan, Region

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(not IS_SUPPORTED, reason="there is no runner for this system")

Array = np.ndarray[Any, Any]
SHAPE = (64, 200)


def leaf(builder: Builder, index: int, shape: tuple[int, ...] = SHAPE) -> Value:
    return builder.leaf(TensorType(shape, np.dtype("float32")), index)


def normalised(y: Value, axis: int) -> Value:
    """Force a new kernel: the next one needs the complete sum."""
    return y / (y * y + 1.0).sum(axes=(axis,), keepdims=True)


def chain(steps: int = 6) -> Plan:
    """Return a plan of consecutive kernels with sums over rows and columns, on two feeds; results large and small."""
    builder = Builder(registry())
    x, z = leaf(builder, 0), leaf(builder, 1)
    y = x * z
    for k in range(steps):
        y = normalised(y + z, k % 2)
    return planned(y, y.sum(), (y * y).sum(axes=(0,)))


def planned(*outputs: Value) -> Plan:
    return make_plan(fuse(outputs[0].builder.graph(outputs), 0, compiled=True, threads=8), Limits())


def feeds(seed: int = 0) -> dict[Any, Array]:
    rng = np.random.default_rng(seed)
    return {k: rng.normal(size=SHAPE).astype("float32") for k in range(2)}


def binder(plan: Plan, threads: int = 1) -> KernelBinder:
    result = Kernels(threads=threads).compile(plan)
    assert result is not None
    return result


def run_as_list(plan: Plan, *feed_sets: Mapping[Any, Array]) -> list[list[bytes]]:
    """Run call by call, newly bound to each set of feeds."""
    bound = binder(plan)
    bound.runner = None
    return [run_bytes(PreparedPlan(plan, NumPyExecutor(), bound), feed_set) for feed_set in feed_sets]


def run_bytes(bound: PreparedPlan, feed_set: Mapping[Any, Array]) -> list[bytes]:
    return [array.tobytes() for array in bound.run(feed_set)]


def bound_functions(bound: PreparedPlan) -> list[Any]:
    return [function for segment in bound._segments for function, _ in segment.calls]


@pytest.fixture(params=[0, lifetimes.SMALL_BYTES], ids=["nothing is small", "small is copied"])
def threshold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetimes, "SMALL_BYTES", request.param)


@pytest.mark.usefixtures("threshold")
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_bits_match_single_calls(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "WORTH_THREADS", 0)
    plan = chain()
    feed_sets = [feeds(k) for k in range(3)]
    expected = run_as_list(plan, *feed_sets)
    bound = PreparedPlan(plan, NumPyExecutor(), binder(plan, threads))
    for _ in range(20):
        assert [run_bytes(bound, each) for each in feed_sets] == expected


@pytest.mark.usefixtures("threshold")
def test_plan_of_kernels_is_one_region_bound_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bind once for all feeds and results."""
    plan = chain()
    loops, rebindings = binder(plan), list[Any]()
    bound = PreparedPlan(plan, NumPyExecutor(), loops)
    expected = run_as_list(plan, feeds(1), feeds(2))
    first = run_bytes(bound, feeds(1))
    before = bound_functions(bound)
    assert [type(function) for function in before] == [Region]
    monkeypatch.setattr(loops, "calls", lambda *_: rebindings.append(1))
    second = bound.run(feeds(2))
    assert [first, [array.tobytes() for array in second]] == expected
    assert run_bytes(bound, feeds(1)) == expected[0]
    assert [array.tobytes() for array in second] == expected[1]
    assert bound_functions(bound) == before
    assert not rebindings


@pytest.mark.usefixtures("threshold")
def test_same_array_for_two_feeds() -> None:
    plan = chain(2)
    shared, other = feeds(0), feeds(1)
    shared[1] = shared[0]
    bound = PreparedPlan(plan, NumPyExecutor(), binder(plan))
    assert [run_bytes(bound, feed_set) for feed_set in (shared, other, shared)] == run_as_list(
        plan, shared, other, shared
    )


@pytest.mark.slow
@pytest.mark.usefixtures("threshold")
@pytest.mark.usefixtures("own_garbage")
def test_feeds_are_released_after_a_run() -> None:
    bound = PreparedPlan(plan := chain(2), NumPyExecutor(), binder(plan))
    for k in range(2):
        feed_set = feeds(k)
        references = [weakref.ref(array) for array in feed_set.values()]
        bound.run(feed_set)
        del feed_set
        gc.collect()
        assert [array() for array in references] == [None] * 2


@pytest.mark.usefixtures("threshold")
def test_out_of_range_arguments_are_recomputed_in_a_region() -> None:
    builder = Builder(registry())
    x, z = leaf(builder, 0), leaf(builder, 1)
    y = normalised(x.sin() * z, 0)
    plan = planned(y.cos(), (y + z).sin().sum(axes=(0,)), y.sum())
    feed_sets = [feeds(k) for k in range(3)]
    feed_sets[1][0][5, 7], feed_sets[1][1][60, 2] = 1e9, -3e38
    bound, executor = PreparedPlan(plan, NumPyExecutor(), binder(plan)), NumPyExecutor()
    for each in (*feed_sets, *feed_sets):
        actual = bound.run(each)
        for a, b in zip(actual, executor.interpret(plan, each), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert [type(function) for function in bound_functions(bound)] == [Region]


@pytest.mark.slow
def test_concurrent_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "WORTH_THREADS", 0)
    plans = [chain(k) for k in range(1, 5)]
    expected = [run_as_list(plan, feeds(3))[0] for plan in plans]

    def work(k: int) -> bool:
        bound = PreparedPlan(plans[k % 4], NumPyExecutor(), binder(plans[k % 4], 1 + k % 3))
        return all(run_bytes(bound, feeds(3)) == expected[k % 4] for _ in range(30))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))


# ---------------------------------------------------------------- deadlines


class Silent(Deadline):
    """A deadline that only sets its stop byte when checked."""

    __slots__ = ()

    def check(self) -> None:
        self.stop[0] = 1  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.usefixtures("threshold")
def test_stopped_region_can_run_again() -> None:
    plan = chain(20)
    bound = PreparedPlan(plan, NumPyExecutor(), binder(plan))
    expected = run_as_list(plan, feeds(1))[0]
    for _ in range(3):
        stop = bytearray(1)
        with pytest.raises(DeadlineExceeded, match="no longer waits") as raised:
            bound.run(feeds(1), Silent(stop=stop))
        assert raised.value.node is None
        stop[0] = 0
        raised.value.__traceback__ = None
        stop.append(1)  # fails if anything still refers to its memory
        assert run_bytes(bound, feeds(1)) == expected


def test_without_a_runner_calls_form_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "WORTH_THREADS", 0)
    monkeypatch.setattr(kernels, "shared_runner", lambda store: None)
    plan = chain()
    bound = PreparedPlan(plan, NumPyExecutor(), binder(plan, 3))
    expected = run_as_list(plan, feeds(1), feeds(2))
    assert [run_bytes(bound, feeds(k)) for k in (1, 2)] == expected
    assert not any(isinstance(function, Region) for function in bound_functions(bound))
