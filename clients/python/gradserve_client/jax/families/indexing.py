"""Reading at positions that tensors hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END, highest, lowest
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.helpers import transposed
from gradserve_client.jax.families.positions import Windows, as_node, both, mode_of, rows_of, start_of
from gradserve_client.jax.families.table import RULES


@RULES("gather")
def gather(call: Call) -> Said:
    """`index`, or `embedding` of the first axis; windows as rows of a table. What lies beyond is clipped, or filled."""
    numbers = call.params["dimension_numbers"]
    paired = [*zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)]
    told = [int(axis) for axis in numbers.start_index_map]
    inserted = [int(axis) for axis in numbers.collapsed_slice_dims]
    extents = [int(extent) for extent in call.params["slice_sizes"]]
    batch = [(int(one), int(other)) for one, other in paired]
    at = Windows(told, batch, inserted, extents, mode_of(call))
    if {*told} == {*inserted} and told and at.whole(call.operands[0].node_shape):
        return _entries(call, at)
    rows = rows_of(call, at)
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
    return transposed(read, [tuples + next(windows) if of_window else next(lead) for of_window in _of_windows(call)])


def _entries(call: Call, at: Windows) -> Node:
    """What each tuple alone says."""
    found = {axis: start_of(call, at, i) for i, axis in enumerate(at.told)}
    axes = sorted(found)
    indices = [as_node(found[axis][0], call) for axis in axes]
    x = call.node()
    read = x.embedding(*indices) if axes == [0] else call.graph.index(x, *indices, axes=axes)
    rank, tuples = len(call.operands[0].node_shape), call.rank(1) - 1
    rest = [axis for axis in range(rank) if axis not in axes]
    # of neighbours, the axes of the tuples take the place; of others, they come first
    first = axes[0] if axes == [*range(axes[0], axes[0] + len(axes))] else 0
    fits = [fit for _, fit in found.values() if fit is not None]
    if fits:
        shape = [*[1] * first, *call.shape(1)[:-1], *[1] * (len(rest) - first)]
        read = as_node(reduce(both, fits), call).reshape(shape=shape).where(read, call.like(_filled(call)))
    windows, lead = (
        iter([*range(first), *range(first + tuples, len(rest) + tuples)]),
        iter(range(first, first + tuples)),
    )
    return transposed(read, [next(windows if of_window else lead) for of_window in _of_windows(call)])


def _of_windows(call: Call) -> list[bool]:
    """For each axis of the result, whether it is one of windows: those of keys' words are."""
    rank = len(call.results[0].node_shape)
    offsets = {int(axis) for axis in call.params["dimension_numbers"].offset_dims}
    offsets |= {*range(len(call.results[0].shape), rank)}
    return [axis in offsets for axis in range(rank)]


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
