"""LAPACK on one matrix after the other, in doubles, as they lie; for matrices so large that this pays.

It counts along columns, and so reads the transpose of what lies row by row: a symmetric matrix is its own, and a system
is solved with the transpose of what was factored. NumPy's functions copy each matrix into another order first, and have
no Cholesky decomposition in blocks of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from engine.ir.run_context import RunContext
from engine.ir.tensor_type import DType, HostArray, Shape, TensorType, is_complex
from engine.ops.linalg.matrices import admit, wide_dtype

#: shapes whose answers are kept: which ones there are is up to callers
_KEPT: Final = 1024
#: extent that LAPACK knows
_LARGEST: Final = 2**31 - 1
#: rows from which a call for each matrix costs nothing beside what it does
_LARGE: Final = 64


class LapackWork(NamedTuple):
    """Memory of each kind: numbers as the matrix has, doubles, and integers."""

    numbers: int
    doubles: int = 0
    integers: int = 0


def lapack_bytes(name: str, x: TensorType) -> int:
    """Bytes that `factored` of this name has LAPACK take for matrices like x, of which it is shown one at a time.

    The matrix and its factors once more, in the order of columns, and what it works in.
    """
    if not x.size:
        return 0
    dtype = wide_dtype(x.dtype)
    work = _taken(name, dtype, *x.shape[-2:])
    return dtype.itemsize * work.numbers + 8 * (work.doubles + work.integers)


@lru_cache(_KEPT)
def qr_length(dtype: DType, m: int, n: int) -> int:
    """Numbers of the array that geqrf works best in; orgqr, of no more columns, asks for no more."""
    return _count(_asked("geqrf", dtype, m, n)[0])


@lru_cache(_KEPT)
def _taken(name: str, dtype: DType, m: int, n: int) -> LapackWork:
    return _TAKEN[name](dtype, m, n)


def _of_eigh(vectors: int, dtype: DType, _: int, n: int) -> LapackWork:
    """Ask syevd or heevd. A query counts in 32 bits, which n² exceeds soon: then as their documents say."""
    if dtype.kind == "c":
        numbers, integers, doubles, _ = _asked("heevd", dtype, n, compute_v=vectors)
        least = LapackWork(n * n, 2 * n * n, 5 * n)
    else:
        numbers, integers, _ = _asked("syevd", dtype, n, compute_v=vectors)
        doubles, least = 0, LapackWork(2 * n * n, 0, 5 * n)
    if not vectors:
        least = LapackWork(0)
    return LapackWork(
        n * n + max(_count(numbers), least.numbers),
        n + max(_count(doubles), least.doubles),
        max(_count(integers), least.integers),
    )


def _of_svd(vectors: int, dtype: DType, m: int, n: int) -> LapackWork:
    """Ask gesdd, which does not tell how many doubles it takes for complex numbers: that is in its documents."""
    k = min(m, n)
    asked = _count(_asked("gesdd", dtype, m, n, compute_uv=vectors, full_matrices=0)[0])
    factors = (m + n) * k if vectors else 0
    least = (4 * k * k + 7 * k) if vectors else 0
    doubles = (5 * k * k + 5 * k if vectors else 7 * k) if dtype.kind == "c" else 0
    return LapackWork(m * n + factors + max(asked, least), k + doubles, 8 * k)


def _asked(routine: str, dtype: DType, *extents: int, **attrs: int) -> Any:
    """Its answer. It counts in 32 bits: of what is larger, it is asked for as much as it knows."""
    from scipy.linalg import get_lapack_funcs  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    (query,) = get_lapack_funcs((f"{routine}_lwork",), dtype=dtype)
    return query(*(min(extent, _LARGEST) for extent in extents), **attrs)


def _count(asked: Any) -> int:
    """Read a count, which LAPACK gives as a number of the matrix's dtype."""
    return int(np.real(asked))


