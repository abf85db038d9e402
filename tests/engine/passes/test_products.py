"""Sums over a product of matrices: of its operands, so that the product need not be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from engine import Builder, Graph, Limits, TensorType, Value, open_executor, registry
from engine.passes.pipeline import optimise
from engine.planning.plan import Plan, make_plan

Formula = Callable[[Value], Value]


def graph_of(formula: Formula, a: Sequence[int], b: Sequence[int], dtype: str = "float64") -> Graph:
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType(tuple(shape), np.dtype(dtype)), i) for i, shape in enumerate((a, b))]
    return builder.graph([formula(leaves[0] @ leaves[1])])


def largest(plan: Plan) -> int:
    """Elements of the largest result."""
    return max(step.types[0].size for step in plan.steps)


SUMS: dict[str, tuple[Formula, int]] = {
    "rows": (lambda y: y.sum(axes=(2,)), 3 * 50),
    "rows, kept": (lambda y: y.sum(axes=(2,), keepdims=True), 3 * 50),
    "columns": (lambda y: y.sum(axes=(3,)), 3 * 40),
    "both": (lambda y: y.sum(axes=(2, 3)), 3 * 5),
    "all": (lambda y: y.sum(), 3 * 5),
    "rows and a batch": (lambda y: y.sum(axes=(0, 2)), 3 * 50),
    "minus": (lambda y: (-y).sum(axes=(2,)), 3 * 50),
}


@pytest.mark.parametrize("case", SUMS)
def test_a_sum_over_a_product_is_one_of_its_operands(case: str) -> None:
    formula, most = SUMS[case]
    graph = graph_of(formula, (3, 1, 40, 5), (3, 1, 5, 50))
    rng = np.random.default_rng(0)
    feeds = {0: rng.standard_normal((3, 1, 40, 5)), 1: rng.standard_normal((3, 1, 5, 50))}
    executor = open_executor("cpu")
    whole, short = make_plan(graph, Limits()), make_plan(optimise(graph), Limits())
    np.testing.assert_allclose(executor.run(short, feeds)[0], executor.run(whole, feeds)[0], rtol=1e-12, atol=1e-12)
    assert largest(whole) == 3 * 40 * 50
    assert largest(short) <= most
    assert short.peak_bytes < whole.peak_bytes


@pytest.mark.parametrize("operands", [((0, 3), (3, 2)), ((2, 3), (3, 0))])
def test_a_sum_over_no_rows_is_zero_whatever_they_would_be_times(operands: tuple[tuple[int, int], ...]) -> None:
    graph = optimise(graph_of(lambda y: y.sum(axes=(0, 1)), *operands))
    feeds = {i: np.full(shape, np.inf) for i, shape in enumerate(operands)}
    assert open_executor("cpu").run(make_plan(graph, Limits()), feeds)[0] == 0


@pytest.mark.parametrize("dtype", ["float16", "int64"])
def test_what_rounds_or_wraps_between_stays(dtype: str) -> None:
    graph = optimise(graph_of(lambda y: y.sum(axes=(0,)), (40, 5), (5, 50), dtype))
    assert [node.op.name for node in graph.nodes][-2:] == ["matmul", "sum"]


def test_a_product_that_others_read_is_summed() -> None:
    graph = optimise(graph_of(lambda y: y.sum(axes=(0,)) + y, (40, 5), (5, 50)))
    assert [node.op.name for node in graph.nodes].count("matmul") == 1
