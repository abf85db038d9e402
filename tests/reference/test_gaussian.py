"""The log-likelihood of a Gaussian, written as clients write it, with its gradient and Hessian in closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.conftest import Client
from tests.reference.client import Array, Graph

CLOSE = {"rtol": 1e-7, "atol": 1e-9}
RNG = np.random.default_rng(30)


def covariance(n: int) -> Array:
    x = RNG.uniform(-1, 1, (n, n))
    return x @ x.T + np.eye(n)


def by_factor(g: Graph, points: int, mean: int, spread: int) -> int:
    """−½ Σ |L⁻¹ (x − μ)|² − N Σ log Lᵢᵢ, without N n log(2π) / 2."""
    y = g.add("cholesky", spread)
    offsets = g.add("transpose", g.add("sub", points, mean))
    white = g.add("triangular_solve", y, offsets)
    misfit = g.add("mul_scalar", g.add("sum", g.add("square", white)), scalar=-0.5)
    volume = g.add("sum", g.add("log", g.add("diag", y)))
    return g.add("sub", misfit, g.add("mul_scalar", volume, scalar=float(len(g.feeds[points]))))


def by_system(g: Graph, points: int, mean: int, spread: int) -> int:
    """−½ Σ (x − μ)ᵀ S⁻¹ (x − μ) − ½ N log|S|, by the general solver and the determinant."""
    offsets = g.add("transpose", g.add("sub", points, mean))
    misfit = g.add("sum", g.add("mul", offsets, g.add("solve", spread, offsets)))
    volume = g.add("get_output", g.add("slogdet", spread), index=1)
    total = g.add("add", misfit, g.add("mul_scalar", volume, scalar=float(len(g.feeds[points]))))
    return g.add("mul_scalar", total, scalar=-0.5)


def by_inverse(g: Graph, points: int, mean: int, spread: int) -> int:
    """The same with an explicit precision matrix."""
    precision = g.add("inv", spread)
    offsets = g.add("sub", points, mean)
    misfit = g.add("sum", g.add("mul", g.add("matmul", offsets, precision), offsets))
    volume = g.add("get_output", g.add("slogdet", precision), index=1)
    total = g.add("sub", misfit, g.add("mul_scalar", volume, scalar=float(len(g.feeds[points]))))
    return g.add("mul_scalar", total, scalar=-0.5)


Formulation = Callable[[Graph, int, int, int], int]
FORMULATIONS: list[Formulation] = [by_factor, by_system, by_inverse]


def value(x: Array, mean: Array, s: Array) -> Array:
    r = (x - mean).T
    return -0.5 * np.sum(r * np.linalg.solve(s, r)) - 0.5 * len(x) * np.log(np.linalg.det(s))


def gradients(x: Array, mean: Array, s: Array) -> tuple[Array, Array]:
    """With respect to μ: S⁻¹ Σ r. With respect to S: ½ (S⁻¹ R S⁻¹ − N S⁻¹), R = Σ r rᵀ."""
    p, r = np.linalg.inv(s), (x - mean).T
    return p @ r.sum(axis=1), 0.5 * (p @ r @ r.T @ p - len(x) * p)


def second(x: Array, mean: Array, s: Array, d: Array) -> tuple[Array, Array]:
    """The derivative of `gradients` as S moves along the symmetric d: d(S⁻¹) = −S⁻¹ d S⁻¹."""
    p, r = np.linalg.inv(s), (x - mean).T
    q, outer = -p @ d @ p, r @ r.T
    return q @ r.sum(axis=1), 0.5 * (q @ outer @ p + p @ outer @ q - len(x) * q)


@pytest.mark.parametrize("way", FORMULATIONS)
def test_gradient(client: Client, way: Formulation) -> None:
    x, mean, s = RNG.uniform(-1, 1, (7, 4)), RNG.uniform(-1, 1, 4), covariance(4)
    g = Graph(client)
    leaves = [g.leaf(x, "input"), g.leaf(mean), g.leaf(s)]
    actual, *grads = g.gradients(way(g, *leaves), leaves[1:])
    np.testing.assert_allclose(actual, value(x, mean, s), **CLOSE)
    for gradient, expected in zip(grads, gradients(x, mean, s), strict=True):
        np.testing.assert_allclose(gradient, expected, **CLOSE)


@pytest.mark.parametrize("way", FORMULATIONS)
def test_hessian(client: Client, way: Formulation) -> None:
    """The block of the mean is −N S⁻¹; the other blocks are checked along symmetric directions of S."""
    x, mean, s = RNG.uniform(-1, 1, (5, 3)), RNG.uniform(-1, 1, 3), covariance(3)
    g = Graph(client)
    leaves = [g.leaf(x, "input"), g.leaf(mean), g.leaf(s)]
    y = way(g, *leaves)
    grad_mean, grad_s = g.add("grad", y, leaves[1]), g.add("grad", y, leaves[2])
    rows = [g.gradients(grad_mean, [leaves[1]], unit)[1] for unit in np.eye(3)]
    np.testing.assert_allclose(rows, -len(x) * np.linalg.inv(s), **CLOSE)
    for i, j in [(0, 0), (1, 0), (2, 1), (2, 2)]:
        d = np.zeros((3, 3))
        d[i, j] = d[j, i] = 1
        slopes = g.gradients(grad_s, [leaves[1], leaves[2]], d)[1:]
        for row, expected in zip(slopes, second(x, mean, s, d), strict=True):
            np.testing.assert_allclose(row, expected, **CLOSE)


def test_one_invalid_covariance_does_not_affect_the_others(client: Client) -> None:
    """A request with one matrix that is not positive definite answers for all the others."""
    x, many = RNG.uniform(-1, 1, 3), np.stack([covariance(3) for _ in range(4)])
    many[2] -= 10 * np.eye(3)
    g = Graph(client)
    s, point = g.leaf(many), g.leaf(x, "input")
    white = g.add("triangular_solve", g.add("cholesky", s), point)
    y = g.add("sum", g.add("square", white), axes=[1])
    values, grad_s = g.gradients(y, [s], np.ones(4))
    for i, matrix in enumerate(many):
        p = np.linalg.inv(matrix) if i != 2 else np.full((3, 3), np.nan)
        np.testing.assert_allclose(values[i], x @ p @ x, **CLOSE)
        np.testing.assert_allclose(grad_s[i], -p @ np.outer(x, x) @ p, **CLOSE)
