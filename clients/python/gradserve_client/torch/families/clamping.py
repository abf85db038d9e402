"""Clamping to bounds."""

from __future__ import annotations

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.table import RULES


@RULES("clamp")
def clamp(call: Call) -> Results:
    """Clamp to numbers. The gradient passes at the bounds."""
    dtype = call.result.dtype
    lower, upper = call["min"], call["max"]
    x = call.node_as("self", dtype)
    if call.result.is_float:
        return x.clamp(min=None if lower is None else float(lower), max=None if upper is None else float(upper))
    if lower is not None:
        x = x.maximum(call.constant(lower, dtype))
    return x if upper is None else x.minimum(call.constant(upper, dtype))


@RULES("clamp_min", "clamp_max")
def clamp_one(call: Call) -> Results:
    """Clamp to one bound, a number."""
    name = call.op.removeprefix("clamp_")
    x = call.node_as("self", call.result.dtype)
    if call.result.is_float:
        bound = float(call[name])
        return x.clamp(min=bound) if name == "min" else x.clamp(max=bound)
    integer_bound = call.constant(call[name], call.result.dtype)
    return x.maximum(integer_bound) if name == "min" else x.minimum(integer_bound)


@RULES("clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor")
def clamp_tensors(call: Call) -> Results:
    """Clamp to tensors. Where the operand equals a bound, the operand has the gradient."""
    dtype = call.result.dtype
    x = call.node_as("self", dtype)
    for name in ("min", "max"):
        if call.has(name):
            bound = call.node_as(name, dtype)
            out_of_range = x.less(bound) if name == "min" else x.greater(bound)
            x = out_of_range.logical_or(bound.not_equal(bound)).where(bound, x)
    return x


@RULES("hardtanh")
def hardtanh(call: Call) -> Results:
    """Clamp to numbers. The gradient at the bounds is 0."""
    dtype = call.result.dtype
    lower, upper = (call.constant(call[name], dtype) for name in ("min_val", "max_val"))
    return _clamp_flat(call.node(), lower, upper)


def _clamp_flat(x: Node, lower: Node, upper: Node) -> Node:
    return x.less_equal(lower).where(lower, x.greater_equal(upper).where(upper, x))
