"""Kernels over strided operands: transposed, sliced, broadcast, with several row axes, unit rows or none."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Builder, Graph, Limits, TensorType, Value, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler import fused_kernel as layout
from engine.compiler import fusion as fusing
from engine.compiler.fused_kernel import Fused
from engine.compiler.fusion import MOST_NODES, fuse
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.printers import PRINTERS, printing
from tests.sampling import sampled

Array = np.ndarray[Any, Any]
COMPARED_PRINTERS = [name for name in PRINTERS if name != "c"]
each_printer = pytest.mark.parametrize("printer", COMPARED_PRINTERS)
SHAPES = [(0,), (0, 3), (3, 0), (2, 0, 3), (0, 0), (1,), (1, 1), (5, 1), (1, 5), (3, 1, 1), ()]


def covered_pairs(case: tuple[str, object]) -> list[object]:
    """Cover every case with NumPy and machine code, but with others only one empty tensor and one that is not."""
    printer, shape = case
    return [case if printer in ("numpy", "llvm") else (printer, np.prod(shape) > 0)]  # type: ignore[call-overload]


def draws(*shapes: tuple[int, ...], dtype: str = "float64") -> list[Array]:
    rng = np.random.default_rng(sum(map(sum, shapes)))
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def leaves(arrays: list[Array]) -> list[Value]:
    builder = Builder(registry())
    return [builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)]


def with_gradients(y: Value, *xs: Value) -> list[Value]:
    loss = (y * y.cos()).sum()
    return [y, *vjp_or_zeros(y.builder, [(loss, loss.full_like(1.0))], xs)]


def kernels_of(graph: Graph, printer: str) -> list[Fused]:
    return [node.op for node in fuse(graph, 0, compiled=printer != "numpy").nodes if isinstance(node.op, Fused)]


def assert_fuses(values: list[Value], arrays: list[Array], printer: str, tolerance: float = 1e-11) -> list[Fused]:
    """Assert that fused results match, with and without the passes, and return the kernels."""
    graph = values[0].builder.graph(values)
    for before in (graph, optimise(graph)):
        plan = make_plan(before, Limits())
        feeds = {k: a for k, a in enumerate(arrays) if k in plan.feeds}
        with np.errstate(all="ignore"):
            expected = NumPyExecutor().interpret(plan, feeds)
        with printing(printer):
            actual = NumPyExecutor().run(plan, feeds)
        for reference, result in zip(expected, actual, strict=True):
            assert (result.shape, result.dtype) == (reference.shape, reference.dtype)
            np.testing.assert_allclose(result, reference, tolerance, tolerance)
    return kernels_of(graph, printer)


# ---------------------------------------------------------------- views


class View:
    """A random view of an operand of a kernel."""

    def __init__(self, draw: Any) -> None:
        self.shape = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 5)), min_size=1, max_size=4)))
        self.draw = draw

    def like(self, builder: Builder, arrays: list[Array]) -> Value:
        """A new feed, viewed so that it has the shape."""
        kind = self.draw(st.sampled_from(("dense", "turned", "cut", "back", "repeated", "lacking", "units", "row")))
        shape, rank = self.shape, len(self.shape)
        if kind == "turned":
            axes = self.draw(st.permutations(range(rank)))
            return self.feed(builder, arrays, tuple(shape[a] for a in np.argsort(axes))).transpose(axes=axes_of(axes))
        if kind in ("cut", "back"):
            axis = self.draw(st.integers(0, rank - 1))
            whole = tuple(2 * n + 1 if a == axis else n for a, n in enumerate(shape))
            x, first = self.feed(builder, arrays, whole), self.draw(st.integers(0, 1))
            steps = [2 if a == axis else 1 for a in range(rank)]
            starts = [first if a == axis else 0 for a in range(rank)]
            stops = [first + 2 * n if a == axis else n for a, n in enumerate(shape)]
            return x.slice(starts=starts, stops=stops, steps=steps) if kind == "cut" else last(x, axis, shape[axis])
        ones = tuple(n if self.draw(st.booleans()) else 1 for n in shape)
        if kind == "repeated":
            return self.feed(builder, arrays, ones).broadcast_to(shape=shape)
        if kind == "lacking":
            return self.feed(builder, arrays, ones[self.draw(st.integers(0, rank)) :])
        if kind == "units":
            return self.feed(builder, arrays, ones)
        return self.feed(builder, arrays, (*shape[:-1], 1) if kind == "row" else shape)

    def feed(self, builder: Builder, arrays: list[Array], shape: tuple[int, ...]) -> Value:
        rng = np.random.default_rng(len(arrays))
        arrays.append(rng.normal(size=shape))
        return builder.leaf(TensorType.of(arrays[-1]), len(arrays) - 1)


def axes_of(axes: Any) -> tuple[int, ...]:
    return tuple(int(a) for a in axes)


def last(x: Value, axis: int, count: int) -> Value:
    """Slice the last entries along an axis."""
    starts = [x.shape[axis] - count if a == axis else 0 for a in range(x.ndim)]
    return x.slice(starts=starts, stops=list(x.shape))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_operands_may_have_any_strides(data: st.DataObject) -> None:
    builder, arrays = Builder(registry()), list[Array]()
    view = View(data.draw)
    a, b, c = (view.like(builder, arrays) for _ in range(3))
    full = view.feed(builder, arrays, view.shape)
    y = ((a + full).sin() * b).tanh() + c
    rank = len(view.shape)
    candidates = [y, (a > b).where(y, full)]
    for n in range(1, rank + 1):
        axes = range(rank - n, rank) if data.draw(st.booleans()) else range(n)
        op = data.draw(st.sampled_from(("sum", "mean", "max", "logsumexp")))
        candidates.append(getattr(y, op)(axes=tuple(axes), keepdims=data.draw(st.booleans())))
    chosen = data.draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=4))
    if data.draw(st.booleans()):
        row = y.sum(axes=(rank - 1,), keepdims=True)
        chosen += [y - row, (y - row).sum(axes=tuple(range(rank - 1))) if rank > 1 else row]
    loss = sum((v.sum() for v in chosen[1:]), chosen[0].sum())
    chosen += vjp_or_zeros(builder, [(loss, loss.full_like(1.0))], [builder.value(n) for n in feeds_in(builder)])
    with pytest.MonkeyPatch.context() as patch:
        shrink_blocks(patch, *data.draw(st.sampled_from(((4, 6), (3, 1), (4096, 1 << 14)))))
        assert_fuses(chosen, arrays, data.draw(st.sampled_from(("numpy", "numpy", "numpy", COMPARED_PRINTERS[-1]))))


def feeds_in(builder: Builder) -> list[int]:
    return [i for i, node in enumerate(builder.nodes) if node.op.name == "input"]


def shrink_blocks(patch: pytest.MonkeyPatch, row: int, block: int) -> None:
    """Shrink rows and blocks, so that small tensors have several and a short one at the end."""
    patch.setattr(layout, "FLAT_ROW", row)
    patch.setattr(layout, "BLOCK_ELEMENTS", block)


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("printer", "shape"),
    sampled(product(COMPARED_PRINTERS, SHAPES), covered_pairs),
)
def test_empty_tensors_and_unit_rows(shape: tuple[int, ...], printer: str) -> None:
    arrays = draws(shape, shape)
    x, y = leaves(arrays)
    z = (x.sin() * y).exp()
    values = [z, z.sum(), *with_gradients(z * z.tanh(), x, y)]
    for n in range(1, len(shape) + 1):
        for axes in (tuple(range(n)), tuple(range(len(shape) - n, len(shape)))):
            values += [z.sum(axes=axes), z.sin().sum(axes=axes, keepdims=True)]
            if z.type.size:
                values += [z.max(axes=axes), z.mean(axes=axes), z.logsumexp(axes=axes)]
    if shape and shape[-1]:
        values += [z.softmax(axis=-1), z.log_softmax(axis=-1)]
    assert_fuses(values, arrays, printer)


@pytest.mark.parametrize(
    ("printer", "rows"), sampled(product(COMPARED_PRINTERS, [1, 2, 63, 64, 65, 127, 130, 200]), covered_pairs)
)
def test_sums_over_rows_may_have_many_parts(rows: int, printer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_blocks(monkeypatch, 4, 1)
    arrays = draws((rows, 3), (3,))
    x, w = leaves(arrays)
    y = (x * w).sin()
    centred = y - y.mean(axes=(1,), keepdims=True)
    values = [centred.square().sum(axes=(0,)), centred.sum(axes=(1,)).cos().sum(), y.mean(axes=(0,)), x.sin().sum()]
    kernels = assert_fuses(values, arrays, printer)
    parts = [-(-rows // kernel.iteration_space.block) for kernel in kernels if kernel.iteration_space.columns == 3]
    assert max(parts) <= layout.MOST_SUMS
    assert rows < 3 or max(parts) > 1


@each_printer
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_rows_may_have_several_axes(axes: int, printer: str) -> None:
    """No two of them can be merged: each operand is broadcast along other axes."""
    columns, units = (2, 3, 2)[:axes], (1,) * axes
    shapes = (2, 3, 4, *columns), (2, 1, 4, *units), (3, 1, *units), columns, (2, 3, 1, *units)
    arrays = draws(*shapes)
    x, *others = leaves(arrays)
    y = x.sin()
    for other in others:
        y = y * other + other
    trailing = tuple(range(3, 3 + axes))
    row = y.sum(axes=trailing, keepdims=True)
    values = [(y - row).tanh(), row.cos(), row.sum(), *with_gradients(y - row * row, x)]
    kernels = assert_fuses(values, arrays, printer)
    assert {kernel.kernel.row_axes for kernel in kernels} == {3}


@each_printer
def test_total_of_row_values_is_part_of_the_kernel(printer: str) -> None:
    arrays = draws((6, 5), (6, 1))
    x, weight = leaves(arrays)
    row = x.tanh().logsumexp(axes=(1,), keepdims=True) * weight
    graph = [row.sum(), row.square().mean(), (x - row).sin()]
    kernels = assert_fuses(graph, arrays, printer)
    assert [result.kind for kernel in kernels for result in kernel.kernel.results].count("total") == 2


@each_printer
def test_sum_of_broadcast_row_values_counts_every_element(printer: str) -> None:
    """One value per row, in memory or computed, is not the sum of its row."""
    arrays = draws((4, 1), (4, 5), (4, 1))
    x, full, y = leaves(arrays)
    wide, high = x.broadcast_to(shape=(4, 5)), y.broadcast_to(shape=(4, 5))
    product = wide.sin() * high
    rows = [(product * full).sum(axes=(1,)), full.max(axes=(1,))]
    for total in (product.sum(), wide.sum(), product.mean()):
        assert_fuses([*rows, total], arrays, printer)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "printer"), [*product((2, 3, 5, 17), ["numpy"]), *zip((3, 17, 2), COMPARED_PRINTERS[1:], strict=False)]
)
def test_split_chain_computes_the_same(most: int, printer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusing, "MOST_NODES", most)
    arrays = draws((4, 6), (4, 1), (6,))
    x, a, b = leaves(arrays)
    y, intermediates = x.sin(), []
    for i in range(8):
        y = (y * a).tanh() + b if i % 3 else y - y.mean(axes=(1,), keepdims=True) * (y > 0.1).where(x, a)
        intermediates.append(y)
    kernels = assert_fuses(
        [*with_gradients(y, x, a, b), intermediates[3], intermediates[4].sum(axes=(0,))], arrays, printer
    )
    assert len(kernels) > 40 // most


def test_kernel_node_limit_holds() -> None:
    (x,) = leaves(draws((16,)))
    y = x
    for _ in range(MOST_NODES + 1):
        y = y.sin() + x
    (first, *rest) = kernels_of(y.builder.graph([y]), "numpy")
    assert len(rest) == 2
    assert max(sum(i.op in ("sin", "add") for i in op.kernel.instructions) for op in (first, *rest)) <= MOST_NODES


@each_printer
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_before_a_matmul_are_recomputed(dtype: str, printer: str) -> None:
    arrays = draws((7, 5), (5, 4), (4, 3), (5,), (4,), dtype=dtype)
    x, w, v, b, c = leaves(arrays)
    hidden = ((x + b).sigmoid() @ w + c).tanh()
    gated = (hidden.square() * hidden.sin()) @ v
    tolerance = 1e-11 if dtype == "float64" else 1e-4
    assert_fuses(with_gradients(gated.softmax(axis=-1), x, w, v, b, c), arrays, printer, tolerance)
