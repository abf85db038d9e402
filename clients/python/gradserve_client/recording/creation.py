"""Functions that make arrays of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.elementwise import add, multiply, subtract
from gradserve_client.recording.emitting import (
    DEFAULT_FLOAT,
    FLOATING,
    cast,
    constant,
    dtype_of,
    emit,
    is_scalar,
    lift,
    promote,
    require_ordered,
)
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.manipulation import broadcast_to, extents, reshape, stack
from gradserve_client.recording.recorder import Scalar, Traced
from gradserve_client.tensors import Array

#: whole numbers up to which the op `full` has them exactly
_EXACT: Final = 2**53
Number = Scalar | Traced


@locates_errors
def asarray(obj: object, /, *, dtype: object = None, device: object = None, copy: bool | None = None) -> Traced:
    """An array of anything like one: numbers, NumPy's arrays, lists, also of recorded arrays."""
    wanted = None if dtype is None else dtype_of(dtype)
    if not isinstance(obj, Traced):
        obj = _stacked(obj) if _holds_traced(obj) else constant(obj, wanted)
    made = obj if wanted is None else cast(obj, wanted)
    return made.recorder.array(made.node, made.shape, made.dtype) if copy else made


def _holds_traced(obj: object) -> bool:
    return isinstance(obj, Traced) or (isinstance(obj, list | tuple) and any(map(_holds_traced, obj)))


def _stacked(obj: object) -> Traced:
    if not isinstance(obj, list | tuple):
        return lift(obj)
    return stack(promote(*(each if is_scalar(each) else _stacked(each) for each in obj)))


@locates_errors
def full(shape: int | Sequence[int], fill_value: Number, *, dtype: object = None, device: object = None) -> Traced:
    """An array of one number, which may be a recorded one."""
    wanted = None if dtype is None else dtype_of(dtype)
    if isinstance(fill_value, Traced):
        return broadcast_to(fill_value if wanted is None else cast(fill_value, wanted), shape)
    stated = np.asarray(fill_value, wanted)
    if not isinstance(fill_value, complex) and math.isfinite(fill_value) and abs(fill_value) <= _EXACT:
        sizes = extents(shape)
        return emit("full", [], sizes, stated.dtype, shape=sizes, fill=float(fill_value), dtype=stated.dtype)
    return broadcast_to(constant(stated), shape)


@locates_errors
def zeros(shape: int | Sequence[int], *, dtype: object = None, device: object = None) -> Traced:
    """Zeros."""
    return full(shape, 0.0, dtype=dtype or DEFAULT_FLOAT)


@locates_errors
def ones(shape: int | Sequence[int], *, dtype: object = None, device: object = None) -> Traced:
    """Ones."""
    return full(shape, 1.0, dtype=dtype or DEFAULT_FLOAT)


@locates_errors
def empty(shape: int | Sequence[int], *, dtype: object = None, device: object = None) -> Traced:
    """Zeros, too: nothing here is without a value."""
    return zeros(shape, dtype=dtype)


@locates_errors
def full_like(x: Traced, /, fill_value: Number, *, dtype: object = None, device: object = None) -> Traced:
    """An array of one number, of the shape of another, and its dtype unless one is given."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype)


@locates_errors
def zeros_like(x: Traced, /, *, dtype: object = None, device: object = None) -> Traced:
    """Zeros of the shape of another array."""
    return full_like(x, 0, dtype=dtype)


@locates_errors
def ones_like(x: Traced, /, *, dtype: object = None, device: object = None) -> Traced:
    """Ones of the shape of another array."""
    return full_like(x, 1, dtype=dtype)


@locates_errors
def empty_like(x: Traced, /, *, dtype: object = None, device: object = None) -> Traced:
    """Zeros of the shape of another array."""
    return zeros_like(x, dtype=dtype)


@locates_errors
def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: object = None, device: object = None
) -> Traced:
    """Evenly spaced numbers before an end."""
    given = (start, stop, step) if stop is not None else (0, start, step)
    bounds = [_number(each) for each in given]
    array = np.arange(*bounds, dtype=None if dtype is None else dtype_of(dtype))
    if array.dtype.kind not in FLOATING and all(isinstance(each, int) for each in bounds):
        first, end, by = map(float, bounds)
        return emit("arange", [], array.shape, array.dtype, start=first, stop=end, step=by, dtype=array.dtype)
    return constant(array)


def _number(value: Number) -> float:
    """A number while recording; of a recorded array, what a look at it gives. Raises InputError for complex ones."""
    if isinstance(value, Traced):
        return require_ordered(value).recorder.value(value, "a bound")
    number: Scalar = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, complex):
        raise InputError(f"bounds are real numbers, and {number} is complex")
    return number


@locates_errors
def linspace(
    start: Number, stop: Number, /, num: int, *, dtype: object = None, device: object = None, endpoint: bool = True
) -> Traced:
    """So many evenly spaced numbers. Both ends may be recorded arrays of no axis."""
    wanted = None if dtype is None else dtype_of(dtype)
    if not isinstance(start, Traced) and not isinstance(stop, Traced):
        spaced_here: Array = np.linspace(start, stop, num, endpoint=endpoint)
        return constant(spaced_here if wanted is None else spaced_here.astype(wanted))
    first, last = promote(start, stop, floating=True)
    parts = constant(np.linspace(0.0, 1.0, num, endpoint=endpoint), first.dtype)
    spaced = add(first, multiply(subtract(last, first), cast(parts, first.dtype)))
    return spaced if wanted is None else cast(spaced, wanted)


@locates_errors
def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: object = None, device: object = None
) -> Traced:
    """Ones on a diagonal, and zeros elsewhere."""
    return tril(triu(ones((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype), k=k), k=k)


def _triangle(op: Literal["tril", "triu"], x: Traced, k: int) -> Traced:
    if x.ndim < 2:
        raise InputError(f"matrices have two axes, and {x.type_name} has {x.ndim}")
    return emit(op, [x], x.shape, x.dtype, offset=k)


@locates_errors
def tril(x: Traced, /, *, k: int = 0) -> Traced:
    """The part on and below a diagonal, and zeros above."""
    return _triangle("tril", x, k)


@locates_errors
def triu(x: Traced, /, *, k: int = 0) -> Traced:
    """The part on and above a diagonal, and zeros below."""
    return _triangle("triu", x, k)


@locates_errors
def meshgrid(*arrays: Traced, indexing: Literal["xy", "ij"] = "xy") -> list[Traced]:
    """The coordinates of a grid, an array for each of those of its axes."""
    if any(array.ndim != 1 for array in arrays):
        raise InputError(f"coordinates have one axis: {', '.join(array.type_name for array in arrays)}")
    order = [*range(len(arrays))]
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    sizes = [0] * len(arrays)
    for place, array in zip(order, arrays, strict=True):
        sizes[place] = array.size
    return [
        broadcast_to(reshape(array, [array.size if i == place else 1 for i in range(len(sizes))]), sizes)
        for place, array in zip(order, arrays, strict=True)
    ]
