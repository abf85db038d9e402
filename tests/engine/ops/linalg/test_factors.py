"""Batches in chunks: matrices per chunk, copies, and a deadline check before each chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import TensorType
from engine.ir.errors import DeadlineExceeded
from engine.ir.run_context import Deadline, RunContext
from engine.ir.tensor_type import Strided
from engine.ops.linalg import matrices as factors
from engine.ops.linalg.matrices import (
    _factorize,
    admit,
    chunk_bytes,
    chunks,
    factorize,
    matrices_per_chunk,
    symmetric_part,
)


def test_chunks_hold_one_large_or_many_small_matrices() -> None:
    assert matrices_per_chunk((9, 512, 512)) == 1
    assert matrices_per_chunk((9, 2, 2)) > 1000
    assert matrices_per_chunk((0, 0)) >= 1
    assert matrices_per_chunk((9, 1000, 1)) < matrices_per_chunk((9, 30, 30))


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (1, 2000), (2000, 1), (30, 30), (100, 90), (300, 300)])
def test_chunk_is_a_few_milliseconds_of_work(shape: tuple[int, int]) -> None:
    """Fewer than 130,000 elements, and less than four million of n³."""
    count, elements = matrices_per_chunk(shape), shape[0] * shape[1]
    assert count == 1 or (count * elements < 2**17 and count * elements * max(shape) < 2**22)


def test_chunks_are_copies_and_results_land_in_place() -> None:
    x = np.arange(2.0 * 70 * 20 * 20).reshape(2, 70, 20, 20)
    before, out = x.copy(), np.zeros((2, 70, 20))
    count = 0
    for (part,), (y,) in chunks(RunContext(np), [x[:, ::-1]], [out]):
        count += 1
        y[...] = part[:, 0]
        part[...] = 0
    assert count == -(-140 // matrices_per_chunk(x.shape))
    assert count > 1
    np.testing.assert_array_equal(out, before[:, ::-1, 0])
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("shape", [(3, 2, 2), (2, 2), (2, 1, 2, 3, 2)])
def test_any_number_of_batch_axes(shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    out = np.zeros(shape[:-1])
    (((part,), (y,)),) = chunks(RunContext(np), [x], [out])
    y[...] = part.sum(-1)
    np.testing.assert_array_equal(out, x.sum(-1))


def test_deadline_is_checked() -> None:
    x = np.zeros((3, 200, 200))
    run = RunContext(np, Deadline(0.0))
    with pytest.raises(DeadlineExceeded):
        list(chunks(run, [x], [x]))


def test_chunk_bytes() -> None:
    x = TensorType((5, 2, 300, 300), np.dtype(float))
    assert chunk_bytes(x.shape, 7, x) == 8 * 7
    scattered = Strided(x, (8, 40, 80, 24000))
    assert chunk_bytes(x.shape, 7, scattered) == 8 * 7 + x.nbytes
    turned = TensorType((5, 300, 300), np.dtype(float))
    assert chunk_bytes(turned.shape, 7, Strided(turned, (8, 40, 12000))) == 8 * 7  # no copy either
    few = TensorType((5, 1, 2, 3, 4), np.dtype(complex))
    assert chunk_bytes(few.shape, 7, few) == 16 * 7 * 10


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "qr"])
def test_matrix_without_factors_does_not_affect_the_others(name: str) -> None:
    x = np.stack([np.eye(3), np.full((3, 3), np.nan), 2 * np.eye(3), np.diag([np.inf, 1, 1])])
    for y in factorize(RunContext(np), name, x):
        assert np.isnan(y[[1, 3]]).all()
        assert np.isfinite(y[[0, 2]]).all()


def test_symmetric_part_does_not_overflow() -> None:
    x = np.full((1, 2, 2), np.finfo(float).max)
    np.testing.assert_array_equal(symmetric_part(x.copy()), x)
    np.testing.assert_array_equal(symmetric_part(np.array([[[1.0, 4.0], [0.0, 2.0]]])), [[[1, 2], [2, 2]]])


class RecordingDeadline(Deadline):
    """Records the seconds it is asked to admit."""

    def admit(self, seconds: float) -> None:
        admitted.append(seconds)


admitted: list[float] = []


def admitted_seconds(name: str, x: np.ndarray[Any, Any], threads: int = 1, device: str = "cpu") -> list[float]:
    """Return the seconds for which `admit` asked the deadline."""
    admitted.clear()
    run = RunContext(np, RecordingDeadline(0.0), device=device)
    run.threads = threads
    admit(run, name, x)
    return list(admitted)


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "qr", "lu", "matrix_exp"])
def test_time_estimate_for_a_thousand_rows(name: str) -> None:
    """Grows with n³, shrinks with threads, and triples for complex numbers."""
    (seconds,) = admitted_seconds(name, np.broadcast_to(1.0, (1000, 1000)))
    assert 0.01 < seconds < 1
    assert admitted_seconds(name, np.broadcast_to(1.0, (3, 2000, 2000))) == pytest.approx([24 * seconds])
    assert admitted_seconds(name, np.broadcast_to(1.0, (2, 4000, 1000))) == pytest.approx([8 * seconds])
    assert admitted_seconds(name, np.broadcast_to(1.0, (2, 1000, 4000))) == pytest.approx([8 * seconds])
    assert admitted_seconds(name, np.broadcast_to(1.0, (1000, 1000)), threads=4) == pytest.approx([seconds / 4])
    assert admitted_seconds(name, np.broadcast_to(1j, (1000, 1000))) == pytest.approx([3 * seconds])
    assert admitted_seconds(name, np.broadcast_to(1.0, (1000, 1000)), device="cuda") == []


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "qr"])
@pytest.mark.parametrize("lost", [[1], [0], [0, 3], [0, 1, 2, 3]])
def test_rejected_batch_is_factorized_one_by_one(name: str, lost: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """On devices that reject the whole batch: failing matrices become NaN, and are never passed again."""
    x = np.random.default_rng(3).normal(size=(4, 3, 3 if name.startswith("eig") else 2))
    expected = [y.copy() for y in _factorize.general(RunContext(np), name, x)]
    checked = factors._raising_function(np, name)

    def refusing(part: np.ndarray[Any, Any]) -> Any:
        assert np.isfinite(part).all()
        if (part[:, 0, 0] == 7).any():
            raise np.linalg.LinAlgError
        return checked(part)

    monkeypatch.setattr(factors, "_raising_function", lambda xp, name: refusing)
    x[lost, 0] = 7, 0, *[0] * (x.shape[2] - 2)
    actual = _factorize.general(RunContext(np), name, x)
    remaining = [i for i in range(4) if i not in lost]
    assert len(actual) == len(expected) == {"eigvalsh": 1, "svdvals": 1, "svd": 3}.get(name, 2)
    for y, z in zip(actual, expected, strict=True):
        assert y.shape == z.shape
        assert np.isnan(y[lost]).all()
        np.testing.assert_allclose(y[remaining], z[remaining], 1e-13, 1e-14)
    (alone, *_) = _factorize.general(RunContext(np), name, x[lost[:1]])
    assert alone.shape == (1, *expected[0].shape[1:])


def test_general_path_gives_the_same_factors() -> None:
    """Thin factors of matrices that are not square."""
    x = np.random.default_rng(4).normal(size=(2, 4, 3))
    for name in ("svd", "svdvals", "qr"):
        direct, general = (each(RunContext(np), name, x.copy()) for each in (_factorize, _factorize.general))
        assert [y.shape for y in general] == [y.shape for y in direct]
        for y, z in zip(direct, general, strict=True):
            np.testing.assert_allclose(y, z, 1e-12, 1e-13)
