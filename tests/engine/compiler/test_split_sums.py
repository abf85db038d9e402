"""Splitting sums over several axes in two: which are split, that values agree, and which kernels are left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, Graph, Limits, Plan, TensorType, Value, open_executor, registry
from engine.compiler.fit_memory import choose_plan, compiled_within
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import make_plan
from engine.compiler.sums import split_sums
from engine.ops.reduce.sums import Rowwise
from tests.engine.looping import Array

LIMITS = Limits()
PLENTY = 1 << 40


def leaf(*shape: int, dtype: str = "float64") -> Value:
    return Builder(registry()).leaf(TensorType(shape, np.dtype(dtype)), 0)


def graph_with(*outputs: Value) -> Graph:
    return outputs[0].builder.graph(outputs)


def reduced(graph: Graph) -> list[tuple[str, tuple[int, ...]]]:
    """The reductions of a graph, with their axes."""
    return [(n.op.name, tuple(n.attrs["axes"])) for n in graph.nodes if isinstance(n.op, Rowwise) and n.op.reduces]


def test_trailing_axes_are_reduced_first() -> None:
    x = [leaf(3, 4, 5, 6).exp() for _ in range(3)]
    assert reduced(split_sums(graph_with(x[0].sum(axes=(0, 2, 3))))) == [("sum", (2, 3)), ("sum", (0,))]
    assert reduced(split_sums(graph_with(x[1].mean(axes=(0, 1, 3))))) == [("sum", (3,)), ("sum", (0, 1))]
    assert reduced(split_sums(graph_with(x[2].max(axes=(1, 3))))) == [("max", (3,)), ("max", (1,))]


@pytest.mark.parametrize(
    "whole",
    [
        lambda x: x.exp().sum(axes=(2, 3)),
        lambda x: x.exp().sum(axes=(0, 1)),
        lambda x: x.exp().sum(axes=(0, 2)),
        lambda x: x.exp().sum(),
        lambda x: x.sum(axes=(0, 2, 3)),
        lambda x: x.exp().sum(axes=(3,), keepdims=True).sum(axes=(0, 2, 3)),
        lambda x: x.reshape(shape=(4, 3, 5, 6)).sum(axes=(0, 2, 3)),
        lambda x: x.exp().prod(axes=(0, 2, 3)),
        lambda x: x.exp().var(axes=(0, 2, 3)),
        lambda x: x.exp().cast(dtype=np.dtype("float16")).exp().sum(axes=(0, 2, 3)),
        lambda x: (x > 0.0).sum(axes=(0, 2, 3)),
    ],
    ids=[
        "trailing",
        "leading",
        "neither",
        "all",
        "fed",
        "of rows",
        "seen",
        "product",
        "variance",
        "float16",
        "counted",
    ],
)
def test_sums_without_a_gain_are_not_split(whole: Callable[[Value], Value]) -> None:
    """A kernel takes the reduction as it is, or not at all; or its partial results do not combine."""
    graph = graph_with(whole(leaf(3, 4, 5, 6)))
    assert split_sums(graph) is graph


def test_single_column_sum_is_not_split() -> None:
    graph = graph_with(leaf(3, 4, 1, 1).exp().sum(axes=(0, 2, 3)))
    assert split_sums(graph) is graph


def test_sum_beside_rows_of_another_length_is_not_split() -> None:
    """An iteration space has rows of one length: neither part would join the kernel."""
    x = leaf(3, 4, 5, 6).exp()
    others = [x.sum(axes=(3,)), x.softmax(axis=3)]
    graph = graph_with(*others, x.sum(axes=(0, 2, 3)))
    assert split_sums(graph) is graph


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
def test_split_reduction_matches_the_whole(name: str, keepdims: bool) -> None:
    """Whole numbers, a power of two of them, so that sums and means are exact."""
    x = leaf(4, 3, 8, 2)
    graph = graph_with(getattr(x * 3.0, name)(axes=(0, 2, 3), keepdims=keepdims))
    split = split_sums(graph)
    assert split is not graph
    given = np.random.default_rng(0).integers(-50, 50, (4, 3, 8, 2)).astype("float64")
    (actual,), (expected,) = computed(split, given), computed(graph, given)
    assert actual.shape == expected.shape
    assert np.array_equal(actual, expected)


def test_mean_is_divided_in_the_rows() -> None:
    """No launch follows the kernel."""
    x = leaf(20, 30, 40)
    graph = graph_with((x * 2.0).mean())
    split = split_sums(graph)
    assert reduced(split) == [("sum", (2,)), ("sum", (0, 1, 2))]
    compilable = compiled_within(split, PLENTY, 1, microkernels=False)
    assert compilable is not None
    assert [step.op.name for step in compilable.plan.steps if not step.op.is_view] == ["fused"]
    given = np.random.default_rng(0).integers(-50, 50, (20, 30, 40)).astype("float64")
    np.testing.assert_allclose(computed(split, given)[0], computed(graph, given)[0], rtol=1e-13)
    assert computed(split, given)[0].shape == ()


def test_mean_uses_the_rows_of_its_kernel() -> None:
    x = leaf(20, 30, 40) * 2.0
    split = split_sums(graph_with(x.sum(axes=(1, 2)), x.exp().mean(keepdims=True)))
    assert reduced(split) == [("sum", (1, 2)), ("sum", (1, 2)), ("sum", (0, 1, 2))]
    assert split.nodes[split.outputs[1]].type.shape == (1, 1, 1)


@pytest.mark.parametrize(
    "whole",
    [
        lambda x: x.mean(),
        lambda x: (x * 2.0).sum(),
        lambda x: x.slice(starts=(0, 0, 0), stops=(1, 30, 40)).exp().mean(),
        lambda x: x.reshape(shape=(-1,)).exp().mean(),
    ],
    ids=["fed", "a sum", "one row", "one axis"],
)
def test_other_full_means_are_not_split(whole: Callable[[Value], Value]) -> None:
    graph = graph_with(whole(leaf(20, 30, 40)))
    assert split_sums(graph) is graph


@pytest.mark.parametrize("name", ["max", "min"])
def test_split_max_and_min_propagate_nan(name: str) -> None:
    given = np.ones((2, 3, 4, 5))
    given[1, 1, 2, 3] = np.nan
    split = split_sums(graph_with(getattr(leaf(2, 3, 4, 5) * 1.0, name)(axes=(0, 2, 3))))
    (actual,) = computed(split, given)
    assert np.array_equal(actual, [1.0, np.nan, 1.0], equal_nan=True)


def computed(graph: Graph, *given: Array) -> list[Array]:
    return open_executor("cpu").run(make_plan(graph, LIMITS), dict(enumerate(given)))


# ---------------------------------------------------------------- sums of results of one kernel


def kernels_of(plan: Plan) -> list[Fused]:
    return [step.op for step in plan.steps if isinstance(step.op, Fused)]


def test_second_parts_of_sums_share_a_kernel() -> None:
    x = leaf(3, 4, 5, 6)
    sums = [y.sum(axes=(0, 2, 3)) for y in (x.exp(), x.sin(), x.exp() * x.sin())]
    compilable = compiled_within(split_sums(graph_with(*sums)), PLENTY, 1, microkernels=False)
    assert compilable is not None
    kinds = [[result.kind for result in op.kernel.results] for op in kernels_of(compilable.plan)]
    assert kinds == [["row"] * 3, ["columns"] * 3]


def test_joined_sums_have_the_same_bits() -> None:
    """Joining sums changes no result."""
    x = leaf(70, 300, 3, dtype="float32")
    parts = [y.sum(axes=(2,)) for y in (x.exp(), x.sin())]
    sums = [part.sum(axes=(0,)) for part in parts]
    given = np.random.default_rng(0).normal(size=(70, 300, 3)).astype("float32")
    together = run_fused(graph_with(*sums), given)
    alone = [run_fused(graph_with(each), given)[0] for each in sums]
    assert [a.tobytes() for a in together] == [a.tobytes() for a in alone]


def run_fused(graph: Graph, given: Array) -> list[Array]:
    compilable = compiled_within(graph, PLENTY, 1, microkernels=False)
    assert compilable is not None
    return open_executor("cpu").run(compilable.plan, {0: given})


# ---------------------------------------------------------------- memory


def test_sums_are_split_only_on_request() -> None:
    graph = graph_with(leaf(3, 4, 5, 6).exp().sum(axes=(0, 2, 3)))
    reductions = [
        [tuple(step.attrs["axes"]) for step in plan.steps if step.op.name == "sum"]
        for plan in (
            choose_plan(graph, LIMITS),
            choose_plan(graph, LIMITS, splits_sums=True),
            choose_plan(graph, LIMITS, kernel_threads=0, splits_sums=True),
        )
    ]
    assert reductions == [[(0, 2, 3)], [(2, 3), (0,)], [(0, 2, 3)]]


def test_sum_is_not_split_without_memory() -> None:
    """The sums of rows are no results, but take memory beside all others."""
    x = leaf(200, 4, 2, 1)
    graph = graph_with(x.exp().sum(axes=(0, 2, 3)))
    most = make_plan(graph, LIMITS).peak_bytes
    split = make_plan(split_sums(graph), LIMITS).peak_bytes
    assert split > most
    plan = choose_plan(graph, Limits(bytes=most), splits_sums=True)
    assert [step.attrs["axes"] for step in plan.steps if step.op.name == "sum"] == [(0, 2, 3)]
