"""Division, logic of bits and shifts of whole numbers, said in arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.random_bits import drawn_of, marked
from gradserve_client.jax.families.table import RULES

_INT64 = np.dtype(np.int64)


def _constant(node: Node, value: Any, dtype: Any) -> Node:
    return node.graph.constant(np.asarray(value, dtype))


def quotient(call: Call) -> Node:
    """a / b towards zero, of whole numbers; by 0 all bits are 1."""
    a, b = call.nodes
    made = a.trunc_div(b)
    if not _may_be_zero(call):
        return made
    nothing = np.iinfo(call.dtype()).max if call.dtype().kind == "u" else -1
    return b.equal(call.like(0)).where(call.like(nothing), made)


def remainder(call: Call) -> Node:
    """What is left of a by b, with the sign of a; of a whole number by 0, that number."""
    a, b = call.nodes
    made = a.rem(b)
    return made if call.is_float() or not _may_be_zero(call) else b.equal(call.like(0)).where(a, made)


def _may_be_zero(call: Call) -> bool:
    return not call.is_constant(1) or not bool(np.all(call.known(1)))


def _width(call: Call) -> int:
    return call.dtype().itemsize * 8


@RULES("not")
def not_(call: Call) -> Said:
    """`logical_not`; of whole numbers −1 − x, and of unsigned ones the largest less x."""
    if call.dtype().kind == "b":
        return call.node().logical_not()
    return call.like(np.iinfo(call.dtype()).max if call.dtype().kind == "u" else -1).sub(call.node())


def _logic(op: str) -> Any:
    def say(call: Call) -> Said:
        if call.dtype().kind == "b":
            made: Node = call.graph.op(op, *call.nodes)
            return made
        drawn = drawn_of(call.operands[0]) if call.op == "or" and call.is_constant(1) else None
        number = drawn.with_exponent(call.known(1)) if drawn is not None else None
        if number is not None:
            return marked(call, number) if _width(call) > 32 else marked(call, number, _bitwise(call, op))
        return _bitwise(call, op)

    say.__doc__ = f"`{op}`; of whole numbers bit by bit, up to 32 of them."
    return say


for _name, _op in {"and": "logical_and", "or": "logical_or", "xor": "not_equal"}.items():
    RULES.put(_name, _logic(_op))


def _bitwise(call: Call, op: str) -> Node:
    """The remainders by powers of two say which bits are there."""
    width = _width(call)
    low = _low_mask(call) if op == "logical_and" else None
    if low is not None:
        other, ones = low
        return call.node(other).mod(call.like(ones))
    if width > 32:
        raise Blocked(f"it is of {call.dtype()}, whose highest bits no remainder in int64 tells", "cast it to int32")
    places = np.int64(2) ** np.arange(width)
    one, other_bits = (_bits(call, i, places) for i in (0, 1))
    combined: Node = call.graph.op(op, one, other_bits)
    return combined.where(call.constant(places), call.constant(0, _INT64)).sum(axes=[-1]).cast(call.dtype().name)


def _low_mask(call: Call) -> tuple[int, int] | None:
    """The operand that keeps its lowest bits alone, and 2 to the power of how many."""
    for i in (0, 1):
        if call.is_constant(i) and not call.shape(i):
            ones = int(call.known(i)) + 1
            if 1 < ones <= np.iinfo(call.dtype()).max and ones & (ones - 1) == 0:
                return 1 - i, ones
    return None


def _bits(call: Call, i: int, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Node:
    """[…, bits]: whether each is there."""
    wide = call.node(i).cast("int64").unsqueeze(axes=[call.rank(i)])
    return wide.mod(call.constant(2 * places)).greater_equal(call.constant(places))


@RULES("shift_left", "shift_right_arithmetic")
def shift(call: Call) -> Said:
    """Products and quotients with powers of two. By all bits and more, nothing is left but the sign of what goes right.

    Raises Blocked for int64.
    """
    _require_narrow(call)
    x, by = (call.node(i).cast("int64") for i in (0, 1))
    return _shifted(call, x, by)


@RULES("shift_right_logical")
def shift_right_logical(call: Call) -> Said:
    """Quotients of what the bits are without a sign; of random bits, what `bitcast_convert_type` makes floats of."""
    drawn = drawn_of(call.operands[0])
    mantissa = drawn.shifted(call.known(1)) if drawn is not None and call.is_constant(1) else None
    if mantissa is not None and _width(call) > 32:
        return marked(call, mantissa)
    _require_narrow(call)
    x, by = (call.node(i).cast("int64") for i in (0, 1))
    made = _shifted(call, x.mod(call.constant(2 ** _width(call), _INT64)), by)
    return made if mantissa is None else marked(call, mantissa, made)


def _require_narrow(call: Call) -> None:
    if _width(call) > 32:
        raise Blocked(f"it shifts {call.dtype()}, whose bits go beyond int64", "cast it to int32")


def _shifted(call: Call, x: Node, by: Node) -> Node:
    """In int64, where 32 bits have room on both sides."""
    width, zero = _width(call), call.constant(0, _INT64)
    whole = by.greater_equal(zero).logical_and(by.less(call.constant(width, _INT64)))
    factor = call.constant(2, _INT64).pow(whole.where(by, zero))
    if call.op == "shift_left":
        return whole.where(x.mul(factor), zero).cast(call.dtype().name)
    sign = x.less(zero).where(call.constant(-1, _INT64), zero)
    return whole.where(x.floor_div(factor), sign).cast(call.dtype().name)


@RULES("population_count")
def population_count(call: Call) -> Said:
    """How many bits are there, of 32 at most."""
    if _width(call) > 32:
        raise Blocked(f"it is of {call.dtype()}, whose highest bits no remainder in int64 tells", "cast it to int32")
    return _bits(call, 0, np.int64(2) ** np.arange(_width(call))).sum(axes=[-1]).cast(call.dtype().name)
