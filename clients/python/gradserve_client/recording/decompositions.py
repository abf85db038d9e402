"""The functions of `linalg` based on eigenvalues, singular values and QR."""

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

#: the gradient with respect to vectors of equal values: NaN, or valid for functions of whole eigenspaces
Degenerate = Literal["nan", "whole"]


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, of shape (…, n), and eigenvectors as columns, of shape (…, n, n)."""

    eigenvalues: Traced
    eigenvectors: Traced


class SVDResult(NamedTuple):
    """x = U diag(S) Vh, with S in descending order: shapes (…, m, k), (…, k) and (…, k, n), k = min(m, n)."""

    U: Traced
    S: Traced
    Vh: Traced


class QRResult(NamedTuple):
    """x = Q R, with orthonormal columns of Q, of shape (…, m, k), and upper triangular R, of shape (…, k, n)."""

    Q: Traced
    R: Traced


class LstsqResult(NamedTuple):
    """The results of NumPy's `lstsq`: x, residuals, rank and singular values.

    x is the shortest of all vectors that minimise |a x − b|. `residuals` are the squared distances, one for each column
    of b.
    """

    x: Traced
    residuals: Traced
    rank: Traced
    s: Traced


def _emit_several(op: str, x: Traced, results: list[tuple[Shape, DType]], **attrs: str | None) -> list[Traced]:
    """Append an op with several results, and return them."""
    node_array = emit(op, [x], *results[0], **attrs)
    return [emit("get_output", [node_array], *each, index=i) for i, each in enumerate(results)]


@locates_errors
def eigh(x: Traced, /, *, degenerate: Degenerate | None = None) -> EighResult:
    """Return eigenvalues and eigenvectors of the symmetric (Hermitian) part of square matrices.

    Signs and phases of the eigenvectors are arbitrary. At equal eigenvalues, the gradient with respect to eigenvectors
    is NaN; with `degenerate="whole"` it is right for functions that depend on whole eigenspaces only.
    """
    x = as_square_matrices(x)
    results = [(x.shape[:-1], real_dtype(x.dtype)), (x.shape, x.dtype)]
    return EighResult(*_emit_several("eigh", x, results, degenerate=degenerate))


@locates_errors
def eigvalsh(x: Traced, /) -> Traced:
    """Return the eigenvalues, in ascending order, of the symmetric (Hermitian) part of square matrices."""
    return eigh(x).eigenvalues


@locates_errors
def svd(x: Traced, /, *, full_matrices: bool = True, degenerate: Degenerate | None = None) -> SVDResult:
    """Return the thin singular value decomposition. `degenerate` is explained at `eigh`.

    Raises RecordingError for `full_matrices=True` unless the matrices are square.
    """
    x = as_matrices(x)
    *batch, m, n = x.shape
    if full_matrices and m != n:
        raise InputError(f"the op computes thin factors only, but {x.type_name} is not square: use full_matrices=False")
    k = np.minimum(m, n).item()
    results = [((*batch, m, k), x.dtype), ((*batch, k), real_dtype(x.dtype)), ((*batch, k, n), x.dtype)]
    return SVDResult(*_emit_several("svd", x, results, degenerate=degenerate))


@locates_errors
def svdvals(x: Traced, /) -> Traced:
    """Return the singular values in descending order, of shape (…, min(m, n))."""
    return svd(x, full_matrices=False).S


@overload
def qr(x: Traced, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(x: Traced, /, *, mode: Literal["r"]) -> Traced: ...
@locates_errors
def qr(x: Traced, /, *, mode: Literal["reduced", "complete", "r"] = "reduced") -> QRResult | Traced:
    """Return the QR decomposition, or R alone with `mode="r"`, as in NumPy.

    Raises RecordingError for `mode="complete"` if there are more rows than columns.
    """
    x = as_matrices(x)
    *batch, m, n = x.shape
    if mode not in ("reduced", "complete", "r"):
        raise InputError(f"mode must be reduced, complete or r, not {mode!r}")
    if mode == "complete" and m > n:
        raise InputError(f'the op computes only as many columns as {x.type_name} has: use mode="reduced"')
    k = np.minimum(m, n).item()
    result = QRResult(*_emit_several("qr", x, [((*batch, m, k), x.dtype), ((*batch, k, n), x.dtype)]))
    return result.R if mode == "r" else result


@locates_errors
def pinv(x: Traced, /, *, rtol: float | None = None) -> Traced:
    """Return the pseudoinverse, of shape (…, n, m).

    Singular values up to `rtol` times the largest count as zero; `rtol` defaults to max(m, n) ε.
    """
    x = as_matrices(x)
    return emit("pinv", [x], (*x.shape[:-2], *x.shape[:-3:-1]), x.dtype, rcond=_threshold("rtol", rtol))


def _threshold(name: str, value: object) -> float | None:
    """Return a relative threshold as an attribute. Raises InputError unless it is one known number."""
    if isinstance(value, Traced) or np.ndim(value):  # type: ignore[arg-type] # anything has dimensions
        raise InputError(f"{name} must be one number, which is an attribute of the graph")
    return None if value is None else float(value)  # type: ignore[arg-type] # a number, or Python says so


@locates_errors
def lstsq(a: Traced, b: Operand, /, *, rcond: float | None = None) -> LstsqResult:
    """Solve a least-squares problem, as NumPy's `lstsq`: a of shape (m, n), b of shape (m,) or (m, k).

    Singular values up to `rcond` times the largest count as zero; `rcond` defaults to max(m, n) ε. If the columns of a
    are independent, QR is faster: `solve(r, q.mT @ b)`. Unlike NumPy, residuals are returned for rank-deficient a as
    well, since otherwise their shape would depend on data.
    """
    x, y = promote(a, b, floating=True)
    if x.ndim != 2 or y.ndim not in (1, 2) or y.shape[0] != x.shape[0]:
        raise InputError(
            f"expected a matrix and a right-hand side with as many rows, got {x.type_name} and {y.type_name}"
        )
    m, n = x.shape
    threshold = _threshold("rcond", rcond)
    if threshold is None:
        threshold = np.maximum(m, n).item() * float(np.finfo(real_dtype(x.dtype)).eps)
    solution = matmul(pinv(x, rtol=threshold), y)
    squares = square(abs(subtract(y, matmul(x, solution))))
    residuals = sum(squares if y.ndim == 2 else expand_dims(squares, axis=1), axis=0)
    s = svdvals(x)
    if m <= n:
        residuals = emit("full", [], (0,), residuals.dtype, shape=[0], fill=0.0, dtype=residuals.dtype)
    return LstsqResult(solution, residuals, _count_above(s, threshold), s)


def _count_above(s: Traced, fraction: Operand) -> Traced:
    largest = max(s, axis=-1, keepdims=True)
    return count_nonzero(greater(s, multiply(largest, fraction)), axis=-1)


@locates_errors
def matrix_rank(x: Traced, /, *, rtol: float | Traced | None = None) -> Traced:
    """Return the number of singular values above `rtol` times the largest, as int64. `rtol` defaults to max(m, n) ε."""
    x = as_matrices(x)
    if rtol is None:
        return emit("matrix_rank", [x], x.shape[:-2], DEFAULT_INT)
    return _count_above(svdvals(x), expand_dims(rtol, axis=-1) if isinstance(rtol, Traced) else rtol)


@locates_errors
def matrix_exp(x: Traced, /) -> Traced:
    """Return the exponential of square matrices: SciPy's `expm`, PyTorch's `matrix_exp`. It is not part of the
    standard.
    """
    x = as_square_matrices(x)
    return emit("matrix_exp", [x], x.shape, x.dtype)


@locates_errors
def symmetric_function(x: Traced, function: Literal["sqrt", "rsqrt", "log", "exp"], /) -> Traced:
    """Apply a function to the eigenvalues of the symmetric part of square matrices of floats.

    The gradient is exact at equal eigenvalues too. It is not part of the standard. Raises RecordingError for complex
    matrices.
    """
    x = as_square_matrices(x)
    if x.dtype.kind == "c":
        raise InputError(f"expected symmetric matrices of floats, got {x.type_name}: write (v * f(w)) @ conj(v.mT)")
    return emit("symmetric_function", [x], x.shape, x.dtype, function=function)
