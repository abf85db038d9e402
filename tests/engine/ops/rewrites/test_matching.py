"""What rules look at: one number everywhere, and what made an operand; and that they write no more than is needed."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, TensorType, Value, registry
from engine.ops.rewrites import broadcasted, reshaped, source, uniform_value


@pytest.fixture
def x() -> Value:
    return Builder(registry()).leaf(TensorType((2, 3), np.dtype("float32")), 0)


def test_a_number_is_seen_through_what_spreads_it(x: Value) -> None:
    number = x.builder.full((), 2.0, x.dtype)
    assert uniform_value(number) == 2.0
    assert uniform_value(number.broadcast_to(shape=(3, 2)).reshape(shape=(6,))) == 2.0
    assert uniform_value(x) is None
    assert uniform_value(number.neg()) is None


def test_it_is_the_number_that_the_dtype_holds(x: Value) -> None:
    assert uniform_value(x.builder.full((2,), 0.1, np.dtype("float32"))) == float(np.float32(0.1))
    assert uniform_value(x.builder.full((2,), 0.1, np.dtype("float64"))) == 0.1


def test_a_long_way_to_it_is_not_gone(x: Value) -> None:
    """A client may write any number of them: what is looked at in front of each node would be all of them."""
    number = x.builder.full((1,), 2.0, x.dtype)
    for extent in range(2, 9):
        number = number.reshape(shape=(1,) * extent)
    assert uniform_value(number) is None


def test_the_operand_of_an_op(x: Value) -> None:
    found = source(x.sin(), "sin")
    assert found is not None
    assert found.index == x.index
    assert source(x.sin(), "cos") is None
    assert source(x, "sin") is None


def test_nothing_is_written_that_changes_nothing(x: Value) -> None:
    before = len(x.builder.nodes)
    assert reshaped(x, (2, 3)).index == x.index
    assert broadcasted(x, (2, 3)).index == x.index
    assert len(x.builder.nodes) == before


def test_two_of_a_kind_become_one(x: Value) -> None:
    flat = x.reshape(shape=(6,))
    again = reshaped(flat, (3, 2))
    assert again.node.operands == (x.index,)
    assert reshaped(flat, (2, 3)).index == x.index
    wide = x.broadcast_to(shape=(4, 2, 3))
    assert broadcasted(wide, (5, 4, 2, 3)).node.operands == (x.index,)
