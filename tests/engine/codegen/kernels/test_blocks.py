"""The NumPy printer against plain NumPy on whole arrays: layouts, tails, blocks, threads and memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from engine.codegen.kernels import blocks as row_blocks
from engine.codegen.kernels.block_program import assign_registers, needed
from engine.codegen.kernels.blocks import bind_blocks, workspace_bytes
from engine.codegen.kernels.program import FusedKernel, KernelBuilder, Level, Scalar, Space
from engine.codegen.native.native_call import make_calls
from tests.sampling import together

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def chain(x: Scalar, y: Scalar) -> Scalar:
    """A formula with each kind of ufunc and with values that are used late."""
    mask = (x > 0).and_(y.le(0.5)).not_()
    z = (x * y + 1).abs().sqrt().minimum(1.25)
    return mask.where(z, -(x - y)) / (z + 2) + mask.or_(x.lt(y)).where(x.exp(), y.tanh().maximum(x))


def chained(x: Array, y: Array) -> Array:
    """`chain` in NumPy."""
    mask = ~((x > 0) & (y <= 0.5))
    z = np.minimum(np.sqrt(abs(x * y + 1)), x.dtype.type(1.25))
    chosen = np.where(mask | (x < y), np.exp(x), np.maximum(np.tanh(y), x))
    return np.where(mask, z, -(x - y)) / (z + 2) + chosen  # type: ignore[no-any-return]


def elementwise(dtype: str, row_axes: int, second: Level = Level.ELEMENT) -> FusedKernel:
    builder = KernelBuilder(dtype, row_axes)
    x, y = builder.load(Level.ELEMENT), builder.load(second)
    builder.store("element", chain(x, y))
    return builder.build()


def softmax_and_sums(dtype: str, row_axes: int) -> FusedKernel:
    """Every kind of result: a softmax, the logarithm of its rows' sums, and sums over rows and over all."""
    builder = KernelBuilder(dtype, row_axes)
    x, weight = builder.load(Level.ELEMENT), builder.load(Level.ROW)
    top = x.row_max()
    e = (x - top).exp()
    total = e.row_sum()
    share = e / total
    builder.store("element", share)
    builder.store("row", total.log() + top)
    builder.store("columns", share * weight)
    builder.store("total", (share * share).row_sum() * weight)
    builder.store("row", x.row_min())
    return builder.build()


def run(loop: FusedKernel, space: Space, operands: Sequence[Array], results: Sequence[Array], threads: int = 1) -> None:
    make_calls(bind_blocks(loop, space, operands, results, threads))


def steps(array: Array, axes: int) -> tuple[int, ...]:
    return tuple(s // array.itemsize for s in array.strides[:axes])


@together
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("rows", "columns"),
    [*product([(1,), (5,), (3, 4), (2, 3, 5)], [1, 13, 4000]), ((300, 7), 1), ((300, 7), 13), ((30, 7), 4000)],
)
@pytest.mark.parametrize("second", [Level.ELEMENT, Level.ROW])
@pytest.mark.parametrize("transposed", [False, True])
def test_elements_in_any_layout(
    dtype: str, rows: tuple[int, ...], columns: int, second: Level, transposed: bool
) -> None:
    x = RNG.standard_normal((*rows, columns)).astype(dtype)
    y = RNG.standard_normal((*rows, columns if second == Level.ELEMENT else 1)).astype(dtype)
    if transposed:  # the row axes of y and of the result, in another order
        order = (*reversed(range(len(rows))), len(rows))
        y = np.ascontiguousarray(y.transpose(order)).transpose(order)
    out = np.empty((*reversed(rows), columns), dtype) if transposed else np.empty((*rows, columns), dtype)
    view = out.transpose(order) if transposed else out
    count = len(rows)
    space = Space(rows, columns, x.size, 4, tuple(steps(a, count) for a in (x, y, view)))
    run(elementwise(dtype, count, second), space, [x, y], [view])
    np.testing.assert_array_equal(view, chained(x, y))


