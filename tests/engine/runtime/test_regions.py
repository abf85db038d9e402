"""Plans whose native calls are run in regions: few of them, with the bits of the list of calls, whatever is fed."""

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


def leaf(builder: Builder, at: int, shape: tuple[int, ...] = SHAPE) -> Value:
    return builder.leaf(TensorType(shape, np.dtype("float32")), at)


def normalised(y: Value, axis: int) -> Value:
    """A loop of its own: the next one begins where all of a sum is there."""
    return y / (y * y + 1.0).sum(axes=(axis,), keepdims=True)


def chain(steps: int = 6) -> Plan:
    """Loops one after the other, with sums over rows and columns, on two feeds; results large and small."""
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
    found = Kernels(threads=threads).compile(plan)
    assert found is not None
    return found


def by_list(plan: Plan, *fed: Mapping[Any, Array]) -> list[list[bytes]]:
    """Call by call, each bound to the feeds anew."""
    bound = binder(plan)
    bound.runner = None
    return [answer(PreparedPlan(plan, NumPyExecutor(), bound), each) for each in fed]


def answer(bound: PreparedPlan, fed: Mapping[Any, Array]) -> list[bytes]:
    return [array.tobytes() for array in bound.run(fed)]


def called(bound: PreparedPlan) -> list[Any]:
    return [function for segment in bound._segments for function, _ in segment.calls]


@pytest.fixture(params=[0, lifetimes.SMALL_BYTES], ids=["nothing is small", "small is copied"])
def threshold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetimes, "SMALL_BYTES", request.param)


@pytest.mark.usefixtures("threshold")
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_bits_are_those_of_single_calls(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "WORTH_THREADS", 0)
    plan = chain()
    fed = [feeds(k) for k in range(3)]
    expected = by_list(plan, *fed)
    bound = PreparedPlan(plan, NumPyExecutor(), binder(plan, threads))
    for _ in range(20):
        assert [answer(bound, each) for each in fed] == expected


@pytest.mark.usefixtures("threshold")
def test_a_plan_of_loops_is_one_region_whose_calls_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """However its feeds and results come and go."""
    plan = chain()
    loops, bound_again = binder(plan), list[Any]()
    bound = PreparedPlan(plan, NumPyExecutor(), loops)
    expected = by_list(plan, feeds(1), feeds(2))
    first = answer(bound, feeds(1))
    before = called(bound)
    assert [type(function) for function in before] == [Region]
    monkeypatch.setattr(loops, "calls", lambda *_: bound_again.append(1))
    held = bound.run(feeds(2))
    assert [first, [array.tobytes() for array in held]] == expected
    assert answer(bound, feeds(1)) == expected[0]
    assert [array.tobytes() for array in held] == expected[1]
    assert called(bound) == before
    assert not bound_again


@pytest.mark.usefixtures("threshold")
def test_one_array_for_two_feeds_and_then_two() -> None:
    plan = chain(2)
    same, other = feeds(0), feeds(1)
    same[1] = same[0]
    bound = PreparedPlan(plan, NumPyExecutor(), binder(plan))
    assert [answer(bound, fed) for fed in (same, other, same)] == by_list(plan, same, other, same)


@pytest.mark.slow
@pytest.mark.usefixtures("threshold")
@pytest.mark.usefixtures("own_garbage")
def test_nothing_refers_to_a_feed_once_a_run_is_over() -> None:
    bound = PreparedPlan(plan := chain(2), NumPyExecutor(), binder(plan))
    for k in range(2):
        fed = feeds(k)
        gone = [weakref.ref(array) for array in fed.values()]
        bound.run(fed)
        del fed
        gc.collect()
        assert [array() for array in gone] == [None] * 2


@pytest.mark.usefixtures("threshold")
def test_arguments_out_of_range_are_computed_again_inside_a_region() -> None:
    builder = Builder(registry())
    x, z = leaf(builder, 0), leaf(builder, 1)
    y = normalised(x.sin() * z, 0)
    plan = planned(y.cos(), (y + z).sin().sum(axes=(0,)), y.sum())
    fed = [feeds(k) for k in range(3)]
    fed[1][0][5, 7], fed[1][1][60, 2] = 1e9, -3e38
    bound, executor = PreparedPlan(plan, NumPyExecutor(), binder(plan)), NumPyExecutor()
    for each in (*fed, *fed):
        found = bound.run(each)
        for a, b in zip(found, executor.interpret(plan, each), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    assert [type(function) for function in called(bound)] == [Region]


@pytest.mark.slow
def test_several_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "WORTH_THREADS", 0)
    plans = [chain(k) for k in range(1, 5)]
    expected = [by_list(plan, feeds(3))[0] for plan in plans]

    def work(k: int) -> bool:
        bound = PreparedPlan(plans[k % 4], NumPyExecutor(), binder(plans[k % 4], 1 + k % 3))
        return all(answer(bound, feeds(3)) == expected[k % 4] for _ in range(30))

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))


# ---------------------------------------------------------------- ends


class Silent(Deadline):
    """One that says nothing in Python: its byte is set when it is looked at there."""

    __slots__ = ()

    def check(self) -> None:
        self.stop[0] = 1  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.usefixtures("threshold")
def test_a_region_ends_when_its_run_is_stopped_and_the_next_one_is_right() -> None:
    plan = chain(20)
    bound = PreparedPlan(plan, NumPyExecutor(), binder(plan))
    expected = by_list(plan, feeds(1))[0]
    for _ in range(3):
        stop = bytearray(1)
        with pytest.raises(DeadlineExceeded, match="nobody waits") as raised:
            bound.run(feeds(1), Silent(stop=stop))
        assert raised.value.node is None
        stop[0] = 0
        raised.value.__traceback__ = None
        stop.append(1)  # whose memory nothing refers to any more
        assert answer(bound, feeds(1)) == expected


def test_without_a_runner_calls_are_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "WORTH_THREADS", 0)
    monkeypatch.setattr(kernels, "shared_runner", lambda store: None)
    plan = chain()
    bound = PreparedPlan(plan, NumPyExecutor(), binder(plan, 3))
    expected = by_list(plan, feeds(1), feeds(2))
    assert [answer(bound, feeds(k)) for k in (1, 2)] == expected
    assert not any(isinstance(function, Region) for function in called(bound))
