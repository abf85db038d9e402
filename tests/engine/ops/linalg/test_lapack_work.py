"""What LAPACK asks to work in: no less than what its documents say, and what it is given is enough for it to go on."""

from __future__ import annotations

import numpy as np
import pytest

from engine import TensorType
from engine.ops.linalg.lapack import _work_size, lapack_bytes, qr_length

lapack = pytest.importorskip("scipy.linalg").lapack

REAL, COMPLEX = np.dtype("float64"), np.dtype("complex128")
NAMES = ["eigh", "eigvalsh", "svd", "svdvals", "qr"]


@pytest.fixture(autouse=True)
def anew() -> None:
    """Nothing is known from before."""
    qr_length.cache_clear()
    _work_size.cache_clear()


def taken(name: str, *shape: int, dtype: str = "float64") -> int:
    return lapack_bytes(name, TensorType(shape, np.dtype(dtype)))


@pytest.mark.parametrize("n", [2, 40, 300])
def test_it_is_what_the_documents_say_at_least(n: int) -> None:
    """Of syevd, heevd and gesdd: their smallest LWORK, LRWORK and LIWORK, with the matrix and its factors."""
    square = n * n
    assert taken("eigh", n, n) >= 8 * (square + n + 1 + 6 * n + 2 * square + 3 + 5 * n)
    assert taken("eigh", n, n, dtype="complex128") >= 16 * (2 * square + 2 * n) + 8 * (n + 1 + 5 * n + 2 * square)
    assert taken("eigvalsh", n, n) >= 8 * (square + n + 2 * n + 1)
    assert taken("svd", n, n) >= 8 * (3 * square + n + 4 * square + 7 * n + 8 * n)
    assert taken("svd", n, n, dtype="complex128") >= 16 * (3 * square + square + 3 * n) + 8 * (5 * square + 5 * n)
    assert taken("svdvals", n, n) >= 8 * (square + n + 3 * n + 7 * n)
    assert taken("qr", n, n) >= 8 * (square + n + n)


@pytest.mark.parametrize(("m", "n"), [(30, 30), (90, 20), (20, 90), (1, 1)])
@pytest.mark.parametrize("vectors", [0, 1])
def test_singular_values_take_what_numpy_allocates(m: int, n: int, vectors: int) -> None:
    """For gesdd: the matrix, its factors, LWORK as asked for, or that of documents, and their LRWORK and LIWORK."""
    k, name = min(m, n), "svd" if vectors else "svdvals"
    least = (4 * k * k + 7 * k) * vectors
    factors = (m + n) * k * vectors
    lwork, _ = lapack.dgesdd_lwork(m, n, compute_uv=vectors, full_matrices=0)
    assert taken(name, m, n) == 8 * (m * n + factors + max(int(lwork), least) + k + 8 * k)
    lwork, _ = lapack.zgesdd_lwork(m, n, compute_uv=vectors, full_matrices=0)
    reals = 5 * k * k + 5 * k if vectors else 7 * k
    numbers = m * n + factors + max(int(lwork.real), least)
    assert taken(name, m, n, dtype="complex128") == 16 * numbers + 8 * (k + reals + 8 * k)


@pytest.mark.parametrize("vectors", [0, 1])
def test_eigenvalues_take_what_is_asked_for(vectors: int) -> None:
    """For syevd and heevd; beyond 32 bits, what their documents say."""
    n, name = 30, "eigh" if vectors else "eigvalsh"
    lwork, liwork, _ = lapack.dsyevd_lwork(n, compute_v=vectors)
    assert taken(name, n, n) == 8 * (n * n + int(lwork) + n + liwork)
    lwork, liwork, lrwork, _ = lapack.zheevd_lwork(n, compute_v=vectors)
    assert taken(name, n, n, dtype="complex128") == 16 * (n * n + int(lwork.real)) + 8 * (n + int(lrwork) + liwork)
    if vectors:
        n = 50_000
        for dtype, size in (("float64", 8 * 3), ("complex128", 16 * 2 + 8 * 2)):
            found = taken(name, n, n, dtype=dtype)
            assert size * n * n <= found < size * n * n + 8 * 100 * n


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_it_works_in_doubles_on_one_matrix_of_a_batch(name: str, dtype: str) -> None:
    assert taken(name, 5, 2, 30, 30, dtype=dtype) == taken(name, 30, 30)
    assert taken(name, 30, 30) < taken(name, 30, 30, dtype="complex64") == taken(name, 30, 30, dtype="complex128")
    assert taken(name, 0, 30, 30) == taken(name, 30, 0) == 0


def test_it_is_asked_once_for_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    first = taken("svd", 37, 21)
    monkeypatch.setattr("engine.ops.linalg.lapack._query", None)
    assert taken("svd", 37, 21) == taken("svd", 9, 37, 21, dtype="float32") == first


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_counts_beyond_32_bits(name: str) -> None:
    """A query answers less than nothing, or too little, where n² is no int32."""
    n = 50_000
    assert taken(name, n, n) >= 8 * (3 if name == "eigh" else 7) * n * n


@pytest.mark.parametrize(("m", "n"), [(300, 200), (200, 300), (64, 64), (1, 9), (9, 1)])
def test_orgqr_asks_for_no_more_than_geqrf(m: int, n: int) -> None:
    k = min(m, n)
    _, real, _ = lapack.dorgqr(np.zeros((m, k), order="F"), np.zeros(k), lwork=-1)
    _, pairs, _ = lapack.zungqr(np.zeros((m, k), COMPLEX, order="F"), np.zeros(k, COMPLEX), lwork=-1)
    assert qr_length(REAL, m, n) >= real[0]
    assert qr_length(COMPLEX, m, n) >= pairs[0].real


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_matrix_that_is_larger_than_lapack_counts_has_a_size_as_well(name: str, dtype: str) -> None:
    most = 2**31 - 1
    assert taken(name, most + 1, most + 1, dtype=dtype) > taken(name, most, most, dtype=dtype) > 8 * most**2
