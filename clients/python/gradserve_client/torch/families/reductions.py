"""Sums and the like over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.torch.call import Call, Said, blocked_unless
from gradserve_client.torch.families.table import RULES


@RULES("sum", "sum.dim_IntList", "mean", "mean.dim", "prod", "prod.dim_int")
def total(call: Call) -> Said:
    """Over axes, in the dtype of the result."""
    op = call.op.partition(".")[0]
    node = call.converted("self", call.result.dtype)
    return call.graph.op(op, node, **_over(call)) if call.rank() else node


def _over(call: Call) -> dict[str, Any]:
    return {"axes": call.axes(), "keepdims": bool(call.arguments.get("keepdim"))}


@RULES("amax", "amin")
def extreme(call: Call) -> Said:
    """Ties share the gradient."""
    return call.graph.op(call.op.removeprefix("a"), call.node(), **_over(call)) if call.rank() else call.value()


@RULES("max", "min")
def extreme_of_all(call: Call) -> Said:
    """Ties share the gradient."""
    return call.graph.op(call.op, call.node())


@RULES("any", "any.dim", "any.dims", "all", "all.dim", "all.dims")
def some(call: Call) -> Said:
    """Whether some, or all, are not 0."""
    node = call.graph.op(call.op.partition(".")[0], call.node(), **_over(call)) if call.rank() else call.node()
    if not call.rank():
        node = node.cast("bool")
    return node if call.result.dtype == "bool" else node.cast(call.result.dtype)


@RULES("var.correction", "var.dim", "std.correction", "std.dim")
def var(call: Call) -> Said:
    """With what the count is less by; a standard deviation of 0 has the gradient 0."""
    axes = call.axes()
    keep = bool(call["keepdim"])
    count = size([call.shape()[axis] for axis in axes])
    off = _correction(call)
    if off == int(off):
        node = call.node().var(axes=axes, keepdims=keep, ddof=int(off))
    else:
        node = call.node().var(axes=axes, keepdims=keep).mul_scalar(count / (count - off))
    return node if call.op.startswith("var") else rooted(call, node)


def _correction(call: Call) -> float:
    if "unbiased" in call.arguments:
        return float(call["unbiased"])
    return 1.0 if call["correction"] is None else float(call["correction"])


def rooted(call: Call, square: Node) -> Node:
    """The square root, whose gradient is 0 where it is 0."""
    zero, one = (call.constant(each, call.result.dtype) for each in (0, 1))
    at_zero = square.equal(zero)
    return at_zero.where(zero, at_zero.where(one, square).sqrt())


@RULES("_softmax", "_log_softmax", "softmax.int", "log_softmax.int", "_safe_softmax")
def softmax(call: Call) -> Said:
    """Along an axis, in the dtype of the result."""
    node = call.converted("self", call.result.dtype)
    if not call.rank():
        node = node.reshape(shape=[1])
    op = "log_softmax" if "log" in call.op else "softmax"
    axis = call.axis()
    if call.op == "_safe_softmax":
        return _safe(call, node, axis)
    made: Node = call.graph.op(op, node, axis=axis)
    return made if call.rank() else made.reshape(shape=[])


def _safe(call: Call, node: Node, axis: int) -> Node:
    """Where all are −∞, 0: so that no gradient is NaN."""
    some = node.greater(call.constant(-np.inf, call.result.dtype)).any(axes=[axis], keepdims=True)
    zero = call.constant(0, call.result.dtype)
    return some.where(some.where(node, zero).softmax(axis=axis), zero)


@RULES("logsumexp")
def logsumexp(call: Call) -> Said:
    """log Σ exp x."""
    return call.converted("self", call.result.dtype).logsumexp(**_over(call))


@RULES("linalg_vector_norm")
def vector_norm(call: Call) -> Said:
    """The 1-, 2- and ∞-norm, and those of other orders; at 0 the gradient of the first two is 0."""
    order, over = float(call["ord"]), _over(call)
    x = call.converted("self", call.result.dtype)
    if not call.rank():
        blocked_unless(order != 0, "it counts what is not 0, of a number")
        return x.abs()
    if order == 2:
        return x.norm(**over)
    if order == 1:
        return x.abs().sum(**over)
    if np.isinf(order):
        return call.graph.op("max" if order > 0 else "min", x.abs(), **over)
    blocked_unless(order >= 1, f"it is of order {order}, which is no norm", "write its sum of powers")
    return _powered(call, x, order, over)


def _powered(call: Call, x: Node, order: float, over: dict[str, Any]) -> Node:
    total: Node = call.graph.op("sum", x.abs().pow_scalar(order), **over)
    zero, one = (call.constant(each, call.result.dtype) for each in (0, 1))
    at_zero = total.equal(zero)
    return at_zero.where(zero, at_zero.where(one, total).pow_scalar(1 / order))
