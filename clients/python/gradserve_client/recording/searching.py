"""Functions that order elements, look for them, and pick them by position."""

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


def _extreme(op: str, x: Traced, axis: int | None, *, keepdims: bool) -> Traced:
    x = require_ordered(x)
    if axis is None:
        found = emit(op, [reshape(x, (-1,))], (), DEFAULT_INT, axis=0)
        return reshape(found, (1,) * x.ndim) if keepdims else found
    along = normalize_axes(axis, x.ndim)
    shape = reduced_shape(x.shape, along, keepdims=keepdims)
    return emit(op, [x], shape, DEFAULT_INT, axis=along[0], keepdims=keepdims)


@locates_errors
def argmax(x: Traced, /, *, axis: int | None = None, keepdims: bool = False) -> Traced:
    """Where the first of the largest elements is."""
    return _extreme("argmax", x, axis, keepdims=keepdims)


@locates_errors
def argmin(x: Traced, /, *, axis: int | None = None, keepdims: bool = False) -> Traced:
    """Where the first of the smallest elements is."""
    return _extreme("argmin", x, axis, keepdims=keepdims)


@locates_errors
def sort(x: Traced, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Traced:
    """The elements in order along an axis."""
    along = normalize_axes(axis, x.ndim)[0]
    upwards = emit("sort", [require_ordered(x)], x.shape, x.dtype, axis=along)
    return flip(upwards, axis=along) if descending else upwards


@locates_errors
def argsort(x: Traced, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Traced:
    """The positions that put the elements in order along an axis; of equal ones, the first before the others."""
    x, along = require_ordered(x), normalize_axes(axis, x.ndim)[0]
    if not descending:
        return emit("argsort", [x], x.shape, DEFAULT_INT, axis=along)
    # Turned round twice, so that equal elements keep their order.
    ascending = emit("argsort", [flip(x, axis=along)], x.shape, DEFAULT_INT, axis=along)
    return subtract(x.shape[along] - 1, flip(ascending, axis=along))


@locates_errors
def searchsorted(
    x1: Traced, x2: Traced, /, *, side: Literal["left", "right"] = "left", sorter: Traced | None = None
) -> Traced:
    """Where elements of x2 belong in x1, which is sorted: how many of its elements are before each.

    By comparing all with all.
    """
    if x1.ndim != 1:
        raise InputError(f"what is searched has one axis, and {x1.type_name} has {x1.ndim}")
    within, sought = promote(x1 if sorter is None else take(x1, sorter), x2)
    before = less if side == "left" else less_equal
    return count_nonzero(before(within, reshape(sought, (*sought.shape, 1))), axis=-1)


def normalize_indices(indices: Traced, extent: int) -> Traced:
    """Positions of which negative ones count from the end, as those that the ops take."""
    if indices.dtype.kind not in "iu":
        raise InputError(f"positions are whole numbers, and these are {indices.type_name}")
    known = indices.recorder.known(indices)
    if known is None:
        return indices if indices.dtype.kind == "u" else where(less(indices, 0), add(indices, extent), indices)
    if known.size and not (-extent <= known.min() and known.max() < extent):
        raise InputError(f"there are positions beyond an axis of {extent}")
    return constant(np.where(known < 0, known + extent, known).astype(np.int64)) if (known < 0).any() else indices


@locates_errors
def take(x: Traced, indices: Traced, /, *, axis: int | None = None) -> Traced:
    """The slices at these positions of an axis; it may be absent where there is one only."""
    if axis is None and x.ndim != 1:
        raise InputError(f"axis may be absent for one axis only, and {x.type_name} has {x.ndim}")
    along = normalize_axes(0 if axis is None else axis, x.ndim)[0]
    places = normalize_indices(lift(indices), x.shape[along])
    known = x.recorder.known(places)
    if known is not None and places.ndim == 1:
        return pick_slices(x, known, along)
    rows = moveaxis(x, along, 0)
    read = emit("embedding", [rows, places], places.shape + rows.shape[1:], x.dtype)
    axes = tuple(range(places.ndim))
    return moveaxis(read, axes, tuple(along + i for i in axes)) if axes else read


@locates_errors
def take_along_axis(x: Traced, indices: Traced, /, *, axis: int = -1) -> Traced:
    """Elements at positions along an axis, other ones in each row."""
    along = normalize_axes(axis, x.ndim)[0]
    places = normalize_indices(lift(indices), x.shape[along])
    if places.ndim != x.ndim:
        raise InputError(f"positions have as many axes as what they are of: {places.type_name} for {x.type_name}")
    try:
        off = [(*part.shape[:along], 1, *part.shape[along + 1 :]) for part in (x, places)]
        shape = [*np.broadcast_shapes(*off)]
    except ValueError:
        raise InputError(f"positions {places.type_name} do not fit {x.type_name}") from None
    shape[along] = places.shape[along]
    return emit("take_along", [x, places], shape, x.dtype, axis=along)


class NonzeroResult(NamedTuple):
    """Where elements are that are not 0, k rows of an index for each axis; and how many there are."""

    places: Traced
    taken: Traced


@locates_errors
def nonzero(x: Traced, /, k: int | None = None) -> NonzeroResult:
    """Where the first k elements are that are not 0, in the order of rows: `places[:, i]` along axis i, of 64 bits.

    `taken` tells how many there are; where these are fewer, zeros lie behind. Raises InputError without k, which the
    standard does without: the shape would depend on data.
    """
    if k is None:
        raise InputError(f"{SHAPES}; choose with where(), or state how many: nonzero(x, k), compress(mask, x, k)")
    mask, shape = x if x.dtype == BOOL else not_equal(x, 0), (operator.index(k), x.ndim)
    both = emit("nonzero", [mask], shape, DEFAULT_INT, k=shape[0])
    found = [emit("get_output", [both], each, DEFAULT_INT, index=i) for i, each in enumerate((shape, ()))]
    return NonzeroResult(*found)


class CompressResult(NamedTuple):
    """The entries that a mask takes, k of them, and how many it took."""

    entries: Traced
    taken: Traced


@locates_errors
def compress(condition: Operand, x: Traced, /, k: int, *, axis: int = 0, fill: float = 0.0) -> CompressResult:
    """The k entries of x along an axis where the condition holds, in place of x[condition], whose shape nobody knows.

    Those beyond k are cut, which `taken` tells; behind what is taken lies `fill`, to which no gradient goes.
    """
    mask, along = lift(condition), normalize_axes(axis, x.ndim)[0]
    if (mask.dtype, mask.shape) != (BOOL, x.shape[along : along + 1]):
        raise InputError(f"a mask of {x.shape[along]} bools is needed, and {mask.type_name} is none")
    stated = {"fill": float(fill)} if math.isfinite(fill) else {"fill_as": str(float(fill))}
    shape = (*x.shape[:along], operator.index(k), *x.shape[along + 1 :])
    both = emit("compress", [x, mask], shape, x.dtype, k=operator.index(k), axis=along, **stated)
    entries = emit("get_output", [both], shape, x.dtype, index=0)
    return CompressResult(entries, emit("get_output", [both], (), DEFAULT_INT, index=1))
