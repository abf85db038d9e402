"""GMM: the log posterior of a mixture of Gaussians, and its gradient by weights, means and inverse factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import gammaln

from benchmarks.workload import Array, Workload, normal

DIMENSIONS, COMPONENTS, POINTS = 10, 25, 1000
#: the prior's: scale γ, and degrees of freedom beyond the dimension m
GAMMA, FREEDOM = 1.0, 0


def mixture(d: int = DIMENSIONS, k: int = COMPONENTS, n: int = POINTS) -> Workload:
    """log Σ of components at each point, and a Wishart prior.

    Component j has the inverse factor Q_j, lower triangular, with exp q_j on its diagonal and l_j below it; so
    log p(x) = log Σ_j exp(α_j + Σ q_j − ‖Q_j (x − μ_j)‖² / 2) − log Σ exp α − d/2 · log 2π.
    """
    entries = d * (d - 1) // 2
    constant = -n * d * 0.5 * math.log(2 * math.pi) - k * _wishart_constant(d)

    def log_posterior(ops: Any, *leaves: Any) -> Any:
        alphas, means, logs, below, x, below_places, diagonal_places = leaves
        diagonal = ops.exp(logs)
        factors = ops.reshape(below @ below_places + diagonal @ diagonal_places, shape=(k, d, d))
        centred = ops.reshape(x, shape=(1, n, d)) - ops.reshape(means, shape=(k, 1, d))
        whitened = centred @ ops.transpose(factors, axes=(0, 2, 1))
        sums = ops.sum(logs, axes=[1])
        inner = ops.reshape(alphas + sums, shape=(k, 1)) - ops.sum(ops.square(whitened), axes=[2]) * 0.5
        likelihood = ops.sum(ops.logsumexp(inner, axes=[0])) - ops.logsumexp(alphas, axes=[0]) * float(n)
        squares = ops.sum(ops.square(diagonal)) + ops.sum(ops.square(below))
        return likelihood + squares * (0.5 * GAMMA**2) - ops.sum(sums) * float(FREEDOM) + constant

    shapes = [(k,), (k, d), (k, d), (k, entries)]
    parameters = [normal(i, *shape, scale=0.5, dtype="float64") for i, shape in enumerate(shapes)]
    data = [normal(5, n, d, dtype="float64"), *_places(d)]
    return Workload("gmm", f"GMM: {n:,} points, {k} components, d = {d}", log_posterior, parameters, data)


def _places(d: int) -> tuple[Array, Array]:
    """Where the entries below the diagonal, and those on it, go in a flat d × d matrix, as matrices of 0 and 1."""
    rows, columns = np.tril_indices(d, -1)
    cells = np.eye(d * d)
    return cells[rows * d + columns], cells[np.arange(d) * (d + 1)]


def _wishart_constant(d: int) -> float:
    degrees = d + FREEDOM + 1
    multivariate = 0.25 * d * (d - 1) * math.log(math.pi)
    multivariate += sum(gammaln(0.5 * (degrees - i)) for i in range(d))
    return float(degrees * d * (math.log(GAMMA) - 0.5 * math.log(2)) - multivariate)
