"""Host-to-host plans on a card: small arrays are copied there and back within the captured graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, Plan, TensorType, Value, registry
from engine.autodiff.vjp import vjp
from engine.codegen.native.machine_code import Reasons
from engine.compiler.plan import make_plan
from engine.cuda import cupy_backend
from engine.cuda.cupy_backend import CuPyExecutor
from engine.cuda.prepared_plan import MAX_UNCOPIED_VARIANTS, CudaPreparedPlan
from engine.cuda.transfers import MAX_EXCHANGED_BYTES, Exchange, PinnedMemory, choose_exchanged
from engine.ir.errors import DeadlineExceeded, IndexOutOfRange, MissingFeed, ShapeMismatch
from engine.ir.graph import Origin
from engine.ir.run_context import Deadline
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.cuda.card_memory import CARD
from tests.engine.runtime.kernel_plans import FEED, layers, warnings

Array = np.ndarray[Any, Any]
Feeds = Mapping[Any, Any]
on_stand_in = pytest.mark.usefixtures("stand_in")
on_cards = pytest.mark.usefixtures("card")


def plan_of(*outputs: Value) -> Plan:
    return make_plan(outputs[0].builder.graph(outputs), Limits())


def leaf(*shape: int, dtype: str = "float32", builder: Builder | None = None, number: int = 0) -> Value:
    return (builder or Builder(registry())).leaf(TensorType(shape, np.dtype(dtype)), number)


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def scalars() -> tuple[Plan, Feeds]:
    """A dozen ops on 8 numbers: a value, and its gradients with respect to two of three operands."""
    builder = Builder(registry())
    mean, scale, x = (leaf(8, builder=builder, number=k) for k in range(3))
    z = (x - mean) * (scale * -0.5).exp()
    loss = ((z * z + scale).tanh() * z.sin()).sum()
    gradients = vjp(builder, [(loss, loss.full_like(1.0))], [mean, scale])
    return plan_of(loss, *filter(None, gradients)), {k: numbers(8, seed=k) * np.float32(0.1) for k in range(3)}


def settled(plan: Plan, feeds: Feeds) -> CuPyExecutor:
    """An executor that has compiled and captured the plan."""
    executor = CuPyExecutor(compile="on")
    for _ in range(2):
        executor.run(plan, feeds)
    executor.settle()
    for _ in range(2):
        executor.run(plan, feeds)
    return executor


def run_counts(executor: CuPyExecutor, plan: Plan, feeds: Feeds) -> tuple[int, int, int]:
    """Count the graph launches, direct launches and waits of one run."""
    before = CARD.graph_launches, CARD.direct_launches, CARD.waits
    executor.run(plan, feeds)
    return CARD.graph_launches - before[0], CARD.direct_launches - before[1], CARD.waits - before[2]


def assert_same(actual: list[Array], expected: list[Array]) -> None:
    for one, other in zip(actual, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)


def run_with_separate_copies(executor: CuPyExecutor, plan: Plan, feeds: Feeds) -> list[Array]:
    """Run the plan with every array copied separately."""
    return executor.to_host(executor.execute(plan, {feed: executor.to_device(x) for feed, x in feeds.items()}))


# ------------------------------------------------------------ launches and waits


@on_stand_in
def test_host_to_host_run_is_one_launch_and_one_wait() -> None:
    plan, feeds = scalars()
    executor = settled(plan, feeds)
    assert run_counts(executor, plan, feeds) == (1, 0, 1)
    for one, other in zip(executor.run(plan, feeds), NumPyExecutor().run(plan, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@on_stand_in
def test_plan_is_captured_in_the_second_run() -> None:
    x = leaf(6, 6)
    plan, feeds, executor = plan_of(x @ x, x.exp()), {0: numbers(6, 6)}, CuPyExecutor()
    graphs = [run_counts(executor, plan, feeds)[0] for _ in range(3)]
    assert graphs == [0, 1, 1]
    assert run_counts(executor, plan, feeds) == (1, 0, 1)


@on_stand_in
def test_flags_are_copied_with_the_results() -> None:
    plan, right = picked()
    executor = settled(plan, right)
    assert run_counts(executor, plan, right) == (1, 0, 1)


@on_stand_in
def test_captured_graph_accepts_feeds_at_other_addresses() -> None:
    plan, feeds = scalars()
    executor, held = settled(plan, feeds), []
    for _ in range(MAX_UNCOPIED_VARIANTS + 2):
        held.append({feed: array.copy() for feed, array in feeds.items()})
        assert run_counts(executor, plan, held[-1]) == (1, 0, 1)


@on_stand_in
def test_copies_alone_are_not_captured() -> None:
    """Next to calls that wait for the card, no graph is captured for a copy alone."""
    x = leaf(5, 5, dtype="float64")
    plan, feeds = plan_of((x.inv().exp() + 1.0).inv()), {0: np.eye(5) * 3 + 0.1}
    executor = settled(plan, feeds)
    graphs, direct, _ = run_counts(executor, plan, feeds)
    assert graphs == 1
    assert direct >= 2
    np.testing.assert_allclose(executor.run(plan, feeds)[0], NumPyExecutor().run(plan, feeds)[0], rtol=1e-9)


# ------------------------------------------------------------ values


@on_cards
def test_new_feeds_give_new_results_owned_by_the_caller() -> None:
    plan = layers()
    executor, held = settled(plan, FEED), []
    for k in range(1, 20):
        feeds: Feeds = {0: FEED[0] * np.float32(k / 10)}
        held.append((feeds, executor.run(plan, feeds)))
    for feeds, results in held:
        assert_same(results, run_with_separate_copies(executor, plan, feeds))
        assert all(array.flags.owndata and array.flags.writeable for array in results)


@on_cards
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint8", "bool"])
def test_mixed_dtypes_are_exchanged_together(dtype: str) -> None:
    builder = Builder(registry())
    odd = leaf(3, dtype="bool", builder=builder, number=0)
    x, y = (leaf(*shape, dtype=dtype, builder=builder, number=k) for k, shape in ((1, (7, 3)), (2, ())))
    chosen = builder.emit(builder.registry.ops["where"], (odd, x, y), {})
    plan, executor = plan_of(chosen, x.slice(starts=[1, 0], stops=[6, 2]).reshape(shape=(10,))), CuPyExecutor()
    for seed in range(4):
        feeds: Feeds = {
            0: numbers(3, seed=seed) > 0,
            1: numbers(7, 3, dtype=dtype, seed=seed),
            2: np.array(3).astype(dtype),
        }
        assert_same(executor.run(plan, feeds), NumPyExecutor().run(plan, feeds))


@on_cards
def test_zero_keeps_its_sign() -> None:
    builder = Builder(registry())
    x, y = leaf(builder=builder), leaf(2, builder=builder, number=1)
    plan, executor = plan_of(x * 1.0, y * 1.0), CuPyExecutor()
    for _ in range(3):
        one, other = executor.run(plan, {0: np.float32(-0.0), 1: np.array([-0.0, 0.0], "float32")})
        assert np.signbit(one)
        assert np.signbit(other).tolist() == [True, False]


@on_cards
def test_empty_arrays() -> None:
    builder = Builder(registry())
    x, y = leaf(0, 3, builder=builder), leaf(4, builder=builder, number=1)
    plan, executor = plan_of(x * 2.0, x.sum(), y + 1.0), CuPyExecutor()
    for k in range(3):
        feeds: Feeds = {0: np.zeros((0, 3), "float32"), 1: np.full(4, k, "float32")}
        assert_same(executor.run(plan, feeds), NumPyExecutor().run(plan, feeds))


@on_cards
def test_plans_without_feeds_or_without_steps() -> None:
    x, builder = leaf(3), Builder(registry())
    constant = builder.emit(registry().ops["full"], (), {"shape": (3,), "fill": 2.5, "dtype": np.dtype("float32")})
    plan, executor = plan_of(constant * 3.0, constant), CuPyExecutor()
    for _ in range(3):
        assert_same(run_with_separate_copies(executor, plan, {}), NumPyExecutor().run(plan, {}))
        assert_same(executor.run(plan, {}), NumPyExecutor().run(plan, {}))
    same, given = plan_of(x, x.reshape(shape=(3, 1))), numbers(3)
    for result in executor.run(same, {0: given}):
        np.testing.assert_array_equal(result.ravel(), given)
        assert not result.flags.writeable


@on_cards
def test_feeds_may_have_any_layout() -> None:
    x = leaf(4, 6)
    plan, given, executor = plan_of(x.exp() + x), numbers(4, 6), CuPyExecutor()
    askew = np.frombuffer(b"\0" + given.tobytes(), np.uint8)[1:].view("float32").reshape(4, 6)
    wide = np.zeros((8, 12), "float32")
    wide[::2, ::2] = given
    for feed in (given, askew, np.asfortranarray(given), wide[::2, ::2]):
        assert_same(executor.run(plan, {0: feed}), run_with_separate_copies(executor, plan, {0: given}))


# ------------------------------------------------------------ large arrays, and arrays on the card


@on_cards
def test_large_arrays_are_copied_separately() -> None:
    builder = Builder(registry())
    large, small = leaf(600, 600, builder=builder), leaf(600, builder=builder, number=1)
    plan, executor = plan_of(large * small, (large + small).sum(axes=[0]), small.exp()), CuPyExecutor()
    held = []
    for seed in range(4):
        feeds: Feeds = {0: numbers(600, 600, seed=seed), 1: numbers(600, seed=seed + 9)}
        held.append((feeds, executor.run(plan, feeds)))
    for feeds, results in held:
        assert_same(results, run_with_separate_copies(executor, plan, feeds))


@on_stand_in
def test_large_results_do_not_prevent_capture() -> None:
    x = leaf(600, 600)
    plan, executor = plan_of(x.exp(), x.sum()), CuPyExecutor()
    feeds: Feeds = {0: numbers(600, 600)}
    assert [run_counts(executor, plan, feeds)[0] for _ in range(4)] == [0, 1, 1, 1]


@on_stand_in
def test_copy_of_a_device_feed_lives_until_it_is_read() -> None:
    """A transposed feed is copied, and ops do not allocate over the copy."""
    x = leaf(64, 64, dtype="float64")
    plan, executor, given = plan_of(x.argsort(axis=0), x * 2.0), CuPyExecutor(), numbers(64, 64, dtype="float64")
    results = executor.to_host(executor.execute(plan, {0: executor.to_device(given).transpose()}))
    assert_same(results[1:], [given.T * 2.0])


@on_cards
@pytest.mark.parametrize("on_card", [0, 1])
def test_feeds_on_card_and_host_may_be_mixed(on_card: int) -> None:
    builder = Builder(registry())
    x, y = leaf(6, 6, builder=builder), leaf(6, builder=builder, number=1)
    plan, executor = plan_of(x * y, x.reshape(shape=(36,)), y), CuPyExecutor()
    for seed in range(4):
        feeds: Feeds = {0: numbers(6, 6, seed=seed), 1: numbers(6, seed=seed + 9)}
        mixed: Feeds = {**feeds, on_card: executor.to_device(feeds[on_card])}
        results = executor.run(plan, mixed)
        assert_same(results, NumPyExecutor().run(plan, feeds))
        assert [array.flags.writeable for array in results] == [True, False, False]


@on_stand_in
def test_device_feeds_are_not_copied() -> None:
    builder = Builder(registry())
    x, y = leaf(6, 6, builder=builder), leaf(6, builder=builder, number=1)
    plan, executor = plan_of(x * y), CuPyExecutor()
    feeds: Feeds = {0: executor.to_device(numbers(6, 6)), 1: numbers(6)}
    assert [run_counts(executor, plan, feeds) for _ in range(3)][-1] == (1, 0, 1)


def test_smallest_arrays_are_exchanged() -> None:
    assert choose_exchanged({"a": 5, "b": 3}) == ["a", "b"]
    assert choose_exchanged({"a": MAX_EXCHANGED_BYTES, "b": 1, "c": MAX_EXCHANGED_BYTES - 1}) == ["b", "c"]
    assert choose_exchanged({"a": MAX_EXCHANGED_BYTES + 1}) == []


@on_stand_in
def test_parts_of_a_block_have_the_alignment_of_the_pool() -> None:
    import cupy

    types: dict[Any, TensorType] = {
        k: TensorType(shape, np.dtype(dtype)) for k, (shape, dtype) in enumerate([((3,), "bool"), ((), "float64")])
    }
    exchange = Exchange(cupy, PinnedMemory(cupy, 1 << 20), types, 5, [7, 0, 1000])
    places = [x.data.ptr for x in (*exchange.feeds.values(), exchange.flags)] + [x.ptr for x in exchange.buffers]
    assert not any(place % 512 for place in places)
    assert places[0] < places[1] < places[2] < places[3]


# ------------------------------------------------------------ checks of data


def picked() -> tuple[Plan, Feeds]:
    """Rows gathered by an index; each step has the node of its number."""
    builder = Builder(registry())
    table = leaf(5, 3, dtype="float64", builder=builder)
    index = leaf(4, dtype="int64", builder=builder, number=1)
    rows = (table + 1.0).gather(index.reshape(shape=(4, 1)).broadcast_to(shape=(4, 3)), axis=0)
    plan = plan_of(rows * 2.0, rows.sum())
    steps = (step._replace(origin=Origin(number, step.op.name)) for number, step in enumerate(plan.steps))
    return replace(plan, steps=tuple(steps)), {0: np.arange(15.0).reshape(5, 3), 1: np.array([0, 4, 2, 2])}


@on_cards
def test_out_of_range_index_names_its_node() -> None:
    plan, right = picked()
    executor = settled(plan, right)
    expected = NumPyExecutor().run(plan, right)
    for wrong in (5, -1):
        with pytest.raises(IndexOutOfRange) as caught:
            executor.run(plan, {**right, 1: np.array([0, wrong, 1, 1])})
        with pytest.raises(IndexOutOfRange) as on_the_cpu:
            NumPyExecutor().run(plan, {**right, 1: np.array([0, wrong, 1, 1])})
        assert (caught.value.node, caught.value.detail) == (on_the_cpu.value.node, on_the_cpu.value.detail)
        assert caught.value.node is not None
        assert_same(executor.run(plan, right), expected)


@on_stand_in
def test_out_of_range_argument_is_computed_uncompiled() -> None:
    x = leaf(6, 40)
    plan = plan_of((x * 2.0).sin() + x, x)
    executor = settled(plan, FEED)
    far, deadline = {0: FEED[0] * np.float32(1e9)}, Deadline(60.0)
    executor.run(plan, {0: executor.to_device(far[0])})
    result, same = executor.run(plan, far, deadline)
    np.testing.assert_allclose(result, NumPyExecutor().run(plan, far)[0], rtol=1e-6)
    np.testing.assert_array_equal(same, far[0])
    assert deadline.report.tier == "uncompiled"
    assert not same.flags.writeable


@on_cards
def test_run_after_a_missed_deadline_is_right() -> None:
    plan, executor = layers(), CuPyExecutor()
    expected = executor.run(plan, FEED)
    for _ in range(3):
        with pytest.raises(DeadlineExceeded):
            executor.run(plan, {0: FEED[0] * 2}, Deadline(60.0, stop=b"\1"))
        assert_same(executor.run(plan, FEED), expected)


@on_stand_in
def test_failed_run_waits_for_pending_work() -> None:
    """Feeds are read until then, and may be overwritten afterwards."""
    plan, executor = layers(), CuPyExecutor()
    executor.run(plan, FEED)
    before = CARD.waits
    with pytest.raises(DeadlineExceeded):
        executor.run(plan, FEED, Deadline(60.0, stop=b"\1"))
    assert CARD.waits == before + 1


@on_cards
def test_missing_or_misshapen_feeds_are_refused() -> None:
    plan, executor = layers(), CuPyExecutor()
    with pytest.raises(MissingFeed):
        executor.run(plan, {})
    with pytest.raises(ShapeMismatch):
        executor.run(plan, {0: numbers(6, 41)})


# ------------------------------------------------------------ limits of pinned memory


@on_stand_in
def test_without_pinned_memory_arrays_are_copied_separately(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(CARD, "forbids", "cudaErrorMemoryAllocation: out of memory")
    monkeypatch.setattr(cupy_backend, "_unpinned", Reasons("one by one: %s"))
    plan, executor = layers(), CuPyExecutor()
    runs = [executor.run(plan, FEED) for _ in range(3)]
    monkeypatch.setattr(CARD, "forbids", "")
    for each in runs:
        assert_same(each, executor.run(plan, FEED))
    assert warnings(caplog) == ["one by one: cudaErrorMemoryAllocation: out of memory"]


@on_stand_in
def test_exchange_memory_is_counted() -> None:
    x = leaf(100, 100)
    plan, executor = plan_of(x.exp()), CuPyExecutor()
    executor.run(plan, {0: numbers(100, 100)})
    assert executor.instances.idle_bytes >= 2 * 2 * 40_000  # feed and result, on either side


@on_stand_in
def test_pinned_memory_is_bounded_by_evicting_idle_plans() -> None:
    plans = [plan_of(leaf(k, 100).exp()) for k in range(90, 100)]
    executor = CuPyExecutor(pinned_bytes=250_000)  # for three of them
    for _ in range(3):
        for k, plan in enumerate(plans, 90):
            assert_same(executor.run(plan, {0: numbers(k, 100)}), [np.exp(numbers(k, 100))])
            assert sum(CARD.pinned.values()) <= 250_000
    assert [run_counts(executor, plans[-1], {0: numbers(99, 100)}) for _ in range(3)][-1] == (1, 0, 1)


@on_stand_in
def test_plan_over_the_pinned_limit_runs_without_evicting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cupy_backend, "_unpinned", Reasons("one by one: %s"))
    plan, executor = layers(), CuPyExecutor(pinned_bytes=1000)
    for _ in range(3):
        assert_same(executor.run(plan, FEED), run_with_separate_copies(executor, plan, FEED))
    assert not CARD.pinned
    assert executor.instances.idle_bytes
    assert warnings(caplog) == ["one by one: plans may pin 1,000 bytes, and one needs more"]


@on_stand_in
def test_failed_pinning_creates_no_copies() -> None:
    """Otherwise every later run would copy its feeds to the addresses of an earlier run."""
    plan, executor = layers(), CuPyExecutor(pinned_bytes=1000)
    device_feeds = {feed: executor.to_device(array) for feed, array in FEED.items()}
    for _ in range(2 * MAX_UNCOPIED_VARIANTS):
        executor.run(plan, device_feeds)
    ready = executor.instances.lend(plan)
    assert isinstance(ready, CudaPreparedPlan)
    assert not ready._copies


@on_stand_in
def test_plan_runs_unpinned_while_the_limit_is_used_up() -> None:
    plan, executor = layers(), CuPyExecutor(pinned_bytes=1 << 20)
    held = executor._pinned.block(1 << 20)
    assert_same(executor.run(plan, FEED), run_with_separate_copies(executor, plan, FEED))
    assert [*CARD.pinned] == [held.ptr]
    del held
    assert [run_counts(executor, plan, FEED) for _ in range(3)][-1] == (1, 0, 1)
