"""Sorting, searching, and selection by position."""

from __future__ import annotations

import math
import operator
from typing import Literal, NamedTuple

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.elementwise import add, less, less_equal, not_equal, subtract, where
from gradserve_client.recording.emitting import (
    BOOL,
    DEFAULT_INT,
    Operand,
    constant,
    emit,
    lift,
    normalize_axes,
    promote,
    require_ordered,
)
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.manipulation import flip, moveaxis, pick_slices, reshape
from gradserve_client.recording.missing import SHAPES
from gradserve_client.recording.recorder import Traced
from gradserve_client.recording.reductions import count_nonzero, reduced_shape


def _arg_extreme(op: str, x: Traced, axis: int | None, *, keepdims: bool) -> Traced:
    x = require_ordered(x)
    if axis is None:
        position = emit(op, [reshape(x, (-1,))], (), DEFAULT_INT, axis=0)
        return reshape(position, (1,) * x.ndim) if keepdims else position
    along = normalize_axes(axis, x.ndim)
    shape = reduced_shape(x.shape, along, keepdims=keepdims)
    return emit(op, [x], shape, DEFAULT_INT, axis=along[0], keepdims=keepdims)


@locates_errors
def argmax(x: Traced, /, *, axis: int | None = None, keepdims: bool = False) -> Traced:
    """Return the position of the first of the largest elements, as int64; in the flattened array if `axis` is None."""
    return _arg_extreme("argmax", x, axis, keepdims=keepdims)


@locates_errors
def argmin(x: Traced, /, *, axis: int | None = None, keepdims: bool = False) -> Traced:
    """Return the position of the first of the smallest elements, as int64; in the flattened array if `axis` is None."""
    return _arg_extreme("argmin", x, axis, keepdims=keepdims)


