"""Memory packing of plans: blocks do not overlap, little is wasted, and large peaks match measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Builder, Graph, Limits, TensorType, Value, open_executor, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import MOST_PACKED, Block, MemoryBlocks, Packing, Plan, Step, aligned, make_plan, pack
from engine.ir.passes import optimise
from engine.ir.run_context import ALIGNMENT
from engine.runtime.interpreter import Executor
from tests.contract.cases import EXECUTOR, LARGE, assert_planned_peak_holds
from tests.engine.strategies import Array, Sketch, sketches
from tests.engine.test_random_graphs import graph_of_gradients

WIDE = Limits(bytes=1 << 90)
MEBI = 1 << 20

# ---------------------------------------------------------------- packing


@st.composite
def blocks(draw: Callable[..., Any], most: int = 40) -> tuple[list[Block], list[int]]:
    """Draw blocks of all sizes in order of their first use, and the indices of those that are outputs."""
    born = sorted(draw(st.lists(st.integers(0, most), max_size=most)))
    sizes = st.sampled_from([0, 1, 64, 65, 1000, MEBI, 3 * MEBI, 5 * MEBI + 1])
    all_blocks = [Block(draw(sizes), b, b + draw(st.integers(0, 12))) for b in born]
    return all_blocks, draw(
        st.lists(st.sampled_from(range(len(all_blocks))), unique=True, max_size=4)
    ) if all_blocks else []


def check_packing(packing: Packing, all_blocks: Sequence[Block], outputs: Sequence[int]) -> None:
    """Assert that blocks are aligned, inside their buffer and disjoint, and that each output has its own buffer."""
    occupied: dict[int, list[tuple[int, int, Block, bool]]] = {}
    for i, (block, (buffer, offset)) in enumerate(zip(all_blocks, packing.places, strict=True)):
        assert offset % ALIGNMENT == 0
        assert 0 <= offset <= offset + block.nbytes <= packing.buffers[buffer]
        if i in outputs:
            assert (buffer, offset) == (1 + list(outputs).index(i), 0)
        if block.nbytes:
            occupied.setdefault(buffer, []).append((offset, offset + block.nbytes, block, i in outputs))
    for placed in occupied.values():
        for k, (start, end, block, is_output) in enumerate(placed):
            for other_start, other_end, other, other_is_output in placed[:k]:
                disjoint = end <= other_start or other_end <= start
                assert (
                    disjoint
                    or last_use(other, other_is_output) < block.first
                    or last_use(block, is_output) < other.first
                )


def last_use(block: Block, is_output: bool) -> float:
    return math.inf if is_output else block.last


@pytest.mark.slow
@settings(max_examples=300)
@given(blocks())
def test_blocks_alive_at_once_do_not_overlap(drawn: tuple[list[Block], list[int]]) -> None:
    all_blocks, outputs = drawn
    loose, tight = pack(all_blocks, outputs), pack(all_blocks, outputs, tight=True)
    check_packing(loose, all_blocks, outputs)
    check_packing(tight, all_blocks, outputs)
    assert tight.nbytes <= loose.nbytes


def test_no_blocks_give_an_empty_arena() -> None:
    assert pack([], []).buffers == (0,)


def test_freed_blocks_merge_with_their_neighbours() -> None:
    """Three blocks of 1 MiB leave room for one of 3 MiB, in any order of release."""
    for last in ([3, 4, 5], [5, 4, 3], [3, 5, 4], [4, 3, 5], [4, 5, 3], [5, 3, 4]):
        small = [Block(MEBI, i, last[i]) for i in range(3)]
        assert pack([*small, Block(3 * MEBI, 6, 6)], []).buffers == (3 * MEBI,)


def test_best_fit_takes_the_shortest_sufficient_gap() -> None:
    sizes = [4, 1, 2, 1, 3, 1]
    all_blocks = [Block(64 * n, 0, 0 if n > 1 else 9) for n in sizes] + [Block(64 * 2, 1, 9), Block(64 * 3, 1, 9)]
    packing = pack(all_blocks, [])
    assert [packing.places[i].offset for i in (6, 7)] == [packing.places[i].offset for i in (2, 4)]


def test_rest_of_a_gap_stays_usable() -> None:
    assert pack([Block(128, 0, 0), Block(64, 0, 9), Block(64, 1, 9), Block(64, 1, 9)], []).buffers == (192,)


def test_arena_grows_only_by_the_missing_bytes() -> None:
    all_blocks = [Block(64, 0, 9), Block(64, 0, 0), Block(192, 1, 2)]
    assert pack(all_blocks, []).buffers == (256,)


def test_output_buffer_is_reused_before_it_is_written() -> None:
    """x → a → b → y: a uses the buffer of y."""
    all_blocks = [Block(8 * MEBI, 0, 1), Block(8 * MEBI, 1, 2), Block(8 * MEBI, 2, 2)]
    packing = pack(all_blocks, [2])
    assert packing.buffers == (8 * MEBI, 8 * MEBI)
    assert packing.places[0].buffer == 1


def test_packing_by_size_beats_best_fit() -> None:
    """Large blocks that come after small ones find only gaps that are too short: packed by size they fit."""
    all_blocks = [Block(4 * MEBI, 0, 1), Block(2 * MEBI, 0, 5), Block(6 * MEBI, 2, 5)]
    assert pack(all_blocks, []).nbytes == 8 * MEBI


@pytest.mark.slow
def test_many_blocks_at_once() -> None:
    """30,000 blocks are freed in scattered order, and as many others take their place."""
    count = 30_000
    first = [Block(64 * (1 + i % 7), i, 2 * count + (i * 7919) % count) for i in range(count)]
    later = [Block(64 * (1 + i % 5), 2 * count + i, 4 * count) for i in range(count)]
    assert pack([*first, *later], []).nbytes <= 1.05 * peak_live_bytes([*first, *later], [])


def peak_live_bytes(all_blocks: Sequence[Block], outputs: Sequence[int]) -> int:
    change = [0] * (2 + max((b.last for b in all_blocks), default=0))
    for i, block in enumerate(all_blocks):
        change[block.first] += aligned(block.nbytes)
        change[block.last + 1] -= 0 if i in outputs else aligned(block.nbytes)
    return max(accumulate(change))


# ---------------------------------------------------------------- plans


def planned(sketch: Sketch, data: st.DataObject) -> tuple[Graph, Plan]:
    wrt = data.draw(st.lists(st.sampled_from(sketch.singles()), min_size=1, max_size=2, unique=True))
    graph = graph_of_gradients(sketch, sketch.singles()[-1], wrt)
    graph = optimise(graph) if data.draw(st.booleans()) else graph
    return graph, make_plan(graph, WIDE)


@settings(max_examples=60)
@given(sketches(), st.data())
def test_planned_peak_matches_allocations(sketch: Sketch, data: st.DataObject) -> None:
    graph, plan = planned(sketch, data)
    fed = sum(graph.nodes[i].type.nbytes for i in plan.feeds.values())
    allocated: list[int] = []
    workspaces = []
    storage = MemoryBlocks(graph)
    for step in plan.steps:
        if all(i < len(graph.nodes) for i in step.operands):
            operands = [storage.types[i] for i in step.operands]
            out: Any = step.types if step.op.several else step.types[0]
            workspaces.append(step.op.workspace(out, *operands, **step.attrs))
    recording(allocated).interpret(plan, {key: EXECUTOR.to_device(sketch.feeds[key]) for key in plan.feeds})
    assert tuple(allocated) == plan.buffers
    assert plan.peak_bytes == fed + sum(allocated) + max(workspaces, default=0)


def recording(allocated: list[int]) -> Executor:
    """An executor that records its allocations."""

    def allocate(nbytes: int) -> Any:
        allocated.append(nbytes)
        return EXECUTOR.allocate(nbytes)

    executor = copy(EXECUTOR)
    executor.allocate = allocate  # type: ignore[method-assign]
    return executor


@pytest.mark.slow
@settings(max_examples=60)
@given(sketches(), st.data())
def test_results_do_not_depend_on_the_arena(sketch: Sketch, data: st.DataObject) -> None:
    """Both executors run the plan the same way: bits differ between a kernel and NumPy."""
    _, plan = planned(sketch, data)
    feeds = {key: sketch.feeds[key] for key in plan.feeds}
    for a, b in zip(EXECUTOR.run(plan, feeds), scattered().run(plan, feeds), strict=True):
        np.testing.assert_array_equal(a, b)


def scattered() -> Executor:
    """An executor that gives every result memory of its own, and shares no bound plan with others."""

    def place(type: TensorType, *_: Any) -> Any:
        return EXECUTOR.xp.empty(type.shape, type.dtype)

    executor = open_executor(EXECUTOR.device.partition(":")[0])
    executor.place = place  # type: ignore[method-assign]
    return executor


@pytest.mark.slow
@settings(max_examples=60)
@given(sketches(), st.data())
def test_operand_strides_match_the_planned_types(sketch: Sketch, data: st.DataObject) -> None:
    graph, plan = planned(sketch, data)
    storage = MemoryBlocks(graph)

    def check_strides(_: Any, step: Step, operands: Sequence[Any], *__: Any) -> None:
        for i, operand in zip(step.operands, operands, strict=True):
            assert i >= len(graph.nodes) or has_planned_strides(operand, storage.types[i])

    EXECUTOR.run(plan, {key: sketch.feeds[key] for key in plan.feeds}, watch=check_strides)


def has_planned_strides(array: Any, type: Any) -> bool:
    if isinstance(array, tuple):
        return all(map(has_planned_strides, array, type))
    steps = zip(array.shape, array.strides, type.strides, strict=True)
    return array.size == 0 or all(n == 1 or step == planned_step for n, step, planned_step in steps)


def leaf(*shape: int, feed: int = 0, builder: Builder | None = None, dtype: str = "float32") -> Value:
    return (builder or Builder(registry())).leaf(TensorType(shape, np.dtype(dtype)), feed)


def test_result_does_not_hold_the_arena() -> None:
    x = leaf(MEBI)
    total, part = x.sin().cos().sum(), x.tanh().slice(starts=[0], stops=[3])
    results = EXECUTOR.run(make_plan(x.builder.graph([total, part]), WIDE), {0: np.zeros(MEBI, np.float32)})
    for result in results:
        assert result.base is None or result.base.nbytes <= 4 * ALIGNMENT


@pytest.mark.skipif(EXECUTOR.device != "cpu", reason="addresses of NumPy's arrays")
def test_buffers_are_aligned() -> None:
    for nbytes in (1, 100, 10_000, 10 * MEBI):
        assert EXECUTOR.allocate(nbytes).ctypes.data % ALIGNMENT == 0
        assert EXECUTOR.allocate(nbytes).nbytes == nbytes


def test_results_of_one_op_have_separate_lifetimes() -> None:
    """One part is an output, one is read once: its memory is reused, and the output holds no other."""
    x = leaf(2 * MEBI)
    parts = x.split(sizes=[MEBI, MEBI])
    returned, read = parts.output(0), parts.output(1)
    y = read.sin().cos().tanh()
    graph = x.builder.graph([returned, y])
    storage = MemoryBlocks(graph)
    assert [storage.block[v.index] for v in (returned, read)] == [1, 2]
    assert [graph.nodes[block.last].op.name for block in storage.blocks()[1:3]] == ["split", "sin"]
    plan = make_plan(graph, WIDE)
    assert plan.buffers == (4 * MEBI, 4 * MEBI, 4 * MEBI)
    data = np.linspace(-1, 1, 2 * MEBI).astype("float32")
    first, last = EXECUTOR.run(plan, {0: data})
    np.testing.assert_array_equal(first, data[:MEBI])
    np.testing.assert_allclose(last, np.tanh(np.cos(np.sin(data[MEBI:]))), 1e-6)


def test_empty_tensors_take_no_arena() -> None:
    x = leaf(0, 3)
    y = x.sin()
    plan = make_plan(x.builder.graph([x.cos().tanh(), y, x.sum(axes=(0,)), x]), WIDE)
    shapes = [r.shape for r in EXECUTOR.run(plan, {0: np.zeros((0, 3), np.float32)})]
    assert shapes == [(0, 3), (0, 3), (3,), (0, 3)]
    assert plan.buffers == (0, 0, 0, ALIGNMENT)


def test_matmul_copy_is_counted_only_if_blas_needs_it() -> None:
    x = leaf(512, 512)
    narrow = x.cast(dtype=np.dtype("float16"))
    flipped = x.flip(axes=(0,))
    extra = {
        name: make_plan(optimise(x.builder.graph([y])), WIDE)
        for name, y in (("read", x @ x.transpose()), ("copied", x @ flipped), ("widened", narrow @ narrow))
    }
    held = {name: plan.peak_bytes - sum(plan.buffers) - x.type.nbytes for name, plan in extra.items()}
    assert held == {"read": 0, "copied": x.type.nbytes, "widened": 3 * x.type.nbytes}


# ---------------------------------------------------------------- large peaks


def perceptron(x: Value, *parameters: Value) -> Value:
    for w in parameters[:-1]:
        x = (x @ w).relu()
    return (x @ parameters[-1]).log_softmax().square().mean()


def convolutional(x: Value, *kernels: Value) -> Value:
    for kernel in kernels:
        x = x.conv2d(kernel, padding=(1, 1)).relu().max_pool2d(kernel_size=(2, 2))
    return x.square().mean()


def attentive(x: Value, q: Value, k: Value, v: Value, up: Value, down: Value) -> Value:
    h = x.layer_norm()
    x = x + (h @ q).attention(h @ k, h @ v, causal=True)
    return (x + (x.layer_norm() @ up).gelu() @ down).square().mean()


def chain(x: Value, length: int = 20) -> Value:
    for i in range(length):
        x = x.sin() if i % 2 else x.tanh()
    return x.sum()


WORKLOADS: dict[str, tuple[Callable[..., Value], list[tuple[int, ...]]]] = {
    "perceptron": (perceptron, [(2048, 1024), (1024, 1024), (1024, 2048), (2048, 1000)]),
    "convolutional": (convolutional, [(80, 3, 48, 48), (16, 3, 3, 3), (32, 16, 3, 3)]),
    "attentive": (attentive, [(8, 256, 256), *[(256, 256)] * 3, (256, 1024), (1024, 256)]),
    "20 steps": (chain, [(1 << 20,)]),
    "1,000 steps": (lambda x: chain(x, 1000), [(1 << 15,)]),
}


def training_graph(name: str) -> tuple[Graph, dict[Any, Array]]:
    """The value and the gradients with respect to all leaves, and the feeds."""
    loss, shapes = WORKLOADS[name]
    builder = Builder(registry())
    leaves = [leaf(*shape, feed=i, builder=builder) for i, shape in enumerate(shapes)]
    y = loss(*leaves)
    graph = builder.graph([y, *vjp_or_zeros(builder, [(y, y.full_like(1.0))], leaves)])
    rng = np.random.default_rng(0)
    return optimise(graph), {i: rng.normal(0, 0.05, shape).astype("float32") for i, shape in enumerate(shapes)}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.skipif(EXECUTOR.device != "cpu", reason="tracemalloc sees NumPy's allocations only")
@pytest.mark.slow
def test_large_peak_is_within_10_percent_of_the_plan(name: str) -> None:
    graph, feeds = training_graph(name)
    plan = make_plan(graph, WIDE)
    assert LARGE < plan.peak_bytes < 6 * LARGE
    EXECUTOR.run(plan, feeds)
    assert_planned_peak_holds(plan, feeds)


@pytest.mark.parametrize("name", WORKLOADS)
def test_packing_wastes_little_memory(name: str) -> None:
    """In the arena alone; and, less strictly, with the buffers of the outputs, whose sizes are fixed."""
    storage = MemoryBlocks(training_graph(name)[0])
    all_blocks, outputs = storage.blocks(), storage.output_blocks()
    packing = pack(all_blocks, outputs)
    if len(all_blocks) <= MOST_PACKED:  # comparing all pairs takes long
        check_packing(packing, all_blocks, outputs)
    assert packing.nbytes <= 1.16 * peak_live_bytes(all_blocks, outputs)
    temporary = [block for i, block in enumerate(all_blocks) if i not in outputs]
    assert pack(temporary, []).nbytes <= 1.11 * peak_live_bytes(temporary, [])
