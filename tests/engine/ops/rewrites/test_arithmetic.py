"""Arithmetic rules: the ops that remain, the expressions that must stay, and equal values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, open_executor, registry
from engine.compiler.plan import make_plan
from engine.ir.passes import simplify
from engine.ir.tensor_type import Shape

EXECUTOR = open_executor("cpu")
Formula = Callable[[Value, Value], Value]


def leaves(dtype: str = "float64", shape: Shape = (3,)) -> tuple[Value, Value]:
    builder = Builder(registry())
    return builder.leaf(TensorType(shape, np.dtype(dtype)), 0), builder.leaf(TensorType(shape, np.dtype(dtype)), 1)


def number(x: Value, fill: float, shape: Shape = ()) -> Value:
    return x.builder.full(shape, fill, x.dtype)


def remaining_ops(formula: Formula, dtype: str = "float64") -> list[str]:
    """The ops that the result depends on after simplifying, except leaves."""
    x, y = leaves(dtype)
    graph = simplify(x.builder.graph([formula(x, y)]))
    needed, todo = set[int](), list(graph.outputs)
    while todo:
        i = todo.pop()
        if i not in needed:
            needed.add(i)
            todo += graph.nodes[i].operands
    return [graph.nodes[i].op.name for i in sorted(needed) if not graph.nodes[i].is_leaf]


SIMPLIFIED: dict[str, tuple[Formula, list[str]]] = {
    "x + 0": (lambda x, y: x + number(x, 0.0), []),
    "0 + x": (lambda x, y: number(x, 0.0) + x, []),
    "x - 0": (lambda x, y: x - number(x, 0.0), []),
    "0 - x": (lambda x, y: number(x, 0.0) - x, ["full", "sub"]),
    "x 1": (lambda x, y: x * number(x, 1.0), []),
    "1 x": (lambda x, y: number(x, 1.0) * x, []),
    "x / 1": (lambda x, y: x / number(x, 1.0), []),
    "1 / x": (lambda x, y: number(x, 1.0) / x, ["full", "div"]),
    "x + 0, by a scalar": (lambda x, y: x.add_scalar(scalar=0.0), []),
    "x / 1, by a scalar": (lambda x, y: x.div_scalar(scalar=1.0), []),
    "x / 2, by a scalar": (lambda x, y: x.div_scalar(scalar=2.0), ["div_scalar"]),
    "x - 0, by a scalar": (lambda x, y: x.sub_scalar(scalar=0.0), []),
    "x - 1, by a scalar": (lambda x, y: x.sub_scalar(scalar=1.0), ["sub_scalar"]),
    "x 3": (lambda x, y: x * number(x, 3.0), ["mul_scalar"]),
    "x (-1)": (lambda x, y: x * number(x, -1.0), ["neg"]),
    "x 0": (lambda x, y: x * number(x, 0.0), ["mul_scalar"]),
    "x inf": (lambda x, y: x * number(x, np.inf), ["full", "mul"]),
    "-(-x)": (lambda x, y: x.neg().neg(), []),
    "x + (-y)": (lambda x, y: x + (-y), ["sub"]),
    "(-x) + y": (lambda x, y: (-x) + y, ["sub"]),
    "(-x) y": (lambda x, y: (-x) * y, ["mul", "neg"]),
    "(x 2) 3": (lambda x, y: x.mul_scalar(scalar=2.0).mul_scalar(scalar=3.0), ["mul_scalar"]),
    "(x 2) 0.5": (lambda x, y: x.mul_scalar(scalar=2.0).mul_scalar(scalar=0.5), []),
    "(x 3) 2": (lambda x, y: x.mul_scalar(scalar=3.0).mul_scalar(scalar=2.0), ["mul_scalar", "mul_scalar"]),
    "-(x 3)": (lambda x, y: -x.mul_scalar(scalar=3.0), ["mul_scalar"]),
    "(-x) 3": (lambda x, y: (-x).mul_scalar(scalar=3.0), ["mul_scalar"]),
}


@pytest.mark.parametrize("case", SIMPLIFIED)
def test_remaining_ops(case: str) -> None:
    formula, ops = SIMPLIFIED[case]
    assert remaining_ops(formula) == ops


@pytest.mark.parametrize("case", SIMPLIFIED)
def test_simplified_value_is_unchanged(case: str) -> None:
    x, y = leaves(shape=(5,))
    graph = x.builder.graph([SIMPLIFIED[case][0](x, y)])
    feeds = {0: np.array([1.5, -0.3, np.inf, np.nan, 1e300]), 1: np.array([-2.0, 0.7, 1.0, 3.0, 1e-300])}
    (plain,), (short,) = (
        EXECUTOR.run(plan, {i: feeds[i] for i in plan.feeds})
        for plan in (make_plan(g, Limits()) for g in (graph, simplify(graph)))
    )
    np.testing.assert_array_equal(short, plain)


def test_negation_with_other_readers_stays() -> None:
    """Moving it would save nothing: the negative is computed anyway."""
    x, y = leaves()
    minus = -x
    graph = simplify(x.builder.graph([minus * y, minus]))
    assert [node.op.name for node in graph.nodes if not node.is_leaf] == ["neg", "mul"]


def test_negation_of_unsigned_integers_stays() -> None:
    assert remaining_ops(lambda x, y: x + (-y), "uint8") == ["neg", "add"]


def test_factors_beyond_the_dtype_are_not_merged() -> None:
    """1024 · 1024 is infinite in float16, and x / 1024 · 1024 · 1024 is not."""
    formula: Formula = lambda x, y: x.mul_scalar(scalar=1024.0).mul_scalar(scalar=1024.0)
    assert remaining_ops(formula, "float16") == ["mul_scalar", "mul_scalar"]
    assert remaining_ops(formula, "float32") == ["mul_scalar"]


def test_adding_a_wider_zero_keeps_the_result_shape() -> None:
    """x + 0 becomes a broadcast if the 0 is larger than x."""
    x, _ = leaves(shape=(1, 3))
    graph = simplify(x.builder.graph([x + number(x, 0.0, (2, 3))]))
    assert graph.nodes[graph.outputs[0]].op.name == "broadcast_to"
    assert graph.nodes[graph.outputs[0]].type.shape == (2, 3)
