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


def starts_of(call: Call, first: int, limits: Sequence[int]) -> list[int] | Node:
    """Where a box begins, by the operands from `first` on, one for each axis, so that it fits within these limits.

    Numbers where all are known; else int64 [axes], which `slice_at` and `update_slice_at` move themselves.
    """
    places = range(first, first + len(limits))
    if all(call.is_constant(i) for i in places):
        return [min(max(0, int(call.known(i))), limit) for i, limit in zip(places, limits, strict=True)]
    return call.graph.stack(*(_as_int64(call, i) for i in places), axis=0)


def _as_int64(call: Call, i: int) -> Node:
    if call.is_constant(i):
        return call.constant(call.known(i), np.int64)
    return call.node(i) if call.dtype(i) == np.int64 else call.node(i).cast("int64")


@RULES("dynamic_slice")
def dynamic_slice(call: Call) -> Said:
    """`slice` where the starts are known, else `slice_at`; along one of several axes `index`, the others being free."""
    extents, shape = [int(extent) for extent in call.params["slice_sizes"]], call.shape()
    if not extents:
        return call.operands[0]
    cut = [axis for axis, extent in enumerate(extents) if extent != shape[axis]]
    if not cut:
        return call.operands[0]
    starts = starts_of(call, 1, [n - extent for n, extent in zip(shape, extents, strict=True)])
    if not isinstance(starts, Node):
        stops = [
            s + extent if axis in cut else TO_THE_END
            for axis, (s, extent) in enumerate(zip(starts, extents, strict=True))
        ]
        return call.node().slice(starts=starts, stops=stops)
    words = [*call.operands[0].node_shape[len(shape) :]]
    if len(cut) == 1 and len(shape) + len(words) > 1:
        return _along(call, cut[0], shape[cut[0]] - extents[cut[0]], extents[cut[0]])
    if words:
        starts = call.graph.cat(starts, call.constant([0], np.int64), axis=0)
    return call.node().slice_at(starts, sizes=[*extents, *words])


def _along(call: Call, axis: int, limit: int, extent: int) -> Node:
    start = _as_int64(call, 1 + axis).maximum(call.constant(0, np.int64)).minimum(call.constant(limit, np.int64))
    at = start.add(call.constant(np.arange(extent), np.int64))
    return call.graph.index(call.node(), at, axes=[axis])
