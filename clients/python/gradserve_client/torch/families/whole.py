"""Quotients and bits of whole numbers."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Said, blocked_unless
from gradserve_client.torch.families.helpers import common_dtype
from gradserve_client.torch.families.table import RULES


@RULES("div.Tensor_mode", "div.Scalar_mode")
def divided(call: Call) -> Said:
    """Rounded down, or towards zero: what has no slope."""
    mode, dtype = call["rounding_mode"], call.result.dtype
    a, b = call.together(["self", "other"], dtype)
    if mode is None:
        return a.div(b)
    if call.result.is_float:
        return _of_floats(call, a.stop_gradient(), b.stop_gradient(), mode)
    zero = call.constant(0, dtype)
    if mode == "floor":
        rest = a.mod(b)
    else:
        rest = a.abs().mod(b.abs())
        rest = a.less(zero).where(rest.neg(), rest)
    return exact_quotient(a.sub(rest), b, dtype)


def _of_floats(call: Call, a: Node, b: Node, mode: str) -> Node:
    quotient, zero = a.div(b), call.constant(0, call.result.dtype)
    if mode == "trunc":
        return quotient.less(zero).where(quotient.ceil(), quotient.floor())
    # what the rounded quotient says of a remainder that is almost the divisor is one too many
    whole = a.sub(a.mod(b)).div(b).round()
    return b.equal(zero).logical_or(whole.not_equal(whole)).where(quotient, whole)


def exact_quotient(whole: Node, by: Node, dtype: str) -> Node:
    """whole / by, which is a whole number: exact in float64, but for int64 beyond 2⁵³, which is divided once more."""
    quotient = whole.div(by).round().cast(dtype)
    if dtype != "int64":
        return quotient
    return quotient.add(whole.sub(quotient.mul(by)).div(by).round().cast(dtype))


_LOGIC = {"and": Node.logical_and, "or": Node.logical_or, "xor": Node.not_equal}


@RULES(*(f"bitwise_{name}.{kind}" for name in _LOGIC for kind in ("Tensor", "Scalar")))
def bitwise(call: Call) -> Said:
    """Of bools, logic. Of whole numbers, bit by bit: the remainders by powers of two say which are there."""
    dtype = common_dtype(call, ["self", "other"])
    op = _LOGIC[call.op.partition(".")[0].removeprefix("bitwise_")]
    a, b = call.together(["self", "other"], dtype)
    if dtype == "bool":
        return op(a, b)
    width = np.iinfo(dtype).bits
    blocked_unless(width <= 32, f"it is of {dtype}, whose highest bits no remainder tells", "cast it to int32")
    places = np.int64(2) ** np.arange(width)
    told = [_told(call, each, places) for each in (a, b)]
    there = op(*told).where(call.constant(places, "int64"), call.constant(0, "int64"))
    return there.sum(axes=[-1]).cast(dtype)


def _told(call: Call, x: Node, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Node:
    """[…, bits]: whether each is there."""
    wide = x.cast("int64").unsqueeze(axes=[-1])
    return wide.mod(call.constant(2 * places, "int64")).greater_equal(call.constant(places, "int64"))


@RULES("bitwise_not")
def bitwise_not(call: Call) -> Said:
    """−1 − x, of unsigned numbers the largest less x, of bools what they are not."""
    dtype = call.dtype()
    if dtype == "bool":
        return call.node().logical_not()
    largest = int(np.iinfo(dtype).max) if dtype.startswith("uint") else -1
    return call.constant(largest, dtype).sub(call.node())
