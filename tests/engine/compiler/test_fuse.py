"""Fusion: which nodes it joins, which it leaves alone, and that results stay the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Builder, Graph, Limits, TensorType, Value, open_executor, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.fusion import fuse
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from engine.ir.tensor_type import BOOL, FLOAT32, FLOAT64
from engine.runtime.interpreter import Executor

EXECUTOR: Executor = open_executor("cpu")
UNARY = ("tanh", "square", "sigmoid", "exp", "neg", "relu", "abs", "rsqrt", "log_sigmoid", "erf", "sin")
BINARY = ("add", "sub", "mul", "maximum")
SHAPES = ((2, 3, 4), (4, 4), (3, 1), (6,), (1, 5), (2, 2, 2), (), (1,))


class Sketch:
    """A random graph of fusible nodes and of others between them."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw
        self.builder = Builder(registry())
        self.values: list[Value] = []
        for i in range(self.draw(st.integers(1, 3))):
            dtype, shape = self.draw(st.sampled_from((FLOAT32, FLOAT64))), self.draw(st.sampled_from(SHAPES))
            self.values.append(self.builder.leaf(TensorType(shape, dtype), i))
        self.leaves = list(self.values)

    def grow(self) -> None:
        x = self.draw(st.sampled_from(self.values))
        kinds = (self.unary, self.unary, self.binary, self.reduced, self.reduced, self.chosen, self.moved)
        self.values.append(self.draw(st.sampled_from(kinds))(x))

    def unary(self, x: Value) -> Value:
        op = self.draw(st.sampled_from(UNARY))
        bounded = x.tanh() if op in ("exp", "square") else x.square() + 0.5 if op == "rsqrt" else x
        return getattr(bounded, op)()

    def binary(self, x: Value) -> Value:
        fitting = [v for v in self.values if fits(v.shape, x.shape)]
        y = self.draw(st.sampled_from(fitting))
        return getattr(x, self.draw(st.sampled_from(BINARY)))(y)

    def reduced(self, x: Value) -> Value:
        if not x.ndim:
            return x.tanh()
        op = self.draw(st.sampled_from(("sum", "mean", "max", "min", "logsumexp", "softmax", "log_softmax")))
        if "softmax" in op:
            return getattr(x, op)(axis=self.draw(st.integers(0, x.ndim - 1)))
        axes = self.draw(
            st.sampled_from([a for n in range(1, x.ndim + 1) for a in (range(n), range(x.ndim - n, x.ndim))])
        )
        return getattr(x, op)(axes=tuple(axes), keepdims=self.draw(st.booleans()))

    def chosen(self, x: Value) -> Value:
        """Select by a comparison of x, or of a value that may have another dtype."""
        condition = self.draw(st.sampled_from([v for v in self.values if v.shape == x.shape]))
        return (condition > 0.1).where(x, self.draw(st.sampled_from((0.0, -1.5))))

    def moved(self, x: Value) -> Value:
        kind = self.draw(st.sampled_from(("transpose", "unit", "flat", "repeat", "matmul")))
        if kind == "transpose" and x.ndim:
            return x.transpose(axes=tuple(self.draw(st.permutations(range(x.ndim)))))
        if kind == "unit":
            axis = self.draw(st.integers(0, x.ndim))
            return x.reshape(shape=(*x.shape[:axis], 1, *x.shape[axis:]))
        if kind == "matmul" and x.ndim == 2:
            return x @ x.transpose(axes=(1, 0))
        return x.reshape(shape=(x.type.size,)) if kind == "flat" else x.broadcast_to(shape=(2, *x.shape))


def fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return len(np.broadcast_shapes(a, b)) <= 4
    except ValueError:
        return False


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_fused_graph_matches_the_unfused_one(data: st.DataObject) -> None:
    sketch = Sketch(data)
    for _ in range(data.draw(st.integers(2, 14))):
        sketch.grow()
    outputs = [data.draw(st.sampled_from(sketch.values)) for _ in range(data.draw(st.integers(1, 3)))]
    y = next((v for v in reversed(sketch.values) if v.type.is_differentiable), sketch.values[0])
    outputs += vjp_or_zeros(sketch.builder, [(y, y.full_like(1.0))], sketch.leaves)
    graph = sketch.builder.graph(outputs)
    rng = np.random.default_rng(0)
    feeds = {n.attrs["feed"]: rng.normal(size=n.type.shape).astype(n.type.dtype) for n in graph.nodes if n.is_leaf}
    for before in (graph, optimise(graph)):
        assert_same(before, fuse(before, 0), feeds)


