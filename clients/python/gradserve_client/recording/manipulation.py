"""Functions that arrange elements anew."""

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
    """A shape as it is stated: one number is that of one axis."""
    return (
        (operator.index(shape),) if not isinstance(shape, Sequence) else tuple(operator.index(each) for each in shape)
    )


def join(arrays: Sequence[Traced], axis: int) -> Traced:
    """Arrays of one dtype, one after the other along an axis. Raises InputError where they differ elsewhere."""
    first, *others = arrays
    for other in others:
        if other.ndim != first.ndim or any(
            one != another for i, (one, another) in enumerate(zip(first.shape, other.shape, strict=True)) if i != axis
        ):
            raise InputError(f"{first.type_name} and {other.type_name} cannot be joined along axis {axis}")
    shape = [*first.shape]
    shape[axis] = sum(array.shape[axis] for array in arrays)
    return emit("cat", arrays, shape, first.dtype, axis=axis)


def cut(x: Traced, axis: int, start: int, stop: int) -> Traced:
    """The part of x between two positions of an axis."""
    stop = max(stop, start)
    starts = [start if i == axis else 0 for i in range(x.ndim)]
    stops = [stop if i == axis else extent for i, extent in enumerate(x.shape)]
    shape = [after - before for before, after in zip(starts, stops, strict=True)]
    return emit("slice", [x], shape, x.dtype, starts=starts, stops=stops)


