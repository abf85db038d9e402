"""Bounds, and what is flat beyond them."""

from __future__ import annotations

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.table import RULES


@RULES("clamp")
def clamp(call: Call) -> Said:
    """Between two numbers; the gradient passes at both."""
    dtype = call.result.dtype
    least, most = call["min"], call["max"]
    x = call.converted("self", dtype)
    if call.result.is_float:
        return x.clamp(min=None if least is None else float(least), max=None if most is None else float(most))
    if least is not None:
        x = x.maximum(call.constant(least, dtype))
    return x if most is None else x.minimum(call.constant(most, dtype))


@RULES("clamp_min", "clamp_max")
def clamp_one(call: Call) -> Said:
    """One of both."""
    name = call.op.removeprefix("clamp_")
    x = call.converted("self", call.result.dtype)
    if call.result.is_float:
        bound = float(call[name])
        return x.clamp(min=bound) if name == "min" else x.clamp(max=bound)
    whole = call.constant(call[name], call.result.dtype)
    return x.maximum(whole) if name == "min" else x.minimum(whole)


@RULES("clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor")
def clamp_tensors(call: Call) -> Said:
    """Between tensors: where one of both is equal, the gradient is that of the operand."""
    dtype = call.result.dtype
    x = call.converted("self", dtype)
    for name in ("min", "max"):
        if call.has(name):
            bound = call.converted(name, dtype)
            beyond = x.less(bound) if name == "min" else x.greater(bound)
            x = beyond.logical_or(bound.not_equal(bound)).where(bound, x)
    return x


@RULES("hardtanh")
def hardtanh(call: Call) -> Said:
    """Between two numbers; the gradient stops at both."""
    dtype = call.result.dtype
    least, most = (call.constant(call[name], dtype) for name in ("min_val", "max_val"))
    return _flat(call.node(), least, most)


def _flat(x: Node, least: Node, most: Node) -> Node:
    return x.less_equal(least).where(least, x.greater_equal(most).where(most, x))
