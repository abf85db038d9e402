"""Make loop bodies compilable: cast integers, make rows contiguous, leave all else unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.compiler.body_plans import make_compilable
from engine.compiler.fusion_groups import Grouping
from engine.compiler.plan import make_plan
from engine.ir.graph import Graph
from tests.engine.ops.run import EXECUTOR

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
X, TALL = RNG.normal(size=(3, 4, 5)), RNG.normal(size=(6, 2))


def rewrite_and_run(write: Callable[..., Value], *arrays: Any) -> tuple[Graph, Graph, list[Array], list[Array]]:
    """A graph before and after the rewrite, and the results of both."""
    builder = Builder(registry())
    feeds = dict(enumerate(map(np.asarray, arrays)))
    value = write(*(builder.leaf(TensorType.of(x), i) for i, x in feeds.items()))
    graph = builder.graph([value])
    compilable = make_compilable(graph)
    before, after = (EXECUTOR.run(make_plan(each, Limits()), feeds) for each in (graph, compilable))
    assert [type for i in compilable.outputs for type in compilable.nodes[i].types] == [*value.node.types]
    return graph, compilable, before, after


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes if not node.is_leaf]


@pytest.mark.parametrize(
    ("write", "arrays", "wanted"),
    [
        (lambda n: n.add_scalar(scalar=0.5), [np.arange(3)], ["cast", "add_scalar"]),
        (lambda n, x: n < x, [np.array([1, 2]), np.array([1.5, 1.5])], ["cast", "less"]),
        (lambda c, x: c.where(x, 0.0), [np.array([0, 3]), np.array([1.5, 2.5])], ["cast", "full", "where"]),
        (lambda x, b: x.cat(b, axis=0), [np.array([0.5]), np.array([True])], ["cast", "cat"]),
        (lambda b: b.sum(axes=(0,)), [np.array([True, False, True])], ["cast", "sum", "cast"]),
        (lambda b: b.any(axes=(0,)), [np.array([0, 0, 7])], ["cast", "cast", "max", "cast"]),
        (lambda b: b.all(axes=(0,)), [np.array([0.5, np.nan])], ["cast", "cast", "min", "cast"]),
    ],
)
def test_operands_of_float_ops_are_cast_once(
    write: Callable[..., Value], arrays: list[Array], wanted: list[str]
) -> None:
    _, compilable, before, after = rewrite_and_run(write, *arrays)
    assert sorted(ops(compilable)) == sorted(wanted)
    assert [x.tobytes() for x in before] == [x.tobytes() for x in after]


@pytest.mark.parametrize("op", ["sum", "mean", "max", "prod", "logsumexp", "norm", "var"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_strided_reductions_are_transposed(axes: tuple[int, ...], keepdims: bool, op: str) -> None:
    attrs = {"axes": axes, "keepdims": keepdims, **({"ddof": 1} if op == "var" else {})}
    _, compilable, before, after = rewrite_and_run(lambda x: getattr(x, op)(**attrs), X)
    np.testing.assert_allclose(after[0], before[0], rtol=1e-14)
    grouping = Grouping(compilable, 0, in_body=True)
    assert all(
        grouping.members[i] for i, node in enumerate(compilable.nodes) if node.op.name in {op, "sum", "div_scalar"}
    )


@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_strided_softmax_is_transposed_and_back(axis: int, op: str) -> None:
    _, _, before, after = rewrite_and_run(lambda x: getattr(x, op)(axis=axis), X)
    np.testing.assert_allclose(after[0], before[0], rtol=1e-14)


def test_leading_sums_are_transposed_only_beside_rows() -> None:
    """All rows of a kernel have one length."""
    assert ops(rewrite_and_run(lambda x: x.sum(axes=(0,)), TALL)[1]) == ["sum"]
    both = rewrite_and_run(lambda x: x.sum(axes=(0,), keepdims=True) + x.sum(axes=(1,), keepdims=True), TALL)
    assert ops(both[1]).count("transpose") == 0  # one trailing axis in both: rows of two elements
    for other in ((2,), (1, 2)):
        _, compilable, before, after = rewrite_and_run(
            lambda x, axes=other: x.sum(axes=(0,)).sum() + x.max(axes=axes).sum(), X
        )
        # over (1, 2), a row is as long as the leading sum has columns
        assert ops(compilable).count("transpose") == (len(other) == 1)
        np.testing.assert_allclose(after[0], before[0], rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1.0, 1e160, 1e200])
def test_norms_neither_overflow_nor_underflow(scale: float) -> None:
    x = X * scale
    for axes in ((0,), (2,), (0, 1, 2)):
        _, _, before, after = rewrite_and_run(lambda x, axes=axes: x.norm(axes=axes), x)
        np.testing.assert_allclose(after[0], before[0], rtol=1e-14)


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.inf, 1.0], [np.nan, 1.0], [np.inf, np.nan], [5e-324, 0.0]])
def test_norms_of_zero_infinity_and_nan(row: list[float]) -> None:
    _, _, before, after = rewrite_and_run(lambda x: x.norm(axes=(0,)), np.array(row))
    np.testing.assert_array_equal(after[0], before[0])


def test_compilable_bodies_are_left_unchanged() -> None:
    for write, array in (
        (lambda x: x.exp().sum(axes=(1, 2)), X),
        (lambda x: x.softmax(axis=2), X),
        (lambda n: n + n, np.arange(3)),
        (lambda n: n.max(axes=(0,)), np.arange(3)),
        (lambda x: x.sum(axes=(0,)), np.zeros((0, 3))),
        (lambda x: x.add_scalar(scalar=1.0), np.zeros(3, "float16")),
    ):
        graph, compilable, _, _ = rewrite_and_run(write, array)
        assert compilable is graph
