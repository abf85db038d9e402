"""Helpers of rules: uniform values, the source of an operand, and no more nodes than needed."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, Value, registry
from engine.ops.rewrites import broadcasted, reshaped, source, uniform_value


@pytest.fixture
def x() -> Value:
    return Builder(registry()).leaf(TensorType((2, 3), np.dtype("float32")), 0)


def test_uniform_value_through_broadcasts_and_reshapes(x: Value) -> None:
    number = x.builder.full((), 2.0, x.dtype)
    assert uniform_value(number) == 2.0
    assert uniform_value(number.broadcast_to(shape=(3, 2)).reshape(shape=(6,))) == 2.0
    assert uniform_value(x) is None
    assert uniform_value(number.neg()) is None


def test_uniform_value_is_rounded_to_the_dtype(x: Value) -> None:
    assert uniform_value(x.builder.full((2,), 0.1, np.dtype("float32"))) == float(np.float32(0.1))
    assert uniform_value(x.builder.full((2,), 0.1, np.dtype("float64"))) == 0.1


def test_uniform_value_gives_up_on_long_chains(x: Value) -> None:
    """A client may send a chain of any length, and each node would walk all of it."""
    number = x.builder.full((1,), 2.0, x.dtype)
    for extent in range(2, 9):
        number = number.reshape(shape=(1,) * extent)
    assert uniform_value(number) is None


def test_source(x: Value) -> None:
    actual = source(x.sin(), "sin")
    assert actual is not None
    assert actual.index == x.index
    assert source(x.sin(), "cos") is None
    assert source(x, "sin") is None


def test_unchanged_shape_adds_no_node(x: Value) -> None:
    before = len(x.builder.nodes)
    assert reshaped(x, (2, 3)).index == x.index
    assert broadcasted(x, (2, 3)).index == x.index
    assert len(x.builder.nodes) == before


def test_repeated_reshapes_and_broadcasts_are_merged(x: Value) -> None:
    flat = x.reshape(shape=(6,))
    merged = reshaped(flat, (3, 2))
    assert merged.node.operands == (x.index,)
    assert reshaped(flat, (2, 3)).index == x.index
    wide = x.broadcast_to(shape=(4, 2, 3))
    assert broadcasted(wide, (5, 4, 2, 3)).node.operands == (x.index,)
