"""Indexing: `x[key]`, and `x[key] = value` as a new node.

Basic keys, of integers, slices, None and Ellipsis, become one `slice`, `flip` and `reshape`. Keys with integer arrays
follow NumPy's advanced indexing: the slices are applied first, then the remaining axes are gathered. For instance
`x[1:, rows, cols]` is `x[1:]`, with the last two axes merged into one, read at `rows * n + cols`.

A graph cannot change an array, so an assignment computes a new one. It depends on what is known while recording:
`update_slice` for a box of adjacent elements; a gather from x and the new values, if all positions are constants; and
`where` or `index_set`, if positions are known only when the graph runs. Masks are allowed if they are constants, or if
the shape of the result does not depend on them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.elementwise import add, equal, multiply, where
from gradserve_client.recording.emitting import BOOL, DEFAULT_INT, broadcast_shape, cast, constant, emit, lift
from gradserve_client.recording.manipulation import broadcast_to, moveaxis, permute_dims, reshape
from gradserve_client.recording.recorder import Traced
from gradserve_client.recording.searching import normalize_indices, take
from gradserve_client.tensors import Array

_UNKNOWN: Final = "the number of elements that a mask selects is known only when the graph runs"
_MASK: Final = f"{_UNKNOWN}: choose with where(), or pass the number with compress(mask, x, k)"


class AxisSlice(NamedTuple):
    """The positions that a slice or integer selects along an axis. `reversed`: from the last to the first.

    `keeps_axis` is False for an integer, which removes the axis.
    """

    start: int
    stop: int
    step: int
    reversed: bool
    keeps_axis: bool

    @property
    def extent(self) -> int:
        """The number of positions."""
        return len(range(self.start, self.stop, self.step))


def getitem(x: Traced, key: Any) -> Traced:
    """Return the elements at a key: integers, slices, None, Ellipsis, integer arrays, and tuples of these.

    Raises InputError for masks, unless they are constants, and IndexError for positions out of bounds.
    """
    parts = _parts(x, key)
    if not any(isinstance(part, Traced) for part in parts):
        return _basic(x, parts)
    return _advanced(x, parts)


def _parts(x: Traced, key: Any) -> list[Any]:
    """Expand a key to one entry for each axis, and None for new axes. Arrays in it become recorded arrays."""
    parts = [_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    parts = [expanded for part in parts for expanded in (_positions(part) if _is_mask(part) else [part])]
    indexed = sum(part is not None and part is not Ellipsis for part in parts)
    if indexed > x.ndim:
        raise IndexError(f"{x.type_name} has {x.ndim} axes, but {indexed} are indexed")
    ellipses = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1:
        raise InputError("an index can contain only one Ellipsis")
    position = ellipses[0] if ellipses else len(parts)
    return parts[:position] + [slice(None)] * (x.ndim - indexed) + parts[position + 1 :]


def _part(part: Any) -> Any:
    if part is None or part is Ellipsis or isinstance(part, slice | Traced):
        return part
    if isinstance(part, int | np.integer) and not isinstance(part, bool):
        return int(part)
    if isinstance(part, list | np.ndarray | bool | np.bool_):
        return constant(part if np.size(part) else np.asarray(part, np.int64))
    raise InputError(f"{type(part).__name__} is not a valid index")


def _is_mask(part: Any) -> bool:
    return isinstance(part, Traced) and part.dtype == BOOL


def _positions(mask: Traced) -> list[Traced]:
    """Return the positions that a mask selects, one array for each of its axes."""
    known = mask.recorder.known(mask)
    if known is None or not known.ndim:
        raise InputError(_MASK)
    return [constant(axis) for axis in np.nonzero(known)]


def _basic(x: Traced, parts: list[Any]) -> Traced:
    """Index with integers, slices and new axes."""
    slices = _axis_slices(x, parts)
    if any(each != _whole_axis(extent) for each, extent in zip(slices, x.shape, strict=True)):
        x = _slice(x, slices)
    reversed_axes = [axis for axis, each in enumerate(slices) if each.reversed]
    if reversed_axes:
        x = emit("flip", [x], x.shape, x.dtype, axes=reversed_axes)
    remaining = iter(slices)
    shape = [
        1 if part is None else each.extent
        for part in parts
        for each in [_next_slice(part, remaining)]
        if each.keeps_axis
    ]
    return reshape(x, shape)


def _next_slice(part: Any, slices: Any) -> AxisSlice:
    axis_slice: AxisSlice = _whole_axis(1) if part is None else next(slices)
    return axis_slice


def _whole_axis(extent: int) -> AxisSlice:
    return AxisSlice(0, extent, 1, reversed=False, keeps_axis=True)


def _slice(x: Traced, slices: list[AxisSlice]) -> Traced:
    starts, stops, steps = ([getattr(each, name) for each in slices] for name in ("start", "stop", "step"))
    return emit("slice", [x], [each.extent for each in slices], x.dtype, starts=starts, stops=stops, steps=steps)


def _axis_slices(x: Traced, parts: list[Any]) -> list[AxisSlice]:
    """Return the positions selected along each axis. Raises IndexError for an integer out of bounds."""
    indexed = [part for part in parts if part is not None]
    return [_axis_slice(part, extent) for part, extent in zip(indexed, x.shape, strict=True)]


def _axis_slice(part: Any, extent: int) -> AxisSlice:
    if isinstance(part, int):
        if not -extent <= part < extent:
            raise IndexError(f"position {part} is out of range for an axis of extent {extent}")
        return AxisSlice(part % extent, part % extent + 1, 1, reversed=False, keeps_axis=False)
    positions = range(*part.indices(extent))
    if not positions:
        return AxisSlice(0, 0, 1, reversed=False, keeps_axis=True)
    is_reversed = positions.step < 0
    positions = positions[::-1] if is_reversed else positions
    return AxisSlice(positions.start, positions[-1] + 1, positions.step, is_reversed, keeps_axis=True)


def _advanced(x: Traced, parts: list[Any]) -> Traced:
    """Index with integer arrays. Integers in the key count as arrays; NumPy's rule places the resulting axes."""
    axes_of_indices = [i for i, part in enumerate(parts) if isinstance(part, Traced | int)]
    basic = [slice(None) if i in axes_of_indices else part for i, part in enumerate(parts)]
    x = _basic(x, basic)
    indices = [normalize_indices(lift(parts[i]), x.shape[i]) for i in axes_of_indices]
    # NumPy's rule: the axes of adjacent index arrays replace the indexed ones; otherwise they come first.
    first_axis = axes_of_indices[0] if axes_of_indices[-1] - axes_of_indices[0] == len(axes_of_indices) - 1 else 0
    if len(axes_of_indices) == 1:
        return take(x, indices[0], axis=axes_of_indices[0])
    rest = [i for i in range(x.ndim) if i not in axes_of_indices]
    extents = [x.shape[i] for i in axes_of_indices]
    flat = reshape(permute_dims(x, (*axes_of_indices, *rest)), (-1, *(x.shape[i] for i in rest)) if x.size else (0,))
    result = take(flat, _linear(indices, extents), axis=0)
    axes = tuple(range(result.ndim - len(rest)))
    return moveaxis(result, axes, tuple(first_axis + i for i in axes)) if axes else result


