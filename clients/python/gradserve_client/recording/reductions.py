"""Functions that make one element of many, and running ones."""

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
from gradserve_client.recording.manipulation import cut, join, reshape
from gradserve_client.recording.recorder import DType, Shape, Traced

Axis = int | Sequence[int] | None


def reduced_shape(shape: Shape, axes: Sequence[int], *, keepdims: bool) -> Shape:
    """The shape without these axes, or with extent 1 there."""
    if keepdims:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def reduce_axes(op: str, x: Traced, dtype: DType, axis: Axis, *, keepdims: bool, **attrs: float) -> Traced:
    """A reduction over some axes; where `axis` is empty, over one element at a time."""
    if axis is not None and not isinstance(axis, int) and not len(axis):
        x, axis, keepdims = reshape(x, (*x.shape, 1)), -1, False
    axes = normalize_axes(axis, x.ndim)
    shape = reduced_shape(x.shape, axes, keepdims=keepdims)
    return emit(op, [x], shape, dtype, axes=axes, keepdims=keepdims, **attrs)


def _summed(dtype: object, x: Traced) -> tuple[Traced, DType]:
    """What is added or multiplied up, and the dtype of the result: whole numbers are so in int64."""
    if dtype is not None:
        return cast(x, dtype_of(dtype)), dtype_of(dtype)
    return x, x.dtype if x.dtype.kind in FLOATING else DEFAULT_INT


@locates_errors
def sum(x: Traced, /, *, axis: Axis = None, dtype: object = None, keepdims: bool = False) -> Traced:
    """The sum over axes; of whole numbers in int64, unless a dtype is given."""
    x, result = _summed(dtype, x)
    wide = x.dtype if x.dtype.kind in FLOATING else DEFAULT_INT
    return cast(reduce_axes("sum", x, wide, axis, keepdims=keepdims), result)


@locates_errors
def prod(x: Traced, /, *, axis: Axis = None, dtype: object = None, keepdims: bool = False) -> Traced:
    """The product over axes; of whole numbers in int64, unless a dtype is given."""
    x, result = _summed(dtype, x)
    wide = x.dtype if x.dtype.kind in FLOATING else DEFAULT_INT
    return cast(reduce_axes("prod", x, wide, axis, keepdims=keepdims), result)


@locates_errors
def mean(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """The mean over axes."""
    (x,) = promote(x, floating=True)
    return reduce_axes("mean", x, x.dtype, axis, keepdims=keepdims)


@locates_errors
def max(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """The largest element over axes; equal ones share the gradient."""
    return reduce_axes("max", require_ordered(x), x.dtype, axis, keepdims=keepdims)


@locates_errors
def min(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """The smallest element over axes; equal ones share the gradient."""
    return reduce_axes("min", require_ordered(x), x.dtype, axis, keepdims=keepdims)


@locates_errors
def var(x: Traced, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Traced:
    """The mean squared distance from the mean, with `correction` taken off the number of elements.

    It is real: of complex numbers, that of both parts.
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
    """The square root of `var`."""
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


@locates_errors
def all(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """Whether all elements over axes are true."""
    return reduce_axes("all", x, BOOL, axis, keepdims=keepdims)


@locates_errors
def any(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """Whether any element over axes is true."""
    return reduce_axes("any", x, BOOL, axis, keepdims=keepdims)


@locates_errors
def count_nonzero(x: Traced, /, *, axis: Axis = None, keepdims: bool = False) -> Traced:
    """How many elements over axes are not 0."""
    truth = x if x.dtype == BOOL else not_equal(x, 0)
    return reduce_axes("sum", truth, DEFAULT_INT, axis, keepdims=keepdims)


def _along(x: Traced, axis: int | None) -> int:
    if axis is None and x.ndim != 1:
        raise InputError(f"axis may be absent for one axis only, and {x.type_name} has {x.ndim}")
    return normalize_axes(0 if axis is None else axis, x.ndim)[0]


@locates_errors
def cumulative_sum(
    x: Traced, /, *, axis: int | None = None, dtype: object = None, include_initial: bool = False
) -> Traced:
    """Sums of the elements up to each one along an axis, after a 0 where that is asked for."""
    x, result = _summed(dtype, x)
    along = _along(x, axis)
    wide = x.dtype if x.dtype.kind in FLOATING else DEFAULT_INT
    summed = cast(emit("cumsum", [x], x.shape, wide, axis=along), result)
    return _after(0, summed, along) if include_initial else summed


@locates_errors
def cumulative_prod(
    x: Traced, /, *, axis: int | None = None, dtype: object = None, include_initial: bool = False
) -> Traced:
    """Products of the elements up to each one along an axis, after a 1 where that is asked for."""
    x, result = _summed(dtype, x)
    along = _along(x, axis)
    wide = x.dtype if x.dtype.kind in FLOATING else DEFAULT_INT
    made = cast(emit("cumprod", [x], x.shape, wide, axis=along), result)
    return _after(1, made, along) if include_initial else made


def _running(op: str, x: Traced, axis: int | None, *, reverse: bool) -> Traced:
    return emit(op, [require_ordered(x)], x.shape, x.dtype, axis=_along(x, axis), reverse=reverse or None)


@locates_errors
def cummax(x: Traced, /, *, axis: int | None = None, reverse: bool = False) -> Traced:
    """The largest of the elements up to each one along an axis; of equal ones the first takes the gradient.

    With `reverse`, from each one on. It is beside the standard, and in PyTorch of this name.
    """
    return _running("cummax", x, axis, reverse=reverse)


@locates_errors
def cummin(x: Traced, /, *, axis: int | None = None, reverse: bool = False) -> Traced:
    """The smallest of the elements up to each one along an axis, as `cummax`."""
    return _running("cummin", x, axis, reverse=reverse)


@locates_errors
def cumlogsumexp(x: Traced, /, *, axis: int | None = None, reverse: bool = False) -> Traced:
    """log Σ exp of the elements up to each one along an axis, stable; with `reverse`, from each one on."""
    (x,) = promote(x, floating=True)
    return _running("cumlogsumexp", x, axis, reverse=reverse)


def _after(first: int, x: Traced, axis: int) -> Traced:
    """With one more element in front along an axis."""
    shape = [1 if i == axis else extent for i, extent in enumerate(x.shape)]
    return join([emit("full", [], shape, x.dtype, shape=shape, fill=float(first), dtype=x.dtype), x], axis)


@locates_errors
def diff(
    x: Traced, /, *, axis: int = -1, n: int = 1, prepend: Traced | None = None, append: Traced | None = None
) -> Traced:
    """Differences of neighbours along an axis, n times."""
    along = normalize_axes(axis, x.ndim)[0]
    parts = [part for part in (prepend, x, append) if part is not None]
    y = join(promote(*parts), along) if len(parts) > 1 else x
    for _ in range(n):
        extent = y.shape[along]
        y = subtract(cut(y, along, 1, extent), cut(y, along, 0, extent - 1))
    return y
