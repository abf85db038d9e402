"""Distances of rows: SciPy's, for exponents of all kinds, where rows coincide, and where they are not numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.engine.ops.run import Array, error, grads, run

RNG = np.random.default_rng(0)
EXPONENTS = [0.5, 1.0, 1.5, 2.0, 3.0]


def rows() -> tuple[Array, Array]:
    """[4, 3] and [5, 3]; one of each is the same, and two have one coordinate in common."""
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
    b[2], b[3, 1] = a[1], a[2, 1]
    return a, b


@pytest.mark.parametrize("p", EXPONENTS)
def test_against_scipy(p: float) -> None:
    cdist = pytest.importorskip("scipy.spatial.distance").cdist
    a, b = rows()
    wanted = cdist(a, b, "minkowski", p=p)
    np.testing.assert_allclose(run("cdist", a, b, p=p), wanted, 1e-13)
    if p == 2:
        np.testing.assert_allclose(run("cdist", a, b), wanted, 1e-13)
    batch = run("cdist", np.stack([a, 2 * a]), b[None], p=p)
    np.testing.assert_allclose(batch, np.stack([wanted, cdist(2 * a, b, "minkowski", p=p)]), 1e-13)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
def test_gradients_are_0_where_rows_coincide(p: float) -> None:
    """sign(a − b) (|a − b| / y)ᵖ⁻¹ elsewhere."""
    a, b = rows()
    g = RNG.normal(size=(4, 5))
    apart = a[:, None] - b
    y = (np.abs(apart) ** p).sum(-1) ** (1 / p)
    y[y == 0] = 1
    part = g[..., None] * np.sign(apart) * (np.abs(apart) / y[..., None]) ** (p - 1)
    _, (da, db) = grads("cdist", a, b, cotangent=g, p=p)
    np.testing.assert_allclose(da, part.sum(1), 1e-12, 1e-14)
    np.testing.assert_allclose(db, -part.sum(0), 1e-12, 1e-14)


@pytest.mark.parametrize("p", EXPONENTS)
def test_what_is_not_a_number_is_no_distance(p: float) -> None:
    found = run("cdist", np.array([[math.nan, 1.0], [math.inf, 1.0], [0.0, 1.0]]), np.array([[0.0, 1.0]]), p=p)
    np.testing.assert_array_equal(found, [[math.nan], [math.inf], [0.0]])


@pytest.mark.parametrize(
    ("operand", "shape", "sentence"),
    [
        (0, (3,), "needs at least 2 axes rows and coordinates, but the operand has 1"),
        (1, (3,), "operand 1 (b) must have at least 2 axes, but has shape [3]"),
        (1, (3, 5, 2), "operand 1 (b) must have extent 3 on axis -1 (that of a), but has shape [3, 5, 2]"),
    ],
)
def test_operands_that_do_not_fit(operand: int, shape: tuple[int, ...], sentence: str) -> None:
    operands = [*rows()]
    operands[operand] = np.zeros(shape)
    found = error("cdist", *operands)
    assert (found.code, found.operand) == ("shape_mismatch", operand)
    assert sentence in found.detail


@pytest.mark.parametrize("p", [0.0, -1.0])
def test_an_exponent_is_positive(p: float) -> None:
    found = error("cdist", *rows(), p=p)
    assert (found.code, found.expected, found.got) == ("bad_attribute", "above 0", f"{p:g}")
