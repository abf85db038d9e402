"""Functions that create arrays."""

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

#: largest integer that the op `full`, whose attribute is a float64, represents exactly
_MAX_EXACT_INTEGER: Final = 2**53
Number = Scalar | Traced


@locates_errors
def asarray(obj: object, /, *, dtype: object = None, device: object = None, copy: bool | None = None) -> Traced:
    """Convert a number, a NumPy array, or nested lists of numbers and arrays to a recorded array.

    Without `dtype`, it has the common dtype of the elements. Raises RecordingError for other objects, and for an
    unsupported dtype.
    """
    target = None if dtype is None else dtype_of(dtype)
    if not isinstance(obj, Traced):
        obj = _stack_nested(obj) if _holds_traced(obj) else constant(obj, target)
    result = obj if target is None else cast(obj, target)
    return result.recorder.array(result.node, result.shape, result.dtype) if copy else result


def _holds_traced(obj: object) -> bool:
    return isinstance(obj, Traced) or (isinstance(obj, list | tuple) and any(map(_holds_traced, obj)))


def _stack_nested(obj: object) -> Traced:
    if not isinstance(obj, list | tuple):
        return lift(obj)
    return stack(promote(*(each if is_scalar(each) else _stack_nested(each) for each in obj)))


@locates_errors
def full(shape: int | Sequence[int], fill_value: Number, *, dtype: object = None, device: object = None) -> Traced:
    """Return an array of one number, which may be a recorded scalar. Its dtype defaults to that of the number."""
    target = None if dtype is None else dtype_of(dtype)
    if isinstance(fill_value, Traced):
        return broadcast_to(fill_value if target is None else cast(fill_value, target), shape)
    array = np.asarray(fill_value, target)
    if not isinstance(fill_value, complex) and math.isfinite(fill_value) and abs(fill_value) <= _MAX_EXACT_INTEGER:
        sizes = extents(shape)
        return emit("full", [], sizes, array.dtype, shape=sizes, fill=float(fill_value), dtype=array.dtype)
    return broadcast_to(constant(array), shape)


@locates_errors
def zeros(shape: int | Sequence[int], *, dtype: object = None, device: object = None) -> Traced:
    """Return an array of zeros, of float64 by default."""
    return full(shape, 0.0, dtype=dtype or DEFAULT_FLOAT)


@locates_errors
def ones(shape: int | Sequence[int], *, dtype: object = None, device: object = None) -> Traced:
    """Return an array of ones, of float64 by default."""
    return full(shape, 1.0, dtype=dtype or DEFAULT_FLOAT)


@locates_errors
def empty(shape: int | Sequence[int], *, dtype: object = None, device: object = None) -> Traced:
    """Return an array of zeros, of float64 by default: graphs have no uninitialised memory."""
    return zeros(shape, dtype=dtype)


@locates_errors
def full_like(x: Traced, /, fill_value: Number, *, dtype: object = None, device: object = None) -> Traced:
    """Return an array of one number with the shape, and by default the dtype, of x."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype)


@locates_errors
def zeros_like(x: Traced, /, *, dtype: object = None, device: object = None) -> Traced:
    """Return an array of zeros with the shape, and by default the dtype, of x."""
    return full_like(x, 0, dtype=dtype)


@locates_errors
def ones_like(x: Traced, /, *, dtype: object = None, device: object = None) -> Traced:
    """Return an array of ones with the shape, and by default the dtype, of x."""
    return full_like(x, 1, dtype=dtype)


@locates_errors
def empty_like(x: Traced, /, *, dtype: object = None, device: object = None) -> Traced:
    """Return an array of zeros with the shape, and by default the dtype, of x."""
    return zeros_like(x, dtype=dtype)


@locates_errors
def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: object = None, device: object = None
) -> Traced:
    """Return evenly spaced numbers from `start` to `stop` (exclusive). Without `stop`, from 0 to `start`.

    A recorded bound is read, which requires guarded values.
    """
    limits = (start, stop, step) if stop is not None else (0, start, step)
    bounds = [_number(each) for each in limits]
    array = np.arange(*bounds, dtype=None if dtype is None else dtype_of(dtype))
    if array.dtype.kind not in FLOATING and all(isinstance(each, int) for each in bounds):
        first, end, increment = map(float, bounds)
        return emit("arange", [], array.shape, array.dtype, start=first, stop=end, step=increment, dtype=array.dtype)
    return constant(array)


def _number(value: Number) -> float:
    """Return a real number; a recorded array is read. Raises InputError for complex numbers."""
    if isinstance(value, Traced):
        return require_ordered(value).recorder.value(value, "a bound")
    number: Scalar = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, complex):
        raise InputError(f"bounds must be real numbers, but {number} is complex")
    return number


@locates_errors
def linspace(
    start: Number, stop: Number, /, num: int, *, dtype: object = None, device: object = None, endpoint: bool = True
) -> Traced:
    """Return `num` evenly spaced numbers from `start` to `stop`, inclusive with `endpoint`.

    Both may be recorded scalars, with respect to which the result is differentiable.
    """
    target = None if dtype is None else dtype_of(dtype)
    if not isinstance(start, Traced) and not isinstance(stop, Traced):
        numbers: Array = np.linspace(start, stop, num, endpoint=endpoint)
        return constant(numbers if target is None else numbers.astype(target))
    first, last = promote(start, stop, floating=True)
    fractions = constant(np.linspace(0.0, 1.0, num, endpoint=endpoint), first.dtype)
    result = add(first, multiply(subtract(last, first), cast(fractions, first.dtype)))
    return result if target is None else cast(result, target)


@locates_errors
def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: object = None, device: object = None
) -> Traced:
    """Return a matrix with ones on the diagonal `k`, and zeros elsewhere; of float64 by default."""
    return tril(triu(ones((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype), k=k), k=k)


def _triangle(op: Literal["tril", "triu"], x: Traced, k: int) -> Traced:
    if x.ndim < 2:
        raise InputError(f"matrices need at least two axes, but {x.type_name} has {x.ndim}")
    return emit(op, [x], x.shape, x.dtype, offset=k)


@locates_errors
def tril(x: Traced, /, *, k: int = 0) -> Traced:
    """Return the lower triangles of matrices: zeros above the diagonal `k`."""
    return _triangle("tril", x, k)


@locates_errors
def triu(x: Traced, /, *, k: int = 0) -> Traced:
    """Return the upper triangles of matrices: zeros below the diagonal `k`."""
    return _triangle("triu", x, k)


@locates_errors
def meshgrid(*arrays: Traced, indexing: Literal["xy", "ij"] = "xy") -> list[Traced]:
    """Return the coordinate arrays of a grid, one for each 1-d array of coordinates along an axis.

    With `indexing="xy"` the first two axes are swapped: the shape is (n₂, n₁, n₃, …).
    """
    if any(array.ndim != 1 for array in arrays):
        raise InputError(f"coordinates must have one axis, got {', '.join(array.type_name for array in arrays)}")
    order = [*range(len(arrays))]
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    sizes = [0] * len(arrays)
    for axis, array in zip(order, arrays, strict=True):
        sizes[axis] = array.size
    return [
        broadcast_to(reshape(array, [array.size if i == axis else 1 for i in range(len(sizes))]), sizes)
        for axis, array in zip(order, arrays, strict=True)
    ]
