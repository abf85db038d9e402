"""Reading at positions that tensors hold."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.onnx.call import Call, Said
from gradserve_client.onnx.families.helpers import at_positions, wrapped_index
from gradserve_client.onnx.families.table import RULES


@RULES("Gather")
def gather(call: Call) -> Said:
    """Slices at the positions: rows of a table, with the axis brought to the front and the result's axes put back."""
    axis, rank, more = call.axis(call.rank()), call.rank(), call.rank(1)
    index = wrapped_index(call, 1, call.shape()[axis])
    if not axis:
        return call.node().embedding(index)
    order = [axis, *(i for i in range(rank) if i != axis)]
    rows = call.node().transpose(axes=order).embedding(index)
    back = [more + i for i in range(axis)] + [*range(more)] + [more + i for i in range(axis, rank - 1)]
    return rows.transpose(axes=back)


@RULES("GatherElements", since=11)
def gather_elements(call: Call) -> Said:
    """Elements at the positions along the axis."""
    axis = call.axis(call.rank())
    return call.node().gather(wrapped_index(call, 1, call.shape()[axis]), axis=axis)


def flat_positions(call: Call, i: int, extents: tuple[int, ...], batch: int = 0) -> Node:
    """Operand i, tuples of positions on its last axis, as positions among the rows of `extents`, row-major.

    The first `batch` axes of the operand are as many of `extents`, and its tuples are of the others.
    """
    rank = call.rank(i)
    index, total = None, None
    for place, extent in enumerate(extents[batch:]):
        index = call.node(i).select(place, axis=rank - 1)
        index = index.less(call.like(0, i)).where(index.add(call.like(extent, i)), index)
        weighted = index.mul(call.like(size(extents[batch + place + 1 :]), i))
        total = weighted if total is None else total.add(weighted)
    assert total is not None, "a tuple has a position"
    if not batch:
        return total
    per_entry = size(extents[batch:])
    offsets = np.arange(size(extents[:batch])).reshape(*extents[:batch], *[1] * (rank - 1 - batch)) * per_entry
    return total.add(call.like(offsets, i))


@RULES("GatherND", since=11)
def gather_nd(call: Call) -> Said:
    """Slices at tuples of positions: rows of a table whose rows are told by them."""
    batch = call.attrs.get("batch_dims", 0)
    told = batch + call.shape(1)[-1]
    extents = call.shape()[:told]
    table = call.node().reshape(shape=[size(extents), *call.shape()[told:]])
    return table.embedding(flat_positions(call, 1, extents, batch))


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