def _linear(indices: list[Traced], extents: list[int]) -> Traced:
    """Return positions on the axis that several axes are merged into."""
    known = [index.recorder.known(index) for index in indices]
    if all(index is not None for index in known):
        arrays = np.broadcast_arrays(*(index for index in known if index is not None))
        return constant(np.asarray(np.ravel_multi_index(tuple(arrays), extents), np.int64))
    linear, *others = indices
    for index, extent in zip(others, extents[1:], strict=True):
        linear = add(multiply(linear, extent), index)
    return linear


def setitem(x: Traced, key: Any, value: Any) -> Traced:
    """Return x with other elements at a key, in the dtype of x.

    A mask that is not a constant must match the leading axes of x, and assigns one value to all positions that it
    selects. If positions repeat, the last value counts.
    """
    value_array = cast(lift(value, x.dtype), x.dtype)
    if _is_mask(key) and x.recorder.known(key) is None:
        return _masked(x, key, value_array)
    parts = _parts(x, key)
    unknown = [i for i, part in enumerate(parts) if isinstance(part, Traced) and x.recorder.known(part) is None]
    if len(unknown) == 1 and _is_one_position(parts, unknown[0]):
        return _at_one_position(x, parts, unknown[0], value_array)
    if unknown:
        return _at_positions(x, parts, value_array)
    if any(isinstance(part, Traced) for part in parts):
        return _scattered(x, parts, value_array)
    slices = _axis_slices(x, parts)
    if any(each.step > 1 or each.reversed for each in slices):
        return _scattered(x, parts, value_array)
    return _box(x, parts, slices, value_array)


