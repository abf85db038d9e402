"""LU factors with row exchanges: all shapes, ties and zeros, and matrices without factors."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.autodiff.vjp import vjp
from engine.compiler.plan import make_plan
from engine.ops.linalg import lu
from tests.contract.cases import assert_planned_peak_holds
from tests.engine.ops.linalg.test_eigh import derivatives
from tests.engine.ops.matrices import evaluate, real
from tests.engine.ops.run import Array

SHAPES = [(4, 4), (5, 3), (3, 5), (2, 3, 2, 4), (90, 3, 3), (90, 4, 2), (1, 1), (70, 66), (3, 20, 20)]
EMPTY = [(0, 0), (0, 3), (3, 0), (2, 0, 3), (2, 3, 0), (0, 3, 3)]


def parts(x: Value) -> list[Value]:
    result = x.lu()
    return [result.output(i) for i in range(3)]


@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_factors_multiply_to_permuted_rows(shape: tuple[int, ...]) -> None:
    x = real(*shape)
    rows, lower, upper = evaluate(parts, x)
    *lead, m, n = shape
    k = min(m, n)
    assert (rows.shape, lower.shape, upper.shape) == ((*lead, m), (*lead, m, k), (*lead, k, n))
    assert rows.dtype == np.int64
    np.testing.assert_array_equal(np.sort(rows), np.broadcast_to(np.arange(m), rows.shape))
    np.testing.assert_allclose(np.take_along_axis(x, rows[..., None], -2), lower @ upper, 1e-12, 1e-13)
    assert (np.abs(lower) <= 1).all()
    np.testing.assert_array_equal(np.triu(lower), np.broadcast_to(np.eye(m, k), lower.shape))
    assert not np.tril(upper, -1).any()


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)], ids=str)
def test_matches_scipy(shape: tuple[int, int]) -> None:
    x = real(*shape)
    expected = pytest.importorskip("scipy.linalg").lu(x, p_indices=True)
    many = np.broadcast_to(x, (40, *shape))
    assert lu._is_swept(many.shape)
    for batch in (x, many):
        rows, lower, upper = evaluate(parts, batch)
        np.testing.assert_array_equal(np.argsort(rows), np.broadcast_to(expected[0], rows.shape))
        np.testing.assert_allclose(lower, np.broadcast_to(expected[1], lower.shape), 1e-13, 1e-14)
        np.testing.assert_allclose(upper, np.broadcast_to(expected[2], upper.shape), 1e-13, 1e-14)


def log_determinant(x: Value) -> Value:
    return parts(x)[2].diag().abs().log().sum()


def test_gradient_of_log_determinant() -> None:
    for shape in ((5, 5), (40, 3, 3)):
        x = real(*shape)
        np.testing.assert_allclose(derivatives(log_determinant, x), np.linalg.inv(x).swapaxes(-1, -2), 1e-9, 1e-10)


def test_gradient_of_solving_by_lu_matches_solve() -> None:
    x, b = real(4, 4), real(4, 1)

    def by_triangles(a: Value) -> Value:
        rows, lower, upper = parts(a)
        right = a.builder.constant(b).gather(rows.reshape(shape=(4, 1)), axis=0)
        return upper.triangular_solve(lower.triangular_solve(right), lower=False).square().sum()

    def directly(a: Value) -> Value:
        return a.solve(a.builder.constant(b)).square().sum()

    for order in (1, 2):
        actual, expected = (derivatives(write, x, order) for write in (by_triangles, directly))
        np.testing.assert_allclose(actual, expected, 1e-7)


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 2, 5, 3), (1, 2, 3, 5), (3, 2, 4), (2, 1, 4, 4)], ids=str)
def test_gradient_of_the_product_of_the_factors(shape: tuple[int, ...]) -> None:
    """l u = x[permutation], weighted entry by entry: the gradient is the weights with their rows permuted back."""
    x, weights = real(*shape), real(*shape)

    def weighted(a: Value) -> Value:
        _, lower, upper = parts(a)
        return ((lower @ upper) * a.builder.constant(weights)).sum()

    rows = evaluate(parts, x)[0]
    expected = np.empty(shape)
    np.put_along_axis(expected, rows[..., None], weights, -2)
    np.testing.assert_allclose(derivatives(weighted, x), expected, 1e-10, 1e-11)


def test_float16_overflow_does_not_affect_gradients() -> None:
    """u₂₂ is 80,000, beyond float16."""
    x = np.array([[40_000.0, 40_000.0], [-40_000.0, 40_000.0]])
    by_narrow = derivatives(lambda a: parts(a)[2].sum(), x.astype("float16"))
    assert by_narrow.dtype == np.float16
    np.testing.assert_array_equal(by_narrow, derivatives(lambda a: parts(a)[2].sum(), x))


@pytest.mark.parametrize("result", [1, 2])
def test_factors_of_an_empty_matrix_are_connected(result: int) -> None:
    x = Builder(registry()).leaf(TensorType((2, 0), np.dtype(float)), 0)
    y = parts(x)[result]
    assert [g is not None for g in vjp(x.builder, [(y, y.full_like(1.0))], [x])] == [True]


@pytest.mark.parametrize("count", [1, 40])
def test_singular_and_nan_matrices_do_not_affect_the_others(count: int) -> None:
    batch = np.stack([real(3, 3), np.full((3, 3), np.nan), np.zeros((3, 3)), real(3, 3), np.ones((3, 3))] * count)
    batch[3, 2, 1] = np.inf
    rows, lower, upper = evaluate(parts, batch)
    for y in (lower, upper):
        assert np.isnan(y[[1, 3]]).all()
        assert np.isfinite(y[[0, 2, 4]]).all()
    np.testing.assert_array_equal(rows[[1, 2, 3, 4]], [[0, 1, 2]] * 4)
    np.testing.assert_array_equal(lower[4] @ upper[4], np.ones((3, 3)))
    actual = derivatives(log_determinant, batch)
    assert not np.isfinite(actual[1:5]).all(axis=(1, 2)).any()
    np.testing.assert_allclose(actual[0], np.linalg.inv(batch[0]).T, 1e-9, 1e-10)


@pytest.mark.parametrize("shape", [(20, 500, 40), (3, 40, 500), (2, 300, 300)], ids=str)
def test_memory_stays_within_plan(shape: tuple[int, ...]) -> None:
    x = np.ones(shape)
    builder = Builder(registry())
    plan = make_plan(builder.graph(parts(builder.leaf(TensorType.of(x), 0))), Limits())
    evaluate(parts, x[:1])
    assert_planned_peak_holds(plan, {0: x})
    assert TensorType.of(x).nbytes < plan.peak_bytes


def test_flops() -> None:
    def flops(*shape: int) -> int:
        return lu.LU().flops((), TensorType(shape, np.dtype(float)))

    assert flops(6, 6) == 2 * 6**3 // 3
    assert flops(5, 6, 6) == 5 * 2 * 6**3 // 3
    assert flops(5, 3) == flops(3, 5) == 5 * 9 - 9  # m n² − n³ / 3
    assert flops(0, 4) == 0


def test_ties_pick_the_first_row() -> None:
    x: Array = np.array([[1.0, 2.0], [-1.0, 5.0]])
    for batch in (x, np.broadcast_to(x, (40, 2, 2))):
        rows = evaluate(parts, batch)[0]
        assert (rows == [0, 1]).all()
