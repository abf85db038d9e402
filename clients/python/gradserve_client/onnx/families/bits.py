"""Shifts and bitwise logic of integers, expressed in arithmetic."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.table import RULES

_INT64 = np.dtype(np.int64)


def _bits(call: Call) -> int:
    return call.dtype().itemsize * 8


@RULES("BitShift", since=11)
def bit_shift(call: Call) -> RuleResult:
    """Multiply or divide by powers of two in int64. The final cast drops the bits beyond the dtype.

    A shift by a negative number, or by at least the width, leaves 0, or the sign in a shift to the right.
    """
    x, count = (call.node(i).cast("int64") for i in (0, 1))
    width, zero = _bits(call), call.constant(0, _INT64)
    in_range = count.greater_equal(zero).logical_and(count.less(call.constant(min(width, 63), _INT64)))
    factor = call.constant(2, _INT64).pow(in_range.where(count, zero))
    if call.text("direction") == "LEFT":
        shifted_63 = count.equal(call.constant(63, _INT64)).where(x.mul(call.constant(-(2**63), _INT64)), zero)
        return in_range.where(x.mul(factor), shifted_63 if width == 64 else zero).cast(call.dtype().name)
    sign = x.less(zero).where(call.constant(-1, _INT64), zero)
    return in_range.where(x.floor_div(factor), sign).cast(call.dtype().name)


@RULES("BitwiseNot", since=18)
def bitwise_not(call: Call) -> RuleResult:
    """Compute −1 − x, or for unsigned integers the largest value minus x."""
    largest = np.iinfo(call.dtype()).max if call.dtype().kind == "u" else -1
    return call.like(largest).sub(call.node())


@RULES("BitwiseAnd", "BitwiseOr", "BitwiseXor", since=18)
def bitwise(call: Call) -> RuleResult:
    """Combine bit by bit. Remainders by powers of two extract the bits."""
    width = _bits(call)
    if width > 32:
        raise Blocked(f"its dtype is {call.dtype()}, but only up to 32 bits are supported", "cast it to int32")
    powers = np.int64(2) ** np.arange(width)
    left, right = (_bits_of(call, call.node(i), powers) for i in (0, 1))
    combined = {
        "BitwiseAnd": Node.logical_and,
        "BitwiseOr": Node.logical_or,
        "BitwiseXor": Node.not_equal,
    }[call.op](left, right)
    return combined.where(call.constant(powers), call.constant(0, _INT64)).sum(axes=[-1]).cast(call.dtype().name)


def _bits_of(call: Call, x: Node, powers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Node:
    """Return [..., bits]: whether each bit is set."""
    wide = x.cast("int64").unsqueeze(axes=[-1])
    return wide.mod(call.constant(2 * powers)).greater_equal(call.constant(powers))
