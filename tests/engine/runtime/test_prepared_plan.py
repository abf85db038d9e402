"""Prepared plans give the same bits as the interpreter, in every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Builder, Limits, Plan, TensorType, Value, open_executor, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from engine.runtime import memory_layout as lifetimes
from engine.runtime.prepared_plan import PreparedPlan
from tests.contract.cases import Case, feeds_of, sample, with_gradient
from tests.engine.strategies import Sketch, sketches
from tests.engine.test_random_graphs import graph_of_gradients
from tests.sampling import together

Array = np.ndarray[Any, Any]
CPU = open_executor("cpu")
LIMITS = Limits()
#: sizes in bytes above which nothing is copied: with 0, every feed is read in place, and every result is handed out
THRESHOLDS = [0, lifetimes.SMALL_BYTES]


@pytest.fixture(params=THRESHOLDS, ids=["nothing is small", "small is copied"])
def threshold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetimes, "SMALL_BYTES", request.param)


def leaf(*shape: int, at: int = 0, builder: Builder | None = None, dtype: str = "float64") -> Value:
    return (builder or Builder(registry())).leaf(TensorType(shape, np.dtype(dtype)), at)


def planned(*outputs: Value) -> Plan:
    return make_plan(outputs[0].builder.graph(outputs), LIMITS)


def assert_same(actual: Sequence[Array], expected: Sequence[Array]) -> None:
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert a.flags.c_contiguous
        assert a.tobytes() == b.tobytes()


def assert_agrees(plan: Plan, *feeds: Mapping[Any, Array]) -> None:
    """Run one prepared plan on several sets of feeds: earlier results must not change."""
    bound = PreparedPlan(plan, CPU)
    expected = [CPU.interpret(plan, feed) for feed in feeds]
    actual = [bound.run(feed) for feed in feeds]
    for a, b in zip(actual, expected, strict=True):
        assert_same(a, b)


# ---------------------------------------------------------------- agreement


@together
@sample()
@pytest.mark.parametrize("small", THRESHOLDS)
def test_every_op_and_gradient_match_the_interpreter(case: Case, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetimes, "SMALL_BYTES", small)
    graph = with_gradient(case)
    is_optimised = case.number % 2 == THRESHOLDS.index(small)  # optimised or not, alternating between the thresholds
    plan = make_plan(optimise(graph) if is_optimised else graph, LIMITS)
    feeds = {key: a for key, a in feeds_of(case.arrays()).items() if key in plan.feeds}
    halved = {key: a / a.dtype.type(2) if a.dtype.kind == "f" else a for key, a in feeds.items()}
    assert_agrees(plan, feeds, halved, feeds)


@pytest.mark.slow
@pytest.mark.parametrize("small", THRESHOLDS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(sketch=sketches(), data=st.data())
def test_random_graphs_match_the_interpreter(small: int, sketch: Sketch, data: st.DataObject) -> None:
    wrt = data.draw(st.lists(st.sampled_from(sketch.singles()), min_size=1, max_size=2, unique=True))
    graph = graph_of_gradients(sketch, sketch.singles()[-1], wrt)
    plan = make_plan(optimise(graph) if data.draw(st.booleans()) else graph, LIMITS)
    feeds = {key: sketch.feeds[key] for key in plan.feeds}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lifetimes, "SMALL_BYTES", small)
        assert_agrees(plan, feeds, {key: 0.5 * a for key, a in feeds.items()}, feeds)


@pytest.mark.parametrize("elements", [8191, 8192, 8193, 40_000])
def test_feeds_and_results_of_all_sizes(elements: int) -> None:
    """Up to 64 KiB each, and 256 KiB in total, they are copied."""
    builder = Builder(registry())
    leaves = [leaf(elements, at=i, builder=builder) for i in range(6)]
    y = leaves[0]
    for x in leaves[1:]:
        y = y.sin() * x + y
    plan = planned(y, *vjp_or_zeros(builder, [(y, y.full_like(1.0))], leaves))
    rng = np.random.default_rng(0)
    first, second = ({i: rng.normal(size=elements) for i in range(6)} for _ in range(2))
    assert_agrees(plan, first, second, first)


@pytest.mark.usefixtures("threshold")
def test_float16_and_products_in_all_layouts() -> None:
    x = leaf(3, 3, dtype="float16")
    wide = x.cast(dtype=np.dtype("float32"))
    plan = planned(x @ x, wide @ wide.transpose(), wide @ wide.flip(axes=(0,)), x.sum(axes=(0,)), x.mean())
    assert_agrees(plan, *({0: np.random.default_rng(k).normal(size=(3, 3)).astype("float16")} for k in range(3)))


# ---------------------------------------------------------------- ownership of results


def chained(*shape: int) -> Plan:
    x = leaf(*shape)
    return planned(x.sin().cos(), x * 2.0, (x * 3.0).sum())


@pytest.mark.parametrize("shape", [(), (3,), (100, 100)])
def test_writing_to_results_and_feeds_is_harmless(shape: tuple[int, ...]) -> None:
    plan = chained(*shape)
    bound = PreparedPlan(plan, CPU)
    feeds = [np.random.default_rng(k).normal(size=shape) for k in range(3)]
    expected = [CPU.interpret(plan, {0: feed.copy()}) for feed in feeds]
    actual = []
    for feed in feeds:
        actual.append(bound.run({0: feed}))
        feed[...] = np.nan
    for a, b in zip(actual, expected, strict=True):
        assert_same(a, b)
    for result in actual[0]:
        result[...] = np.nan
    for a, b in zip(actual[1:], expected[1:], strict=True):
        assert_same(a, b)
    assert_same(bound.run({0: np.ones(shape)}), CPU.interpret(plan, {0: np.ones(shape)}))


@pytest.mark.usefixtures("threshold")
def test_constant_result_is_a_copy() -> None:
    builder = Builder(registry())
    value = np.arange(3.0)
    constant, full = builder.constant(value), leaf(3, builder=builder).full_like(2.0)
    plan = planned(constant, full, constant + full, constant.reshape(shape=(3, 1)))
    bound = PreparedPlan(plan, CPU)
    feeds = dict.fromkeys(plan.feeds, value)
    for _ in range(3):
        actual = bound.run(feeds)
        assert_same(actual, [np.arange(3.0), np.full(3, 2.0), np.arange(2.0, 5), np.arange(3.0)[:, None]])
        for result in actual:
            result[...] = np.nan


@pytest.mark.usefixtures("threshold")
def test_result_that_is_a_feed_is_the_feed_itself() -> None:
    x = leaf(2, 3)
    plan = planned(x, x.sin(), x.reshape(shape=(3, 2)))
    bound = PreparedPlan(plan, CPU)
    for k in range(3):
        feed = np.full((2, 3), float(k))
        unchanged, y, reshaped = bound.run({0: feed})
        assert np.shares_memory(unchanged, feed)
        assert np.shares_memory(reshaped, feed)
        assert reshaped.shape == (3, 2)
        assert not np.shares_memory(y, feed)
        np.testing.assert_array_equal(y, np.sin(feed))


@pytest.mark.usefixtures("threshold")
def test_views_of_feeds_follow_the_feed() -> None:
    x = leaf(4, 6)
    view = x.transpose().slice(starts=[1, 0], stops=[5, 4])
    plan = planned(view.exp(), view.reshape(shape=(16,)).sum(), x.reshape(shape=(24,)).cos())
    assert_agrees(plan, *({0: np.random.default_rng(k).normal(size=(4, 6))} for k in range(3)))


@pytest.mark.usefixtures("threshold")
def test_parts_of_a_split_as_results_and_operands() -> None:
    x = leaf(40_000)
    parts = x.split(sizes=[10_000, 30_000])
    first, second = parts.output(0), parts.output(1)
    plan = planned(first, second.sin().sum(), second.reshape(shape=(300, 100)), (first + first).sum())
    assert_agrees(plan, *({0: np.random.default_rng(k).normal(size=40_000)} for k in range(3)))


# ---------------------------------------------------------------- warnings


def test_numpy_error_state_is_ignored_and_preserved() -> None:
    plan = planned(leaf(3).exp())
    with np.errstate(all="raise"):
        before = np.geterr()
        (y,) = PreparedPlan(plan, CPU).run({0: np.full(3, 1e5)})
        assert np.geterr() == before
    np.testing.assert_array_equal(y, np.inf)
