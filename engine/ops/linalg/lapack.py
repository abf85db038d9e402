"""LAPACK on one matrix of a batch at a time, in doubles and without transposing copies; for large matrices.

LAPACK expects column-major order, so it sees a row-major matrix as its transpose. A symmetric matrix equals its
transpose, and a system is solved with the transpose of the factored matrix. NumPy's functions copy each matrix to
column-major order first, and its own Cholesky decomposition is not blocked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from engine.ir.run_context import RunContext
from engine.ir.tensor_type import DType, HostArray, Shape, TensorType, is_complex
from engine.ops.linalg.matrices import admit, wide_dtype

#: cached workspace sizes, one per shape: bounded, since callers choose the shapes
_CACHED_SHAPES: Final = 1024
#: largest extent that a LAPACK integer can hold
_LARGEST_EXTENT: Final = 2**31 - 1
#: rows from which the overhead of one call per matrix is negligible
_MIN_ROWS: Final = 64


class LapackWork(NamedTuple):
    """Number of array elements of each kind: in the matrix's dtype, doubles, and integers."""

    numbers: int
    doubles: int = 0
    integers: int = 0


def lapack_bytes(name: str, x: TensorType) -> int:
    """Return the bytes that LAPACK takes for one matrix like x, for the function `factorize` of this name.

    This covers the matrix and its factors in column-major order, and the workspace.
    """
    if not x.size:
        return 0
    dtype = wide_dtype(x.dtype)
    size = _work_size(name, dtype, *x.shape[-2:])
    return dtype.itemsize * size.numbers + 8 * (size.doubles + size.integers)


@lru_cache(_CACHED_SHAPES)
def qr_length(dtype: DType, m: int, n: int) -> int:
    """Return the optimal workspace length of geqrf; orgqr, on no more columns, needs no more."""
    return _count(_query("geqrf", dtype, m, n)[0])


@lru_cache(_CACHED_SHAPES)
def _work_size(name: str, dtype: DType, m: int, n: int) -> LapackWork:
    return _WORK_SIZES[name](dtype, m, n)


def _eigh_size(vectors: int, dtype: DType, _: int, n: int) -> LapackWork:
    """Query syevd or heevd. The query overflows 32 bits once n² does; the documented minimum is used then."""
    if dtype.kind == "c":
        numbers, integers, doubles, _ = _query("heevd", dtype, n, compute_v=vectors)
        minimum = LapackWork(n * n, 2 * n * n, 5 * n)
    else:
        numbers, integers, _ = _query("syevd", dtype, n, compute_v=vectors)
        doubles, minimum = 0, LapackWork(2 * n * n, 0, 5 * n)
    if not vectors:
        minimum = LapackWork(0)
    return LapackWork(
        n * n + max(_count(numbers), minimum.numbers),
        n + max(_count(doubles), minimum.doubles),
        max(_count(integers), minimum.integers),
    )


def _svd_size(vectors: int, dtype: DType, m: int, n: int) -> LapackWork:
    """Query gesdd. For complex numbers it does not report the doubles it needs: their number is documented."""
    k = min(m, n)
    reported = _count(_query("gesdd", dtype, m, n, compute_uv=vectors, full_matrices=0)[0])
    factors = (m + n) * k if vectors else 0
    minimum = (4 * k * k + 7 * k) if vectors else 0
    doubles = (5 * k * k + 5 * k if vectors else 7 * k) if dtype.kind == "c" else 0
    return LapackWork(m * n + factors + max(reported, minimum), k + doubles, 8 * k)


def _query(routine: str, dtype: DType, *extents: int, **attrs: int) -> Any:
    """Return the routine's answer to a workspace query. Extents beyond 32 bits are clamped."""
    from scipy.linalg import get_lapack_funcs  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    (query,) = get_lapack_funcs((f"{routine}_lwork",), dtype=dtype)
    return query(*(min(extent, _LARGEST_EXTENT) for extent in extents), **attrs)


def _count(length: Any) -> int:
    """Convert a length that LAPACK returns as a number of the matrix's dtype."""
    return int(np.real(length))


