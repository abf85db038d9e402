"""What LAPACK asks to work in: no less than what its documents say, and what it is given is enough for it to go on."""

from __future__ import annotations

import numpy as np
import pytest

from engine import TensorType
from engine.oplib.lapack_work import _taken, lapack_bytes, qr_length

lapack = pytest.importorskip("scipy.linalg").lapack

REAL, COMPLEX = np.dtype("float64"), np.dtype("complex128")
NAMES = ["eigh", "eigvalsh", "svd", "svdvals", "qr"]


@pytest.fixture(autouse=True)
def anew() -> None:
    """Nothing is known from before."""
    qr_length.cache_clear()
    _taken.cache_clear()


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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_it_works_in_doubles_on_one_matrix_of_a_batch(name: str, dtype: str) -> None:
    assert taken(name, 5, 2, 30, 30, dtype=dtype) == taken(name, 30, 30)
    assert taken(name, 30, 30) < taken(name, 30, 30, dtype="complex64") == taken(name, 30, 30, dtype="complex128")
    assert taken(name, 0, 30, 30) == taken(name, 30, 0) == 0


def test_it_is_asked_once_for_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    first = taken("svd", 37, 21)
    monkeypatch.setattr("engine.oplib.lapack_work._asked", None)
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
