"""Reading at positions: `gather` and `dynamic_slice`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END, highest, lowest
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.helpers import transpose_axes
from gradserve_client.jax.families.positions import Windows, as_node, both, mode_of, rows_of, start_of
from gradserve_client.jax.families.table import RULES


@RULES("gather")
def gather(call: Call) -> Results:
    """`index`, or `embedding` on the first axis; windows are rows of a table. Out of range, it clips or fills."""
    numbers = call.params["dimension_numbers"]
    paired = [*zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)]
    indexed = [int(axis) for axis in numbers.start_index_map]
    collapsed = [int(axis) for axis in numbers.collapsed_slice_dims]
    extents = [int(extent) for extent in call.params["slice_sizes"]]
    batch = [(int(axis), int(tuple_axis)) for axis, tuple_axis in paired]
    windows = Windows(indexed, batch, collapsed, extents, mode_of(call))
    if {*indexed} == {*collapsed} and indexed and windows.covers_rest(call.operands[0].node_shape):
        return _entries(call, windows)
    rows = rows_of(call, windows)
    table = rows.to_table(call.node(), call.operands[0].node_shape)
    read = table.embedding(as_node(rows.index, call))
    tuples = call.rank(1) - 1
    if rows.fits is not None:
        fits = as_node(rows.fits, call)
        trailing = len(rows.along) + len(rows.order) - rows.leading
        shape = [*call.shape(1)[:-1], *[1] * trailing]
        read = fits.reshape(shape=shape).where(read, call.like(_fill_value(call)))
    # axes of the result: those of windows in the operand's order at offset_dims, those of tuples elsewhere
    axes = [*rows.along, *rows.order[rows.leading :]]
    window_axes = iter(sorted(range(len(axes)), key=lambda i: axes[i]))
    tuple_axes = iter(range(tuples))
    return transpose_axes(
        read, [tuples + next(window_axes) if of_window else next(tuple_axes) for of_window in _window_axis_mask(call)]
    )


def _entries(call: Call, windows: Windows) -> Node:
    """Read whole entries, one for each tuple."""
    starts = {axis: start_of(call, windows, i) for i, axis in enumerate(windows.indexed)}
    axes = sorted(starts)
    indices = [as_node(starts[axis][0], call) for axis in axes]
    x = call.node()
    read = x.embedding(*indices) if axes == [0] else call.graph.index(x, *indices, axes=axes)
    rank, tuples = len(call.operands[0].node_shape), call.rank(1) - 1
    rest = [axis for axis in range(rank) if axis not in axes]
    # the axes of the tuples take the place of adjacent indexed axes, and else come first, as in NumPy
    first = axes[0] if axes == [*range(axes[0], axes[0] + len(axes))] else 0
    fits = [fit for _, fit in starts.values() if fit is not None]
    if fits:
        shape = [*[1] * first, *call.shape(1)[:-1], *[1] * (len(rest) - first)]
        read = as_node(reduce(both, fits), call).reshape(shape=shape).where(read, call.like(_fill_value(call)))
    window_axes, tuple_axes = (
        iter([*range(first), *range(first + tuples, len(rest) + tuples)]),
        iter(range(first, first + tuples)),
    )
    return transpose_axes(
        read, [next(window_axes if of_window else tuple_axes) for of_window in _window_axis_mask(call)]
    )


def _window_axis_mask(call: Call) -> list[bool]:
    """Return for each axis of the result whether it is one of the windows. The axis of keys' words is."""
    rank = len(call.results[0].node_shape)
    offsets = {int(axis) for axis in call.params["dimension_numbers"].offset_dims}
    offsets |= {*range(len(call.results[0].shape), rank)}
    return [axis in offsets for axis in range(rank)]


def _fill_value(call: Call) -> Any:
    """Return the fill value for positions out of range: that of the equation, or JAX's default for the dtype."""
    fill_value = call.params.get("fill_value")
    if fill_value is not None:
        return fill_value
    kind = call.dtype().kind
    return np.nan if kind == "f" else highest(call.dtype()) if kind in "ub" else lowest(call.dtype())


def starts_of(call: Call, first: int, limits: Sequence[int]) -> list[int] | Node:
    """Return the start of a slice on each axis, given by the operands from `first` on.

    They are numbers, clipped to the limits, if all are constants. Else they are a node, int64 [axes], which `slice_at`
    and `update_slice_at` clip.
    """
    positions = range(first, first + len(limits))
    if all(call.is_constant(i) for i in positions):
        return [min(max(0, int(call.constant_value(i))), limit) for i, limit in zip(positions, limits, strict=True)]
    return call.graph.stack(*(_as_int64(call, i) for i in positions), axis=0)


def _as_int64(call: Call, i: int) -> Node:
    if call.is_constant(i):
        return call.constant(call.constant_value(i), np.int64)
    return call.node(i) if call.dtype(i) == np.int64 else call.node(i).cast("int64")


@RULES("dynamic_slice")
def dynamic_slice(call: Call) -> Results:
    """`slice` if the starts are constants, else `slice_at`; `index` if only one of several axes is sliced."""
    extents, shape = [int(extent) for extent in call.params["slice_sizes"]], call.shape()
    if not extents:
        return call.operands[0]
    sliced = [axis for axis, extent in enumerate(extents) if extent != shape[axis]]
    if not sliced:
        return call.operands[0]
    starts = starts_of(call, 1, [n - extent for n, extent in zip(shape, extents, strict=True)])
    if not isinstance(starts, Node):
        stops = [
            s + extent if axis in sliced else TO_THE_END
            for axis, (s, extent) in enumerate(zip(starts, extents, strict=True))
        ]
        return call.node().slice(starts=starts, stops=stops)
    words = [*call.operands[0].node_shape[len(shape) :]]
    # unlike `slice_at`, `index` states no extents of the other axes, so they stay free
    if len(sliced) == 1 and len(shape) + len(words) > 1:
        return _index_along(call, sliced[0], shape[sliced[0]] - extents[sliced[0]], extents[sliced[0]])
    if words:
        starts = call.graph.cat(starts, call.constant([0], np.int64), axis=0)
    return call.node().slice_at(starts, sizes=[*extents, *words])


def _index_along(call: Call, axis: int, limit: int, extent: int) -> Node:
    start = _as_int64(call, 1 + axis).maximum(call.constant(0, np.int64)).minimum(call.constant(limit, np.int64))
    indices = start.add(call.constant(np.arange(extent), np.int64))
    return call.graph.index(call.node(), indices, axes=[axis])
