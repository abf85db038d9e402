"""Batches in pieces: how many matrices at a time, what is copied, and a look at the deadline before each."""

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


def test_large_matrices_come_one_by_one_and_small_ones_many_at_a_time() -> None:
    assert matrices_per_chunk((9, 512, 512)) == 1
    assert matrices_per_chunk((9, 2, 2)) > 1000
    assert matrices_per_chunk((0, 0)) >= 1
    assert matrices_per_chunk((9, 1000, 1)) < matrices_per_chunk((9, 30, 30))


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (1, 2000), (2000, 1), (30, 30), (100, 90), (300, 300)])
def test_a_piece_is_some_milliseconds_of_work(shape: tuple[int, int]) -> None:
    """Fewer than 130,000 elements, and than four million of n³."""
    count, elements = matrices_per_chunk(shape), shape[0] * shape[1]
    assert count == 1 or (count * elements < 2**17 and count * elements * max(shape) < 2**22)


def test_pieces_are_copies_and_results_go_where_they_belong() -> None:
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
def test_batches_have_any_axes(shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    out = np.zeros(shape[:-1])
    (((part,), (y,)),) = chunks(RunContext(np), [x], [out])
    y[...] = part.sum(-1)
    np.testing.assert_array_equal(out, x.sum(-1))


def test_the_deadline_is_looked_at() -> None:
    x = np.zeros((3, 200, 200))
    run = RunContext(np, Deadline(0.0))
    with pytest.raises(DeadlineExceeded):
        list(chunks(run, [x], [x]))


def test_what_pieces_take() -> None:
    x = TensorType((5, 2, 300, 300), np.dtype(float))
    assert chunk_bytes(x.shape, 7, x) == 8 * 7
    scattered = Strided(x, (8, 40, 80, 24000))
    assert chunk_bytes(x.shape, 7, scattered) == 8 * 7 + x.nbytes
    turned = TensorType((5, 300, 300), np.dtype(float))
    assert chunk_bytes(turned.shape, 7, Strided(turned, (8, 40, 12000))) == 8 * 7  # a view has one axis of them as well
    few = TensorType((5, 1, 2, 3, 4), np.dtype(complex))
    assert chunk_bytes(few.shape, 7, few) == 16 * 7 * 10


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "qr"])
def test_a_matrix_without_factors_stands_alone(name: str) -> None:
    x = np.stack([np.eye(3), np.full((3, 3), np.nan), 2 * np.eye(3), np.diag([np.inf, 1, 1])])
    for y in factorize(RunContext(np), name, x):
        assert np.isnan(y[[1, 3]]).all()
        assert np.isfinite(y[[0, 2]]).all()


def test_the_symmetric_part_of_the_largest_numbers() -> None:
    x = np.full((1, 2, 2), np.finfo(float).max)
    np.testing.assert_array_equal(symmetric_part(x.copy()), x)
    np.testing.assert_array_equal(symmetric_part(np.array([[[1.0, 4.0], [0.0, 2.0]]])), [[[1, 2], [2, 2]]])


class Told(Deadline):
    """It notes what it is asked for."""

    def admit(self, seconds: float) -> None:
        seen.append(seconds)


seen: list[float] = []


def asked(name: str, x: np.ndarray[Any, Any], threads: int = 1, device: str = "cpu") -> list[float]:
    """For how many seconds there has to be time."""
    seen.clear()
    run = RunContext(np, Told(0.0), device=device)
    run.threads = threads
    admit(run, name, x)
    return list(seen)


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "qr", "lu", "matrix_exp"])
def test_a_thousand_rows_take_a_part_of_a_second(name: str) -> None:
    """With n³, and the less the more threads there are; of complex numbers three times as long."""
    (seconds,) = asked(name, np.broadcast_to(1.0, (1000, 1000)))
    assert 0.01 < seconds < 1
    assert asked(name, np.broadcast_to(1.0, (3, 2000, 2000))) == pytest.approx([24 * seconds])
    assert asked(name, np.broadcast_to(1.0, (2, 4000, 1000))) == pytest.approx([8 * seconds])
    assert asked(name, np.broadcast_to(1.0, (2, 1000, 4000))) == pytest.approx([8 * seconds])
    assert asked(name, np.broadcast_to(1.0, (1000, 1000)), threads=4) == pytest.approx([seconds / 4])
    assert asked(name, np.broadcast_to(1j, (1000, 1000))) == pytest.approx([3 * seconds])
    assert asked(name, np.broadcast_to(1.0, (1000, 1000)), device="cuda") == []


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "qr"])
@pytest.mark.parametrize("lost", [[1], [0], [0, 3], [0, 1, 2, 3]])
def test_where_a_batch_is_refused_matrices_are_answered_one_by_one(
    name: str, lost: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On devices that refuse all of it: those that have no answer are NaN, and never shown again."""
    x = np.random.default_rng(3).normal(size=(4, 3, 3 if name.startswith("eig") else 2))
    wanted = [y.copy() for y in _factorize.general(RunContext(np), name, x)]
    checked = factors._raising_function(np, name)

    def refusing(part: np.ndarray[Any, Any]) -> Any:
        assert np.isfinite(part).all()
        if (part[:, 0, 0] == 7).any():
            raise np.linalg.LinAlgError
        return checked(part)

    monkeypatch.setattr(factors, "_raising_function", lambda xp, name: refusing)
    x[lost, 0] = 7, 0, *[0] * (x.shape[2] - 2)
    found = _factorize.general(RunContext(np), name, x)
    kept = [i for i in range(4) if i not in lost]
    assert len(found) == len(wanted) == {"eigvalsh": 1, "svdvals": 1, "svd": 3}.get(name, 2)
    for y, z in zip(found, wanted, strict=True):
        assert y.shape == z.shape
        assert np.isnan(y[lost]).all()
        np.testing.assert_allclose(y[kept], z[kept], 1e-13, 1e-14)
    (alone, *_) = _factorize.general(RunContext(np), name, x[lost[:1]])
    assert alone.shape == (1, *wanted[0].shape[1:])


def test_factors_of_other_devices_are_those_of_this_one() -> None:
    """Thin ones of what is not square."""
    x = np.random.default_rng(4).normal(size=(2, 4, 3))
    for name in ("svd", "svdvals", "qr"):
        here, there = (each(RunContext(np), name, x.copy()) for each in (_factorize, _factorize.general))
        assert [y.shape for y in there] == [y.shape for y in here]
        for y, z in zip(here, there, strict=True):
            np.testing.assert_allclose(y, z, 1e-12, 1e-13)
