"""Integer division, bitwise logic and shifts, expressed by arithmetic: there are no ops for bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.random_bits import random_bits_of, with_marker
from gradserve_client.jax.families.table import RULES

_INT64 = np.dtype(np.int64)


def _constant(node: Node, value: Any, dtype: Any) -> Node:
    return node.graph.constant(np.asarray(value, dtype))


def quotient(call: Call) -> Node:
    """Divide integers, rounding toward zero. Division by 0 gives all ones, as in XLA."""
    a, b = call.nodes
    result = a.trunc_div(b)
    if not _may_be_zero(call):
        return result
    all_ones = np.iinfo(call.dtype()).max if call.dtype().kind == "u" else -1
    return b.equal(call.like(0)).where(call.like(all_ones), result)


def remainder(call: Call) -> Node:
    """Return the remainder of a by b, with the sign of a. For integers, the remainder by 0 is a, as in XLA."""
    a, b = call.nodes
    result = a.rem(b)
    return result if call.is_float() or not _may_be_zero(call) else b.equal(call.like(0)).where(a, result)


def _may_be_zero(call: Call) -> bool:
    return not call.is_constant(1) or not bool(np.all(call.constant_value(1)))


def _width(call: Call) -> int:
    return call.dtype().itemsize * 8


@RULES("not")
def not_(call: Call) -> Results:
    """`logical_not`; for signed integers, −1 − x; for unsigned ones, the maximum minus x."""
    if call.dtype().kind == "b":
        return call.node().logical_not()
    return call.like(np.iinfo(call.dtype()).max if call.dtype().kind == "u" else -1).sub(call.node())


def _logic(op: str) -> Any:
    def rule(call: Call) -> Results:
        if call.dtype().kind == "b":
            node: Node = call.graph.op(op, *call.nodes)
            return node
        bits = random_bits_of(call.operands[0]) if call.op == "or" and call.is_constant(1) else None
        marker = bits.with_exponent(call.constant_value(1)) if bits is not None else None
        if marker is not None:
            return with_marker(call, marker) if _width(call) > 32 else with_marker(call, marker, _bitwise(call, op))
        return _bitwise(call, op)

    rule.__doc__ = f"`{op}`; for integers of up to 32 bits, bit by bit."
    return rule


for _name, _op in {"and": "logical_and", "or": "logical_or", "xor": "not_equal"}.items():
    RULES.put(_name, _logic(_op))


def _bitwise(call: Call, op: str) -> Node:
    """Extract the bits as remainders by powers of two, combine them, and add them up again."""
    width = _width(call)
    low = _low_mask(call) if op == "logical_and" else None
    if low is not None:
        masked, power = low
        return call.node(masked).mod(call.like(power))
    if width > 32:
        raise Blocked(f"its dtype is {call.dtype()}, but only up to 32 bits are supported", "cast it to int32")
    powers = np.int64(2) ** np.arange(width)
    left, right = (_bits(call, i, powers) for i in (0, 1))
    combined: Node = call.graph.op(op, left, right)
    return combined.where(call.constant(powers), call.constant(0, _INT64)).sum(axes=[-1]).cast(call.dtype().name)


def _low_mask(call: Call) -> tuple[int, int] | None:
    """Return the operand masked to its n lowest bits by the other one, a constant 2ⁿ − 1, and 2ⁿ. Else return None."""
    for i in (0, 1):
        if call.is_constant(i) and not call.shape(i):
            power = int(call.constant_value(i)) + 1
            if 1 < power <= np.iinfo(call.dtype()).max and power & (power - 1) == 0:
                return 1 - i, power
    return None


def _bits(call: Call, i: int, powers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Node:
    """Return whether each bit is set, [..., bits]."""
    wide = call.node(i).cast("int64").unsqueeze(axes=[call.rank(i)])
    return wide.mod(call.constant(2 * powers)).greater_equal(call.constant(powers))


@RULES("shift_left", "shift_right_arithmetic")
def shift(call: Call) -> Results:
    """Products and quotients with powers of two, up to 32 bits. A shift by all bits or more leaves only the sign.

    Raises Blocked for 64-bit integers.
    """
    _require_narrow(call)
    x, by = (call.node(i).cast("int64") for i in (0, 1))
    return _shift(call, x, by)


@RULES("shift_right_logical")
def shift_right_logical(call: Call) -> Results:
    """Quotients of the bits read as an unsigned integer. Random bits become floats in `bitcast_convert_type`."""
    bits = random_bits_of(call.operands[0])
    mantissa = bits.shifted(call.constant_value(1)) if bits is not None and call.is_constant(1) else None
    if mantissa is not None and _width(call) > 32:
        return with_marker(call, mantissa)
    _require_narrow(call)
    x, by = (call.node(i).cast("int64") for i in (0, 1))
    result = _shift(call, x.mod(call.constant(2 ** _width(call), _INT64)), by)
    return result if mantissa is None else with_marker(call, mantissa, result)


def _require_narrow(call: Call) -> None:
    if _width(call) > 32:
        raise Blocked(f"it shifts {call.dtype()}, which can overflow int64", "cast it to int32")


def _shift(call: Call, x: Node, by: Node) -> Node:
    """Shift in int64, which cannot overflow for 32-bit operands."""
    width, zero = _width(call), call.constant(0, _INT64)
    in_range = by.greater_equal(zero).logical_and(by.less(call.constant(width, _INT64)))
    factor = call.constant(2, _INT64).pow(in_range.where(by, zero))
    if call.op == "shift_left":
        return in_range.where(x.mul(factor), zero).cast(call.dtype().name)
    sign = x.less(zero).where(call.constant(-1, _INT64), zero)
    return in_range.where(x.floor_div(factor), sign).cast(call.dtype().name)


@RULES("population_count")
def population_count(call: Call) -> Results:
    """The number of bits that are set, of up to 32."""
    if _width(call) > 32:
        raise Blocked(f"its dtype is {call.dtype()}, but only up to 32 bits are supported", "cast it to int32")
    return _bits(call, 0, np.int64(2) ** np.arange(_width(call))).sum(axes=[-1]).cast(call.dtype().name)
