"""Repeated runs of one prepared plan: ownership of memory, references kept after a run, and failed runs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from engine import (
    Builder,
    Compiler,
    Deadline,
    DeadlineExceeded,
    EngineError,
    Limits,
    Plan,
    Program,
    Statement,
    TensorType,
    Value,
    registry,
)
from engine.compiler.plan import Step, make_plan
from engine.ir.op import KernelCall
from engine.ir.run_context import RunContext
from engine.runtime import memory_layout as lifetimes
from engine.runtime.binding import Binder
from engine.runtime.numpy_backend import NumPyExecutor
from engine.runtime.prepared_plan import MOST_CALLS, PreparedPlan

Array = np.ndarray[Any, Any]
LARGE = 50_000


class Recording(NumPyExecutor):
    """Records the sizes it allocates."""

    def __init__(self) -> None:
        super().__init__()
        self.allocated: list[int] = []

    def allocate(self, nbytes: int) -> Any:
        """Allocate like the base class."""
        self.allocated.append(nbytes)
        return super().allocate(nbytes)


def leaf(*shape: int, at: int = 0, builder: Builder | None = None, dtype: str = "float64") -> Value:
    return (builder or Builder(registry())).leaf(TensorType(shape, np.dtype(dtype)), at)


def planned(*outputs: Value) -> Plan:
    return make_plan(outputs[0].builder.graph(outputs), Limits())


# ---------------------------------------------------------------- memory of results

HOLDERS: dict[str, Callable[[Array], Any]] = {
    "the result": lambda y: y,
    "a part of it": lambda y: y[3:5],
    "a view of a view": lambda y: y.reshape(100, -1).T[1:],
    "an export of its memory": memoryview,
    "a reader of its memory": np.frombuffer,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOLDERS)
@pytest.mark.usefixtures("own_garbage")
def test_memory_held_by_a_caller_is_not_overwritten(name: str) -> None:
    bound = PreparedPlan(planned(leaf(LARGE).sin()), NumPyExecutor())
    held, expected = [], []
    for k in range(4):
        (y,) = bound.run({0: np.full(LARGE, float(k))})
        held.append(HOLDERS[name](y))
        expected.append(np.array(held[-1]).tobytes())
        del y
        gc.collect()
    assert [np.array(x).tobytes() for x in held] == expected
    assert len(set(expected)) == 4


def test_released_memory_is_reused() -> None:
    executor = Recording()
    x = leaf(LARGE)
    bound = PreparedPlan(planned(x.sin(), x.cos().reshape(shape=(100, -1)), x.sum()), executor)
    before = len(executor.allocated)
    for k in range(5):
        y, z, _ = bound.run({0: np.full(LARGE, float(k))})
        assert (y[0], z[0, 0]) == (np.sin(k), np.cos(k))
        del y, z
    assert executor.allocated[before:] == [8 * LARGE] * 2


def test_only_held_results_are_allocated_again() -> None:
    executor = Recording()
    x = leaf(LARGE)
    bound = PreparedPlan(planned(x.sin(), x.cos()), executor)
    bound.run({0: np.zeros(LARGE)})
    before = len(executor.allocated)
    first, _ = bound.run({0: np.ones(LARGE)})
    assert executor.allocated[before:] == []
    del _
    second, other = bound.run({0: np.full(LARGE, 2.0)})
    assert executor.allocated[before:] == [8 * LARGE]
    assert (first[0], second[0], other[0]) == (np.sin(1), np.sin(2), np.cos(2))


def test_small_result_is_not_a_view() -> None:
    x = leaf(LARGE)
    bound = PreparedPlan(planned(x.sum(), x.slice(starts=[0], stops=[3]) * 2.0), NumPyExecutor())
    for result in bound.run({0: np.ones(LARGE)}):
        assert result.base is None


@pytest.mark.parametrize("sizes", [(LARGE, 3), (3, LARGE)])
def test_small_part_of_a_split_is_owned_by_the_caller(sizes: tuple[int, int]) -> None:
    x = leaf(LARGE + 3)
    parts = x.split(sizes=sizes)
    bound = PreparedPlan(
        planned(parts.output(0), parts.output(1), parts.output(1).reshape(shape=(-1, 1))), NumPyExecutor()
    )
    runs = [bound.run({0: np.full(LARGE + 3, float(k))}) for k in range(3)]
    for k, results in enumerate(runs):
        assert all((result == k).all() for result in results)
        results[0 if sizes[0] == 3 else 1][...] = np.nan
    assert all((result == 7).all() for result in bound.run({0: np.full(LARGE + 3, 7.0)}))


# ---------------------------------------------------------------- references after a run


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, LARGE])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.usefixtures("own_garbage")
def test_feeds_are_released_after_a_run(size: int, fails: bool) -> None:
    builder = Builder(registry())
    x, index = leaf(size, builder=builder), leaf(1, at=1, builder=builder, dtype="int64")
    view = x.reshape(shape=(1, size)).transpose()
    bound = PreparedPlan(planned(x.gather(index, axis=0), view.sin(), x, (x * 2.0).sum()), NumPyExecutor())
    feed = np.ones(size)
    reference = weakref.ref(feed)
    try:
        bound.run({0: feed, 1: np.array([size if fails else 0])})
    except EngineError:
        assert fails
    del feed
    gc.collect()
    assert reference() is None


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_prepared_plan_does_not_keep_the_plan_alive() -> None:
    plan = planned(leaf(LARGE).sin())
    bound = PreparedPlan(plan, NumPyExecutor())
    bound.run({0: np.ones(LARGE)})
    reference = weakref.ref(plan)
    del plan
    gc.collect()
    assert reference() is None


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize("small", [0, lifetimes.SMALL_BYTES])
@pytest.mark.parametrize("before", [0, 1, MOST_CALLS - 1, MOST_CALLS, 3 * MOST_CALLS + 7])
def test_error_names_its_node_and_the_next_run_succeeds(
    before: int, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetimes, "SMALL_BYTES", small)
    builder = Builder(registry())
    x, index = leaf(5, builder=builder), leaf(2, at=1, builder=builder, dtype="int64")
    y = x
    for _ in range(before):
        y = y.sin()
    z = y.gather(index, axis=0).cos().cos()
    plan, executor = planned(z, y * 2.0), NumPyExecutor()
    bound = PreparedPlan(plan, executor)
    bad_feeds, good_feeds = ({0: np.arange(5.0), 1: np.array([0, bad_index])} for bad_index in (5, 4))
    for _ in range(2):
        with pytest.raises(EngineError) as expected:
            executor.interpret(plan, bad_feeds)
        with pytest.raises(EngineError) as actual:
            bound.run(bad_feeds)
        assert (str(actual.value), actual.value.node, actual.value.code) == (
            str(expected.value),
            expected.value.node,
            "index_out_of_range",
        )
        for a, b in zip(bound.run(good_feeds), executor.interpret(plan, good_feeds), strict=True):
            np.testing.assert_array_equal(a, b)


def test_error_names_the_clients_node() -> None:
    ops = registry().ops
    lines = [*[Statement(ops["input"])] * 2, Statement(ops["sin"], (0,)), Statement(ops["gather"], (2, 1))]
    types = {0: TensorType((5,), np.dtype("f8")), 1: TensorType((1,), np.dtype("i8"))}
    plan = Compiler(Limits()).forward(Program(registry(), [*lines, Statement(ops["exp"], (3,))]), types).plan
    with pytest.raises(EngineError, match=r"^node 3 \(gather\): ") as caught:
        PreparedPlan(plan, NumPyExecutor()).run({0: np.ones(5), 1: np.array([7])})
    assert caught.value.node == 3


@pytest.mark.parametrize("size", [3, LARGE])
def test_feeds_are_checked(size: int) -> None:
    builder = Builder(registry())
    x, y = leaf(size, builder=builder), leaf(size, at=1, builder=builder)
    bound = PreparedPlan(planned(x * y), NumPyExecutor())
    good = np.ones(size)
    for wrong in ({0: good}, {0: good, 1: good[1:]}, {0: good, 1: good.astype("f4")}, {0: good, 1: good[:, None]}):
        with pytest.raises(EngineError, match="the feed of node 1 ") as caught:
            bound.run(wrong)
        assert caught.value.node == 1
        np.testing.assert_array_equal(bound.run({0: good, 1: good})[0], good)


class Late(Deadline):
    """A deadline that passes at its n-th check."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def check(self) -> None:
        """Count."""
        self.looks -= 1
        if not self.looks:
            raise DeadlineExceeded("late")