def assert_same(before: Graph, after: Graph, feeds: dict[Any, Any]) -> None:
    expected = EXECUTOR.interpret(make_plan(before, Limits()), feeds)
    actual = EXECUTOR.run(make_plan(after, Limits()), feeds)
    is_mixed = any(node.type.dtype == FLOAT32 for node in before.nodes if not node.op.several)
    for reference, result in zip(expected, actual, strict=True):
        assert result.dtype == reference.dtype
        assert result.shape == reference.shape
        tolerance = 2e-4 if is_mixed or result.dtype != FLOAT64 else 1e-10
        scale = max(1.0, float(np.abs(reference).max(initial=0))) if reference.size else 1.0
        np.testing.assert_allclose(result, reference, rtol=tolerance, atol=tolerance * scale)


# ---------------------------------------------------------------- which nodes become one kernel


def gradients(y: Value, *xs: Value) -> Graph:
    """The value and the gradients of the sum of y, optimised."""
    total = y.sum()
    return optimise(y.builder.graph([total, *vjp_or_zeros(y.builder, [(total, total.full_like(1.0))], xs)]))


def leaf(builder: Builder, *shape: int, dtype: str = "float32") -> Value:
    return builder.leaf(TensorType(shape, np.dtype(dtype)), len(builder.nodes))


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op.name for node in graph.nodes if not node.is_leaf)


@pytest.mark.parametrize("op", ["softmax", "log_softmax", "gelu", "silu", "sigmoid", "softplus", "selu"])
def test_activation_and_its_gradient_are_one_kernel(op: str) -> None:
    builder = Builder(registry())
    x, weight = leaf(builder, 16, 64), leaf(builder, 16, 64)
    fused = fuse(gradients(getattr(x, op)() * weight, x), 0)
    assert ops(fused)["fused"] == 1
    assert set(ops(fused)) <= {"fused", "get_output"}


def test_layer_norm_and_its_gradients_are_one_kernel() -> None:
    builder = Builder(registry())
    x, weight, bias, other = leaf(builder, 64, 32), leaf(builder, 32), leaf(builder, 32), leaf(builder, 64, 32)
    fused = fuse(gradients(x.layer_norm(weight, bias) * other, x, weight, bias), 0)
    assert set(ops(fused)) <= {"fused", "get_output", "reshape"}
    assert ops(fused)["fused"] == 1


def test_kernel_does_not_recompute_a_bool_of_another_dtype() -> None:
    """It would read float32 numbers as float64, beyond the end of the operand."""
    builder = Builder(registry())
    one, other = (builder.leaf(TensorType((63, 1), FLOAT32), i) for i in range(2))
    wide, swap = (builder.leaf(TensorType((63, 18), dtype), i + 2) for i, dtype in enumerate((FLOAT64, BOOL)))
    is_ordered = swap.where(one, other).less(swap.where(other, one))
    graph = builder.graph([swap.where(is_ordered.where(wide, 0.0), 1.0).exp()])
    fused = fuse(graph, 0, compiled=True)
    for node in fused.nodes:
        floats = {t.dtype for t in (*node.types, *(fused.nodes[i].types[0] for i in node.operands))} - {BOOL}
        assert node.op.name != "fused" or len(floats) == 1
    assert sum(node.op.name == "fused" for node in fused.nodes) > 1


def test_backward_pass_recomputes_cheap_nodes() -> None:
    builder = Builder(registry())
    x, w, v = leaf(builder, 64, 32), leaf(builder, 32, 16), leaf(builder, 16, 8)
    hidden = (x @ w).tanh().square().sin()
    plain = gradients((hidden @ v).tanh(), x, w, v)
    fused = fuse(plain, 0, compiled=True)
    forward = next(node for node in fused.nodes if node.op.name == "fused")
    assert len(forward.types) == 1
    assert make_plan(fused, Limits()).peak_bytes < make_plan(plain, Limits()).peak_bytes


