"""Sums of tensors that are zero outside of spans of an axis: spans are concatenated, without adding zeros."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, open_executor, registry
from engine.autodiff.vjp import vjp
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from engine.ops import rewrites as spans
from tests.engine.printers import COMPILED

WIDE = TensorType((4, 6), np.dtype("float64"))
Formula = Callable[..., Value]


def column(x: Value, start: int, stop: int) -> Value:
    """Columns of x in their place, and zeros elsewhere."""
    return x.slice(starts=(0, start), stops=(4, stop)).pad(pad_width=(0, 0, start, 6 - stop))


def row(x: Value, start: int, stop: int) -> Value:
    return x.slice(starts=(start, 0), stops=(stop, 6)).pad(pad_width=(start, 4 - stop, 0, 0))


def optimised(formula: Formula) -> Counter[str]:
    """The ops left of a formula of two tensors, after a check that all passes keep its value."""
    builder = Builder(registry())
    graph = builder.graph([formula(builder.leaf(WIDE, 0), builder.leaf(WIDE, 1))])
    feeds = {0: np.arange(24.0).reshape(4, 6), 1: -(np.arange(24.0).reshape(4, 6) ** 2)}
    executor = open_executor("cpu")
    shorter = optimise(graph)
    expected, result = (executor.run(make_plan(g, Limits()), feeds)[0] for g in (graph, shorter))
    np.testing.assert_array_equal(result, expected)
    return Counter(node.op.name for node in shorter.nodes)


JOINED: dict[str, Formula] = {
    "side by side": lambda x, y: column(x, 0, 2) + column(y, 2, 6),
    "the later one first": lambda x, y: column(x, 3, 6) + column(y, 0, 3),
    "zeros at the ends": lambda x, y: column(x, 1, 3) + column(y, 3, 5),
    "zeros between": lambda x, y: column(x, 0, 1) + column(y, 4, 6),
    "three of them": lambda x, y: column(x, 0, 1) + column(y, 4, 6) + column(x, 1, 4),
    "beside a sum": lambda x, y: (x * y + column(x, 0, 2)) + column(y, 2, 6),
    "a sum on the right": lambda x, y: column(y, 2, 6) + (column(x, 0, 2) + x * y),
    "along the first axis": lambda x, y: row(x, 0, 3) + row(y, 3, 4),
}


@pytest.mark.parametrize("case", JOINED)
def test_disjoint_spans_are_concatenated(case: str) -> None:
    ops = optimised(JOINED[case])
    assert ops["pad"] == 0
    assert ops["cat"] == 1
    assert ops["add"] == ("sum" in case)


def test_spans_in_the_same_place_are_added() -> None:
    ops = optimised(lambda x, y: column(x, 0, 2) + column(y, 2, 6) + column(y, 0, 2))
    assert ops["cat"] == ops["add"] == 1
    assert ops["pad"] == 0


APART: dict[str, Formula] = {
    "overlapping": lambda x, y: column(x, 0, 3) + column(y, 2, 6),
    "along other axes": lambda x, y: column(x, 0, 3) + row(y, 2, 4),
    "around both axes": lambda x, y: (
        x.slice(starts=(0, 0), stops=(2, 3)).pad(pad_width=(0, 2, 0, 3))
        + y.slice(starts=(2, 3), stops=(4, 6)).pad(pad_width=(2, 0, 3, 0))
    ),
    "among other numbers": lambda x, y: (
        column(x, 0, 2) + y.slice(starts=(0, 2), stops=(4, 6)).pad(pad_width=(0, 0, 2, 0), fill=1.0)
    ),
}


@pytest.mark.parametrize("case", APART)
def test_other_sums_of_spans_stay(case: str) -> None:
    ops = optimised(APART[case])
    assert ops["pad"] == 2
    assert ops["cat"] == 0
    assert ops["add"] == 1


def test_gradient_of_column_reads_is_one_concatenation() -> None:
    """Otherwise, reading six columns would add up six matrices of zeros with one column in each."""

    def gradient(x: Value, _: Value) -> Value:
        columns = [x.slice(starts=(0, i), stops=(4, i + 1)) for i in range(6)]
        loss = sum((c.exp() * (i + 1.0) for i, c in enumerate(columns)), start=0.0)
        assert isinstance(loss, Value)
        (result,) = vjp(x.builder, [(loss, loss.full_like(1.0))], [x])
        assert result is not None
        return result

    ops = optimised(gradient)
    assert ops["pad"] == ops["add"] == 0
    assert ops["cat"] == 1


def test_concatenations_have_a_bounded_number_of_spans() -> None:
    """The planning time of a long sum grows linearly, not quadratically."""
    rows = 5 * spans.MOST_SPANS
    builder = Builder(registry())
    x = builder.leaf(TensorType((rows, 2), np.dtype("float64")), 0)
    parts = [x.slice(starts=(i, 0), stops=(i + 1, 2)).exp().pad(pad_width=(i, rows - i - 1, 0, 0)) for i in range(rows)]
    graph = builder.graph([sum(parts[1:], start=parts[0])])
    shorter = optimise(graph)
    operand_counts = [len(node.operands) for node in shorter.nodes if node.op.name == "cat"]
    assert max(operand_counts) <= spans.MOST_SPANS + 2
    assert len(operand_counts) <= 8
    fed = np.random.default_rng(0).standard_normal((rows, 2))
    actual = open_executor("cpu").run(make_plan(shorter, Limits()), {0: fed})[0]
    np.testing.assert_allclose(actual, np.exp(fed), 2 * np.finfo(float).eps if COMPILED else 0.0)


def test_deeply_nested_pads_are_one_span() -> None:
    """The pads are nested deeper than the recursion limit."""
    builder = Builder(registry())
    x = deep = builder.leaf(TensorType((2,), np.dtype("float64")), 0)
    for _ in range(2000):
        deep = deep.pad(pad_width=(1, 0))
    graph = optimise(builder.graph([deep + x.pad(pad_width=(0, 2000))]))
    actual = open_executor("cpu").run(make_plan(graph, Limits()), {0: np.array([1.0, 2.0])})[0]
    np.testing.assert_array_equal(actual[[0, 1, 2, -2, -1]], [1, 2, 0, 1, 2])
