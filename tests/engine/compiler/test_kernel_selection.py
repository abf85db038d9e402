"""Selection of microkernels: which products get one, in how much memory, independent of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Builder, Compiler, Graph, Limits, Program, Statement, TensorType, Value, registry
from engine.compiler.fit_memory import compiled_within
from engine.compiler.fused_kernel import MicrokernelOp, select_microkernels
from engine.compiler.plan import Plan, graph_of, make_plan
from engine.ir.op import View

PLENTY = 1 << 40
LIMITS = Limits()


def leaves(*shapes: Sequence[int], dtype: str = "float32") -> list[Value]:
    builder = Builder(registry())
    return [builder.leaf(TensorType(tuple(shape), np.dtype(dtype)), i) for i, shape in enumerate(shapes)]


def product(*shapes: Sequence[int], dtype: str = "float32") -> Graph:
    a, b = leaves(*shapes, dtype=dtype)
    return a.builder.graph([a @ b])


def microkernels(graph: Graph) -> list[MicrokernelOp]:
    return [node.op for node in graph.nodes if isinstance(node.op, MicrokernelOp)]


def layers(dtype: str = "float32") -> Graph:
    """Products with and without packing, of matrices in several layouts."""
    x, w, v = leaves((60, 70), (70, 64), (64, 33), dtype=dtype)
    h = (x @ w).tanh()
    y = h @ v
    return x.builder.graph([y.sum(), h.transpose() @ y, y @ v.transpose(), x @ x.transpose()])


# ---------------------------------------------------------------- selection


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_products_get_microkernels(dtype: str) -> None:
    graph = layers(dtype)
    selected = select_microkernels(graph, PLENTY, 2)
    assert len(microkernels(selected)) == 5
    assert [node.type for node in selected.nodes] == [node.type for node in graph.nodes]
    assert make_plan(selected, LIMITS).flops == make_plan(graph, LIMITS).flops


@pytest.mark.parametrize("dtype", ["float16", "int32", "int64", "bool"])
def test_other_dtypes_are_left_to_numpy(dtype: str) -> None:
    graph = product((8, 9), (9, 10), dtype=dtype)
    assert select_microkernels(graph, PLENTY, 2) is graph


def test_mixed_dtypes_are_left_to_numpy() -> None:
    builder = Builder(registry())
    a = builder.leaf(TensorType((8, 9), np.dtype("float32")), 0)
    b = builder.leaf(TensorType((9, 10), np.dtype("float64")), 1)
    graph = builder.graph([a @ b])
    assert select_microkernels(graph, PLENTY, 2) is graph


@pytest.mark.parametrize("shapes", [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((0, 2, 3), (3, 4))])
def test_empty_products_get_no_microkernel(shapes: Any) -> None:
    graph = product(*shapes)
    assert select_microkernels(graph, PLENTY, 2) is graph


@pytest.mark.parametrize(
    ("shapes", "has_microkernels"),
    [
        (((1, 100), (100, 100)), True), (((1, 300), (300, 300)), False),
        (((20, 20), (20, 1)), True), (((40, 40), (40, 1)), False),
        (((2, 300), (300, 300)), True), (((300, 300), (300, 2)), True),
        (((300, 1), (1, 300)), True), (((5, 1, 300), (5, 300, 300)), False),
    ],
)  # fmt: skip
def test_products_with_long_vectors_are_left_to_blas(shapes: Any, has_microkernels: bool) -> None:
    assert bool(microkernels(select_microkernels(product(*shapes), PLENTY, 2))) is has_microkernels


def test_row_times_transposed_matrix_is_left_to_blas() -> None:
    a, b = leaves((1, 100), (100, 100))
    assert not microkernels(select_microkernels(a.builder.graph([a @ b.transpose()]), PLENTY, 2))


def test_other_ops_get_no_microkernel() -> None:
    (x,) = leaves((6, 7))
    graph = x.builder.graph([(x + 1.0).exp().sum(), x.cumsum(axis=0)])
    assert select_microkernels(graph, PLENTY, 2) is graph


# ---------------------------------------------------------------- memory


def test_product_without_memory_for_its_workspace_is_unchanged() -> None:
    """A product that needs no workspace gets a microkernel all the same."""
    graph = layers()
    least = min(op.recipe.workspace(1) for op in microkernels(select_microkernels(graph, PLENTY, 1)))
    assert least == 0
    selected = select_microkernels(graph, 0, 2)
    for old, new in zip(graph.nodes, selected.nodes, strict=True):
        assert new is old or (isinstance(new.op, MicrokernelOp) and new.op.recipe.workspace(1) == 0)
    assert 0 < len(microkernels(selected)) < 5


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_are_used_only_if_each_has_a_workspace(threads: int) -> None:
    graph = product((60, 70), (70, 50))
    (op,) = microkernels(select_microkernels(graph, PLENTY, threads))
    assert op.threads == threads
    own = op.recipe.own
    assert own > 0
    for room in (own, 2 * own - 1, threads * own - 1, threads * own):
        (fitting,) = microkernels(select_microkernels(graph, room, threads)) or [None]
        if room < own:
            assert fitting is None
        else:
            assert fitting is not None
            assert fitting.threads == (threads if threads * own <= room else 1)
            assert fitting.workspace(None) == fitting.threads * own <= room
    assert select_microkernels(graph, own - 1, threads) is graph


@pytest.mark.slow
@given(room=st.integers(0, 1 << 17), threads=st.integers(2, 9))
@settings(max_examples=30)
def test_recipes_do_not_depend_on_threads(room: int, threads: int) -> None:
    alone, together = select_microkernels(layers(), room, 1), select_microkernels(layers(), room, threads)
    for one, other in zip(alone.nodes, together.nodes, strict=True):
        assert isinstance(one.op, MicrokernelOp) == isinstance(other.op, MicrokernelOp)
        if isinstance(one.op, MicrokernelOp) and isinstance(other.op, MicrokernelOp):
            assert one.op.recipe == other.op.recipe


extents = st.integers(1, 90)


@pytest.mark.slow
@given(
    rows=extents, inner=extents, columns=extents, batch=st.integers(1, 4), dtype=st.sampled_from(["float32", "float64"])
)
@settings(max_examples=40)
def test_compiled_plan_needs_no_more_memory(rows: int, inner: int, columns: int, batch: int, dtype: str) -> None:
    graph = forward_and_backward(rows, inner, columns, batch, dtype)
    before = make_plan(graph, LIMITS)
    compilables = [compiled_within(graph, before.peak_bytes, threads) for threads in (1, 2, 7)]
    plans = [each and each.plan for each in compilables]
    assert all(plan is None or plan.peak_bytes <= before.peak_bytes for plan in plans)
    assert len({_microkernel_texts(plan) for plan in plans}) == 1


def forward_and_backward(rows: int, inner: int, columns: int, batch: int, dtype: str) -> Graph:
    """Two layers on a batch, and the products of their gradients."""
    x, w, v = leaves((batch, rows, inner), (inner, columns), (columns, inner), dtype=dtype)
    h = (x @ w).relu()
    y = h @ v + x
    g = (y - 1.0) * 2.0
    back = (g @ v.transpose()) * (h > 0.0).cast(dtype=np.dtype(dtype))
    return x.builder.graph([(y * y).sum(), h.transpose() @ g, x.transpose() @ back, back @ w.transpose()])


def _microkernel_texts(plan: Plan | None) -> tuple[tuple[str, ...], ...]:
    """The texts of a plan's microkernels."""
    steps = plan.steps if plan is not None else ()
    return tuple(tuple(phase.text for phase in s.op.recipe.phases) for s in steps if isinstance(s.op, MicrokernelOp))


