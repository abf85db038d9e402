"""Patterns that rules of simplification look at, and nodes that they write: nothing that changes nothing."""

from __future__ import annotations

from typing import Final

from engine.graph.ir import Value
from engine.graph.kinds.typed_number import typed_number
from engine.graph.tensor_type import Shape

# Runs of one kind have been merged, so that rules leave two or three in a row. A client's chain of them, read by many,
# is not followed to its end: that would take quadratic time.
_LOOKS_THROUGH: Final = 4


def fill_of(x: Value) -> float | None:
    """The number that x holds everywhere, where that is known; of complex numbers it is not said.

    Their products and sums with one have a second part, which has zeros with signs, and NaN beside infinities.
    """
    if x.type.is_complex:
        return None
    for _ in range(_LOOKS_THROUGH):
        if x.node.op.spreads:
            x = x.builder.value(x.node.operands[0])
    number = x.node.op.number_everywhere(x.node.attrs)
    # As the dtype holds it: 0.1 in float32 is not 0.1.
    return None if number is None else typed_number(x.dtype.type(number).item(), x.dtype)


def source(x: Value, op: str) -> Value | None:
    """The operand of x, where x is `op` of it."""
    return x.builder.value(x.node.operands[0]) if x.node.op.name == op else None


def reshaped(x: Value, shape: Shape) -> Value:
    """x in this shape, by one reshape or none."""
    x = source(x, "reshape") or x
    return x if x.shape == shape else x.reshape(shape=shape)


def broadcasted(x: Value, shape: Shape) -> Value:
    """x repeated to this shape, by one broadcast_to or none."""
    x = source(x, "broadcast_to") or x
    return x if x.shape == shape else x.broadcast_to(shape=shape)
