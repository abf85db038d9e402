"""What `linalg` has: functions of matrices that ops can express."""

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
    """Matrices of floats or complex numbers."""
    (x,) = promote(x, floating=True)
    if x.ndim < 2:
        raise InputError(f"matrices have two axes, and {x.type_name} has {x.ndim}")
    return x


def as_square_matrices(x: Traced) -> Traced:
    """Square matrices of floats or complex numbers."""
    (x,) = promote(x, floating=True)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise InputError(f"square matrices are needed, and {x.type_name} has none")
    return x


@locates_errors
def cholesky(x: Traced, /, *, upper: bool = False) -> Traced:
    """The triangular root of positive definite matrices."""
    x = as_square_matrices(x)
    lower = emit("cholesky", [x], x.shape, x.dtype)
    if not upper:
        return lower
    return conj(matrix_transpose(lower)) if x.dtype.kind == "c" else matrix_transpose(lower)


@locates_errors
def inv(x: Traced, /) -> Traced:
    """The inverse of matrices. For a system of equations, `solve` is quicker and more accurate."""
    x = as_square_matrices(x)
    return emit("inv", [x], x.shape, x.dtype)


@locates_errors
def solve(x1: Traced, x2: Traced, /) -> Traced:
    """y with x1 y = x2; x2 is a vector where it has one axis, else matrices."""
    a, b = promote(x1, x2, floating=True)
    a, rows = as_square_matrices(a), b.ndim - 2 if b.ndim > 1 else 0
    if not b.ndim or b.shape[rows] != a.shape[-1]:
        raise InputError(f"{b.type_name} is no right side of {a.type_name}")
    if b.ndim == 1:
        return emit("solve", [a, b], a.shape[:-1], a.dtype)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    # With all of its axes it cannot be taken for a vector for each matrix.
    b = broadcast_to(b, (*batch, *b.shape[-2:]))
    return emit("solve", [a, b], b.shape, a.dtype)


class SlogdetResult(NamedTuple):
    """The sign of a determinant, complex where the matrix is, and the logarithm of its size."""

    sign: Traced
    logabsdet: Traced


@locates_errors
def slogdet(x: Traced, /) -> SlogdetResult:
    """Sign and logarithm of the determinant of matrices."""
    x = as_square_matrices(x)
    both, shape = emit("slogdet", [x], x.shape, x.dtype), x.shape[:-2]
    dtypes = (x.dtype, real_dtype(x.dtype))
    return SlogdetResult(*(emit("get_output", [both], shape, dtype, index=i) for i, dtype in enumerate(dtypes)))


@locates_errors
def det(x: Traced, /) -> Traced:
    """The determinant of matrices. Its gradient holds for singular ones, too."""
    x = as_square_matrices(x)
    return emit("det", [x], x.shape[:-2], x.dtype)


@locates_errors
def diagonal(x: Traced, /, *, offset: int = 0) -> Traced:
    """The diagonals of matrices."""
    if x.ndim < 2:
        raise InputError(f"matrices have two axes, and {x.type_name} has {x.ndim}")
    rows, columns = x.shape[-2:]
    length = len(np.eye(rows, columns, dtype=bool).diagonal(offset))
    return emit("diag", [x], (*x.shape[:-2], length), x.dtype, offset=offset)


@locates_errors
def trace(x: Traced, /, *, offset: int = 0, dtype: object = None) -> Traced:
    """The sums of diagonals."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


@locates_errors
def outer(x1: Operand, x2: Operand, /) -> Traced:
    """The products of each element of a vector with each of another."""
    x, y = promote(x1, x2)
    if x.ndim != 1 or y.ndim != 1:
        raise InputError(f"vectors have one axis: {x.type_name}, {y.type_name}")
    return multiply(reshape(x, (-1, 1)), reshape(y, (1, -1)))


@locates_errors
def cross(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Traced:
    """The vector products of vectors of three along an axis."""
    x, y = promote(x1, x2)
    shape = broadcast_shape(x, y)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    along = normalize_axes(axis, len(shape))[0]
    if shape[along] != 3:
        raise InputError(f"vector products are of vectors of three, and axis {axis} of {list(shape)} has others")
    ahead, behind = np.array([1, 2, 0]), np.array([2, 0, 1])
    return subtract(
        multiply(pick_slices(x, ahead, along), pick_slices(y, behind, along)),
        multiply(pick_slices(x, behind, along), pick_slices(y, ahead, along)),
    )


@locates_errors
def matrix_power(x: Traced, n: int, /) -> Traced:
    """The product of so many equal matrices, of their inverses where n < 0."""
    x = as_square_matrices(x)
    return emit("matrix_power", [x], x.shape, x.dtype, k=operator.index(n))
