"""Sums and transposes of a matrix product become those of its operands, which saves memory and copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from engine import Builder, Graph, Limits, TensorType, Value, open_executor, registry
from engine.compiler.plan import Plan, make_plan
from engine.ir.passes import optimise

Formula = Callable[[Value], Value]


def graph_of(formula: Formula, a: Sequence[int], b: Sequence[int], dtype: str = "float64") -> Graph:
    x, y = two_leaves(a, b, dtype=dtype)
    return x.builder.graph([formula(x @ y)])


def two_leaves(*shapes: Sequence[int], dtype: str = "float64") -> list[Value]:
    builder = Builder(registry())
    return [builder.leaf(TensorType(tuple(shape), np.dtype(dtype)), i) for i, shape in enumerate(shapes)]


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
def test_sum_of_a_product_sums_its_operands(case: str) -> None:
    formula, limit = SUMS[case]
    graph = graph_of(formula, (3, 1, 40, 5), (3, 1, 5, 50))
    rng = np.random.default_rng(0)
    feeds = {0: rng.standard_normal((3, 1, 40, 5)), 1: rng.standard_normal((3, 1, 5, 50))}
    executor = open_executor("cpu")
    whole, short = make_plan(graph, Limits()), make_plan(optimise(graph), Limits())
    np.testing.assert_allclose(executor.run(short, feeds)[0], executor.run(whole, feeds)[0], rtol=1e-12, atol=1e-12)
    assert largest(whole) == 3 * 40 * 50
    assert largest(short) <= limit
    assert short.peak_bytes < whole.peak_bytes


@pytest.mark.parametrize("operands", [((0, 3), (3, 2)), ((2, 3), (3, 0))])
def test_empty_sum_is_zero_even_with_infinite_factors(operands: tuple[tuple[int, int], ...]) -> None:
    graph = optimise(graph_of(lambda y: y.sum(axes=(0, 1)), *operands))
    feeds = {i: np.full(shape, np.inf) for i, shape in enumerate(operands)}
    assert open_executor("cpu").run(make_plan(graph, Limits()), feeds)[0] == 0


@pytest.mark.parametrize("dtype", ["float16", "int64"])
def test_sum_of_a_product_that_rounds_or_wraps_stays(dtype: str) -> None:
    graph = optimise(graph_of(lambda y: y.sum(axes=(0,)), (40, 5), (5, 50), dtype))
    assert [node.op.name for node in graph.nodes][-2:] == ["matmul", "sum"]


def test_product_with_other_readers_is_summed() -> None:
    graph = optimise(graph_of(lambda y: y.sum(axes=(0,)) + y, (40, 5), (5, 50)))
    assert [node.op.name for node in graph.nodes].count("matmul") == 1


# ---------------------------------------------------------------- transposed

PRODUCTS: dict[str, tuple[Sequence[int], Sequence[int]]] = {
    "matrices": ((3, 4), (3, 5)),
    "a batch": ((2, 3, 4), (2, 3, 5)),
    "a batch that is broadcast": ((2, 1, 3, 4), (3, 3, 5)),
}


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64"])
@pytest.mark.parametrize("case", PRODUCTS)
def test_transposed_product_uses_transposed_operands(case: str, dtype: str) -> None:
    """(aᵀ b)ᵀ = bᵀ a: nothing is moved."""
    a, b = two_leaves(*PRODUCTS[case], dtype=dtype)
    short = make_plan(optimise(a.builder.graph([(a.transpose() @ b).transpose()])), Limits())
    assert [step.op.name for step in short.steps if step.places] == ["matmul"]
    feeds = {i: np.random.default_rng(i).integers(-9, 9, shape).astype(dtype) for i, shape in enumerate(PRODUCTS[case])}
    (actual,) = open_executor("cpu").run(short, feeds)
    np.testing.assert_array_equal(actual, (feeds[0].swapaxes(-1, -2) @ feeds[1]).swapaxes(-1, -2))


@pytest.mark.parametrize("shapes", [((4, 3), (3, 5)), ((4, 3), (2, 3, 5)), ((2, 4, 3), (3, 5))])
def test_transposed_product_of_plain_operands_stays(shapes: tuple[Sequence[int], Sequence[int]]) -> None:
    """The rewritten product would have one more transpose."""
    graph = optimise(graph_of(lambda y: y.transpose(), *shapes))
    assert [node.op.name for node in graph.nodes].count("transpose") == 1


def test_two_transposed_operands_are_read_untransposed() -> None:
    a, b = two_leaves((3, 4), (5, 3))
    short = optimise(a.builder.graph([(a.transpose() @ b.transpose()).transpose()]))
    assert [node.op.name for node in short.nodes if not node.is_leaf] == ["matmul"]


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 0, 1), (0, 1, 2)])
def test_other_permutations_of_a_product_stay(axes: tuple[int, ...]) -> None:
    a, b = two_leaves((2, 4, 3), (2, 3, 5))
    short = optimise(a.builder.graph([(a @ b).transpose(axes=axes)]))
    (product,) = [node for node in short.nodes if node.op.name == "matmul"]
    assert product.type.shape == (2, 4, 5)


def test_product_with_other_readers_is_not_transposed() -> None:
    """The product is computed once."""
    a, b = two_leaves((4, 3), (3, 5))
    y = a @ b
    short = optimise(a.builder.graph([y, y.transpose()]))
    assert [node.op.name for node in short.nodes].count("matmul") == 1
