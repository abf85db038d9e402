"""Integer division and bitwise logic."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Results, require
from gradserve_client.torch.families.helpers import common_dtype
from gradserve_client.torch.families.table import RULES


@RULES("div.Tensor_mode", "div.Scalar_mode")
def rounded_div(call: Call) -> Results:
    """Divide and round down or toward zero, which has the derivative 0."""
    mode = call["rounding_mode"]
    a, b = call.broadcast_nodes(["self", "other"], call.result.dtype)
    if mode is None:
        return a.div(b)
    if call.result.is_float:
        a, b = a.stop_gradient(), b.stop_gradient()
    return a.floor_div(b) if mode == "floor" else a.trunc_div(b)


_LOGIC = {"and": Node.logical_and, "or": Node.logical_or, "xor": Node.not_equal}


@RULES(*(f"bitwise_{name}.{kind}" for name in _LOGIC for kind in ("Tensor", "Scalar")))
def bitwise(call: Call) -> Results:
    """Write bitwise logic: for bools, a logical op; for integers, extract bits as remainders by powers of two."""
    dtype = common_dtype(call, ["self", "other"])
    op = _LOGIC[call.op.partition(".")[0].removeprefix("bitwise_")]
    a, b = call.broadcast_nodes(["self", "other"], dtype)
    if dtype == "bool":
        return op(a, b)
    width = np.iinfo(dtype).bits
    require(width <= 32, f"its dtype is {dtype}, but only up to 32 bits are supported", "cast it to int32")
    powers = np.int64(2) ** np.arange(width)
    bits = [_bits(call, each, powers) for each in (a, b)]
    terms = op(*bits).where(call.constant(powers, "int64"), call.constant(0, "int64"))
    return terms.sum(axes=[-1]).cast(dtype)


def _bits(call: Call, x: Node, powers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Node:
    """Return whether each bit is set, [..., bits]."""
    wide = x.cast("int64").unsqueeze(axes=[-1])
    return wide.mod(call.constant(2 * powers, "int64")).greater_equal(call.constant(powers, "int64"))


@RULES("bitwise_not")
def bitwise_not(call: Call) -> Results:
    """Compute −1 − x; for unsigned integers, the maximum minus x; for bools, `logical_not`."""
    dtype = call.dtype()
    if dtype == "bool":
        return call.node().logical_not()
    all_ones = int(np.iinfo(dtype).max) if dtype.startswith("uint") else -1
    return call.constant(all_ones, dtype).sub(call.node())
