"""Reductions and cumulative functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradserve_client.errors import InputError
from gradserve_client.recording.elementwise import add, divide, imag, multiply, not_equal, real, sqrt, subtract
from gradserve_client.recording.emitting import (
    BOOL,
    DEFAULT_INT,
    FLOATING,
    cast,
    dtype_of,
    emit,
    normalize_axes,
    promote,
    require_ordered,
)
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.manipulation import join, reshape, slice_axis
from gradserve_client.recording.recorder import DType, Shape, Traced

Axis = int | Sequence[int] | None


def reduced_shape(shape: Shape, axes: Sequence[int], *, keepdims: bool) -> Shape:
    """Return the shape after a reduction over these axes."""
    if keepdims:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def reduce_axes(op: str, x: Traced, dtype: DType, axis: Axis, *, keepdims: bool, **attrs: float) -> Traced:
    """Append a reduction over axes. If `axis` is empty, each element is reduced on its own."""
    if axis is not None and not isinstance(axis, int) and not len(axis):
        x, axis, keepdims = reshape(x, (*x.shape, 1)), -1, False
    axes = normalize_axes(axis, x.ndim)
    shape = reduced_shape(x.shape, axes, keepdims=keepdims)
    return emit(op, [x], shape, dtype, axes=axes, keepdims=keepdims, **attrs)


def _sum_operand(dtype: object, x: Traced) -> tuple[Traced, DType]:
    """Return the array to add or multiply up, and the dtype of the result: int64 for integers and bools."""
    if dtype is not None:
        return cast(x, dtype_of(dtype)), dtype_of(dtype)
    return x, x.dtype if x.dtype.kind in FLOATING else DEFAULT_INT


@locates_errors
def sum(x: Traced, /, *, axis: Axis = None, dtype: object = None, keepdims: bool = False) -> Traced:
    """Return the sum over axes. Integers and bools are summed in int64; the result has `dtype`, if given."""
    x, result = _sum_operand(dtype, x)
    accumulator_dtype = x.dtype if x.dtype.kind in FLOATING else DEFAULT_INT
    return cast(reduce_axes("sum", x, accumulator_dtype, axis, keepdims=keepdims), result)


@locates_errors
def prod(x: Traced, /, *, axis: Axis = None, dtype: object = None, keepdims: bool = False) -> Traced:
    """Return the product over axes. Integers and bools are multiplied in int64; the result has `dtype`, if given."""
    x, result = _sum_operand(dtype, x)
    accumulator_dtype = x.dtype if x.dtype.kind in FLOATING else DEFAULT_INT
    return cast(reduce_axes("prod", x, accumulator_dtype, axis, keepdims=keepdims), result)


@locates_errors
def mean(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """Return the mean over axes. Integers give float64."""
    (x,) = promote(x, floating=True)
    return reduce_axes("mean", x, x.dtype, axis, keepdims=keepdims)


@locates_errors
def max(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """Return the largest element over axes. Equal elements share the gradient."""
    return reduce_axes("max", require_ordered(x), x.dtype, axis, keepdims=keepdims)


@locates_errors
def min(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """Return the smallest element over axes. Equal elements share the gradient."""
    return reduce_axes("min", require_ordered(x), x.dtype, axis, keepdims=keepdims)


@locates_errors
def var(x: Traced, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Traced:
    """Return the variance over axes, with n − `correction` as the divisor.

    The variance of complex numbers is real: the sum of the variances of both parts.
    """
    (x,) = promote(x, floating=True)
    if x.dtype.kind == "c":
        return add(*(var(part(x), axis=axis, correction=correction, keepdims=keepdims) for part in (real, imag)))
    if correction == int(correction):
        return reduce_axes("var", x, x.dtype, axis, keepdims=keepdims, ddof=int(correction))
    count = math.prod(x.shape[i] for i in normalize_axes(axis, x.ndim))
    biased = reduce_axes("var", x, x.dtype, axis, keepdims=keepdims)
    return divide(multiply(biased, count), count - correction)


@locates_errors
def std(x: Traced, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Traced:
    """Return the standard deviation over axes: the square root of `var`."""
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


@locates_errors
def all(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """Return whether all elements over axes are true."""
    return reduce_axes("all", x, BOOL, axis, keepdims=keepdims)


@locates_errors
def any(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """Return whether any element over axes is true."""
    return reduce_axes("any", x, BOOL, axis, keepdims=keepdims)


@locates_errors
def count_nonzero(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """Return the number of nonzero elements over axes, as int64."""
    truth = x if x.dtype == BOOL else not_equal(x, 0)
    return reduce_axes("sum", truth, DEFAULT_INT, axis, keepdims=keepdims)


def _along(x: Traced, axis: int | None) -> int:
    if axis is None and x.ndim != 1:
        raise InputError(f"axis can be omitted only for arrays with one axis, but {x.type_name} has {x.ndim}")
    return normalize_axes(0 if axis is None else axis, x.ndim)[0]


@locates_errors
def cumulative_sum(
    x: Traced, /, *, axis: int | None = None, dtype: object = None, include_initial: bool = False
) -> Traced:
    """Return the cumulative sums along an axis, after a 0 with `include_initial`."""
    x, result = _sum_operand(dtype, x)
    along = _along(x, axis)
    accumulator_dtype = x.dtype if x.dtype.kind in FLOATING else DEFAULT_INT
    result_array = cast(emit("cumsum", [x], x.shape, accumulator_dtype, axis=along), result)
    return _prepend(0, result_array, along) if include_initial else result_array


@locates_errors
def cumulative_prod(
    x: Traced, /, *, axis: int | None = None, dtype: object = None, include_initial: bool = False
) -> Traced:
    """Return the cumulative products along an axis, after a 1 with `include_initial`."""
    x, result = _sum_operand(dtype, x)
    along = _along(x, axis)
    accumulator_dtype = x.dtype if x.dtype.kind in FLOATING else DEFAULT_INT
    result_array = cast(emit("cumprod", [x], x.shape, accumulator_dtype, axis=along), result)
    return _prepend(1, result_array, along) if include_initial else result_array


def _cumulative(op: str, x: Traced, axis: int | None, *, reverse: bool) -> Traced:
    return emit(op, [require_ordered(x)], x.shape, x.dtype, axis=_along(x, axis), reverse=reverse or None)


@locates_errors
def cummax(x: Traced, /, *, axis: int | None = None, reverse: bool = False) -> Traced:
    """Return the cumulative maximum along an axis; with `reverse`, from the end.

    Of equal elements, the first gets the gradient. It is not part of the standard; PyTorch has it under this name.
    """
    return _cumulative("cummax", x, axis, reverse=reverse)


@locates_errors
def cummin(x: Traced, /, *, axis: int | None = None, reverse: bool = False) -> Traced:
    """Return the cumulative minimum along an axis; see `cummax`."""
    return _cumulative("cummin", x, axis, reverse=reverse)


@locates_errors
def cumlogsumexp(x: Traced, /, *, axis: int | None = None, reverse: bool = False) -> Traced:
    """Return log Σ exp of the elements up to each position along an axis, stably; with `reverse`, from the end."""
    (x,) = promote(x, floating=True)
    return _cumulative("cumlogsumexp", x, axis, reverse=reverse)


def _prepend(first: int, x: Traced, axis: int) -> Traced:
    """Prepend one element along an axis."""
    shape = [1 if i == axis else extent for i, extent in enumerate(x.shape)]
    return join([emit("full", [], shape, x.dtype, shape=shape, fill=float(first), dtype=x.dtype), x], axis)


@locates_errors
def diff(
    x: Traced, /, *, axis: int = -1, n: int = 1, prepend: Traced | None = None, append: Traced | None = None
) -> Traced:
    """Return the n-th differences of adjacent elements along an axis."""
    along = normalize_axes(axis, x.ndim)[0]
    parts = [part for part in (prepend, x, append) if part is not None]
    joined = join(promote(*parts), along) if len(parts) > 1 else x
    for _ in range(n):
        extent = joined.shape[along]
        joined = subtract(slice_axis(joined, along, 1, extent), slice_axis(joined, along, 0, extent - 1))
    return joined
