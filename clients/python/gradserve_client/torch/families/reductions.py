"""Reductions over axes, softmax and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.torch.call import Call, Results, require
from gradserve_client.torch.families.table import RULES


@RULES("sum", "sum.dim_IntList", "mean", "mean.dim", "prod", "prod.dim_int")
def total(call: Call) -> Results:
    """Reduce over axes, in the dtype of the result."""
    op = call.op.partition(".")[0]
    node = call.node_as("self", call.result.dtype)
    return call.graph.op(op, node, **_axes_arguments(call)) if call.rank() else node


def _axes_arguments(call: Call) -> dict[str, Any]:
    return {"axes": call.axes(), "keepdims": bool(call.arguments.get("keepdim"))}


@RULES("amax", "amin")
def extreme(call: Call) -> Results:
    """Take the maximum or minimum over axes. Ties share the gradient."""
    return (
        call.graph.op(call.op.removeprefix("a"), call.node(), **_axes_arguments(call)) if call.rank() else call.value()
    )


@RULES("max", "min")
def extreme_of_all(call: Call) -> Results:
    """Take the maximum or minimum of all elements. Ties share the gradient."""
    return call.graph.op(call.op, call.node())


@RULES("any", "any.dim", "any.dims", "all", "all.dim", "all.dims")
def any_or_all(call: Call) -> Results:
    """Return whether any element, or all, are not 0."""
    node = (
        call.graph.op(call.op.partition(".")[0], call.node(), **_axes_arguments(call)) if call.rank() else call.node()
    )
    if not call.rank():
        node = node.cast("bool")
    return node if call.result.dtype == "bool" else node.cast(call.result.dtype)


@RULES("var.correction", "var.dim", "std.correction", "std.dim")
def var(call: Call) -> Results:
    """Compute variance or standard deviation, with PyTorch's correction. The gradient of a deviation of 0 is 0."""
    axes = call.axes()
    keepdims = bool(call["keepdim"])
    count = size([call.shape()[axis] for axis in axes])
    correction = _correction(call)
    if correction == int(correction):
        node = call.node().var(axes=axes, keepdims=keepdims, ddof=int(correction))
    else:
        node = call.node().var(axes=axes, keepdims=keepdims).mul_scalar(count / (count - correction))
    return node if call.op.startswith("var") else root(call, node)


def _correction(call: Call) -> float:
    if "unbiased" in call.arguments:
        return float(call["unbiased"])
    return 1.0 if call["correction"] is None else float(call["correction"])


def root(call: Call, square: Node) -> Node:
    """Take the square root, with gradient 0 instead of ∞ at 0."""
    # the derivative of the branch that is not selected must be finite, so it gets 1 in place of 0
    zero, one = (call.constant(each, call.result.dtype) for each in (0, 1))
    at_zero = square.equal(zero)
    return at_zero.where(zero, at_zero.where(one, square).sqrt())


@RULES("_softmax", "_log_softmax", "softmax.int", "log_softmax.int", "_safe_softmax")
def softmax(call: Call) -> Results:
    """Write `softmax` or `log_softmax` along an axis, in the dtype of the result."""
    node = call.node_as("self", call.result.dtype)
    if not call.rank():
        node = node.reshape(shape=[1])
    op = "log_softmax" if "log" in call.op else "softmax"
    axis = call.axis()
    if call.op == "_safe_softmax":
        return _safe_softmax(call, node, axis)
    result: Node = call.graph.op(op, node, axis=axis)
    return result if call.rank() else result.reshape(shape=[])


def _safe_softmax(call: Call, node: Node, axis: int) -> Node:
    """Write a softmax that is 0 where all entries are −∞, without NaN in its gradient."""
    has_finite = node.greater(call.constant(-np.inf, call.result.dtype)).any(axes=[axis], keepdims=True)
    zero = call.constant(0, call.result.dtype)
    return has_finite.where(has_finite.where(node, zero).softmax(axis=axis), zero)


@RULES("logsumexp")
def logsumexp(call: Call) -> Results:
    """Compute log Σ exp x."""
    return call.node_as("self", call.result.dtype).logsumexp(**_axes_arguments(call))


@RULES("linalg_vector_norm")
def vector_norm(call: Call) -> Results:
    """Compute a vector norm of order 1 or above, or ±∞. At 0, the gradient of the 1- and 2-norm is 0."""
    order, axes = float(call["ord"]), _axes_arguments(call)
    x = call.node_as("self", call.result.dtype)
    if not call.rank():
        require(order != 0, "it counts the nonzero elements of a scalar")
        return x.abs()
    if order == 2:
        return x.norm(**axes)
    if order == 1:
        return x.abs().sum(**axes)
    if np.isinf(order):
        return call.graph.op("max" if order > 0 else "min", x.abs(), **axes)
    require(order >= 1, f"its order is {order}, which is not a norm", "write the sum of powers")
    return _power_norm(call, x, order, axes)


def _power_norm(call: Call, x: Node, order: float, axes: dict[str, Any]) -> Node:
    total: Node = call.graph.op("sum", x.abs().pow_scalar(order), **axes)
    zero, one = (call.constant(each, call.result.dtype) for each in (0, 1))
    at_zero = total.equal(zero)
    return at_zero.where(zero, at_zero.where(one, total).pow_scalar(1 / order))
