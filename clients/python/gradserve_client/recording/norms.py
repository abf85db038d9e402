"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal

from gradserve_client.errors import InputError
from gradserve_client.recording.decompositions import svdvals
from gradserve_client.recording.elementwise import abs, divide, multiply, not_equal, pow
from gradserve_client.recording.emitting import cast, emit, normalize_axes, promote, real_dtype
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.manipulation import expand_dims, moveaxis, reshape
from gradserve_client.recording.matrices import as_matrices, inv
from gradserve_client.recording.recorder import Traced
from gradserve_client.recording.reductions import Axis, max, min, reduce_axes, sum

Order = int | float
MatrixOrder = Order | Literal["fro", "nuc"]
_SPECTRAL_NORMS: Final[dict[MatrixOrder, Callable[..., Traced]]] = {2: max, -2: min, "nuc": sum}


def _real(x: Traced) -> Traced:
    """Return real numbers with the same absolute values, as the op `norm` requires."""
    return abs(x) if x.dtype.kind == "c" else x


@locates_errors
def vector_norm(x: Traced, /, *, axis: Axis = None, keepdims: bool = False, ord: Order = 2) -> Traced:
    """Return the vector norm over axes, by default all: (Σ |x|ᵖ)^(1/p) for `ord` p.

    The largest absolute value for ∞, the smallest for −∞, and the number of nonzero elements for 0.
    """
    (x,) = promote(x, floating=True)
    if ord == 2:
        return reduce_axes("norm", _real(x), real_dtype(x.dtype), axis, keepdims=keepdims)
    size = abs(x)
    if math.isinf(ord):
        return (max if ord > 0 else min)(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return sum(cast(not_equal(x, 0), size.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis=axis, keepdims=keepdims)
    return pow(sum(pow(size, float(ord)), axis=axis, keepdims=keepdims), 1 / ord)


@locates_errors
def matrix_norm(x: Traced, /, *, keepdims: bool = False, ord: MatrixOrder = "fro") -> Traced:
    """Return the norm of matrices. `ord` is "fro", the Frobenius norm, or one of the following.

    The largest (positive ord) or smallest (negative ord) sum of absolute values over the columns (±1) or rows (±∞). The
    largest (2) or smallest (−2) singular value, or the sum of the singular values ("nuc").
    """
    x = as_matrices(x)
    if ord == "fro":
        return reduce_axes("norm", _real(x), real_dtype(x.dtype), (-2, -1), keepdims=keepdims)
    if ord in _SPECTRAL_NORMS:
        result = _SPECTRAL_NORMS[ord](svdvals(x), axis=-1)
        return expand_dims(result, axis=(-2, -1)) if keepdims else result
    if ord not in (1, -1, math.inf, -math.inf):
        raise InputError(f"{ord!r} is not a valid matrix norm: use 'fro', 'nuc', ±1, ±2 or ±inf")
    over = -1 if math.isinf(ord) else -2
    sums = sum(abs(x), axis=over, keepdims=True)
    result = (max if ord > 0 else min)(sums, axis=(-2, -1), keepdims=True)
    return result if keepdims else reshape(result, x.shape[:-2])


@locates_errors
def norm(
    x: Traced,
    /,
    ord: MatrixOrder | None = None,
    axis: int | tuple[int, int] | None = None,
    keepdims: bool = False,
) -> Traced:
    """Return NumPy's `norm`: of vectors along one axis, of matrices over two axes, and of all elements by default."""
    if ord is None and axis is None:
        return vector_norm(x, keepdims=keepdims)
    along = normalize_axes(axis, x.ndim)
    if len(along) == 2:
        result = matrix_norm(moveaxis(x, tuple(along), (-2, -1)), ord="fro" if ord is None else ord)
        return expand_dims(result, axis=tuple(along)) if keepdims else result
    if len(along) != 1 or isinstance(ord, str):
        raise InputError(
            f"the norm {ord!r} cannot be taken over {len(along)} axes: vector norms take one, matrix norms two"
        )
    return vector_norm(x, axis=along[0], ord=2 if ord is None else ord, keepdims=keepdims)


@locates_errors
def cond(x: Traced, /, p: MatrixOrder | None = None) -> Traced:
    """Return NumPy's `cond`: the condition number of matrices in the 2-norm, or in the norm p."""
    x = as_matrices(x)
    if p is None or p == 2:
        return emit("cond_number", [x], x.shape[:-2], real_dtype(x.dtype))
    if p == -2:
        s = svdvals(x)
        return divide(min(s, axis=-1), max(s, axis=-1))
    return multiply(matrix_norm(x, ord=p), matrix_norm(inv(x), ord=p))
