"""Distances between rows: SciPy, all kinds of exponents, coinciding rows, and NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.engine.ops.run import Array, error, grads, run

RNG = np.random.default_rng(0)
EXPONENTS = [0.5, 1.0, 1.5, 2.0, 3.0]


def rows() -> tuple[Array, Array]:
    """Return [4, 3] and [5, 3]; one row of each is equal, and two rows share a coordinate."""
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
    b[2], b[3, 1] = a[1], a[2, 1]
    return a, b


@pytest.mark.parametrize("p", EXPONENTS)
def test_matches_scipy(p: float) -> None:
    cdist = pytest.importorskip("scipy.spatial.distance").cdist
    a, b = rows()
    expected = cdist(a, b, "minkowski", p=p)
    np.testing.assert_allclose(run("cdist", a, b, p=p), expected, 1e-13)
    if p == 2:
        np.testing.assert_allclose(run("cdist", a, b), expected, 1e-13)
    batch = run("cdist", np.stack([a, 2 * a]), b[None], p=p)
    np.testing.assert_allclose(batch, np.stack([expected, cdist(2 * a, b, "minkowski", p=p)]), 1e-13)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_gradients_are_zero_where_rows_coincide(p: float) -> None:
    """Elsewhere sign(a − b) (|a − b| / y)ᵖ⁻¹."""
    a, b = rows()
    g = RNG.normal(size=(4, 5))
    differences = a[:, None] - b
    y = (np.abs(differences) ** p).sum(-1) ** (1 / p)
    y[y == 0] = 1
    terms = g[..., None] * np.sign(differences) * (np.abs(differences) / y[..., None]) ** (p - 1)
    _, (da, db) = grads("cdist", a, b, cotangent=g, p=p)
    np.testing.assert_allclose(da, terms.sum(1), 1e-12, 1e-14)
    np.testing.assert_allclose(db, -terms.sum(0), 1e-12, 1e-14)


@pytest.mark.parametrize("p", EXPONENTS)
def test_nan_and_infinity_propagate(p: float) -> None:
    actual = run("cdist", np.array([[math.nan, 1.0], [math.inf, 1.0], [0.0, 1.0]]), np.array([[0.0, 1.0]]), p=p)
    np.testing.assert_array_equal(actual, [[math.nan], [math.inf], [0.0]])


@pytest.mark.parametrize(
    ("operand", "shape", "sentence"),
    [
        (0, (3,), "needs at least 2 axes rows and coordinates, but the operand has 1"),
        (1, (3,), "operand 1 (b) must have at least 2 axes, but has shape [3]"),
        (1, (3, 5, 2), "operand 1 (b) must have extent 3 on axis -1 (that of a), but has shape [3, 5, 2]"),
    ],
)
def test_invalid_operand_shapes_are_refused(operand: int, shape: tuple[int, ...], sentence: str) -> None:
    operands = [*rows()]
    operands[operand] = np.zeros(shape)
    refused = error("cdist", *operands)
    assert (refused.code, refused.operand) == ("shape_mismatch", operand)
    assert sentence in refused.detail


@pytest.mark.parametrize("p", [0.0, -1.0])
def test_non_positive_exponent_is_refused(p: float) -> None:
    refused = error("cdist", *rows(), p=p)
    assert (refused.code, refused.expected, refused.got) == ("bad_attribute", "above 0", f"{p:g}")