def _box(x: Traced, parts: list[Any], slices: list[AxisSlice], value_array: Traced) -> Traced:
    """Assign to a box of adjacent elements."""
    remaining = iter(slices)
    shape = [
        1 if part is None else each.extent
        for part in parts
        for each in [_next_slice(part, remaining)]
        if each.keeps_axis
    ]
    update = reshape(
        broadcast_to(_without_extra_axes(value_array, len(shape)), shape), [each.extent for each in slices]
    )
    return (
        emit("update_slice", [x, update], x.shape, x.dtype, starts=[each.start for each in slices])
        if x.ndim
        else update
    )


def _without_extra_axes(value_array: Traced, ndim: int) -> Traced:
    """Remove leading axes of extent 1 beyond the number of axes that is assigned to."""
    extra = value_array.ndim - ndim
    return (
        reshape(value_array, value_array.shape[extra:])
        if extra > 0 and set(value_array.shape[:extra]) == {1}
        else value_array
    )


def _masked(x: Traced, mask: Traced, value_array: Traced) -> Traced:
    if mask.shape != x.shape[: mask.ndim]:
        raise InputError(f"the mask {mask.type_name} does not match {x.type_name}")
    if value_array.ndim > x.ndim - mask.ndim:
        raise InputError(f"{_UNKNOWN}: choose with where(), or assign one element")
    return where(reshape(mask, mask.shape + (1,) * (x.ndim - mask.ndim)), value_array, x)


def _is_one_position(parts: list[Any], axis: int) -> bool:
    """Return whether the key is a single position along an axis, with all elements of the other axes."""
    return not parts[axis].ndim and all(part == slice(None) for i, part in enumerate(parts) if i != axis)


def _at_one_position(x: Traced, parts: list[Any], axis: int, value_array: Traced) -> Traced:
    """Assign to a position along one axis that is known only when the graph runs, with all elements of other axes."""
    index = normalize_indices(parts[axis], x.shape[axis])
    shape = [x.shape[axis] if i == axis else 1 for i in range(x.ndim)]
    is_selected = equal(reshape(constant(np.arange(x.shape[axis])), shape), index)
    rest = [extent for i, extent in enumerate(x.shape) if i != axis]
    update = reshape(broadcast_to(value_array, rest), [1 if i == axis else extent for i, extent in enumerate(x.shape)])
    return where(is_selected, update, x)


def _at_positions(x: Traced, parts: list[Any], value_array: Traced) -> Traced:
    """Assign to positions that are known only when the graph runs, within the part that the slices select.

    Raises InputError for new axes in the key.
    """
    if any(part is None for part in parts):
        raise InputError("an assignment cannot combine new axes with positions that are known only when the graph runs")
    axes = [i for i, part in enumerate(parts) if isinstance(part, Traced | int)]
    slices = [slice(None) if i in axes else part for i, part in enumerate(parts)]
    selected = _basic(x, slices)
    indices = [lift(parts[i]) for i in axes]
    for index in indices:
        if index.dtype.kind not in "iu":
            raise InputError(f"positions must be integers, got {index.type_name}")
    indices_int64 = [cast(index, DEFAULT_INT) for index in indices]
    shape = _shape_at(selected, axes, indices)
    update = broadcast_to(_without_extra_axes(value_array, len(shape)), shape)
    updated = emit("index_set", [selected, *indices_int64, update], selected.shape, x.dtype, axes=axes, from_end=True)
    return updated if all(part == slice(None) for part in slices) else setitem(x, tuple(slices), updated)


def _shape_at(x: Traced, axes: list[int], indices: list[Traced]) -> tuple[int, ...]:
    """Return the shape of the elements at positions along these axes."""
    rest = [extent for axis, extent in enumerate(x.shape) if axis not in axes]
    first = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    return (*rest[:first], *broadcast_shape(*indices), *rest[first:])


def _scattered(x: Traced, parts: list[Any], value_array: Traced) -> Traced:
    """Assign to elements that are not adjacent: each element of the result is read from x, or from the new values.

    If positions repeat, the last value counts.
    """
    key = tuple(x.recorder.known(part) if isinstance(part, Traced) else part for part in parts)
    positions: Array = np.asarray(np.arange(x.size).reshape(x.shape)[key])
    update = reshape(broadcast_to(_without_extra_axes(value_array, positions.ndim), positions.shape), (-1,))
    # Each element of the result as its position in x followed by the new values.
    sources = np.arange(x.size)
    sources[positions.reshape(-1)] = x.size + np.arange(positions.size)
    candidates = emit("cat", [reshape(x, (-1,)), update], (x.size + positions.size,), x.dtype, axis=0)
    return reshape(take(candidates, constant(sources)), x.shape)
