"""Reading at positions that tensors hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END, highest, lowest
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.helpers import transposed
from gradserve_client.jax.families.positions import Windows, as_node, mode_of, rows_of
from gradserve_client.jax.families.table import RULES


@RULES("gather")
def gather(call: Call) -> Said:
    """`embedding`: rows of a table at positions made of the tuples; what lies beyond is clipped, or filled."""
    numbers = call.params["dimension_numbers"]
    paired = [*zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)]
    told = [int(axis) for axis in numbers.start_index_map]
    inserted = [int(axis) for axis in numbers.collapsed_slice_dims]
    extents = [int(extent) for extent in call.params["slice_sizes"]]
    batch = [(int(one), int(other)) for one, other in paired]
    rows = rows_of(call, Windows(told, batch, inserted, extents, mode_of(call)))
    table = rows.table(call.node(), call.operands[0].node_shape)
    read = table.embedding(as_node(rows.index, call))
    tuples = call.rank(1) - 1
    if rows.fits is not None:
        fits = as_node(rows.fits, call)
        more = len(rows.along) + len(rows.order) - rows.leading
        shape = [*call.shape(1)[:-1], *[1] * more]
        read = fits.reshape(shape=shape).where(read, call.like(_filled(call)))
    # axes of the result: windows in the operand's order at offset_dims, tuples at the others
    axes = [*rows.along, *rows.order[rows.leading :]]
    windows = iter(sorted(range(len(axes)), key=lambda i: axes[i]))
    lead = iter(range(tuples))
    rank = len(call.results[0].node_shape)
    offsets = {int(axis) for axis in numbers.offset_dims} | {*range(len(call.results[0].shape), rank)}
    return transposed(read, [tuples + next(windows) if axis in offsets else next(lead) for axis in range(rank)])


def _filled(call: Call) -> Any:
    """What stands for what lies beyond."""
    stated = call.params.get("fill_value")
    if stated is not None:
        return stated
    kind = call.dtype().kind
    return np.nan if kind == "f" else highest(call.dtype()) if kind in "ub" else lowest(call.dtype())


def clamped_starts(call: Call, first: int, limits: Sequence[int]) -> Sequence[int | Node]:
    """The operands from `first` on, one for each axis, so that what begins there fits: numbers where all are known."""
    places = range(first, first + len(limits))
    if all(call.is_constant(i) for i in places):
        return [min(max(0, int(call.known(i))), limit) for i, limit in zip(places, limits, strict=True)]
    zero = call.constant(0, np.int64)
    return [
        call.node(i).cast("int64").maximum(zero).minimum(call.constant(limit, np.int64))
        for i, limit in zip(places, limits, strict=True)
    ]


@RULES("dynamic_slice")
def dynamic_slice(call: Call) -> Said:
    """`slice` where the starts are known; else rows at counted positions, axis by axis. Starts are moved to fit."""
    extents = [int(extent) for extent in call.params["slice_sizes"]]
    shape = call.shape()
    starts = clamped_starts(call, 1, [n - extent for n, extent in zip(shape, extents, strict=True)])
    node = call.node()
    if not extents:
        return call.operands[0]
    for axis, (start, extent) in enumerate(zip(starts, extents, strict=True)):
        if extent == shape[axis]:
            continue
        if isinstance(start, Node):
            node = _read_along(call, node, axis, start, extent)
        else:
            node = node.slice(
                starts=[0] * axis + [start],
                stops=[TO_THE_END] * axis + [start + extent],
            )
    return call.results[0].with_node(node)


def _read_along(call: Call, node: Node, axis: int, start: Node, extent: int) -> Node:
    rank = len(call.operands[0].node_shape)
    at = start.add(call.constant(np.arange(extent), np.int64))
    order = [axis, *(i for i in range(rank) if i != axis)]
    rows = transposed(node, order).embedding(at)
    return transposed(rows, [order.index(i) for i in range(rank)])
