"""Shifts and logic of the bits of whole numbers, said in arithmetic."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.onnx.call import Call, Said
from gradserve_client.onnx.families.table import RULES

_INT64 = np.dtype(np.int64)


def _bits(call: Call) -> int:
    return call.dtype().itemsize * 8


@RULES("BitShift", since=11)
def bit_shift(call: Call) -> Said:
    """Products and quotients with powers of two, in int64: what is beyond the dtype goes, as bits do.

    By a negative number, or by all bits and more, nothing is left but the sign of what goes right.
    """
    x, by = (call.node(i).cast("int64") for i in (0, 1))
    width, zero = _bits(call), call.constant(0, _INT64)
    whole = by.greater_equal(zero).logical_and(by.less(call.constant(min(width, 63), _INT64)))
    factor = call.constant(2, _INT64).pow(whole.where(by, zero))
    if call.text("direction") == "LEFT":
        last = by.equal(call.constant(63, _INT64)).where(x.mul(call.constant(-(2**63), _INT64)), zero)
        return whole.where(x.mul(factor), last if width == 64 else zero).cast(call.dtype().name)
    sign = x.less(zero).where(call.constant(-1, _INT64), zero)
    return whole.where(x.floor_div(factor), sign).cast(call.dtype().name)


@RULES("BitwiseNot", since=18)
def bitwise_not(call: Call) -> Said:
    """−1 − x, and of unsigned numbers the largest less x."""
    largest = np.iinfo(call.dtype()).max if call.dtype().kind == "u" else -1
    return call.like(largest).sub(call.node())


@RULES("BitwiseAnd", "BitwiseOr", "BitwiseXor", since=18)
def bitwise(call: Call) -> Said:
    """Bit by bit: the remainders by powers of two say which are there."""
    width = _bits(call)
    if width > 32:
        raise Blocked(f"it is of {call.dtype()}, whose highest bits no remainder in int64 tells", "cast it to int32")
    places = np.int64(2) ** np.arange(width)
    one, other = (_told(call, call.node(i), places) for i in (0, 1))
    combined = {
        "BitwiseAnd": Node.logical_and,
        "BitwiseOr": Node.logical_or,
        "BitwiseXor": Node.not_equal,
    }[call.op](one, other)
    return combined.where(call.constant(places), call.constant(0, _INT64)).sum(axes=[-1]).cast(call.dtype().name)


def _told(call: Call, x: Node, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Node:
    """[…, bits]: whether each is there."""
    wide = x.cast("int64").unsqueeze(axes=[-1])
    return wide.mod(call.constant(2 * places)).greater_equal(call.constant(places))
