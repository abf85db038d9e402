"""LAPACK workspace sizes: at least the documented minimum, and enough for the routines to run."""

from __future__ import annotations

import numpy as np
import pytest

from engine import TensorType
from engine.ops.linalg.lapack import _work_size, lapack_bytes, qr_length

lapack = pytest.importorskip("scipy.linalg").lapack

REAL, COMPLEX = np.dtype("float64"), np.dtype("complex128")
NAMES = ["eigh", "eigvalsh", "svd", "svdvals", "qr"]


@pytest.fixture(autouse=True)
def clear_caches() -> None:
    """Clear the caches of workspace queries."""
    qr_length.cache_clear()
    _work_size.cache_clear()


def workspace(name: str, *shape: int, dtype: str = "float64") -> int:
    return lapack_bytes(name, TensorType(shape, np.dtype(dtype)))


@pytest.mark.parametrize("n", [2, 40, 300])
def test_workspace_is_at_least_the_documented_minimum(n: int) -> None:
    """The minimum LWORK, LRWORK and LIWORK of syevd, heevd and gesdd, plus the matrix and its factors."""
    square = n * n
    assert workspace("eigh", n, n) >= 8 * (square + n + 1 + 6 * n + 2 * square + 3 + 5 * n)
    assert workspace("eigh", n, n, dtype="complex128") >= 16 * (2 * square + 2 * n) + 8 * (n + 1 + 5 * n + 2 * square)
    assert workspace("eigvalsh", n, n) >= 8 * (square + n + 2 * n + 1)
    assert workspace("svd", n, n) >= 8 * (3 * square + n + 4 * square + 7 * n + 8 * n)
    assert workspace("svd", n, n, dtype="complex128") >= 16 * (3 * square + square + 3 * n) + 8 * (5 * square + 5 * n)
    assert workspace("svdvals", n, n) >= 8 * (square + n + 3 * n + 7 * n)
    assert workspace("qr", n, n) >= 8 * (square + n + n)


@pytest.mark.parametrize(("m", "n"), [(30, 30), (90, 20), (20, 90), (1, 1)])
@pytest.mark.parametrize("vectors", [0, 1])
def test_svd_workspace_matches_numpys_allocation(m: int, n: int, vectors: int) -> None:
    """gesdd: the matrix, its factors, the queried or documented LWORK, and LRWORK and LIWORK."""
    k, name = min(m, n), "svd" if vectors else "svdvals"
    least = (4 * k * k + 7 * k) * vectors
    factors = (m + n) * k * vectors
    lwork, _ = lapack.dgesdd_lwork(m, n, compute_uv=vectors, full_matrices=0)
    assert workspace(name, m, n) == 8 * (m * n + factors + max(int(lwork), least) + k + 8 * k)
    lwork, _ = lapack.zgesdd_lwork(m, n, compute_uv=vectors, full_matrices=0)
    reals = 5 * k * k + 5 * k if vectors else 7 * k
    numbers = m * n + factors + max(int(lwork.real), least)
    assert workspace(name, m, n, dtype="complex128") == 16 * numbers + 8 * (k + reals + 8 * k)


@pytest.mark.parametrize("vectors", [0, 1])
def test_eigh_workspace_matches_the_query(vectors: int) -> None:
    """syevd and heevd; beyond 32 bits, the documented sizes."""
    n, name = 30, "eigh" if vectors else "eigvalsh"
    lwork, liwork, _ = lapack.dsyevd_lwork(n, compute_v=vectors)
    assert workspace(name, n, n) == 8 * (n * n + int(lwork) + n + liwork)
    lwork, liwork, lrwork, _ = lapack.zheevd_lwork(n, compute_v=vectors)
    assert workspace(name, n, n, dtype="complex128") == 16 * (n * n + int(lwork.real)) + 8 * (n + int(lrwork) + liwork)
    if vectors:
        n = 50_000
        for dtype, size in (("float64", 8 * 3), ("complex128", 16 * 2 + 8 * 2)):
            actual = workspace(name, n, n, dtype=dtype)
            assert size * n * n <= actual < size * n * n + 8 * 100 * n


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_workspace_is_for_one_matrix_in_float64(name: str, dtype: str) -> None:
    assert workspace(name, 5, 2, 30, 30, dtype=dtype) == workspace(name, 30, 30)
    assert (
        workspace(name, 30, 30)
        < workspace(name, 30, 30, dtype="complex64")
        == workspace(name, 30, 30, dtype="complex128")
    )
    assert workspace(name, 0, 30, 30) == workspace(name, 30, 0) == 0


def test_query_runs_once_per_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    first = workspace("svd", 37, 21)
    monkeypatch.setattr("engine.ops.linalg.lapack._query", None)
    assert workspace("svd", 37, 21) == workspace("svd", 9, 37, 21, dtype="float32") == first


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_sizes_beyond_int32(name: str) -> None:
    """A query returns a negative or too small size if n² does not fit int32."""
    n = 50_000
    assert workspace(name, n, n) >= 8 * (3 if name == "eigh" else 7) * n * n


@pytest.mark.parametrize(("m", "n"), [(300, 200), (200, 300), (64, 64), (1, 9), (9, 1)])
def test_geqrf_workspace_is_enough_for_orgqr(m: int, n: int) -> None:
    k = min(m, n)
    _, real, _ = lapack.dorgqr(np.zeros((m, k), order="F"), np.zeros(k), lwork=-1)
    _, pairs, _ = lapack.zungqr(np.zeros((m, k), COMPLEX, order="F"), np.zeros(k, COMPLEX), lwork=-1)
    assert qr_length(REAL, m, n) >= real[0]
    assert qr_length(COMPLEX, m, n) >= pairs[0].real


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_workspace_beyond_lapack_integer_range(name: str, dtype: str) -> None:
    limit = 2**31 - 1
    assert (
        workspace(name, limit + 1, limit + 1, dtype=dtype) > workspace(name, limit, limit, dtype=dtype) > 8 * limit**2
    )