@pytest.mark.parametrize("columns", [2, 3, 14])
def test_row_values_are_not_recomputed_along_columns(columns: int) -> None:
    """Regression: the kernel read one number per column from an operand with one number per row."""
    builder = Builder(registry())
    x, v = leaf(builder, 2, dtype="float64"), leaf(builder, 2, columns, dtype="float64")
    y, rows = x.tanh(), v.square().sum(axes=(1,))
    graph = builder.graph([y, ((1.0 - y.square()) * (rows + 1.0)).sum()])
    fused = fuse(graph, 0, compiled=True)
    assert_same(graph, fused, {0: np.array([0.3, -2.0]), 1: np.arange(2.0 * columns).reshape(2, columns) - 3.0})


def test_detour_through_another_op_splits_the_kernel() -> None:
    builder = Builder(registry())
    x = leaf(builder, 8, 8)
    y = x.tanh().exp()
    back = (y @ y).sin() + y
    assert ops(fuse(builder.graph([back]), 0))["fused"] == 2


def test_row_sum_without_keepdims_broadcasts_along_columns() -> None:
    builder = Builder(registry())
    x = leaf(builder, 4, 4, dtype="float64")
    graph = builder.graph([x.tanh() * x.tanh().sum(axes=(1,))])
    assert_same(graph, fuse(graph, 0), {0: np.arange(16.0).reshape(4, 4) / 7})


@pytest.mark.parametrize(
    ("op", "attrs", "compiled"),
    [
        ("leaky_relu", {}, True),  # several NumPy calls each
        ("clamp", {"min": 0.0}, True),
        ("sign", {}, True),
        ("sum", {"axes": [1]}, True),  # over rows, even if NumPy has a function for it
        ("softmax", {"axis": 1}, True),
        ("neg", {}, False),  # one NumPy call, as fast as memory
        ("sqrt", {}, False),
    ],
)
def test_single_op_is_fused_if_its_kernel_beats_numpy(op: str, attrs: dict[str, Any], *, compiled: bool) -> None:
    builder = Builder(registry())
    x = builder.leaf(TensorType((200, 300), FLOAT32), 0)
    graph = builder.graph([getattr(x, op)(**attrs)])
    assert any(node.op.name == "fused" for node in fuse(graph, 0, compiled=True).nodes) == compiled
    assert fuse(graph, 0) is graph, "by NumPy alone, there is nothing to be gained"


def test_small_graphs_are_not_fused() -> None:
    builder = Builder(registry())
    graph = builder.graph([leaf(builder, 100).tanh().exp()])
    assert fuse(graph) is graph


def test_integers_and_half_precision_are_not_fused() -> None:
    for dtype in ("int64", "float16"):
        builder = Builder(registry())
        x = leaf(builder, 64, dtype=dtype)
        assert "fused" not in ops(fuse(builder.graph([(x * x + x) * x]), 0))


@pytest.mark.parametrize("op", ["softmax", "log_softmax", "logsumexp", "sum", "max"])
def test_half_precision_rows_are_not_fused(op: str) -> None:
    builder = Builder(registry())
    x = leaf(builder, 4, 8, dtype="float16")
    y = getattr(x, op)(axis=1) if "softmax" in op else getattr(x, op)(axes=(1,), keepdims=True)
    assert "fused" not in ops(fuse(builder.graph([(y + x).tanh() * y]), 0))


def test_long_chain_is_split_in_order() -> None:
    builder = Builder(registry())
    x = y = leaf(builder, 16, dtype="float64")
    for i in range(1500):
        y = y.sin() if i % 3 else y + x
    graph = builder.graph([y, y.sum()])
    fused = fuse(graph, 0)
    assert ops(fused)["fused"] == 4
    assert_same(graph, fused, {0: np.linspace(0, 1, 16)})
