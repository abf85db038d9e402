"""Bodies are written for loops: with what they had computed, in floats and in rows; and nothing else is touched."""

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


def written(write: Callable[..., Value], *arrays: Any) -> tuple[Graph, Graph, list[Array], list[Array]]:
    """A graph as it was and as it is written, and what both give."""
    builder = Builder(registry())
    feeds = dict(enumerate(map(np.asarray, arrays)))
    value = write(*(builder.leaf(TensorType.of(x), i) for i, x in feeds.items()))
    graph = builder.graph([value])
    anew = make_compilable(graph)
    before, after = (EXECUTOR.run(make_plan(each, Limits()), feeds) for each in (graph, anew))
    assert [type for i in anew.outputs for type in anew.nodes[i].types] == [*value.node.types]
    return graph, anew, before, after


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
def test_what_floats_are_computed_of_is_cast_once(
    write: Callable[..., Value], arrays: list[Array], wanted: list[str]
) -> None:
    _, anew, before, after = written(write, *arrays)
    assert sorted(ops(anew)) == sorted(wanted)
    assert [x.tobytes() for x in before] == [x.tobytes() for x in after]


@pytest.mark.parametrize("op", ["sum", "mean", "max", "prod", "logsumexp", "norm", "var"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_rows_that_lie_across_memory_are_turned(axes: tuple[int, ...], keepdims: bool, op: str) -> None:
    attrs = {"axes": axes, "keepdims": keepdims, **({"ddof": 1} if op == "var" else {})}
    _, anew, before, after = written(lambda x: getattr(x, op)(**attrs), X)
    np.testing.assert_allclose(after[0], before[0], rtol=1e-14)
    grouping = Grouping(anew, 0, in_body=True)
    assert all(grouping.members[i] for i, node in enumerate(anew.nodes) if node.op.name in {op, "sum", "div_scalar"})


@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_that_keep_their_shape_are_turned_back(axis: int, op: str) -> None:
    _, _, before, after = written(lambda x: getattr(x, op)(axis=axis), X)
    np.testing.assert_allclose(after[0], before[0], rtol=1e-14)


def test_sums_over_leading_axes_stay_but_beside_rows() -> None:
    """A loop has rows of one length, and columns of these."""
    assert ops(written(lambda x: x.sum(axes=(0,)), TALL)[1]) == ["sum"]
    both = written(lambda x: x.sum(axes=(0,), keepdims=True) + x.sum(axes=(1,), keepdims=True), TALL)
    assert ops(both[1]).count("transpose") == 0  # one trailing axis in both: rows of two elements
    for other in ((2,), (1, 2)):
        _, anew, before, after = written(lambda x, axes=other: x.sum(axes=(0,)).sum() + x.max(axes=axes).sum(), X)
        assert ops(anew).count("transpose") == (len(other) == 1)  # over (1, 2), rows are as long as columns are many
        np.testing.assert_allclose(after[0], before[0], rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1.0, 1e160, 1e200])
def test_norms_neither_overflow_nor_vanish(scale: float) -> None:
    x = X * scale
    for axes in ((0,), (2,), (0, 1, 2)):
        _, _, before, after = written(lambda x, axes=axes: x.norm(axes=axes), x)
        np.testing.assert_allclose(after[0], before[0], rtol=1e-14)


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.inf, 1.0], [np.nan, 1.0], [np.inf, np.nan], [5e-324, 0.0]])
def test_norms_of_what_has_no_size(row: list[float]) -> None:
    _, _, before, after = written(lambda x: x.norm(axes=(0,)), np.array(row))
    np.testing.assert_array_equal(after[0], before[0])


def test_what_loops_have_stays_as_it_is() -> None:
    for write, array in (
        (lambda x: x.exp().sum(axes=(1, 2)), X),
        (lambda x: x.softmax(axis=2), X),
        (lambda n: n + n, np.arange(3)),
        (lambda n: n.max(axes=(0,)), np.arange(3)),
        (lambda x: x.sum(axes=(0,)), np.zeros((0, 3))),
        (lambda x: x.add_scalar(scalar=1.0), np.zeros(3, "float16")),
    ):
        graph, anew, _, _ = written(write, array)
        assert anew is graph