_TAKEN: Final[dict[str, Callable[[DType, int, int], LapackWork]]] = {
    "eigh": partial(_of_eigh, 1),
    "eigvalsh": partial(_of_eigh, 0),
    "svd": partial(_of_svd, 1),
    "svdvals": partial(_of_svd, 0),
    "qr": lambda dtype, m, n: LapackWork(m * n + min(m, n) + qr_length(dtype, m, n)),
}


def is_for_lapack(shape: Shape) -> bool:
    """Whether matrices of this shape, on its last two axes, are worth a call each."""
    return min(shape[-2:]) >= _LARGE


def solve_each(run: RunContext, a: HostArray, b: HostArray, out: HostArray) -> None:
    """out = a⁻¹ b for each matrix, all three broadcast alike; NaN where a is singular."""
    if not out.size:
        return
    dtype = wide_dtype(out.dtype)
    getrf, getrs = _functions(("getrf", "getrs"), dtype)
    for place in run.through(np.ndindex(out.shape[:-2])):
        # both are copies, to be written over
        factors, pivots, refused = getrf(np.array(a[place], dtype).T, overwrite_a=1)
        if refused:
            out[place] = np.nan
        else:
            right = np.array(b[place], dtype, order="F")
            out[place] = getrs(factors, pivots, right, trans=1, overwrite_b=1)[0]


def solve_each_bytes(out: TensorType) -> int:
    """Count the bytes that `solve_each` allocates for such results: one matrix, and its right-hand sides."""
    n, m = out.shape[-2:]
    return wide_dtype(out.dtype).itemsize * n * (n + m)


def factor_each(run: RunContext, x: HostArray, out: HostArray) -> None:
    """The lower triangular matrix of each (x + xᴴ) / 2; NaN where that is not positive definite."""
    dtype = wide_dtype(out.dtype)
    (potrf,) = _functions(("potrf",), dtype)
    for place in run.through(np.ndindex(out.shape[:-2])):
        even = np.add(x[place], x[place].T.conj(), dtype=dtype)
        even *= 0.5
        # the lower triangle of what lies row by row is LAPACK's upper one, of the conjugate
        factor, refused = potrf(even.T, lower=0, clean=1, overwrite_a=1)
        out[place] = np.nan if refused else factor.T


def factor_each_bytes(x: TensorType) -> int:
    """Count the bytes that `factor_each` allocates: one matrix, and its conjugate where it is complex."""
    return (2 if x.is_complex else 1) * wide_dtype(x.dtype).itemsize * x.shape[-1] ** 2


def qr_each(run: RunContext, x: HostArray, q: HostArray, r: HostArray) -> None:
    """q and r of each matrix; NaN where it has an infinity or NaN. Raises DeadlineTooNear if they take too long."""
    admit(run, "qr", x)
    dtype, (m, n) = wide_dtype(q.dtype), x.shape[-2:]
    k, length = min(m, n), qr_length(dtype, m, n)
    geqrf, orgqr = _functions(("geqrf", "ungqr" if is_complex(dtype) else "orgqr"), dtype)
    upper = np.tri(n, k, dtype=bool).T
    r.fill(0)
    for place in run.through(np.ndindex(x.shape[:-2])):
        # a copy, to be written over twice
        factors = np.array(x[place], dtype, order="F")
        # a sum may overflow as well: then one looks again
        if np.isfinite(factors.sum()) or np.isfinite(factors).all():
            factors, tau = geqrf(factors, lwork=length, overwrite_a=1)[:2]
            np.copyto(r[place], factors[:k], casting="same_kind", where=upper)
            q[place] = orgqr(factors[:, :k], tau, lwork=length, overwrite_a=1)[0]
        else:
            q[place] = r[place] = np.nan
        del factors  # before the next one is there


def qr_each_bytes(x: TensorType) -> int:
    """Count the bytes that `qr_each` allocates: LAPACK's for one matrix, and the masks of r and of finite numbers."""
    m, n = x.shape[-2:]
    return lapack_bytes("qr", x) + 2 * m * n


def _functions(names: Sequence[str], dtype: DType) -> Any:
    from scipy.linalg import get_lapack_funcs  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    return get_lapack_funcs(names, dtype=dtype)
