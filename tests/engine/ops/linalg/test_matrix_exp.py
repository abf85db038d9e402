"""Matrix exponentials: closed forms, SciPy, small and large norms, derivatives of any order."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Value
from engine.autodiff.vjp import vjp_or_zeros
from engine.ops.linalg.matrix_exp import exponential_slope
from tests.engine.ops.matrices import evaluate, real
from tests.engine.ops.run import Array, grads, run


def symmetric(values: list[float]) -> tuple[Array, Array]:
    """Return a matrix with these eigenvalues, and its eigenvectors."""
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((len(values), len(values))))
    return (q * values) @ q.T, q


@pytest.mark.parametrize("values", [[0.0, 0, 0], [1e-9, 1, -2], [30, -30, 5], [-1e5, -1.0, -3e4], [700, 1, 2]])
def test_symmetric_matrices_match_their_eigendecomposition(values: list[float]) -> None:
    x, q = symmetric(values)
    expected = (q * np.exp(values)) @ q.T
    scale = np.exp(max(values)) * max(1.0, *map(abs, values))
    np.testing.assert_allclose(run("matrix_exp", x), expected, 0, 1e-14 * scale)


def test_skew_matrix_gives_a_rotation() -> None:
    for angle in (0.0, 1e-12, 1.0, 100.0):
        actual = run("matrix_exp", [[0.0, -angle], [angle, 0.0]])
        c, s = np.cos(angle), np.sin(angle)
        np.testing.assert_allclose(actual, [[c, -s], [s, c]], 0, 1e-13)


@pytest.mark.parametrize("size", [1e-20, 0.01, 1.0, 5.3, 5.4, 40.0])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_matches_scipy(n: int, size: float) -> None:
    linalg = pytest.importorskip("scipy.linalg")
    x, g = real(3, n, n) * size / n, real(3, n, n)
    actual, (slope,) = grads("matrix_exp", x, cotangent=g)
    for i in range(3):
        expected = linalg.expm(x[i])
        by_x = linalg.expm_frechet(x[i].T, g[i], compute_expm=False)
        np.testing.assert_allclose(actual[i], expected, 0, 1e-13 * np.abs(expected).max() * max(1, size))
        np.testing.assert_allclose(slope[i], by_x, 0, 1e-13 * np.abs(by_x).max() * max(1, size))


@pytest.mark.parametrize("size", [1e-150, 1e-3, 1e12, 1e150])
def test_gradient_is_accurate_for_cotangents_of_any_scale(size: float) -> None:
    x, g = real(4, 4), real(4, 4)
    _, (expected,) = grads("matrix_exp", x, cotangent=g)
    _, (actual,) = grads("matrix_exp", x, cotangent=g * size)
    np.testing.assert_allclose(actual / size, expected, 1e-13, 1e-14)


def test_exponential_of_a_markov_generator() -> None:
    """The generator of a Markov chain; the derivative in time is the product with the generator."""
    rates = np.abs(real(4, 4))
    rates -= np.diag(rates.sum(axis=1))
    p = run("matrix_exp", rates * 3)
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, 1e-13)

    def after(t: Value) -> Value:
        return ((t.builder.constant(rates) * t).matrix_exp() * t.builder.constant(WEIGHTS)).sum()

    for order, power in ((1, rates), (2, rates @ rates)):

        def slope(t: Value, order: int = order) -> list[Value]:
            y = after(t)
            for _ in range(order):
                (y,) = vjp_or_zeros(t.builder, [(y, y.full_like(1.0))], [t])
            return [y]

        (actual,) = evaluate(slope, np.array(3.0))
        np.testing.assert_allclose(actual, ((power @ p) * WEIGHTS).sum(), 1e-12)


WEIGHTS = real(4, 4)


def test_third_derivatives() -> None:
    """Along one direction that commutes with the matrix: exp(x) d³."""
    x, q = symmetric([0.3, -0.5, 0.9])
    direction = (q * [1.0, 2.0, -1.0]) @ q.T
    weights = real(3, 3)

    def third(v: Value) -> list[Value]:
        y = (v.matrix_exp() * v.builder.constant(weights)).sum()
        for _ in range(3):
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
            y = (g * v.builder.constant(direction)).sum()
        return [y]

    expected = ((q * (np.exp([0.3, -0.5, 0.9]) * [1.0, 8.0, -1.0])) @ q.T * weights).sum()
    np.testing.assert_allclose(evaluate(third, x)[0], expected, 1e-11)


def test_non_finite_matrix_does_not_affect_the_others() -> None:
    batch = np.stack([real(2, 2), np.full((2, 2), np.nan), np.diag([np.inf, 1]), np.diag([1e308, -1e308]), real(2, 2)])
    actual, (slope,) = grads("matrix_exp", batch)
    assert np.isnan(actual[1:3]).all()
    assert not np.isfinite(actual[3]).all()
    for i in (0, 4):
        alone, (by_x,) = grads("matrix_exp", batch[i])
        np.testing.assert_allclose(actual[i], alone, 1e-14)
        np.testing.assert_allclose(slope[i], by_x, 1e-14)
    assert np.isnan(slope[1:3]).all()


def test_dtypes() -> None:
    x = np.diag([10.0, 11.0]).astype("float16")
    actual, (slope,) = grads("matrix_exp", x)
    assert (actual.dtype, slope.dtype) == (np.float16, np.float16)
    np.testing.assert_allclose(np.diag(actual).astype(float), np.exp([10.0, 11.0]), 1e-3)
    assert run("matrix_exp", np.zeros((2, 2), "int8")).dtype == np.float64
    assert run("matrix_exp", np.eye(2, dtype="float32")).dtype == np.float32


def test_derivative_is_linear_and_its_own_adjoint() -> None:
    x, g, h = real(3, 3), real(3, 3), real(3, 3)

    def slopes(a: Value, b: Value, c: Value) -> list[Value]:
        return [(exponential_slope(a, b) * c).sum(), (exponential_slope(a.transpose(), c) * b).sum()]

    actual, expected = evaluate(slopes, x, g, h)
    np.testing.assert_allclose(actual, expected, 1e-12)
    assert abs(actual) > 0.01
