"""Plans from the host to the host on a card: what is small goes there and comes back within what is recorded."""

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
    """A dozen ops on 8 numbers: a value, and the gradients by two of three operands."""
    builder = Builder(registry())
    mean, scale, x = (leaf(8, builder=builder, number=k) for k in range(3))
    z = (x - mean) * (scale * -0.5).exp()
    loss = ((z * z + scale).tanh() * z.sin()).sum()
    gradients = vjp(builder, [(loss, loss.full_like(1.0))], [mean, scale])
    return plan_of(loss, *filter(None, gradients)), {k: numbers(8, seed=k) * np.float32(0.1) for k in range(3)}


def settled(plan: Plan, feeds: Feeds) -> CuPyExecutor:
    """An executor that has the plan as it stays: compiled, and recorded."""
    executor = CuPyExecutor(compile="on")
    for _ in range(2):
        executor.run(plan, feeds)
    executor.settle()
    for _ in range(2):
        executor.run(plan, feeds)
    return executor


def taken(executor: CuPyExecutor, plan: Plan, feeds: Feeds) -> tuple[int, int, int]:
    """What one run takes: launches of graphs, launches beside, and waits."""
    before = CARD.graph_launches, CARD.direct_launches, CARD.waits
    executor.run(plan, feeds)
    return CARD.graph_launches - before[0], CARD.direct_launches - before[1], CARD.waits - before[2]


def assert_same(found: list[Array], wanted: list[Array]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)


def one_by_one(executor: CuPyExecutor, plan: Plan, feeds: Feeds) -> list[Array]:
    """The same with every array copied by itself."""
    return executor.to_host(executor.execute(plan, {feed: executor.to_device(x) for feed, x in feeds.items()}))


# ------------------------------------------------------------ launches and waits


