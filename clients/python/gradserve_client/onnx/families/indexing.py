"""Reads at positions held in tensors."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.helpers import at_positions, counted, from_front
from gradserve_client.onnx.families.table import RULES


@RULES("Gather")
def gather(call: Call) -> RuleResult:
    """Gather slices at the positions. The axes of the positions replace the gathered axis."""
    axis = call.axis(call.rank())
    index = from_front(call, 1, call.shape()[axis])
    if not axis:
        return call.node().embedding(index, **counted(call, 1))
    return call.graph.index(call.node(), index, axes=[axis], **counted(call, 1))


@RULES("GatherElements", since=11)
def gather_elements(call: Call) -> RuleResult:
    """Gather elements at the positions along the axis."""
    axis = call.axis(call.rank())
    return call.node().gather(from_front(call, 1, call.shape()[axis]), axis=axis, **counted(call, 1))


def tuples_of(call: Call, i: int) -> list[Node]:
    """Split operand i, tuples of positions on its last axis, into one index per position."""
    return [call.node(i).select(column, axis=call.rank(i) - 1) for column in range(call.shape(i)[-1])]


@RULES("GatherND", since=11)
def gather_nd(call: Call) -> RuleResult:
    """Gather slices at tuples of positions.

    Batch axes get a counting index, so that they pair with those of the positions.
    """
    batch, rank = call.attrs.get("batch_dims", 0), call.rank(1) - 1
    counting = [
        call.constant(np.arange(n).reshape([-1, *[1] * (rank - 1 - axis)]), np.int64)
        for axis, n in enumerate(call.shape()[:batch])
    ]
    return call.graph.index(call.node(), *counting, *tuples_of(call, 1), from_end=True)


@RULES("OneHot", since=9)
def one_hot(call: Call) -> RuleResult:
    """Compare the indices with the positions of the new axis. An index out of range is off everywhere."""
    depth = int(call.static(1, "depth").reshape(-1)[0])
    rank = call.rank() + 1
    axis = call.axis(rank)
    index = call.node().cast("int64")
    index = index.less(call.constant(0, np.int64)).where(index.add(call.constant(depth, np.int64)), index)
    shape = [depth if i == axis else 1 for i in range(rank)]
    matches = index.unsqueeze(axes=[axis]).equal(call.constant(np.arange(depth).reshape(shape), np.int64))
    return matches.where(call.node(2).select(1), call.node(2).select(0))


@RULES("Compress", since=9)
def compress(call: Call) -> RuleResult:
    """Gather the entries that a condition selects.

    The condition must be known, since it determines the result's size.
    """
    positions = np.flatnonzero(call.static(1, "condition")).tolist()
    if "axis" in call.attrs:
        return at_positions(call.node(), positions, call.axis(call.rank()))
    return at_positions(call.node().reshape(shape=[-1]), positions, 0)
