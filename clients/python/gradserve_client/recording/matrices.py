"""The functions of `linalg` on matrices that are single ops."""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.elementwise import conj, multiply, subtract
from gradserve_client.recording.emitting import Operand, broadcast_shape, emit, normalize_axes, promote, real_dtype
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.manipulation import broadcast_to, matrix_transpose, pick_slices, reshape
from gradserve_client.recording.recorder import Traced
from gradserve_client.recording.reductions import sum


def as_matrices(x: Traced) -> Traced:
    """Return matrices, with integers converted to float64. Raises InputError for fewer than two axes."""
    (x,) = promote(x, floating=True)
    if x.ndim < 2:
        raise InputError(f"matrices need at least two axes, but {x.type_name} has {x.ndim}")
    return x


def as_square_matrices(x: Traced) -> Traced:
    """Return square matrices, with integers converted to float64. Raises InputError for other shapes."""
    (x,) = promote(x, floating=True)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise InputError(f"expected square matrices, got {x.type_name}")
    return x


@locates_errors
def cholesky(x: Traced, /, *, upper: bool = False) -> Traced:
    """Return the Cholesky factors of positive definite matrices, of shape (…, n, n): lower, or `upper`, triangular."""
    x = as_square_matrices(x)
    lower = emit("cholesky", [x], x.shape, x.dtype)
    if not upper:
        return lower
    return conj(matrix_transpose(lower)) if x.dtype.kind == "c" else matrix_transpose(lower)


@locates_errors
def inv(x: Traced, /) -> Traced:
    """Return the inverses of square matrices. To solve a linear system, `solve` is faster and more accurate."""
    x = as_square_matrices(x)
    return emit("inv", [x], x.shape, x.dtype)


@locates_errors
def solve(x1: Traced, x2: Traced, /) -> Traced:
    """Return y with x1 y = x2, for x1 of shape (…, n, n).

    x2 is a vector if it has one axis, otherwise matrices of shape (…, n, k).
    """
    a, b = promote(x1, x2, floating=True)
    a, row_axis = as_square_matrices(a), b.ndim - 2 if b.ndim > 1 else 0
    if not b.ndim or b.shape[row_axis] != a.shape[-1]:
        raise InputError(f"{b.type_name} is not a valid right-hand side for {a.type_name}")
    if b.ndim == 1:
        return emit("solve", [a, b], a.shape[:-1], a.dtype)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    # With all batch axes, the op cannot mistake b for one vector per matrix.
    b = broadcast_to(b, (*batch, *b.shape[-2:]))
    return emit("solve", [a, b], b.shape, a.dtype)


class SlogdetResult(NamedTuple):
    """The sign of the determinant, which is complex for complex matrices, and the logarithm of its absolute value."""

    sign: Traced
    logabsdet: Traced


@locates_errors
def slogdet(x: Traced, /) -> SlogdetResult:
    """Return the sign and the logarithm of the determinant of square matrices, each of shape (…)."""
    x = as_square_matrices(x)
    node_array, shape = emit("slogdet", [x], x.shape, x.dtype), x.shape[:-2]
    dtypes = (x.dtype, real_dtype(x.dtype))
    return SlogdetResult(*(emit("get_output", [node_array], shape, dtype, index=i) for i, dtype in enumerate(dtypes)))


@locates_errors
def det(x: Traced, /) -> Traced:
    """Return the determinant of square matrices, of shape (…). Its gradient holds for singular matrices too."""
    x = as_square_matrices(x)
    return emit("det", [x], x.shape[:-2], x.dtype)


@locates_errors
def diagonal(x: Traced, /, *, offset: int = 0) -> Traced:
    """Return the diagonals `offset` of matrices, along a new last axis."""
    if x.ndim < 2:
        raise InputError(f"matrices need at least two axes, but {x.type_name} has {x.ndim}")
    rows, columns = x.shape[-2:]
    length = len(np.eye(rows, columns, dtype=bool).diagonal(offset))
    return emit("diag", [x], (*x.shape[:-2], length), x.dtype, offset=offset)


@locates_errors
def trace(x: Traced, /, *, offset: int = 0, dtype: object = None) -> Traced:
    """Return the sums of the diagonals `offset` of matrices. Integers are summed in int64, unless `dtype` is given."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


@locates_errors
def outer(x1: Operand, x2: Operand, /) -> Traced:
    """Return the outer product of vectors of shape (m,) and (n,), of shape (m, n)."""
    x, y = promote(x1, x2)
    if x.ndim != 1 or y.ndim != 1:
        raise InputError(f"expected vectors with one axis, got {x.type_name} and {y.type_name}")
    return multiply(reshape(x, (-1, 1)), reshape(y, (1, -1)))


@locates_errors
def cross(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Traced:
    """Return the cross product of vectors, of three elements along `axis`."""
    x, y = promote(x1, x2)
    shape = broadcast_shape(x, y)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    along = normalize_axes(axis, len(shape))[0]
    if shape[along] != 3:
        raise InputError(
            f"cross products need vectors of three elements, but axis {axis} of {list(shape)} has another extent"
        )
    next_axis, previous_axis = np.array([1, 2, 0]), np.array([2, 0, 1])
    return subtract(
        multiply(pick_slices(x, next_axis, along), pick_slices(y, previous_axis, along)),
        multiply(pick_slices(x, previous_axis, along), pick_slices(y, next_axis, along)),
    )


@locates_errors
def matrix_power(x: Traced, n: int, /) -> Traced:
    """Return the n-th power of square matrices, for negative n that of the inverse."""
    x = as_square_matrices(x)
    return emit("matrix_power", [x], x.shape, x.dtype, k=operator.index(n))
