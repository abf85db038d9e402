"""Loops over operands that lie otherwise: turned, cut, repeated, in several row axes, in rows of one, and empty ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Builder, Graph, Limits, TensorType, Value, registry
from engine.executors.numpy_backend import NumPyExecutor
from engine.passes.pipeline import optimise
from engine.planning import fuse as fusing
from engine.planning import layout
from engine.planning.fuse import MOST_NODES, fuse
from engine.planning.fused import Fused
from engine.planning.plan import make_plan
from engine.transforms.vjp import vjp_or_zeros
from tests.printers import printing

Array = np.ndarray[Any, Any]
PRINTED = ("numpy", "llvm")
each_printer = pytest.mark.parametrize("printer", PRINTED)


def draws(*shapes: tuple[int, ...], dtype: str = "float64") -> list[Array]:
    rng = np.random.default_rng(sum(map(sum, shapes)))
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def leaves(arrays: list[Array]) -> list[Value]:
    builder = Builder(registry())
    return [builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)]


def with_gradients(y: Value, *xs: Value) -> list[Value]:
    loss = (y * y.cos()).sum()
    return [y, *vjp_or_zeros(y.builder, [(loss, loss.full_like(1.0))], xs)]


def loops_of(graph: Graph, printer: str) -> list[Fused]:
    return [node.op for node in fuse(graph, 0, compiled=printer != "numpy").nodes if isinstance(node.op, Fused)]


def assert_fuses(values: list[Value], arrays: list[Array], printer: str, tolerance: float = 1e-11) -> list[Fused]:
    """That the values come out the same, by loops that are returned; and with the passes before."""
    graph = values[0].builder.graph(values)
    for before in (graph, optimise(graph)):
        plan = make_plan(before, Limits())
        feeds = {k: a for k, a in enumerate(arrays) if k in plan.feeds}
        with np.errstate(all="ignore"):
            expected = NumPyExecutor().interpret(plan, feeds)
        with printing(printer):
            found = NumPyExecutor().run(plan, feeds)
        for there, here in zip(expected, found, strict=True):
            assert (here.shape, here.dtype) == (there.shape, there.dtype)
            np.testing.assert_allclose(here, there, tolerance, tolerance)
    return loops_of(graph, printer)


# ---------------------------------------------------------------- views


class View:
    """A way for an operand of a loop to lie, as drawn."""

    def __init__(self, draw: Any) -> None:
        self.shape = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 5)), min_size=1, max_size=4)))
        self.draw = draw

    def like(self, builder: Builder, arrays: list[Array]) -> Value:
        """A new feed, seen in such a way that it has the shape."""
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
    """The last ones along an axis."""
    starts = [x.shape[axis] - count if a == axis else 0 for a in range(x.ndim)]
    return x.slice(starts=starts, stops=list(x.shape))


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_operands_may_lie_in_any_way(data: st.DataObject) -> None:
    builder, arrays = Builder(registry()), list[Array]()
    view = View(data.draw)
    a, b, c = (view.like(builder, arrays) for _ in range(3))
    full = view.feed(builder, arrays, view.shape)
    y = ((a + full).sin() * b).tanh() + c
    rank = len(view.shape)
    wanted = [y, (a > b).where(y, full)]
    for n in range(1, rank + 1):
        axes = range(rank - n, rank) if data.draw(st.booleans()) else range(n)
        op = data.draw(st.sampled_from(("sum", "mean", "max", "logsumexp")))
        wanted.append(getattr(y, op)(axes=tuple(axes), keepdims=data.draw(st.booleans())))
    chosen = data.draw(st.lists(st.sampled_from(wanted), min_size=1, max_size=4))
    if data.draw(st.booleans()):
        row = y.sum(axes=(rank - 1,), keepdims=True)
        chosen += [y - row, (y - row).sum(axes=tuple(range(rank - 1))) if rank > 1 else row]
    loss = sum((v.sum() for v in chosen[1:]), chosen[0].sum())
    chosen += vjp_or_zeros(builder, [(loss, loss.full_like(1.0))], [builder.value(n) for n in feeds_in(builder)])
    assert_fuses(chosen, arrays, data.draw(st.sampled_from(("numpy", "numpy", "numpy", "llvm"))))


def feeds_in(builder: Builder) -> list[int]:
    return [i for i, node in enumerate(builder.nodes) if node.op.name == "input"]