@on_stand_in
def test_from_the_host_to_the_host_is_one_launch_and_one_wait() -> None:
    plan, feeds = scalars()
    executor = settled(plan, feeds)
    assert taken(executor, plan, feeds) == (1, 0, 1)
    for one, other in zip(executor.run(plan, feeds), NumPyExecutor().run(plan, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@on_stand_in
def test_it_is_recorded_in_the_second_run() -> None:
    x = leaf(6, 6)
    plan, feeds, executor = plan_of(x @ x, x.exp()), {0: numbers(6, 6)}, CuPyExecutor()
    graphs = [taken(executor, plan, feeds)[0] for _ in range(3)]
    assert graphs == [0, 1, 1]
    assert taken(executor, plan, feeds) == (1, 0, 1)


@on_stand_in
def test_flags_come_back_with_the_results() -> None:
    plan, right = picked()
    executor = settled(plan, right)
    assert taken(executor, plan, right) == (1, 0, 1)


@on_stand_in
def test_feeds_at_other_addresses_are_the_same_to_a_recording() -> None:
    plan, feeds = scalars()
    executor, held = settled(plan, feeds), []
    for _ in range(MAX_UNCOPIED_VARIANTS + 2):
        held.append({feed: array.copy() for feed, array in feeds.items()})
        assert taken(executor, plan, held[-1]) == (1, 0, 1)


@on_stand_in
def test_copies_join_what_is_not_recorded() -> None:
    """Beside calls that wait for the card there is no recording of a copy alone."""
    x = leaf(5, 5, dtype="float64")
    plan, feeds = plan_of((x.inv().exp() + 1.0).inv()), {0: np.eye(5) * 3 + 0.1}
    executor = settled(plan, feeds)
    graphs, beside, _ = taken(executor, plan, feeds)
    assert graphs == 1
    assert beside >= 2
    np.testing.assert_allclose(executor.run(plan, feeds)[0], NumPyExecutor().run(plan, feeds)[0], rtol=1e-9)


# ------------------------------------------------------------ values


@on_cards
def test_other_feeds_give_other_results_which_are_the_callers() -> None:
    plan = layers()
    executor, held = settled(plan, FEED), []
    for k in range(1, 20):
        feeds: Feeds = {0: FEED[0] * np.float32(k / 10)}
        held.append((feeds, executor.run(plan, feeds)))
    for feeds, found in held:
        assert_same(found, one_by_one(executor, plan, feeds))
        assert all(array.flags.owndata and array.flags.writeable for array in found)


@on_cards
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint8", "bool"])
def test_each_dtype_is_carried_beside_others(dtype: str) -> None:
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
def test_zero_has_its_sign() -> None:
    builder = Builder(registry())
    x, y = leaf(builder=builder), leaf(2, builder=builder, number=1)
    plan, executor = plan_of(x * 1.0, y * 1.0), CuPyExecutor()
    for _ in range(3):
        one, other = executor.run(plan, {0: np.float32(-0.0), 1: np.array([-0.0, 0.0], "float32")})
        assert np.signbit(one)
        assert np.signbit(other).tolist() == [True, False]


@on_cards
def test_extents_of_zero() -> None:
    builder = Builder(registry())
    x, y = leaf(0, 3, builder=builder), leaf(4, builder=builder, number=1)
    plan, executor = plan_of(x * 2.0, x.sum(), y + 1.0), CuPyExecutor()
    for k in range(3):
        feeds: Feeds = {0: np.zeros((0, 3), "float32"), 1: np.full(4, k, "float32")}
        assert_same(executor.run(plan, feeds), NumPyExecutor().run(plan, feeds))


@on_cards
def test_nothing_fed_and_nothing_computed() -> None:
    x, builder = leaf(3), Builder(registry())
    constant = builder.emit(registry().ops["full"], (), {"shape": (3,), "fill": 2.5, "dtype": np.dtype("float32")})
    plan, executor = plan_of(constant * 3.0, constant), CuPyExecutor()
    for _ in range(3):
        assert_same(one_by_one(executor, plan, {}), NumPyExecutor().run(plan, {}))
        assert_same(executor.run(plan, {}), NumPyExecutor().run(plan, {}))
    same, given = plan_of(x, x.reshape(shape=(3, 1))), numbers(3)
    for found in executor.run(same, {0: given}):
        np.testing.assert_array_equal(found.ravel(), given)
        assert not found.flags.writeable


@on_cards
def test_feeds_that_lie_in_any_way() -> None:
    x = leaf(4, 6)
    plan, given, executor = plan_of(x.exp() + x), numbers(4, 6), CuPyExecutor()
    askew = np.frombuffer(b"\0" + given.tobytes(), np.uint8)[1:].view("float32").reshape(4, 6)
    wide = np.zeros((8, 12), "float32")
    wide[::2, ::2] = given
    for feed in (given, askew, np.asfortranarray(given), wide[::2, ::2]):
        assert_same(executor.run(plan, {0: feed}), one_by_one(executor, plan, {0: given}))


# ------------------------------------------------------------ what is too large, or on the card


@on_cards
def test_what_is_too_large_goes_beside_what_is_carried() -> None:
    builder = Builder(registry())
    large, small = leaf(600, 600, builder=builder), leaf(600, builder=builder, number=1)
    plan, executor = plan_of(large * small, (large + small).sum(axes=[0]), small.exp()), CuPyExecutor()
    held = []
    for seed in range(4):
        feeds: Feeds = {0: numbers(600, 600, seed=seed), 1: numbers(600, seed=seed + 9)}
        held.append((feeds, executor.run(plan, feeds)))
    for feeds, found in held:
        assert_same(found, one_by_one(executor, plan, feeds))


@on_stand_in
def test_large_results_leave_a_recording_as_it_is() -> None:
    x = leaf(600, 600)
    plan, executor = plan_of(x.exp(), x.sum()), CuPyExecutor()
    feeds: Feeds = {0: numbers(600, 600)}
    assert [taken(executor, plan, feeds)[0] for _ in range(4)] == [0, 1, 1, 1]


@on_stand_in
def test_a_copy_of_a_feed_on_the_card_is_there_until_it_was_read() -> None:
    """One that lies askew is copied, and what ops allocate meanwhile is other memory."""
    x = leaf(64, 64, dtype="float64")
    plan, executor, given = plan_of(x.argsort(axis=0), x * 2.0), CuPyExecutor(), numbers(64, 64, dtype="float64")
    found = executor.to_host(executor.execute(plan, {0: executor.to_device(given).transpose()}))
    assert_same(found[1:], [given.T * 2.0])


@on_cards
@pytest.mark.parametrize("on_card", [0, 1])
def test_feeds_on_the_card_and_on_the_host(on_card: int) -> None:
    builder = Builder(registry())
    x, y = leaf(6, 6, builder=builder), leaf(6, builder=builder, number=1)
    plan, executor = plan_of(x * y, x.reshape(shape=(36,)), y), CuPyExecutor()
    for seed in range(4):
        feeds: Feeds = {0: numbers(6, 6, seed=seed), 1: numbers(6, seed=seed + 9)}
        mixed: Feeds = {**feeds, on_card: executor.to_device(feeds[on_card])}
        found = executor.run(plan, mixed)
        assert_same(found, NumPyExecutor().run(plan, feeds))
        assert [array.flags.writeable for array in found] == [True, False, False]


@on_stand_in
def test_what_is_on_the_card_is_not_copied() -> None:
    builder = Builder(registry())
    x, y = leaf(6, 6, builder=builder), leaf(6, builder=builder, number=1)
    plan, executor = plan_of(x * y), CuPyExecutor()
    feeds: Feeds = {0: executor.to_device(numbers(6, 6)), 1: numbers(6)}
    assert [taken(executor, plan, feeds) for _ in range(3)][-1] == (1, 0, 1)


def test_the_smallest_are_carried() -> None:
    assert choose_exchanged({"a": 5, "b": 3}) == ["a", "b"]
    assert choose_exchanged({"a": MAX_EXCHANGED_BYTES, "b": 1, "c": MAX_EXCHANGED_BYTES - 1}) == ["b", "c"]
    assert choose_exchanged({"a": MAX_EXCHANGED_BYTES + 1}) == []


@on_stand_in
def test_parts_of_a_block_are_aligned_as_memory_of_a_pool_is() -> None:
    import cupy

    types: dict[Any, TensorType] = {
        k: TensorType(shape, np.dtype(dtype)) for k, (shape, dtype) in enumerate([((3,), "bool"), ((), "float64")])
    }
    exchange = Exchange(cupy, PinnedMemory(cupy, 1 << 20), types, 5, [7, 0, 1000])
    places = [x.data.ptr for x in (*exchange.feeds.values(), exchange.flags)] + [x.ptr for x in exchange.buffers]
    assert not any(place % 512 for place in places)
    assert places[0] < places[1] < places[2] < places[3]


# ------------------------------------------------------------ what is found in data


def picked() -> tuple[Plan, Feeds]:
    """Rows that an index picks; each step is the node of its number."""
    builder = Builder(registry())
    table = leaf(5, 3, dtype="float64", builder=builder)
    index = leaf(4, dtype="int64", builder=builder, number=1)
    rows = (table + 1.0).gather(index.reshape(shape=(4, 1)).broadcast_to(shape=(4, 3)), axis=0)
    plan = plan_of(rows * 2.0, rows.sum())
    steps = (step._replace(origin=Origin(number, step.op.name)) for number, step in enumerate(plan.steps))
    return replace(plan, steps=tuple(steps)), {0: np.arange(15.0).reshape(5, 3), 1: np.array([0, 4, 2, 2])}


@on_cards
def test_an_index_outside_has_its_node_and_is_forgotten() -> None:
    plan, right = picked()
    executor = settled(plan, right)
    wanted = NumPyExecutor().run(plan, right)
    for wrong in (5, -1):
        with pytest.raises(IndexOutOfRange) as caught:
            executor.run(plan, {**right, 1: np.array([0, wrong, 1, 1])})
        with pytest.raises(IndexOutOfRange) as on_the_cpu:
            NumPyExecutor().run(plan, {**right, 1: np.array([0, wrong, 1, 1])})
        assert (caught.value.node, caught.value.detail) == (on_the_cpu.value.node, on_the_cpu.value.detail)
        assert caught.value.node is not None
        assert_same(executor.run(plan, right), wanted)


@on_stand_in
def test_what_a_kernel_has_no_formula_for_is_computed_step_by_step() -> None:
    x = leaf(6, 40)
    plan = plan_of((x * 2.0).sin() + x, x)
    executor = settled(plan, FEED)
    far, deadline = {0: FEED[0] * np.float32(1e9)}, Deadline(60.0)
    executor.run(plan, {0: executor.to_device(far[0])})
    found, same = executor.run(plan, far, deadline)
    np.testing.assert_allclose(found, NumPyExecutor().run(plan, far)[0], rtol=1e-6)
    np.testing.assert_array_equal(same, far[0])
    assert deadline.report.tier == "uncompiled"
    assert not same.flags.writeable


@on_cards
def test_a_run_that_nobody_waits_for_ends_and_the_next_one_is_right() -> None:
    plan, executor = layers(), CuPyExecutor()
    wanted = executor.run(plan, FEED)
    for _ in range(3):
        with pytest.raises(DeadlineExceeded):
            executor.run(plan, {0: FEED[0] * 2}, Deadline(60.0, stop=b"\1"))
        assert_same(executor.run(plan, FEED), wanted)


@on_stand_in
def test_a_run_that_fails_waits_for_what_is_under_way() -> None:
    """What was fed is read until then, and may be written over after."""
    plan, executor = layers(), CuPyExecutor()
    executor.run(plan, FEED)
    before = CARD.waits
    with pytest.raises(DeadlineExceeded):
        executor.run(plan, FEED, Deadline(60.0, stop=b"\1"))
    assert CARD.waits == before + 1


@on_cards
def test_feeds_that_were_not_planned_are_refused() -> None:
    plan, executor = layers(), CuPyExecutor()
    with pytest.raises(MissingFeed):
        executor.run(plan, {})
    with pytest.raises(ShapeMismatch):
        executor.run(plan, {0: numbers(6, 41)})


# ------------------------------------------------------------ where memory cannot be pinned


@on_stand_in
def test_without_pinned_memory_arrays_are_copied_one_by_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(CARD, "forbids", "cudaErrorMemoryAllocation: out of memory")
    monkeypatch.setattr(cupy_backend, "_unpinned", Reasons("one by one: %s"))
    plan, executor = layers(), CuPyExecutor()
    found = [executor.run(plan, FEED) for _ in range(3)]
    monkeypatch.setattr(CARD, "forbids", "")
    for each in found:
        assert_same(each, executor.run(plan, FEED))
    assert warnings(caplog) == ["one by one: cudaErrorMemoryAllocation: out of memory"]


@on_stand_in
def test_what_an_exchange_takes_is_counted() -> None:
    x = leaf(100, 100)
    plan, executor = plan_of(x.exp()), CuPyExecutor()
    executor.run(plan, {0: numbers(100, 100)})
    assert executor.instances.idle_bytes >= 2 * 2 * 40_000  # feed and result, on either side


@on_stand_in
def test_what_is_pinned_is_bounded_and_idle_plans_make_room() -> None:
    plans = [plan_of(leaf(k, 100).exp()) for k in range(90, 100)]
    executor = CuPyExecutor(pinned_bytes=250_000)  # for three of them
    for _ in range(3):
        for k, plan in enumerate(plans, 90):
            assert_same(executor.run(plan, {0: numbers(k, 100)}), [np.exp(numbers(k, 100))])
            assert sum(CARD.pinned.values()) <= 250_000
    assert [taken(executor, plans[-1], {0: numbers(99, 100)}) for _ in range(3)][-1] == (1, 0, 1)


@on_stand_in
def test_a_plan_that_needs_more_than_may_be_pinned_runs_without_and_drives_nobody_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cupy_backend, "_unpinned", Reasons("one by one: %s"))
    plan, executor = layers(), CuPyExecutor(pinned_bytes=1000)
    for _ in range(3):
        assert_same(executor.run(plan, FEED), one_by_one(executor, plan, FEED))
    assert not CARD.pinned
    assert executor.instances.idle_bytes
    assert warnings(caplog) == ["one by one: plans may pin 1,000 bytes, and one needs more"]


@on_stand_in
def test_what_could_not_be_pinned_was_not_made() -> None:
    """Else what is fed would be copied once more from then on, to where an earlier run looks."""
    plan, executor = layers(), CuPyExecutor(pinned_bytes=1000)
    there = {feed: executor.to_device(array) for feed, array in FEED.items()}
    for _ in range(2 * MAX_UNCOPIED_VARIANTS):
        executor.run(plan, there)
    ready = executor.instances.lend(plan)
    assert isinstance(ready, CudaPreparedPlan)
    assert not ready._copies


@on_stand_in
def test_while_others_hold_what_may_be_pinned_a_plan_runs_without() -> None:
    plan, executor = layers(), CuPyExecutor(pinned_bytes=1 << 20)
    held = executor._pinned.block(1 << 20)
    assert_same(executor.run(plan, FEED), one_by_one(executor, plan, FEED))
    assert [*CARD.pinned] == [held.ptr]
    del held
    assert [taken(executor, plan, FEED) for _ in range(3)][-1] == (1, 0, 1)
