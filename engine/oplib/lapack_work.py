"""Workspace of LAPACK, as it states it: it is asked where a graph is planned, as it is with a length of −1."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from engine.graph.tensor_type import DType, TensorType
from engine.oplib.matrices import wide_dtype

#: shapes whose answers are kept: which ones there are is up to callers
_KEPT: Final = 1024
#: extent that LAPACK knows
_LARGEST: Final = 2**31 - 1


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


def _of_qr(dtype: DType, m: int, n: int) -> LapackWork:
    return LapackWork(m * n + min(m, n) + qr_length(dtype, m, n))


def _of_eigh(vectors: int, dtype: DType, _: int, n: int) -> LapackWork:
    """By syevd or heevd. A query counts in 32 bits, which n² exceeds soon: then as their documents say."""
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
    """By gesdd, which tells no one how many doubles it takes for complex numbers: that is in its documents."""
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
    """As LAPACK gives it: as a number of the matrix's dtype."""
    return int(np.real(asked))


_TAKEN: Final[dict[str, Callable[[DType, int, int], LapackWork]]] = {
    "eigh": partial(_of_eigh, 1),
    "eigvalsh": partial(_of_eigh, 0),
    "svd": partial(_of_svd, 1),
    "svdvals": partial(_of_svd, 0),
    "qr": _of_qr,
}
