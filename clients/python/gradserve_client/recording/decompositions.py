"""What `linalg` has of eigenvalues, singular values and triangles, and what is made of them."""

from __future__ import annotations

from typing import Literal, NamedTuple, overload

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.elementwise import abs, greater, multiply, square, subtract
from gradserve_client.recording.emitting import DEFAULT_INT, Operand, emit, promote, real_dtype
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.manipulation import expand_dims
from gradserve_client.recording.matrices import as_matrices, as_square_matrices
from gradserve_client.recording.products import matmul
from gradserve_client.recording.recorder import DType, Shape, Traced
from gradserve_client.recording.reductions import count_nonzero, max, sum

#: what the gradient of vectors is where values are equal
Degenerate = Literal["nan", "whole"]


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors, one in each column."""

    eigenvalues: Traced
    eigenvectors: Traced


class SVDResult(NamedTuple):
    """x = U diag(S) Vh, with S descending."""

    U: Traced
    S: Traced
    Vh: Traced


class QRResult(NamedTuple):
    """x = Q R, with orthonormal columns of Q, and R upper triangular."""

    Q: Traced
    R: Traced


class LstsqResult(NamedTuple):
    """What NumPy's `lstsq` gives: x, residuals, rank and singular values.

    Of all that make |a x − b| least x is the shortest; residuals are the squares of that, one for each column of b.
    """

    x: Traced
    residuals: Traced
    rank: Traced
    s: Traced


def _several(op: str, x: Traced, results: list[tuple[Shape, DType]], **attrs: str | None) -> list[Traced]:
    """The results of an op of several."""
    all_of_them = emit(op, [x], *results[0], **attrs)
    return [emit("get_output", [all_of_them], *each, index=i) for i, each in enumerate(results)]


@locates_errors
def eigh(x: Traced, /, *, degenerate: Degenerate | None = None) -> EighResult:
    """Eigenvalues and eigenvectors of the symmetric, or Hermitian, part of matrices.

    `degenerate` is that of the op: "whole" is the word that what is made of the vectors depends on whole eigenspaces.
    """
    x = as_square_matrices(x)
    results = [(x.shape[:-1], real_dtype(x.dtype)), (x.shape, x.dtype)]
    return EighResult(*_several("eigh", x, results, degenerate=degenerate))


@locates_errors
def eigvalsh(x: Traced, /) -> Traced:
    """The eigenvalues, ascending, of the symmetric, or Hermitian, part of matrices."""
    return eigh(x).eigenvalues


@locates_errors
def svd(x: Traced, /, *, full_matrices: bool = True, degenerate: Degenerate | None = None) -> SVDResult:
    """Singular vectors and values, the thin ones. `degenerate` is that of `eigh`.

    Raises InputError for full matrices where these are others.
    """
    x = as_matrices(x)
    *batch, m, n = x.shape
    if full_matrices and m != n:
        raise InputError(
            f"the op gives thin ones, and of {x.type_name} full matrices are others: write full_matrices=False"
        )
    k = np.minimum(m, n).item()
    results = [((*batch, m, k), x.dtype), ((*batch, k), real_dtype(x.dtype)), ((*batch, k, n), x.dtype)]
    return SVDResult(*_several("svd", x, results, degenerate=degenerate))


@locates_errors
def svdvals(x: Traced, /) -> Traced:
    """The singular values, descending."""
    return svd(x, full_matrices=False).S


@overload
def qr(x: Traced, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(x: Traced, /, *, mode: Literal["r"]) -> Traced: ...
@locates_errors
def qr(x: Traced, /, *, mode: Literal["reduced", "complete", "r"] = "reduced") -> QRResult | Traced:
    """Orthonormal columns and a triangle; of mode "r", which is NumPy's, the triangle alone.

    Raises InputError for the complete ones of matrices that have more rows than columns.
    """
    x = as_matrices(x)
    *batch, m, n = x.shape
    if mode not in ("reduced", "complete", "r"):
        raise InputError(f"mode is reduced, complete or r, and not {mode!r}")
    if mode == "complete" and m > n:
        raise InputError(f'the op gives as many columns as {x.type_name} has, and not all: write mode="reduced"')
    k = np.minimum(m, n).item()
    found = QRResult(*_several("qr", x, [((*batch, m, k), x.dtype), ((*batch, k, n), x.dtype)]))
    return found.R if mode == "r" else found


@locates_errors
def pinv(x: Traced, /, *, rtol: float | None = None) -> Traced:
    """The pseudoinverse, without singular values up to `rtol` times the largest: by default max(m, n) ε."""
    x = as_matrices(x)
    return emit("pinv", [x], (*x.shape[:-2], *x.shape[:-3:-1]), x.dtype, rcond=_part("rtol", rtol))


def _part(name: str, value: object) -> float | None:
    """A part of the largest singular value, as an attribute."""
    if isinstance(value, Traced) or np.ndim(value):  # type: ignore[arg-type] # anything has dimensions
        raise InputError(f"{name} is one number here, which the graph states")
    return None if value is None else float(value)  # type: ignore[arg-type] # a number, or Python says so


@locates_errors
def lstsq(a: Traced, b: Operand, /, *, rcond: float | None = None) -> LstsqResult:
    """NumPy's, of one matrix: least squares by singular values, without those up to `rcond` times the largest.

    That is max(m, n) ε by default. Of independent columns `qr` is quicker: solve(r, q.mT @ b). Residuals are given also
    where a has not full rank, of which NumPy gives none: there the shape would depend on data.
    """
    x, y = promote(a, b, floating=True)
    if x.ndim != 2 or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise InputError(
            f"a matrix and as many right sides as it has rows are needed, and not {x.type_name} and {y.type_name}"
        )
    m, n = x.shape
    threshold = _part("rcond", rcond)
    if threshold is None:
        threshold = np.maximum(m, n).item() * float(np.finfo(real_dtype(x.dtype)).eps)
    found = matmul(pinv(x, rtol=threshold), y)
    off = square(abs(subtract(y, matmul(x, found))))
    residuals = sum(off if y.ndim == 2 else expand_dims(off, axis=1), axis=0)
    s = svdvals(x)
    if m <= n:
        residuals = emit("full", [], (0,), residuals.dtype, shape=[0], fill=0.0, dtype=residuals.dtype)
    return LstsqResult(found, residuals, _rank(s, threshold), s)


def _rank(s: Traced, part: Operand) -> Traced:
    largest = max(s, axis=-1, keepdims=True)
    return count_nonzero(greater(s, multiply(largest, part)), axis=-1)


@locates_errors
def matrix_rank(x: Traced, /, *, rtol: float | Traced | None = None) -> Traced:
    """How many singular values are above `rtol` times the largest: by default max(m, n) ε. It has no gradient."""
    x = as_matrices(x)
    if rtol is None:
        return emit("matrix_rank", [x], x.shape[:-2], DEFAULT_INT)
    return _rank(svdvals(x), expand_dims(rtol, axis=-1) if isinstance(rtol, Traced) else rtol)


@locates_errors
def matrix_exp(x: Traced, /) -> Traced:
    """The exponential of square matrices: SciPy's `expm`. It is beside the standard, and in PyTorch of this name."""
    x = as_square_matrices(x)
    return emit("matrix_exp", [x], x.shape, x.dtype)


@locates_errors
def symmetric_function(x: Traced, function: Literal["sqrt", "rsqrt", "log", "exp"], /) -> Traced:
    """A function of the symmetric part of matrices, by eigenvalues: its gradient holds where these are equal."""
    x = as_square_matrices(x)
    if x.dtype.kind == "c":
        raise InputError(
            f"functions are of symmetric matrices of floats, and not of {x.type_name}: write (v * f(w)) @ conj(v.mT)"
        )
    return emit("symmetric_function", [x], x.shape, x.dtype, function=function)