@locates_errors
def sort(x: Traced, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Traced:
    """Sort the elements along an axis."""
    along = normalize_axes(axis, x.ndim)[0]
    ascending = emit("sort", [require_ordered(x)], x.shape, x.dtype, axis=along)
    return flip(ascending, axis=along) if descending else ascending


@locates_errors
def argsort(x: Traced, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Traced:
    """Return the positions, as int64, that sort the elements along an axis. Equal elements keep their order."""
    x, along = require_ordered(x), normalize_axes(axis, x.ndim)[0]
    if not descending:
        return emit("argsort", [x], x.shape, DEFAULT_INT, axis=along)
    # The input is reversed as well as the result, so that equal elements keep their order.
    ascending = emit("argsort", [flip(x, axis=along)], x.shape, DEFAULT_INT, axis=along)
    return subtract(x.shape[along] - 1, flip(ascending, axis=along))


@locates_errors
def searchsorted(
    x1: Traced, x2: Traced, /, *, side: Literal["left", "right"] = "left", sorter: Traced | None = None
) -> Traced:
    """Return the positions, as int64, at which the elements of x2 would be inserted into the sorted x1.

    Compares all elements of x1 with all of x2.
    """
    if x1.ndim != 1:
        raise InputError(f"the searched array must have one axis, but {x1.type_name} has {x1.ndim}")
    sorted_array, values = promote(x1 if sorter is None else take(x1, sorter), x2)
    before = less if side == "left" else less_equal
    return count_nonzero(before(sorted_array, reshape(values, (*values.shape, 1))), axis=-1)


def normalize_indices(indices: Traced, extent: int) -> Traced:
    """Return positions with negative ones, which count from the end, replaced.

    Raises InputError if they are not integers, or if constant positions are out of bounds.
    """
    if indices.dtype.kind not in "iu":
        raise InputError(f"positions must be integers, got {indices.type_name}")
    known = indices.recorder.known(indices)
    if known is None:
        return indices if indices.dtype.kind == "u" else where(less(indices, 0), add(indices, extent), indices)
    if known.size and not (-extent <= known.min() and known.max() < extent):
        raise InputError(f"a position is out of range for an axis of extent {extent}")
    return constant(np.where(known < 0, known + extent, known).astype(np.int64)) if (known < 0).any() else indices


@locates_errors
def take(x: Traced, indices: Traced, /, *, axis: int | None = None) -> Traced:
    """Return the slices at positions along an axis, which may be omitted if there is only one axis."""
    if axis is None and x.ndim != 1:
        raise InputError(f"axis can be omitted only for arrays with one axis, but {x.type_name} has {x.ndim}")
    along = normalize_axes(0 if axis is None else axis, x.ndim)[0]
    positions = normalize_indices(lift(indices), x.shape[along])
    known = x.recorder.known(positions)
    if known is not None and positions.ndim == 1:
        return pick_slices(x, known, along)
    rows = moveaxis(x, along, 0)
    result = emit("embedding", [rows, positions], positions.shape + rows.shape[1:], x.dtype)
    axes = tuple(range(positions.ndim))
    return moveaxis(result, axes, tuple(along + i for i in axes)) if axes else result


@locates_errors
def take_along_axis(x: Traced, indices: Traced, /, *, axis: int = -1) -> Traced:
    """Return the elements at positions along an axis. Other extents of `indices` must broadcast with those of x."""
    along = normalize_axes(axis, x.ndim)[0]
    positions = normalize_indices(lift(indices), x.shape[along])
    if positions.ndim != x.ndim:
        raise InputError(f"positions must have as many axes as the array, got {positions.type_name} for {x.type_name}")
    try:
        other_extents = [(*part.shape[:along], 1, *part.shape[along + 1 :]) for part in (x, positions)]
        shape = [*np.broadcast_shapes(*other_extents)]
    except ValueError:
        raise InputError(f"the positions {positions.type_name} do not match {x.type_name}") from None
    shape[along] = positions.shape[along]
    return emit("take_along", [x, positions], shape, x.dtype, axis=along)


class NonzeroResult(NamedTuple):
    """The positions of nonzero elements, int64 of shape (k, rank), and their number, an int64 scalar."""

    places: Traced
    taken: Traced


@locates_errors
def nonzero(x: Traced, /, k: int | None = None) -> NonzeroResult:
    """Return the positions of the first k nonzero elements in row-major order: `places[:, i]` along axis i.

    `taken` is the number of nonzero elements; if it is below k, the remaining positions are zeros. Raises
    RecordingError without k, unlike the standard: the shape would depend on data.
    """
    if k is None:
        raise InputError(
            f"{SHAPES}; choose with where(), or pass the number of elements: nonzero(x, k), compress(mask, x, k)"
        )
    mask, shape = x if x.dtype == BOOL else not_equal(x, 0), (operator.index(k), x.ndim)
    node_array = emit("nonzero", [mask], shape, DEFAULT_INT, k=shape[0])
    results = [emit("get_output", [node_array], each, DEFAULT_INT, index=i) for i, each in enumerate((shape, ()))]
    return NonzeroResult(*results)


class CompressResult(NamedTuple):
    """The k entries that a mask selects, and the number of entries it selects, an int64 scalar."""

    entries: Traced
    taken: Traced


@locates_errors
def compress(condition: Operand, x: Traced, /, k: int, *, axis: int = 0, fill: float = 0.0) -> CompressResult:
    """Return the first k entries of x along an axis for which the condition is true, with their number.

    It replaces x[condition], whose shape would depend on data. Further entries are dropped, as `taken` tells; missing
    ones are `fill`, without a gradient.
    """
    mask, along = lift(condition), normalize_axes(axis, x.ndim)[0]
    if (mask.dtype, mask.shape) != (BOOL, x.shape[along : along + 1]):
        raise InputError(f"expected a mask of {x.shape[along]} bools, got {mask.type_name}")
    fill_attr = {"fill": float(fill)} if math.isfinite(fill) else {"fill_as": str(float(fill))}
    shape = (*x.shape[:along], operator.index(k), *x.shape[along + 1 :])
    node_array = emit("compress", [x, mask], shape, x.dtype, k=operator.index(k), axis=along, **fill_attr)
    entries = emit("get_output", [node_array], shape, x.dtype, index=0)
    return CompressResult(entries, emit("get_output", [node_array], (), DEFAULT_INT, index=1))
