"""Functions that rearrange elements."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.emitting import (
    broadcast_shape,
    emit,
    normalize_axes,
    promote,
)
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.recorder import Shape, Traced


def extents(shape: int | Sequence[int]) -> Shape:
    """Return a shape as a tuple; a number is the shape of one axis."""
    return (
        (operator.index(shape),)
        if not isinstance(shape, Sequence)
        else tuple(operator.index(extent) for extent in shape)
    )


def join(arrays: Sequence[Traced], axis: int) -> Traced:
    """Join arrays of one dtype along an axis. Raises InputError if their other extents differ."""
    first, *others = arrays
    for other in others:
        if other.ndim != first.ndim or any(
            one != another for i, (one, another) in enumerate(zip(first.shape, other.shape, strict=True)) if i != axis
        ):
            raise InputError(f"{first.type_name} and {other.type_name} cannot be joined along axis {axis}")
    shape = [*first.shape]
    shape[axis] = sum(array.shape[axis] for array in arrays)
    return emit("cat", arrays, shape, first.dtype, axis=axis)


def slice_axis(x: Traced, axis: int, start: int, stop: int) -> Traced:
    """Return the elements from `start` to `stop` (exclusive) along an axis."""
    stop = max(stop, start)
    starts = [start if i == axis else 0 for i in range(x.ndim)]
    stops = [stop if i == axis else extent for i, extent in enumerate(x.shape)]
    shape = [after - before for before, after in zip(starts, stops, strict=True)]
    return emit("slice", [x], shape, x.dtype, starts=starts, stops=stops)


@locates_errors
def reshape(x: Traced, /, shape: int | Sequence[int], *, copy: bool | None = None) -> Traced:
    """Return the elements, in row-major order, in another shape. One extent may be −1."""
    target = extents(shape)
    known = math.prod(extent for extent in target if extent != -1)
    if target.count(-1) == 1 and known and x.size % known == 0:
        target = tuple(x.size // known if extent == -1 else extent for extent in target)
    if math.prod(target) != x.size or any(extent < 0 for extent in target):
        raise InputError(f"cannot reshape {x.type_name}, which has {x.size} elements, to {list(target)}")
    return x if target == x.shape else emit("reshape", [x], target, x.dtype, shape=target)


@locates_errors
def broadcast_to(x: Traced, /, shape: int | Sequence[int]) -> Traced:
    """Repeat x along new leading axes and along axes of extent 1."""
    target = extents(shape)
    padded = (1,) * (len(target) - x.ndim) + x.shape
    if len(padded) != len(target) or any(
        extent not in (1, target_extent) for extent, target_extent in zip(padded, target, strict=True)
    ):
        raise InputError(f"{x.type_name} does not broadcast to {list(target)}")
    return x if x.shape == target else emit("broadcast_to", [x], target, x.dtype, shape=target)


@locates_errors
def broadcast_arrays(*arrays: Traced) -> list[Traced]:
    """Broadcast the arrays to their common shape."""
    shape = broadcast_shape(*arrays)
    return [broadcast_to(array, shape) for array in arrays]


@locates_errors
def concat(arrays: Sequence[Traced], /, *, axis: int | None = 0) -> Traced:
    """Join arrays along an axis; flattened if `axis` is None."""
    parts = promote(*arrays)
    if axis is None:
        return join([reshape(part, (-1,)) if part.ndim != 1 else part for part in parts], 0)
    return join(parts, normalize_axes(axis, parts[0].ndim)[0])


@locates_errors
def stack(arrays: Sequence[Traced], /, *, axis: int = 0) -> Traced:
    """Join arrays of the same shape along a new axis."""
    parts = promote(*arrays)
    if len({part.shape for part in parts}) > 1:
        raise InputError(f"arrays of different shapes cannot be stacked: {', '.join(part.type_name for part in parts)}")
    position = normalize_axes(axis, parts[0].ndim + 1)[0]
    shape = [*parts[0].shape]
    shape.insert(position, len(parts))
    return emit("stack", parts, shape, parts[0].dtype, axis=position)


@locates_errors
def unstack(x: Traced, /, *, axis: int = 0) -> tuple[Traced, ...]:
    """Split x along an axis into arrays without this axis."""
    along = normalize_axes(axis, x.ndim)[0]
    shape = x.shape[:along] + x.shape[along + 1 :]
    return tuple(emit("select", [x], shape, x.dtype, index=i, axis=along) for i in range(x.shape[along]))


@locates_errors
def expand_dims(x: Traced, /, *, axis: int | tuple[int, ...] = 0) -> Traced:
    """Insert axes of extent 1."""
    count = 1 if isinstance(axis, int) else len(axis)
    new_axes, extents_left = normalize_axes(axis, x.ndim + count), iter(x.shape)
    return reshape(x, tuple(1 if i in new_axes else next(extents_left) for i in range(x.ndim + count)))


@locates_errors
def squeeze(x: Traced, /, axis: int | tuple[int, ...]) -> Traced:
    """Remove axes of extent 1."""
    removed = normalize_axes(axis, x.ndim)
    if any(x.shape[i] != 1 for i in removed):
        raise InputError(
            f"only axes of extent 1 can be removed, but some of the axes {removed} of {x.type_name} are longer"
        )
    return reshape(x, tuple(extent for i, extent in enumerate(x.shape) if i not in removed))


@locates_errors
def permute_dims(x: Traced, /, axes: tuple[int, ...]) -> Traced:
    """Reorder the axes."""
    order = normalize_axes(axes, x.ndim)
    if len(order) != x.ndim:
        raise InputError(f"{list(axes)} is not a permutation of the {x.ndim} axes of {x.type_name}")
    return x if order == [*range(x.ndim)] else emit("transpose", [x], [x.shape[i] for i in order], x.dtype, axes=order)


@locates_errors
def moveaxis(x: Traced, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Traced:
    """Move axes to other positions; the other axes keep their order."""
    sources, destinations = normalize_axes(source, x.ndim), normalize_axes(destination, x.ndim)
    if len(sources) != len(destinations):
        raise InputError(f"{len(sources)} axes cannot be moved to {len(destinations)} positions")
    order = [i for i in range(x.ndim) if i not in sources]
    for position, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(position, axis)
    return permute_dims(x, tuple(order))


@locates_errors
def matrix_transpose(x: Traced, /) -> Traced:
    """Swap the last two axes."""
    if x.ndim < 2:
        raise InputError(f"matrices need at least two axes, but {x.type_name} has {x.ndim}")
    return moveaxis(x, -1, -2)


@locates_errors
def flip(x: Traced, /, *, axis: int | tuple[int, ...] | None = None) -> Traced:
    """Reverse the elements along axes, by default all."""
    axes = normalize_axes(axis, x.ndim)
    return emit("flip", [x], x.shape, x.dtype, axes=axes) if axes else x


@locates_errors
def roll(x: Traced, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Traced:
    """Shift elements along axes, with those beyond the end at the front; flattened if `axis` is None."""
    shifts = extents(shift)
    if axis is None:
        return emit("roll", [x], x.shape, x.dtype, shifts=[sum(shifts)])
    axes = [axis] if isinstance(axis, int) else [*axis]
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if len(shifts) != len(axes):
        raise InputError(f"the number of shifts, {len(shifts)}, differs from the number of axes, {len(axes)}")
    for amount, axis_number in zip(shifts, axes, strict=True):  # an axis may be named twice
        x = emit("roll", [x], x.shape, x.dtype, shifts=[amount], axes=normalize_axes(axis_number, x.ndim))
    return x


@locates_errors
def tile(x: Traced, repetitions: tuple[int, ...], /) -> Traced:
    """Repeat x as a whole, the given number of times along each axis."""
    counts = extents(repetitions)
    rank = max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    padded = (1,) * (rank - x.ndim) + x.shape
    shape = [count * extent for count, extent in zip(counts, padded, strict=True)]
    return emit("tile", [x], shape, x.dtype, repeats=counts)


@locates_errors
def repeat(x: Traced, repeats: object, /, *, axis: int | None = None) -> Traced:
    """Repeat each element the given number of times along an axis; flattened if `axis` is None.

    Raises RecordingError unless `repeats` is known while recording, since the shape depends on it.
    """
    counts = x.recorder.known(repeats) if isinstance(repeats, Traced) else np.asarray(repeats)
    if counts is None:
        raise InputError("the repeat counts are known only when the graph runs: pass numbers")
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    along = normalize_axes(axis, x.ndim)[0]
    positions = np.repeat(np.arange(x.shape[along]), counts)
    return pick_slices(x, positions, along)


def pick_slices(x: Traced, positions: np.ndarray[tuple[int], np.dtype[np.int64]], axis: int) -> Traced:
    """Return the slices at positions along an axis, which are known and not negative."""
    shape = [*x.shape]
    shape[axis] = len(positions)
    if not len(positions):
        return slice_axis(x, axis, 0, 0)
    return emit("gather", [x], shape, x.dtype, axis=axis, indices=positions.tolist())