@locates_errors
def reshape(x: Traced, /, shape: int | Sequence[int], *, copy: bool | None = None) -> Traced:
    """The elements in row-major order in another shape, of which one extent may be −1."""
    wanted = extents(shape)
    known = math.prod(extent for extent in wanted if extent != -1)
    if wanted.count(-1) == 1 and known and x.size % known == 0:
        wanted = tuple(x.size // known if extent == -1 else extent for extent in wanted)
    if math.prod(wanted) != x.size or any(extent < 0 for extent in wanted):
        raise InputError(f"{x.type_name} has {x.size} elements, which {list(wanted)} does not hold")
    return x if wanted == x.shape else emit("reshape", [x], wanted, x.dtype, shape=wanted)


@locates_errors
def broadcast_to(x: Traced, /, shape: int | Sequence[int]) -> Traced:
    """x repeated along new axes and those of extent 1."""
    wanted = extents(shape)
    padded = (1,) * (len(wanted) - x.ndim) + x.shape
    if len(padded) != len(wanted) or any(have not in (1, want) for have, want in zip(padded, wanted, strict=True)):
        raise InputError(f"{x.type_name} does not broadcast to {list(wanted)}")
    return x if x.shape == wanted else emit("broadcast_to", [x], wanted, x.dtype, shape=wanted)


@locates_errors
def broadcast_arrays(*arrays: Traced) -> list[Traced]:
    """All in the shape that they have together."""
    shape = broadcast_shape(*arrays)
    return [broadcast_to(array, shape) for array in arrays]


@locates_errors
def concat(arrays: Sequence[Traced], /, *, axis: int | None = 0) -> Traced:
    """One after the other along an axis; flat where that is None."""
    parts = promote(*arrays)
    if axis is None:
        return join([reshape(part, (-1,)) if part.ndim != 1 else part for part in parts], 0)
    return join(parts, normalize_axes(axis, parts[0].ndim)[0])


@locates_errors
def stack(arrays: Sequence[Traced], /, *, axis: int = 0) -> Traced:
    """One after the other along a new axis."""
    parts = promote(*arrays)
    if len({part.shape for part in parts}) > 1:
        raise InputError(f"arrays of different shapes cannot be stacked: {', '.join(part.type_name for part in parts)}")
    place = normalize_axes(axis, parts[0].ndim + 1)[0]
    shape = [*parts[0].shape]
    shape.insert(place, len(parts))
    return emit("stack", parts, shape, parts[0].dtype, axis=place)


@locates_errors
def unstack(x: Traced, /, *, axis: int = 0) -> tuple[Traced, ...]:
    """The parts along an axis, each without it."""
    along = normalize_axes(axis, x.ndim)[0]
    shape = x.shape[:along] + x.shape[along + 1 :]
    return tuple(emit("select", [x], shape, x.dtype, index=i, axis=along) for i in range(x.shape[along]))


@locates_errors
def expand_dims(x: Traced, /, *, axis: int | tuple[int, ...] = 0) -> Traced:
    """With new axes of extent 1."""
    count = 1 if isinstance(axis, int) else len(axis)
    new, rest = normalize_axes(axis, x.ndim + count), iter(x.shape)
    return reshape(x, tuple(1 if i in new else next(rest) for i in range(x.ndim + count)))


@locates_errors
def squeeze(x: Traced, /, axis: int | tuple[int, ...]) -> Traced:
    """Without axes of extent 1."""
    gone = normalize_axes(axis, x.ndim)
    if any(x.shape[i] != 1 for i in gone):
        raise InputError(f"only axes of extent 1 can be dropped, and {x.type_name} has others among {gone}")
    return reshape(x, tuple(extent for i, extent in enumerate(x.shape) if i not in gone))


@locates_errors
def permute_dims(x: Traced, /, axes: tuple[int, ...]) -> Traced:
    """With its axes in another order."""
    order = normalize_axes(axes, x.ndim)
    if len(order) != x.ndim:
        raise InputError(f"an order of the {x.ndim} axes of {x.type_name} is needed, and {list(axes)} is none")
    return x if order == [*range(x.ndim)] else emit("transpose", [x], [x.shape[i] for i in order], x.dtype, axes=order)


@locates_errors
def moveaxis(x: Traced, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Traced:
    """With some axes elsewhere, the others in their order."""
    sources, places = normalize_axes(source, x.ndim), normalize_axes(destination, x.ndim)
    if len(sources) != len(places):
        raise InputError(f"{len(sources)} axes cannot be moved to {len(places)} places")
    order = [i for i in range(x.ndim) if i not in sources]
    for place, moved in sorted(zip(places, sources, strict=True)):
        order.insert(place, moved)
    return permute_dims(x, tuple(order))


@locates_errors
def matrix_transpose(x: Traced, /) -> Traced:
    """With the last two axes swapped."""
    if x.ndim < 2:
        raise InputError(f"matrices have two axes, and {x.type_name} has {x.ndim}")
    return moveaxis(x, -1, -2)


@locates_errors
def flip(x: Traced, /, *, axis: int | tuple[int, ...] | None = None) -> Traced:
    """With the order of elements reversed along axes, by default all."""
    axes = normalize_axes(axis, x.ndim)
    return emit("flip", [x], x.shape, x.dtype, axes=axes) if axes else x


@locates_errors
def roll(x: Traced, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Traced:
    """With elements moved along axes, those beyond the end to the front; flat where no axis is named."""
    shifts = extents(shift)
    if axis is None:
        return emit("roll", [x], x.shape, x.dtype, shifts=[sum(shifts)])
    axes = [axis] if isinstance(axis, int) else [*axis]
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if len(shifts) != len(axes):
        raise InputError(f"{len(shifts)} shifts are not for {len(axes)} axes")
    for by, each in zip(shifts, axes, strict=True):  # an axis may be named twice
        x = emit("roll", [x], x.shape, x.dtype, shifts=[by], axes=normalize_axes(each, x.ndim))
    return x


@locates_errors
def tile(x: Traced, repetitions: tuple[int, ...], /) -> Traced:
    """x so many times along each axis."""
    counts = extents(repetitions)
    rank = max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    padded = (1,) * (rank - x.ndim) + x.shape
    shape = [count * extent for count, extent in zip(counts, padded, strict=True)]
    return emit("tile", [x], shape, x.dtype, repeats=counts)


@locates_errors
def repeat(x: Traced, repeats: object, /, *, axis: int | None = None) -> Traced:
    """Each element so many times along an axis; flat where that is None.

    How often has to be known while recording, since the shape depends on it.
    """
    counts = x.recorder.known(repeats) if isinstance(repeats, Traced) else np.asarray(repeats)
    if counts is None:
        raise InputError("how often elements are repeated is known only when the graph runs: give numbers")
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    along = normalize_axes(axis, x.ndim)[0]
    places = np.repeat(np.arange(x.shape[along]), counts)
    return pick_slices(x, places, along)


def pick_slices(x: Traced, places: np.ndarray[tuple[int], np.dtype[np.int64]], axis: int) -> Traced:
    """The slices at these positions of an axis, which are known and counted from the front."""
    shape = [*x.shape]
    shape[axis] = len(places)
    if not len(places):
        return cut(x, axis, 0, 0)
    return emit("gather", [x], shape, x.dtype, axis=axis, indices=places.tolist())
