"""Kernels that move elements are bitwise equal to NumPy: gather, scatter_add, and copies of flipped arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.codegen.microkernels import recipe as binding
from engine.codegen.native.machine_code import KernelStore
from engine.compiler.fused_kernel import MicrokernelOp, select_microkernels
from engine.compiler.plan import graph_of, make_plan
from engine.ir.errors import IndexOutOfRange
from engine.ops.index.gather import Gather, ScatterAdd
from engine.runtime.numpy_backend import Kernels, NumPyExecutor
from engine.runtime.prepared_plan import PreparedPlan
from tests.engine.printers import PRINTERS
from tests.sampling import together

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.skipif("llvm" not in PRINTERS, reason="there is no LLVM")

RNG = np.random.default_rng(6)
KERNELS = Kernels(KernelStore(), 2)
DTYPES = ["float32", "float64", "int32", "int64"]


@pytest.fixture(autouse=True, params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(binding, "WORTH_THREADS", 0)
    return int(request.param)


def moved(threads: int, formula: Callable[..., Value], *arrays: Array, in_body: bool = False) -> Array:
    """Run a formula twice, with at least one node as a microkernel; both runs must have the same bits."""
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType.of(x), i) for i, x in enumerate(arrays)]
    graph = graph_of(make_plan(builder.graph([formula(*leaves)]), Limits()), registry())
    plan = make_plan(select_microkernels(graph, 1 << 20, threads, in_body=in_body), Limits())
    assert any(isinstance(step.op, MicrokernelOp) for step in plan.steps)
    bound, feeds = PreparedPlan(plan, NumPyExecutor(), KERNELS.compile(plan)), dict(enumerate(arrays))
    first = bound.run(feeds)[0].tobytes()
    second = bound.run(feeds)[0]
    assert second.tobytes() == first
    return second


@pytest.fixture
def no_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the fallback to NumPy, which would hide kernels that wrongly report an index."""
    monkeypatch.setattr(Gather, "forward", None)
    monkeypatch.setattr(ScatterAdd, "forward", None)


def drawn(shape: Sequence[int], dtype: str) -> Array:
    """Draw random bits, with NaN of every kind."""
    return RNG.integers(0, 256, (*shape, np.dtype(dtype).itemsize), "uint8").view(dtype)[..., 0]


#: shapes of x and of the index, and the axis
PICKED = [
    ((40,), (9001,), 0),
    ((5, 33), (7, 33), 0),
    ((5, 33), (4, 17), 0),
    ((5, 33), (5, 70), 1),
    ((3, 6, 11), (3, 2, 9), 1),
    ((3, 6, 11), (2, 5, 8), 2),
    ((2, 9000), (3, 9000), 0),
    ((3, 9, 5), (3, 9, 1), 2),
    ((2, 3, 8, 5), (2, 3, 8, 1), 3),
]


@together
@pytest.mark.usefixtures("no_other_way")
@pytest.mark.parametrize(("shape", "indexed", "axis"), PICKED, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("integer", ["int64", "int32", "int8", "uint8"])
def test_gather(
    threads: int, shape: tuple[int, ...], indexed: tuple[int, ...], axis: int, dtype: str, integer: str
) -> None:
    x, index = drawn(shape, dtype), RNG.integers(0, min(shape[axis], 128), indexed).astype(integer)
    cut = tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indexed))
    expected = np.take_along_axis(x[cut], index.astype("int64"), axis)
    assert moved(threads, lambda v, i: v.gather(i, axis=axis), x, index).tobytes() == expected.tobytes()


#: shapes of x, of the index and of its broadcast, and the axis: rows that are short, or gathered as a whole
IN_BODIES = [
    ((4, 3), (2, 3), (2, 3), 0),
    ((3,), (5,), (5,), 0),
    ((50, 20), (30, 1), (30, 20), 0),
    ((4, 2, 30), (3, 1, 1), (3, 2, 30), 0),
    ((6, 30), (1, 9), (6, 9), 1),
]