_WORK_SIZES: Final[dict[str, Callable[[DType, int, int], LapackWork]]] = {
    "eigh": partial(_eigh_size, 1),
    "eigvalsh": partial(_eigh_size, 0),
    "svd": partial(_svd_size, 1),
    "svdvals": partial(_svd_size, 0),
    "qr": lambda dtype, m, n: LapackWork(m * n + min(m, n) + qr_length(dtype, m, n)),
}


def is_for_lapack(shape: Shape) -> bool:
    """Whether matrices of this shape, on its last two axes, are large enough for one call each."""
    return min(shape[-2:]) >= _MIN_ROWS


def solve_each(run: RunContext, a: HostArray, b: HostArray, out: HostArray) -> None:
    """Write out = a⁻¹ b for each matrix, all three with the same batch axes; NaN if a is singular."""
    if not out.size:
        return
    dtype = wide_dtype(out.dtype)
    getrf, getrs = _functions(("getrf", "getrs"), dtype)
    for index in run.checked(np.ndindex(out.shape[:-2])):
        # LAPACK overwrites both copies
        factors, pivots, error = getrf(np.array(a[index], dtype).T, overwrite_a=1)
        if error:
            out[index] = np.nan
        else:
            rhs = np.array(b[index], dtype, order="F")
            out[index] = getrs(factors, pivots, rhs, trans=1, overwrite_b=1)[0]


def solve_each_bytes(out: TensorType) -> int:
    """Count the bytes that `solve_each` allocates for results like `out`: one matrix and its right-hand sides."""
    n, m = out.shape[-2:]
    return wide_dtype(out.dtype).itemsize * n * (n + m)


def factor_each(run: RunContext, x: HostArray, out: HostArray) -> None:
    """Write the lower Cholesky factor of each (x + xᴴ) / 2; NaN if that is not positive definite."""
    dtype = wide_dtype(out.dtype)
    (potrf,) = _functions(("potrf",), dtype)
    for index in run.checked(np.ndindex(out.shape[:-2])):
        symmetric = np.add(x[index], x[index].T.conj(), dtype=dtype)
        symmetric *= 0.5
        # LAPACK sees the lower triangle of a row-major matrix as the upper triangle of its transpose
        factor, error = potrf(symmetric.T, lower=0, clean=1, overwrite_a=1)
        out[index] = np.nan if error else factor.T


def factor_each_bytes(x: TensorType) -> int:
    """Count the bytes that `factor_each` allocates: one matrix, and its conjugate if it is complex."""
    return (2 if x.is_complex else 1) * wide_dtype(x.dtype).itemsize * x.shape[-1] ** 2


def qr_each(run: RunContext, x: HostArray, q: HostArray, r: HostArray) -> None:
    """Write q and r of each matrix; NaN if it has an infinity or NaN. Raises DeadlineTooNear if they take too long."""
    admit(run, "qr", x)
    dtype, (m, n) = wide_dtype(q.dtype), x.shape[-2:]
    k, length = min(m, n), qr_length(dtype, m, n)
    geqrf, orgqr = _functions(("geqrf", "ungqr" if is_complex(dtype) else "orgqr"), dtype)
    upper = np.tri(n, k, dtype=bool).T
    r.fill(0)
    for index in run.checked(np.ndindex(x.shape[:-2])):
        # geqrf and orgqr both overwrite this copy
        factors = np.array(x[index], dtype, order="F")
        # the sum is a quick check; it may overflow for finite numbers, so look at each one then
        if np.isfinite(factors.sum()) or np.isfinite(factors).all():
            factors, tau = geqrf(factors, lwork=length, overwrite_a=1)[:2]
            np.copyto(r[index], factors[:k], casting="same_kind", where=upper)
            q[index] = orgqr(factors[:, :k], tau, lwork=length, overwrite_a=1)[0]
        else:
            q[index] = r[index] = np.nan
        del factors  # free it before the next matrix is copied


def qr_each_bytes(x: TensorType) -> int:
    """Count the bytes that `qr_each` allocates: LAPACK's for one matrix, and the masks of r and of finite numbers."""
    m, n = x.shape[-2:]
    return lapack_bytes("qr", x) + 2 * m * n


def _functions(names: Sequence[str], dtype: DType) -> Any:
    from scipy.linalg import get_lapack_funcs  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    return get_lapack_funcs(names, dtype=dtype)
