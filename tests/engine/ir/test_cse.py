"""Common subexpressions: the same op on the same operands with the same attributes is one node, and nothing else is."""

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


def are_one(first: Value, second: Value) -> bool:
    a, b = cse(first.builder.graph([first, second])).outputs
    return a == b


def test_what_is_said_twice_is_one_node(xy: tuple[Value, Value]) -> None:
    x, y = xy
    assert are_one((x * y).sin(), (x * y).sin())
    graph = cse(x.builder.graph([(x * y).sin(), (x * y).sin()]))
    assert [node.op.name for node in graph.nodes] == ["input", "input", "mul", "sin"]


def test_operands_may_be_swapped_where_that_changes_no_bit(xy: tuple[Value, Value]) -> None:
    x, y = xy
    assert are_one(x * y, y * x)
    assert are_one(x.maximum(y), y.maximum(x)) == registry().ops["maximum"].commutative
    assert not are_one(x - y, y - x)
    assert not are_one(x / y, y / x)


SWAPPED = {"add": True, "mul": True, "equal": True, "not_equal": True, "logical_and": True, "logical_or": True,
           "sub": False, "div": False, "less": False, "atan2": False, "pow": False}  # fmt: skip


@pytest.mark.parametrize("op", SWAPPED)
def test_which_operands_may_be_swapped(xy: tuple[Value, Value], op: str) -> None:
    x, y = xy
    assert are_one(getattr(x, op)(y), getattr(y, op)(x)) == SWAPPED[op]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"axes": (0,), "keepdims": False}, {"axes": (1,), "keepdims": False}),
        ({"axes": (0,), "keepdims": False}, {"axes": (0,), "keepdims": True}),
    ],
)
def test_attributes_tell_nodes_apart(xy: tuple[Value, Value], one: dict[str, object], other: dict[str, object]) -> None:
    x, _ = xy
    assert are_one(x.sum(**one), x.sum(**one))
    assert not are_one(x.sum(**one), x.sum(**other))


def test_numbers_are_told_apart_as_their_dtype_does(xy: tuple[Value, Value]) -> None:
    x, _ = xy
    assert not are_one(x.add_scalar(scalar=0.0), x.add_scalar(scalar=-0.0))
    assert are_one(x.add_scalar(scalar=float("nan")), x.add_scalar(scalar=float("nan")))


def test_leaves_are_never_one() -> None:
    """Two feeds may have the same type, and not the same numbers."""
    builder = Builder(registry())
    assert not are_one(builder.leaf(F, 0), builder.leaf(F, 1))


def test_the_time_is_looked_at() -> None:
    assert_stops(lambda graph, deadline: cse(graph, Allowance(deadline=deadline)))