@pytest.mark.usefixtures("no_other_way")
@pytest.mark.parametrize(("shape", "indexed", "wide", "axis"), IN_BODIES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_of_whole_and_short_rows_in_bodies(
    threads: int, shape: tuple[int, ...], indexed: tuple[int, ...], wide: tuple[int, ...], axis: int, dtype: str
) -> None:
    x, index = drawn(shape, dtype), RNG.integers(0, shape[axis], indexed)
    expected = np.take_along_axis(x, np.broadcast_to(index, wide), axis)
    actual = moved(threads, lambda v, i: v.gather(i.broadcast_to(shape=wide), axis=axis), x, index, in_body=True)
    assert actual.tobytes() == expected.tobytes()


@pytest.mark.usefixtures("no_other_way")
@pytest.mark.parametrize(("shape", "indexed", "wide", "axis"), IN_BODIES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scatter_add_along_any_axis_in_bodies(
    threads: int, shape: tuple[int, ...], indexed: tuple[int, ...], wide: tuple[int, ...], axis: int, dtype: str
) -> None:
    x, updates = (RNG.normal(size=s).astype(dtype) for s in (shape, wide))
    index, expected = RNG.integers(0, shape[axis], indexed), x.copy()
    places = [*np.ogrid[tuple(map(slice, wide))]]
    places[axis] = np.broadcast_to(index, wide)
    np.add.at(expected, tuple(places), updates)
    actual = moved(
        threads,
        lambda v, i, u: v.scatter_add(i.broadcast_to(shape=wide), u, axis=axis),
        x,
        index,
        updates,
        in_body=True,
    )
    assert actual.tobytes() == expected.tobytes()


@pytest.mark.usefixtures("no_other_way")
def test_gather_with_uint8_indices(threads: int) -> None:
    """A uint8 reaches entries that no int8 can, and is not taken for a negative index."""
    x, index = drawn([256], "float64"), np.arange(256, dtype="uint8")[::-1].copy()
    assert moved(threads, lambda v, i: v.gather(i), x, index).tobytes() == x[::-1].tobytes()


def test_negative_int8_index_is_reported(threads: int) -> None:
    with pytest.raises(IndexOutOfRange, match=r"in \[0, 256\)"):
        moved(threads, lambda v, i: v.gather(i), drawn([256], "float64"), np.full(9, -1, "int8"))


#: shapes of x and of the index, which picks on the last axis
ADDED = [((3, 50), (3, 40)), ((2, 3, 50), (2, 3, 9)), ((3, 2, 4), (3, 2, 30)), ((2, 3, 1, 5), (2, 3, 1, 70))]


@pytest.mark.usefixtures("no_other_way")
@pytest.mark.parametrize(("shape", "indexed"), ADDED, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("integer", ["int64", "int8", "uint8"])
def test_scatter_add_along_the_last_of_several_axes(
    threads: int, shape: tuple[int, ...], indexed: tuple[int, ...], dtype: str, integer: str
) -> None:
    x, updates = (RNG.normal(size=s).astype(dtype) for s in (shape, indexed))
    index, axis, expected = RNG.integers(0, shape[-1], indexed).astype(integer), len(shape) - 1, x.copy()
    np.add.at(expected, (*np.ogrid[tuple(map(slice, indexed))][:-1], index), updates)
    actual = moved(threads, lambda v, i, u: v.scatter_add(i, u, axis=axis), x, index, updates)
    assert actual.tobytes() == expected.tobytes()


def test_scatter_add_with_uint8_and_int8_indices(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, updates = np.zeros((2, 256)), RNG.normal(size=(2, 256))
    index = np.stack([np.arange(256, dtype="uint8")[::-1]] * 2)
    with monkeypatch.context() as alone:
        alone.setattr(ScatterAdd, "forward", None)
        actual = moved(threads, lambda v, i, u: v.scatter_add(i, u, axis=1), x, index, updates)
    assert actual.tobytes() == updates[:, ::-1].tobytes()
    with pytest.raises(IndexOutOfRange, match=r"in \[0, 256\)"):
        moved(threads, lambda v, i, u: v.scatter_add(i, u, axis=1), x, index.astype("int8"), updates)


@pytest.mark.usefixtures("no_other_way")
@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 1, 0), (0, 2, 1)])
def test_gather_from_transposed_and_flipped_operands(threads: int, axes: tuple[int, ...]) -> None:
    x = drawn([12, 12, 12], "float32")
    index = RNG.integers(0, 12, (12, 1, 12))

    def formula(v: Value, i: Value) -> Value:
        return v.transpose(axes=axes).flip(axes=(0,)).gather(i.broadcast_to(shape=(12, 5, 12)), axis=1)

    expected = np.take_along_axis(x.transpose(axes)[::-1], np.broadcast_to(index, (12, 5, 12)), 1)
    assert moved(threads, formula, x, index).tobytes() == expected.tobytes()


@pytest.mark.parametrize("wrong", [-1, 40, 2**62, -(2**63)])
@pytest.mark.parametrize("at", [0, 7, 4099, 8998])
def test_out_of_range_index_is_reported(threads: int, wrong: int, at: int) -> None:
    x, index = drawn([40], "float64"), RNG.integers(0, 40, 8999)
    moved(threads, lambda v, i: v.gather(i), x, index)
    index[at] = wrong
    with pytest.raises(IndexOutOfRange, match=r"in \[0, 40\)"):
        moved(threads, lambda v, i: v.gather(i), x, index)


def test_index_error_does_not_persist(threads: int) -> None:
    """An error in one run does not affect the next run."""
    builder = Builder(registry())
    x, index = drawn([40], "float32"), RNG.integers(0, 40, 50)
    y = builder.leaf(TensorType.of(x), 0).gather(builder.leaf(TensorType.of(index), 1))
    plan = make_plan(select_microkernels(builder.graph([y]), 1 << 20, threads), Limits())
    bound = PreparedPlan(plan, NumPyExecutor(), KERNELS.compile(plan))
    for last in (3, 40, 5):
        index[-1] = last
        if last < 40:
            assert bound.run({0: x, 1: index})[0].tobytes() == x[index].tobytes()
        else:
            with pytest.raises(IndexOutOfRange):
                bound.run({0: x, 1: index})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(17,), (3, 5), (4, 64), (2, 3, 37)], ids=str)
@pytest.mark.parametrize("others", [False, True])
def test_copies_of_flipped_arrays(threads: int, shape: tuple[int, ...], dtype: str, others: bool) -> None:
    x, last = drawn(shape, dtype), len(shape) - 1
    axes = tuple(range(last + 1)) if others else (last,)
    assert moved(threads, lambda v: v.flip(axes=axes), x).tobytes() == np.flip(x, axes).tobytes()