@pytest.mark.parametrize("length", [1, 4095, 4096, 4097, 40_000, 600_001])
@pytest.mark.parametrize("fixed", [False, True])
def test_short_last_row(length: int, fixed: bool) -> None:
    x = RNG.standard_normal(length).astype("float32")
    y = RNG.standard_normal(() if fixed else length).astype("float32")
    out = np.empty_like(x)
    steps = ((4096,), (0,) if fixed else (4096,), (4096,))
    space = Space((-(-length // 4096),), 4096, length, 16, steps)
    run(elementwise("float32", 1, Level.ROW if fixed else Level.ELEMENT), space, [x, y], [out])
    np.testing.assert_array_equal(out, chained(x, np.broadcast_to(y, x.shape)))


def test_reductions_of_a_short_last_row() -> None:
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    builder.store("total", (x * x).row_sum())
    builder.store("row", x.row_max())
    x_values = RNG.standard_normal(70_001)
    total, most = np.empty(()), np.empty(18)
    run(builder.build(), Space((18,), 4096, 70_001, 4, ((4096,), (), (1,))), [x_values], [total, most])
    np.testing.assert_allclose(total, (x_values**2).sum(), 1e-13)
    assert list(most) == [part.max() for part in np.array_split(x_values, range(4096, 70_001, 4096))]


#: lengths with a short last row of 4,096 columns; a block holds up to four rows, and some need several blocks
SHORT_ROWS = (1, 2, 4095, 4097, 8191, 12_289, 16_383, 16_385, 16_484, 20_479, 20_481, 24_577, 70_001, 600_001)


@pytest.mark.parametrize("length", SHORT_ROWS)
@pytest.mark.parametrize("threads", [1, 2])
def test_no_access_beyond_a_short_last_row(length: int, threads: int) -> None:
    """Memory beyond the row is not read, since it holds NaN, and is unchanged afterwards."""
    builder = KernelBuilder("float64")
    x, y = builder.load(Level.ELEMENT), builder.load(Level.ROW)
    z = x * y
    for kind, value in (("element", z), ("element", x + 1.0), ("total", z.row_sum()), ("row", x.row_max())):
        builder.store(kind, value)  # type: ignore[arg-type]
    columns = min(length, 4096)
    rows = -(-length // columns)
    data = RNG.standard_normal(length)
    operand, scale = guarded_array(length, np.nan), guarded_array(1, np.nan)
    operand.inside[...], scale.inside[...] = data, 2.0
    results = [guarded_array(n, -7.0) for n in (length, length, 1, rows)]
    space = Space((rows,), columns, length, 4, ((columns,), (0,), (columns,), (columns,), (), (1,)))
    run(builder.build(), space, [operand.inside, scale.inside], [result.inside for result in results], threads)
    scaled, more, total, most = (result.inside for result in results)
    np.testing.assert_array_equal(scaled, 2.0 * data)
    np.testing.assert_array_equal(more, data + 1.0)
    np.testing.assert_allclose(total, (2.0 * data).sum(), 1e-12, 1e-11)
    assert list(most) == [part.max() for part in np.split(data, range(columns, length, columns))]
    assert all((guard == -7.0).all() for _, *guards in results for guard in guards)


class GuardedArray(NamedTuple):
    """An array and the guard elements around it, more than a row on either side."""

    inside: Array
    before: Array
    after: Array


def guarded_array(size: int, fill: float) -> GuardedArray:
    before, inside, after = np.split(np.full(size + 10_000, fill), [5_000, size + 5_000])
    return GuardedArray(inside, before, after)


@pytest.mark.parametrize(("rows", "columns"), [((6,), 10), ((40, 50), 33), ((3,), 30_000), ((900,), 700), ((2, 1), 1)])
def test_row_results_and_sums(rows: tuple[int, ...], columns: int) -> None:
    x = RNG.standard_normal((*rows, columns))
    weight = RNG.standard_normal(rows)
    share, log, sums, total, least = (np.empty(shape) for shape in ((*rows, columns), rows, columns, (), rows))
    strides = (*(steps(a, len(rows)) for a in (x, weight, share, log)), (), (), steps(least, len(rows)))
    space = Space(rows, columns, x.size, 4, strides)
    run(softmax_and_sums("float64", len(rows)), space, [x, weight], [share, log, sums, total, least])
    e = np.exp(x)
    expected = e / e.sum(-1, keepdims=True)
    np.testing.assert_allclose(share, expected, 1e-13)
    np.testing.assert_allclose(log, np.log(e.sum(-1)), 1e-13)
    weighted = (expected * weight[..., None]).reshape(-1, columns)
    np.testing.assert_allclose(sums, weighted.sum(0), 1e-11, 1e-13)
    np.testing.assert_allclose(total, ((expected**2).sum(-1) * weight).sum(), 1e-11, 1e-13)
    np.testing.assert_array_equal(least, x.min(-1))


def large(threads: int) -> tuple[list[Any], list[Array]]:
    """Bind calls for 2,000 rows of 700; return them with their results."""
    x, weight = np.random.default_rng(3).standard_normal((2000, 700)), np.linspace(0, 1, 2000)
    results = [np.empty(shape) for shape in ((2000, 700), 2000, 700, (), 2000)]
    space = Space((2000,), 700, x.size, 4, ((700,), (1,), (700,), (1,), (), (), (1,)))
    return bind_blocks(softmax_and_sums("float64", 1), space, [x, weight], results, threads), results


def test_bits_do_not_depend_on_threads() -> None:
    outputs = []
    for threads in (1, 2, 3):
        calls, results = large(threads)
        for _ in range(2):
            make_calls(calls)
        outputs.append([a.tobytes() for a in results])
    assert outputs[0] == outputs[1] == outputs[2]


def test_row_matches_the_same_row_in_a_batch() -> None:
    (calls, results), loop = large(1), softmax_and_sums("float64", 1)
    make_calls(calls)
    x = np.random.default_rng(3).standard_normal((2000, 700))[1234]
    alone = [np.empty(shape) for shape in ((1, 700), 1, 700, (), 1)]
    space = Space((1,), 700, 700, 4, ((700,), (1,), (700,), (1,), (), (), (1,)))
    run(loop, space, [x, np.ones(1)], alone)
    assert alone[0].tobytes() == results[0][1234].tobytes()


def test_small_work_calls_only_ufuncs() -> None:
    x = np.ones(8, "float32")
    builder = KernelBuilder("float32")
    a = builder.load(Level.ELEMENT)
    builder.store("element", (a * a + 1.0).exp())
    calls = bind_blocks(builder.build(), Space((1,), 8, 8, 1, ((8,), (8,))), [x], [np.empty_like(x)], 2)
    assert [function for function, _ in calls] == [np.multiply, np.add, np.exp]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [1000, 40_000, 1_000_000])
def test_peak_memory_matches_the_estimate(size: int, threads: int) -> None:
    loop = elementwise("float32", 1)
    x, y, out = (RNG.standard_normal(size).astype("float32") for _ in range(3))
    space = Space((1,), size, size, 1, ((size,),) * 3)
    run(loop, space, [x, y], [out], threads)  # start threads and load modules
    estimate = workspace_bytes(loop, space, threads)
    tracemalloc.start()
    try:
        make_calls(bind_blocks(loop, space, [x, y], [out], threads))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert estimate <= peak <= 1.05 * estimate + 60_000


@pytest.mark.slow
def test_memory_estimate_covers_parts_and_special_functions() -> None:
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    builder.store("columns", (x * 2.0).erfc())
    loop = builder.build()
    space = Space((3000,), 5000, 15_000_000, 4, ((5000,), ()))
    a, out = np.zeros((3000, 5000)), np.empty(5000)
    tracemalloc.start()
    try:
        make_calls(bind_blocks(loop, space, [a], [out], 1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.75 * workspace_bytes(loop, space, 1) <= peak <= 1.05 * workspace_bytes(loop, space, 1) + 60_000
    np.testing.assert_array_equal(out, 3000.0)


def test_loads_constants_and_repeated_results() -> None:
    builder = KernelBuilder("float64")
    x, flag = builder.load(Level.ELEMENT), builder.load(Level.ELEMENT, "bool")
    y = builder.constant(2.0).exp() * x
    for value in (x, builder.constant(3.0).exp(), y, y, flag.not_(), flag.where(flag, x < 0), x.row_sum()):
        builder.store("element", value)
    arrays = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3)) > 0
    results = [np.empty((4, 3), "bool" if i in (4, 5) else "float64") for i in range(7)]
    run(builder.build(), Space((4,), 3, 12, 1, ((3,),) * 9), arrays, results)
    a, b = arrays
    sums = np.repeat(a.sum(1, keepdims=True), 3, axis=1)
    references = (a, np.full_like(a, np.exp(3)), np.exp(2) * a, np.exp(2) * a, ~b, b | (a < 0), sums)
    for actual, expected in zip(results, references, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_no_rows() -> None:
    results = [np.empty((0, 3)), np.empty(0), np.ones(3), np.ones(()), np.empty(0)]
    space = Space((0,), 3, 0, 4, ((3,), (1,), (3,), (1,), (), (), (1,)))
    run(softmax_and_sums("float64", 1), space, [np.empty((0, 3)), np.empty(0)], results)
    assert not results[2].any()
    assert not results[3]


def test_fused_multiply_add_is_refused() -> None:
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    builder.store("element", x.fma(x, x))
    with pytest.raises(TypeError, match="fma"):
        run(builder.build(), Space((1,), 2, 2, 1, ((2,), (2,))), [np.ones(2, "f4")], [np.ones(2, "f4")])


def test_registers_are_not_overwritten_too_early() -> None:
    """No register is overwritten while its scalar is still to be read."""
    loop = elementwise("float32", 1)
    plan = assign_registers(loop, direct=frozenset({0}))
    held: dict[Any, int] = {}
    for number in needed(loop):
        read = [a for a in loop.instructions[number].args if plan.homes[a].kind == "register"]
        assert [held[plan.homes[a]] for a in read] == read
        held[plan.homes[number]] = number
    assert len(plan.registers) < sum(home.kind == "register" for home in plan.homes.values())


def test_unread_scalar_is_not_computed() -> None:
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    x.exp()
    builder.store("element", -x)
    assert needed(builder.build()) == [0, 2]


@pytest.mark.parametrize(("dims", "whole"), [*product([(1,), (7, 5), (3, 1000, 7), (100_000,), (2, 40_000)], [0, 1])])
def test_blocks_cover_each_element_once(dims: tuple[int, ...], whole: int) -> None:
    counts = np.zeros(dims, int)
    for block in row_blocks.row_blocks(dims, 16_384, whole):
        part = counts[block.place]
        assert part.shape == block.shape
        assert all(isinstance(index, int) or index.stop is not None for index in block.place)
        assert part.size <= 16_384 or whole
        part += 1
    assert (counts == 1).all()