@pytest.mark.parametrize(("length", "size", "looks"), [(3 * MOST_CALLS, 4, 4), (10, 2_000_000, 11), (3, 4, 2)])
def test_deadline_is_checked_every_few_milliseconds(length: int, size: int, looks: int) -> None:
    x = leaf(size)
    y = x
    for _ in range(length - 1):
        y = -y
    bound = PreparedPlan(planned(y.sum()), NumPyExecutor())
    feed = np.ones(size)
    for passes_at in (1, looks):
        with pytest.raises(DeadlineExceeded):
            bound.run({0: feed}, Late(passes_at))
        assert bound.run({0: feed})[0] == size * (-1) ** (length - 1)
    assert len(bound.run({0: feed}, Late(looks + 1))) == 1


class Stopping(Binder):
    """Makes one step stop halfway, with garbage in its result, as long as `stops` is true."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.stops = True

    def calls(self, run: RunContext, step: Step, operands: Sequence[Array], out: Array) -> Sequence[KernelCall]:
        """Return the base class's calls, with the stop before them."""
        kernel_calls = super().calls(run, step, operands, out)
        return [(self._stop, (out,)), *kernel_calls] if step.op.name == self._name else kernel_calls

    def _stop(self, out: Array) -> None:
        if self.stops:
            out[...] = np.nan
            raise DeadlineExceeded("late")


