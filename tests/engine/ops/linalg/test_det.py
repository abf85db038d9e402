"""Determinants: singular matrices have a gradient; condition numbers and ranks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.linalg.test_eigh import derivatives
from tests.engine.ops.linalg.test_svd import of_values, slopes
from tests.engine.ops.matrices import real
from tests.engine.ops.run import Array, error, grads, run


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3), (70, 70)], ids=str)
def test_it_is_numpys(shape: tuple[int, ...]) -> None:
    x = real(*shape)
    np.testing.assert_allclose(run("det", x), np.linalg.det(x), 1e-11)


def cofactors(x: Array) -> Array:
    """Minor by minor."""
    n = len(x)
    found = np.zeros_like(x)
    for i, j in np.ndindex(n, n):
        rest = np.delete(np.delete(x, i, 0), j, 1)
        found[i, j] = (-1) ** (i + j) * np.linalg.det(rest)
    return found


@pytest.mark.parametrize(
    "x",
    [
        real(4, 4),
        of_values([2.0, 1.0, 1.0, 0.0], 4, 4),
        of_values([2.0, 1.0, 0.0, 0.0], 4, 4),
        np.zeros((3, 3)),
        np.diag([1.0, 0.0, 3.0]),
        np.array([[0.0]]),
    ],
    ids=["regular", "rank 3", "rank 2", "zeros", "diagonal", "one zero"],
)
def test_the_gradient_is_the_cofactors(x: Array) -> None:
    _, (found,) = grads("det", x)
    np.testing.assert_allclose(found, cofactors(x), 1e-12, 1e-14)


def test_second_derivatives() -> None:
    plain = real(3, 3)
    for x in (plain, plain[::-1].copy()):  # whose determinants have different signs
        wanted = slopes(lambda a: float((cofactors(a) ** 2).sum()), x)
        np.testing.assert_allclose(derivatives(lambda a: a.det(), x, 2), wanted, 1e-7, 1e-9)
    assert not np.isfinite(derivatives(lambda a: a.det(), np.diag([1.0, 0.0, 0.0]), 2)).any()


def test_a_matrix_without_an_answer_stands_alone() -> None:
    batch = np.stack([real(2, 2), np.full((2, 2), np.nan), np.zeros((2, 2)), real(2, 2)])
    found, (slope,) = grads("det", batch)
    np.testing.assert_allclose(found[[0, 2, 3]], np.linalg.det(batch[[0, 2, 3]]), 1e-12)
    assert np.isnan(found[1])
    assert np.isnan(slope[1]).all()
    for i in (0, 2, 3):
        np.testing.assert_allclose(slope[i], cofactors(batch[i]), 1e-12, 1e-14)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 2), (2, 4), (0, 2, 2)], ids=str)
def test_condition_numbers_are_numpys(shape: tuple[int, ...]) -> None:
    x = real(*shape)
    found, (slope,) = grads("cond_number", x)
    np.testing.assert_allclose(found, np.linalg.cond(x) if x.size else np.zeros(0), 1e-9)
    if x.ndim == 2:
        np.testing.assert_allclose(slope, slopes(lambda a: float(np.linalg.cond(a)), x), 1e-6, 1e-6)


def test_conditions_of_lower_rank() -> None:
    assert run("cond_number", np.diag([2.0, 0.0])) == np.inf
    assert np.isnan(run("cond_number", np.zeros((2, 2))))
    assert np.isnan(run("cond_number", np.full((2, 2), np.nan)))
    assert run("cond_number", np.diag([40_000.0, 4.0]).astype("float16")) == 10_000
    assert "must have matrices that have entries" in error("cond_number", np.zeros((0, 3))).detail


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ranks(dtype: str) -> None:
    eps = np.finfo(dtype).eps
    for values in ([3.0, 2.0, 1.0], [3.0, 2.0, 0.0], [1.0, 8 * eps, 0.5], [1.0, 2 * eps, 0.5], [0.0, 0.0, 0.0]):
        x = (np.eye(4, 3) * np.array(values)).astype(dtype)
        found = run("matrix_rank", x)
        assert found.dtype == np.int64
        assert found == np.linalg.matrix_rank(x)
    batch = np.stack([np.eye(3), np.full((3, 3), np.nan), np.ones((3, 3))])
    np.testing.assert_array_equal(run("matrix_rank", batch), [3, 0, 1])
    assert run("matrix_rank", np.zeros((2, 0, 3))).tolist() == [0, 0]
