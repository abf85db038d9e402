"""Common subexpressions: nodes with the same op, operands and attributes are merged, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, Value, registry
from engine.ir.passes import Allowance, cse
from tests.engine.ir.deadlines import assert_stops

F = TensorType((2, 3), np.dtype("float64"))


@pytest.fixture
def xy() -> tuple[Value, Value]:
    builder = Builder(registry())
    return builder.leaf(F, 0), builder.leaf(F, 1)


def are_merged(first: Value, second: Value) -> bool:
    a, b = cse(first.builder.graph([first, second])).outputs
    return a == b


def test_equal_nodes_are_merged(xy: tuple[Value, Value]) -> None:
    x, y = xy
    assert are_merged((x * y).sin(), (x * y).sin())
    graph = cse(x.builder.graph([(x * y).sin(), (x * y).sin()]))
    assert [node.op.name for node in graph.nodes] == ["input", "input", "mul", "sin"]


def test_operands_may_be_swapped_if_no_bit_changes(xy: tuple[Value, Value]) -> None:
    x, y = xy
    assert are_merged(x * y, y * x)
    assert are_merged(x.maximum(y), y.maximum(x)) == registry().ops["maximum"].commutative
    assert not are_merged(x - y, y - x)
    assert not are_merged(x / y, y / x)


SWAPPED = {"add": True, "mul": True, "equal": True, "not_equal": True, "logical_and": True, "logical_or": True,
           "sub": False, "div": False, "less": False, "atan2": False, "pow": False}  # fmt: skip


@pytest.mark.parametrize("op", SWAPPED)
def test_only_commutative_ops_are_swapped(xy: tuple[Value, Value], op: str) -> None:
    x, y = xy
    assert are_merged(getattr(x, op)(y), getattr(y, op)(x)) == SWAPPED[op]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"axes": (0,), "keepdims": False}, {"axes": (1,), "keepdims": False}),
        ({"axes": (0,), "keepdims": False}, {"axes": (0,), "keepdims": True}),
    ],
)
def test_nodes_with_different_attributes_are_not_merged(
    xy: tuple[Value, Value], one: dict[str, object], other: dict[str, object]
) -> None:
    x, _ = xy
    assert are_merged(x.sum(**one), x.sum(**one))
    assert not are_merged(x.sum(**one), x.sum(**other))


def test_attribute_numbers_are_compared_by_bits(xy: tuple[Value, Value]) -> None:
    x, _ = xy
    assert not are_merged(x.add_scalar(scalar=0.0), x.add_scalar(scalar=-0.0))
    assert are_merged(x.add_scalar(scalar=float("nan")), x.add_scalar(scalar=float("nan")))


def test_leaves_are_never_merged() -> None:
    """Two feeds may have the same type, and not the same numbers."""
    builder = Builder(registry())
    assert not are_merged(builder.leaf(F, 0), builder.leaf(F, 1))


def test_cse_checks_the_deadline() -> None:
    assert_stops(lambda graph, deadline: cse(graph, Allowance(deadline=deadline)))
