"""Integer matrix powers: NumPy, zero and negative exponents, and the number of products."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.matrices import real
from tests.engine.ops.planned import plan_of
from tests.engine.ops.run import grads, run


@pytest.mark.parametrize("k", [0, 1, 2, 3, 7, 12, 100, -1, -2, -5])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (1, 2, 3, 3), (1, 1), (0, 0), (0, 2, 2)], ids=str)
def test_matches_numpy(shape: tuple[int, ...], k: int) -> None:
    x = real(*shape) / 2 + np.eye(shape[-1])
    expected = np.linalg.matrix_power(x, k)
    np.testing.assert_allclose(run("matrix_power", x, k=k), expected, 1e-11, 1e-11 * np.abs(expected).max(initial=0))


@pytest.mark.parametrize("k", [1, 2, 5, -1, -3])
def test_gradient_is_the_sum_over_all_factors(k: int) -> None:
    x, g = real(3, 3) + 2 * np.eye(3), real(3, 3)
    power = np.linalg.matrix_power
    if k > 0:
        expected = sum(power(x.T, i) @ g @ power(x.T, k - 1 - i) for i in range(k))
    else:
        expected = -sum(power(x.T, i) @ g @ power(x.T, k - 1 - i) for i in range(k, 0))
    _, (actual,) = grads("matrix_power", x, k=k, cotangent=g)
    np.testing.assert_allclose(actual, expected, 1e-11, 1e-13)


def test_power_zero_is_the_identity_even_for_nan() -> None:
    x = np.array([[np.nan, 0.0], [1.0, np.inf]])
    actual, (slope,) = grads("matrix_power", x, k=0)
    np.testing.assert_array_equal(actual, np.eye(2))
    assert not slope.any()


def test_powers_use_repeated_squaring() -> None:
    assert plan_of("matrix_power", (4, 4), k=1 << 40).flops < 42 * 2 * 64
    assert plan_of("matrix_power", (4, 4), k=-(1 << 63)).flops < 70 * 2 * 64


def test_high_power_of_a_markov_chain_converges() -> None:
    x = np.array([[0.9, 0.2], [0.1, 0.8]])
    np.testing.assert_allclose(run("matrix_power", x, k=1 << 40), [[2 / 3, 2 / 3], [1 / 3, 1 / 3]], 1e-3)


def test_singular_matrix_does_not_affect_the_others() -> None:
    actual = run("matrix_power", np.stack([np.eye(2), np.zeros((2, 2)), 2 * np.eye(2)]), k=-2)
    np.testing.assert_array_equal(actual[0], np.eye(2))
    assert np.isnan(actual[1]).all()
    np.testing.assert_array_equal(actual[2], np.eye(2) / 4)


def test_dtypes() -> None:
    small = run("matrix_power", np.array([[300.0, 0], [0, 1]], "float16"), k=-2)
    assert small.dtype == np.float16
    np.testing.assert_array_equal(small, np.array([[1 / 9e4, 0], [0, 1]], "float16"))
    assert run("matrix_power", np.eye(2, dtype="int8"), k=3).dtype == np.float64
    whole = np.array([[100, 1], [0, -100]], "int8")
    np.testing.assert_array_equal(run("matrix_power", whole, k=3), np.linalg.matrix_power(whole.astype(float), 3))
    assert run("matrix_power", np.eye(2, dtype="bool"), k=0).dtype == np.float64