@pytest.mark.parametrize("name", ["sin", "mul", "sum"])
@pytest.mark.parametrize("size", [5, LARGE])
def test_plan_can_run_again_after_a_kernel_stopped_halfway(size: int, name: str) -> None:
    x = leaf(size)
    plan, executor, binder = planned(x.sin() * x, (x * x).sum()), NumPyExecutor(), Stopping(name)
    prepared, feed = PreparedPlan(plan, executor, binder), np.linspace(-2.0, 2.0, size)
    expected = executor.interpret(plan, {0: feed})
    for binder.stops in (True, False, True, False):
        if binder.stops:
            with pytest.raises(DeadlineExceeded):
                prepared.run({0: feed})
        else:
            actual = prepared.run({0: feed})
            assert [a.tobytes() for a in actual] == [b.tobytes() for b in expected]


# ---------------------------------------------------------------- threads


@pytest.mark.parametrize("size", [5, LARGE])
def test_threads_can_share_a_plan(size: int) -> None:
    x = leaf(size)
    plan, executor = planned(x.sin() * 3.0 + x, (x * x).sum()), NumPyExecutor()

    def run(k: int) -> bool:
        feed = np.full(size, float(k))
        result = executor.run(plan, {0: feed})
        return all(a.tobytes() == b.tobytes() for a, b in zip(result, executor.interpret(plan, {0: feed}), strict=True))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(200)))


def test_deadline_is_checked_between_long_steps() -> None:
    x = leaf(300, 300)
    bound = PreparedPlan(planned(x @ x @ x @ x), NumPyExecutor())
    with pytest.raises(DeadlineExceeded):
        bound.run({0: np.eye(300)}, Late(4))
    assert len(bound.run({0: np.eye(300)}, Late(5))) == 1


def test_copied_bytes_are_bounded() -> None:
    builder = Builder(registry())
    leaves = [leaf(5000, at=i, builder=builder) for i in range(20)]
    assert lifetimes.Lifetimes(planned(*(x.sin() for x in leaves))).extra_bytes <= lifetimes.EXTRA_BYTES
