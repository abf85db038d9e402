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
    mode = call["rounding_mode"]
    a, b = call.together(["self", "other"], call.result.dtype)
    if mode is None:
        return a.div(b)
    if call.result.is_float:
        a, b = a.stop_gradient(), b.stop_gradient()
    return a.floor_div(b) if mode == "floor" else a.trunc_div(b)


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
