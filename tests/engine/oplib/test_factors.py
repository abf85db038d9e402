"""Batches in pieces: how many matrices at a time, what is copied, and a look at the deadline before each."""

from __future__ import annotations

import numpy as np
import pytest

from engine import TensorType
from engine.graph.errors import DeadlineExceeded
from engine.graph.limits import Deadline
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import Strided
from engine.oplib.factors import at_once, chunk_bytes, chunks, factored, symmetric_part


def test_large_matrices_come_one_by_one_and_small_ones_many_at_a_time() -> None:
    assert at_once((9, 512, 512)) == 1
    assert at_once((9, 2, 2)) > 1000
    assert at_once((0, 0)) >= 1
    assert at_once((9, 1000, 1)) < at_once((9, 30, 30))


def test_pieces_are_copies_and_results_go_where_they_belong() -> None:
    x = np.arange(2.0 * 70 * 20 * 20).reshape(2, 70, 20, 20)
    before, out = x.copy(), np.zeros((2, 70, 20))
    count = 0
    for (part,), (y,) in chunks(RunContext(np), [x[:, ::-1]], [out]):
        count += 1
        y[...] = part[:, 0]
        part[...] = 0
    assert count == -(-140 // at_once(x.shape))
    assert count > 1
    np.testing.assert_array_equal(out, before[:, ::-1, 0])
    np.testing.assert_array_equal(x, before)


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


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "qr"])
def test_a_matrix_without_factors_stands_alone(name: str) -> None:
    x = np.stack([np.eye(3), np.full((3, 3), np.nan), 2 * np.eye(3), np.diag([np.inf, 1, 1])])
    for y in factored(RunContext(np), name, x):
        assert np.isnan(y[[1, 3]]).all()
        assert np.isfinite(y[[0, 2]]).all()


def test_the_symmetric_part_of_the_largest_numbers() -> None:
    x = np.full((1, 2, 2), np.finfo(float).max)
    np.testing.assert_array_equal(symmetric_part(x.copy()), x)
    np.testing.assert_array_equal(symmetric_part(np.array([[[1.0, 4.0], [0.0, 2.0]]])), [[[1, 2], [2, 2]]])
