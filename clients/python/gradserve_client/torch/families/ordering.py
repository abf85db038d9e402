"""Sorting, extremes along an axis, and cumulative reductions."""

from __future__ import annotations

from typing import Final

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import outputs_of
from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.table import RULES

_CUMULATIVE: Final = {"cumprod": "cumprod", "logcumsumexp": "cumlogsumexp"}


@RULES("max.dim", "min.dim")
def extreme_along(call: Call) -> Results:
    """Return the extreme entry and its position. Of equal entries, the first one has the gradient."""
    if not call.rank():
        return [call.value(), call.graph.constant(0)]
    axis = call.axis()
    x = call.node()
    position: Node = call.graph.op(f"arg{call.op.partition('.')[0]}", x, axis=axis, keepdims=True)
    value = x.take_along(position, axis=axis)
    return [value, position] if call["keepdim"] else [each.squeeze(axes=[axis]) for each in (value, position)]


@RULES("argmax", "argmin")
def position_of_extreme(call: Call) -> Results:
    """Return the position of the extreme along an axis, or in the flattened tensor."""
    if call["dim"] is None:
        flat = call.graph.op(call.op, call.node().reshape(shape=[-1]), axis=0)
        return flat.reshape(shape=[1] * call.rank()) if call["keepdim"] and call.rank() else flat
    if not call.rank():
        return call.graph.constant(0)
    return call.graph.op(call.op, call.node(), axis=call.axis(), keepdims=bool(call["keepdim"]))


def _order(x: Node, axis: int, extent: int, descending: bool) -> Node:
    """Return the positions that sort an axis. Equal entries keep their order; NaN is largest."""
    if not descending:
        return x.argsort(axis)
    # argsort is stable, so a descending sort flips before and after to keep the order of equal entries
    last = x.graph.constant(extent - 1)
    return last.sub(x.flip(axes=[axis]).argsort(axis).flip(axes=[axis]))


@RULES("sort", "sort.stable")
def sort(call: Call) -> Results:
    """Return the sorted values and their positions."""
    if not call.rank():
        return [call.value(), call.graph.constant(0)]
    axis, x = call.axis(), call.node()
    order = _order(x, axis, call.shape()[axis], bool(call["descending"]))
    return [x.take_along(order, axis=axis), order]


@RULES("topk")
def topk(call: Call) -> Results:
    """Return the k largest entries in order, or the smallest ones, and their positions."""
    if not call.rank():
        return [call.value(), call.graph.constant(0)]
    axis, x = call.axis(), call.node()
    if call["largest"]:
        return outputs_of(x.topk(int(call["k"]), axis=axis), 2)
    order = _order(x, axis, call.shape()[axis], False)
    order = order.slice(stops=[2**31 - 1] * axis + [int(call["k"])])
    return [x.take_along(order, axis=axis), order]


@RULES("cumsum")
def cumsum(call: Call) -> Results:
    """Compute a cumulative sum, in the dtype of the result."""
    x = call.node_as("self", call.result.dtype)
    return x.cumsum(call.axis()) if call.rank() else x


@RULES("cummax", "cummin")
def cumulative_extreme(call: Call) -> Results:
    """Return the extreme so far and its position. Of equal entries, the last one has the gradient."""
    if not call.rank():
        return [call.value(), call.graph.constant(0)]
    axis, rank, x = call.axis(), call.rank(), call.node()
    so_far = call.graph.op(call.op, x.stop_gradient() if call.result.is_float else x, axis=axis)
    reached = x.equal(so_far).logical_or(x.not_equal(x))
    positions = call.constant(np.arange(call.shape()[axis]).reshape([-1, *[1] * (rank - 1 - axis)]), "int64")
    last = reached.where(positions, call.graph.constant(0)).cummax(axis)
    return [x.take_along(last, axis=axis), last]


@RULES("cumprod", "logcumsumexp")
def cumulative(call: Call) -> Results:
    """Compute a cumulative reduction, in the dtype of the result."""
    x = call.node_as("self", call.result.dtype)
    return call.graph.op(_CUMULATIVE[call.op], x, axis=call.axis()) if call.rank() else x
