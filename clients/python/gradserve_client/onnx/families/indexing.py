"""Reading at positions that tensors hold."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.onnx.call import Call, Said
from gradserve_client.onnx.families.helpers import at_positions, counted, from_front
from gradserve_client.onnx.families.table import RULES


@RULES("Gather")
def gather(call: Call) -> Said:
    """Slices at the positions, whose axes go where that of theirs was."""
    axis = call.axis(call.rank())
    index = from_front(call, 1, call.shape()[axis])
    if not axis:
        return call.node().embedding(index, **counted(call, 1))
    return call.graph.index(call.node(), index, axes=[axis], **counted(call, 1))


@RULES("GatherElements", since=11)
def gather_elements(call: Call) -> Said:
    """Elements at the positions along the axis."""
    axis = call.axis(call.rank())
    return call.node().gather(from_front(call, 1, call.shape()[axis]), axis=axis, **counted(call, 1))


def tuples_of(call: Call, i: int) -> list[Node]:
    """Operand i, tuples of positions on its last axis, as an index for each of the positions."""
    return [call.node(i).select(place, axis=call.rank(i) - 1) for place in range(call.shape(i)[-1])]


@RULES("GatherND", since=11)
def gather_nd(call: Call) -> Said:
    """Slices at tuples of positions, beside which those of axes that go together with theirs count up."""
    batch, rank = call.attrs.get("batch_dims", 0), call.rank(1) - 1
    counting = [
        call.constant(np.arange(n).reshape([-1, *[1] * (rank - 1 - axis)]), np.int64)
        for axis, n in enumerate(call.shape()[:batch])
    ]
    return call.graph.index(call.node(), *counting, *tuples_of(call, 1), from_end=True)


@RULES("OneHot", since=9)
def one_hot(call: Call) -> Said:
    """Compared with the positions of the new axis: what lies beyond them is off everywhere."""
    depth = int(call.static(1, "depth").reshape(-1)[0])
    rank = call.rank() + 1
    axis = call.axis(rank)
    index = call.node().cast("int64")
    index = index.less(call.constant(0, np.int64)).where(index.add(call.constant(depth, np.int64)), index)
    at = [depth if i == axis else 1 for i in range(rank)]
    hit = index.unsqueeze(axes=[axis]).equal(call.constant(np.arange(depth).reshape(at), np.int64))
    return hit.where(call.node(2).select(1), call.node(2).select(0))


@RULES("Compress", since=9)
def compress(call: Call) -> Said:
    """The entries that a condition names, which has to be known: they are as many as it says."""
    kept = np.flatnonzero(call.static(1, "condition")).tolist()
    if "axis" in call.attrs:
        return at_positions(call.node(), kept, call.axis(call.rank()))
    return at_positions(call.node().reshape(shape=[-1]), kept, 0)