# ---------------------------------------------------------------- operands of products

LAYERS: dict[str, tuple[str, dict[str, Any], list[tuple[int, ...]]]] = {
    "linear": ("linear", {"activation": "tanh"}, [(20, 30), (30, 40), (40,)]),
    "linear of a batch": ("linear", {"activation": "relu"}, [(3, 20, 30), (30, 40), (40,)]),
    "mlp_layer": ("mlp_layer", {"activation": "relu"}, [(20, 30), (40, 30), (40,)]),
    "matmul of a batch": ("matmul", {}, [(3, 20, 30), (3, 30, 40)]),
    "matmul, broadcast": ("matmul", {}, [(3, 1, 20, 30), (2, 30, 40)]),
    "einsum, b by rows": ("einsum", {"equation": "ij,kj->ik"}, [(20, 30), (40, 30)]),
    "einsum, a by columns": ("einsum", {"equation": "ji,jk->ik"}, [(20, 30), (20, 40)]),
    "einsum of a batch": ("einsum", {"equation": "bij,bjk->bik"}, [(3, 20, 30), (3, 30, 40)]),
    "einsum of three": ("einsum", {"equation": "ij,jk,kl->li"}, [(20, 30), (30, 40), (40, 50)]),
    "attention": ("attention", {}, [(2, 4, 20, 16)] * 3),
}


#: results that are copied: transposes of products whose operands are not transposed
COPIED = {"einsum of three": 1}


@pytest.mark.parametrize("layer", LAYERS)
def test_product_operands_are_not_copied(layer: str) -> None:
    """Transposed operands are read in place, and each product gets a microkernel."""
    name, attrs, shapes = LAYERS[layer]
    statements = [Statement(registry().get("parameter"), (), {}) for _ in shapes]
    statements.append(Statement(registry().get(name), tuple(range(len(shapes))), attrs))
    y = len(shapes)
    statements += [Statement(registry().get("mul"), (y, y), {}), Statement(registry().get("sum"), (y + 1,), {})]
    program = Program(registry(), statements, LIMITS)
    types = {i: TensorType(shape, np.dtype("float32")) for i, shape in enumerate(shapes)}
    compilable = compiled_within(graph_of(Compiler(LIMITS).gradients(program, types).plan, registry()), PLENTY, 1)
    assert compilable is not None
    stored = [step.op for step in compilable.plan.steps if step.places]
    assert not any(op.name == "matmul" for op in stored)
    assert sum(isinstance(op, View) or op.name == "identity" for op in stored) == COPIED.get(layer, 0)
    assert sum(isinstance(op, MicrokernelOp) for op in stored) >= 3
