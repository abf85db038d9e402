"""Determinants, including gradients at singular matrices; condition numbers and ranks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.linalg.test_eigh import derivatives
from tests.engine.ops.linalg.test_svd import finite_differences, with_singular_values
from tests.engine.ops.matrices import real
from tests.engine.ops.run import Array, error, grads, run


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3), (70, 70)], ids=str)
def test_det_matches_numpy(shape: tuple[int, ...]) -> None:
    x = real(*shape)
    np.testing.assert_allclose(run("det", x), np.linalg.det(x), 1e-11)


def cofactors(x: Array) -> Array:
    """Compute the cofactors minor by minor."""
    n = len(x)
    result = np.zeros_like(x)
    for i, j in np.ndindex(n, n):
        rest = np.delete(np.delete(x, i, 0), j, 1)
        result[i, j] = (-1) ** (i + j) * np.linalg.det(rest)
    return result


@pytest.mark.parametrize(
    "x",
    [
        real(4, 4),
        with_singular_values([2.0, 1.0, 1.0, 0.0], 4, 4),
        with_singular_values([2.0, 1.0, 0.0, 0.0], 4, 4),
        np.zeros((3, 3)),
        np.diag([1.0, 0.0, 3.0]),
        np.array([[0.0]]),
    ],
    ids=["regular", "rank 3", "rank 2", "zeros", "diagonal", "one zero"],
)
def test_gradient_is_the_cofactor_matrix(x: Array) -> None:
    _, (actual,) = grads("det", x)
    np.testing.assert_allclose(actual, cofactors(x), 1e-12, 1e-14)


def test_second_derivatives() -> None:
    plain = real(3, 3)
    singular = (
        np.diag([2.0, 1.0, 0.0]),
        np.diag([1.0, 0.0, 0.0]),
        plain[:, :2] @ plain[:2],
        np.array([[1.0, 2], [2, 4]]),
    )
    for x in (plain, plain[::-1].copy(), *singular, np.zeros((1, 1))):  # the first two have opposite signs
        expected = finite_differences(lambda a: float((cofactors(a) ** 2).sum()), x)
        np.testing.assert_allclose(derivatives(lambda a: a.det(), x, 2), expected, 1e-7, 1e-9)


def test_nan_matrix_does_not_affect_the_others() -> None:
    batch = np.stack([real(2, 2), np.full((2, 2), np.nan), np.zeros((2, 2)), real(2, 2)])
    actual, (slope,) = grads("det", batch)
    np.testing.assert_allclose(actual[[0, 2, 3]], np.linalg.det(batch[[0, 2, 3]]), 1e-12)
    assert np.isnan(actual[1])
    assert np.isnan(slope[1]).all()
    for i in (0, 2, 3):
        np.testing.assert_allclose(slope[i], cofactors(batch[i]), 1e-12, 1e-14)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 2), (2, 4), (0, 2, 2)], ids=str)
def test_cond_number_matches_numpy(shape: tuple[int, ...]) -> None:
    x = real(*shape)
    actual, (slope,) = grads("cond_number", x)
    np.testing.assert_allclose(actual, np.linalg.cond(x) if x.size else np.zeros(0), 1e-9)
    if x.ndim == 2:
        np.testing.assert_allclose(slope, finite_differences(lambda a: float(np.linalg.cond(a)), x), 1e-6, 1e-6)


def test_cond_number_of_singular_matrices() -> None:
    assert run("cond_number", np.diag([2.0, 0.0])) == np.inf
    assert np.isnan(run("cond_number", np.zeros((2, 2))))
    assert np.isnan(run("cond_number", np.full((2, 2), np.nan)))
    assert run("cond_number", np.diag([40_000.0, 4.0]).astype("float16")) == 10_000
    assert "must have matrices with at least one entry" in error("cond_number", np.zeros((0, 3))).detail


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrix_rank_matches_numpy(dtype: str) -> None:
    eps = np.finfo(dtype).eps
    for values in ([3.0, 2.0, 1.0], [3.0, 2.0, 0.0], [1.0, 8 * eps, 0.5], [1.0, 2 * eps, 0.5], [0.0, 0.0, 0.0]):
        x = (np.eye(4, 3) * np.array(values)).astype(dtype)
        actual = run("matrix_rank", x)
        assert actual.dtype == np.int64
        assert actual == np.linalg.matrix_rank(x)
    batch = np.stack([np.eye(3), np.full((3, 3), np.nan), np.ones((3, 3))])
    np.testing.assert_array_equal(run("matrix_rank", batch), [3, 0, 1])
    assert run("matrix_rank", np.zeros((2, 0, 3))).tolist() == [0, 0]
