"""Singular values and vectors: sign invariance, equal values, zeros, and matrices without a decomposition."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from engine import Value
from engine.ops.linalg.spectral import SingularValues
from tests.engine.ops.linalg.test_eigh import derivatives, ops_of
from tests.engine.ops.matrices import evaluate, real, transposed
from tests.engine.ops.run import Array

SHAPES = [(4, 4), (5, 3), (3, 5), (2, 3, 2, 4), (1, 1), (0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 3, 3), (70, 66)]


def parts(x: Value, degenerate: str = "nan") -> list[Value]:
    result = x.svd(degenerate=degenerate)
    return [result.output(i) for i in range(3)]


def finite_differences(f: Callable[[Array], float], x: Array) -> Array:
    """Five-point differences, one entry at a time."""
    result, h = np.zeros_like(x), 1e-3
    for position in np.ndindex(x.shape):
        unit = np.zeros_like(x)
        unit[position] = h
        near, far = f(x + unit) - f(x - unit), f(x + 2 * unit) - f(x - 2 * unit)
        result[position] = (8 * near - far) / (12 * h)
    return result


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_singular_values_and_vectors(shape: tuple[int, ...]) -> None:
    x = real(*shape)
    u, s, vh = evaluate(parts, x)
    k = min(shape[-2:])
    assert s.shape == (*shape[:-2], k)
    assert (s >= 0).all()
    assert (np.diff(s) <= 0).all()
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, x, 1e-12, 1e-12)
    for q in (transposed(u) @ u, vh @ transposed(vh)):
        np.testing.assert_allclose(q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)), 1e-12, 1e-12)
    (alone,) = evaluate(lambda a: [parts(a)[1]], x)
    np.testing.assert_allclose(alone, s, 1e-13, 1e-14)


def test_float16_overflow_does_not_affect_gradients() -> None:
    """The larger value is 84,853, beyond float16."""
    x = np.array([[60_000.0, 20_000.0], [-60_000.0, 20_000.0]])
    by_narrow = derivatives(lambda a: parts(a)[1].sum(), x.astype("float16"))
    assert by_narrow.dtype == np.float16
    np.testing.assert_allclose(by_narrow, derivatives(lambda a: parts(a)[1].sum(), x), 1e-3)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)], ids=str)
def test_gradients_of_invariant_losses_ignore_signs(shape: tuple[int, int]) -> None:
    x, k = real(*shape), min(shape)

    def loss(a: Value, signs: Array) -> Value:
        u, s, vh = parts(a)
        flips = a.builder.constant(signs)
        u, vh = u * flips, vh * flips.reshape(shape=(k, 1))
        return ((u * s.sin()) @ vh).square().sum() + (u @ vh).exp().sum() + (u.square().sum(axes=(1,)) ** 2).sum()

    for order, tolerance in ((1, 1e-10), (2, 1e-8)):
        plain = derivatives(lambda a: loss(a, np.ones(k)), x, order)
        for seed in range(3):
            signs = np.random.default_rng(seed).choice([-1.0, 1.0], k)
            actual = derivatives(partial(loss, signs=signs), x, order)
            np.testing.assert_allclose(actual, plain, tolerance, tolerance)


def with_singular_values(values: list[float], m: int, n: int) -> Array:
    """Return a matrix with these singular values; rounding splits equal ones."""
    rng = np.random.default_rng(0)
    u, v = (np.linalg.qr(rng.standard_normal((e, len(values))))[0] for e in (m, n))
    return (u * values) @ v.T


WEIGHTS = real(4, 3)


def polar(x: Array) -> Array:
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    return u @ vh


@pytest.mark.parametrize("x", [np.eye(4, 3) * [2.0, 2.0, 1.0], with_singular_values([2.0, 2.0, 1.0], 4, 3)])
def test_gradient_at_equal_singular_values(x: Array) -> None:
    """u vh is invariant to rotations within equal values: exact with "whole", and NaN by default."""

    def loss(a: Value, degenerate: str) -> Value:
        u, _, vh = parts(a, degenerate)
        return (u @ vh * a.builder.constant(WEIGHTS)).sum()

    assert np.isnan(derivatives(lambda a: loss(a, "nan"), x)).all()
    actual = derivatives(lambda a: loss(a, "whole"), x)
    np.testing.assert_allclose(actual, finite_differences(lambda a: float((polar(a) * WEIGHTS).sum()), x), 1e-9, 1e-9)
    for degenerate in ("nan", "whole"):
        assert np.isnan(derivatives(partial(loss, degenerate=degenerate), x, 2)).all()


@pytest.mark.parametrize(
    "x", [np.eye(4, 3) * [2.0, 0.5, 0.0], with_singular_values([2.0, 2.0, 0.0], 4, 3), np.zeros((4, 3))]
)
def test_zero_singular_value_has_zero_gradient(x: Array) -> None:
    """The minimum-norm subgradient of the nuclear norm does not depend on the singular vectors of zeros."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    nonzero = s > 1e-9
    expected = (u * nonzero) @ vh
    np.testing.assert_allclose(derivatives(lambda a: parts(a)[1].sum(), x), expected, 1e-12, 1e-12)


@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (3, 4)], ids=str)
def test_gradient_of_vectors_at_lower_rank(shape: tuple[int, int]) -> None:
    """Projectors onto the other vectors of a rank-deficient matrix: NaN by default, exact with "whole"."""
    m, n = shape
    x = with_singular_values([2.0, 1.0, 0.0], m, n)
    weights = np.random.default_rng(1).standard_normal((m, m))

    def loss(a: Value, degenerate: str) -> Value:
        u = parts(a, degenerate)[0].slice(starts=(0, 0), stops=(m, 2))
        return (u @ u.transpose() * a.builder.constant(weights)).sum()

    def projection(a: Array) -> float:
        u = np.linalg.svd(a, full_matrices=False)[0][:, :2]
        return float((u @ u.T * weights).sum())

    assert np.isnan(derivatives(lambda a: loss(a, "nan"), x)).all()
    actual = derivatives(lambda a: loss(a, "whole"), x)
    np.testing.assert_allclose(actual, finite_differences(projection, x), 1e-8, 1e-8)


def test_non_finite_matrix_does_not_affect_the_others() -> None:
    batch = np.stack([real(3, 2), np.full((3, 2), np.nan), np.zeros((3, 2)), real(3, 2)])
    batch[3, 0, 0] = np.inf
    for y in evaluate(parts, batch):
        assert np.isnan(y[[1, 3]]).all()
        assert np.isfinite(y[[0, 2]]).all()

    def loss(a: Value) -> Value:
        u, _, vh = parts(a)
        return (u @ vh).square().sum() + (u @ vh).exp().sum()

    actual = derivatives(loss, batch)
    assert np.isnan(actual[1:]).all()
    np.testing.assert_allclose(actual[0], derivatives(loss, batch[0]), 1e-10, 1e-12)


def test_unused_outputs_are_not_computed() -> None:
    assert "singular_values" in ops_of(lambda a: [parts(a)[1].sum()], real(3, 2))
    assert "svd" in ops_of(lambda a: [parts(a)[0].sum()], real(3, 2))


@pytest.mark.parametrize("shape", [(40, 2), (2, 40)], ids=str)
def test_zero_tolerance_depends_on_the_larger_extent(shape: tuple[int, int]) -> None:
    """Values below 16 · 40 ε have zero gradient."""
    for part, passes in ((320 * 2.0**-52, 0.0), (1280 * 2.0**-52, 1.0)):
        x = np.eye(*shape)
        x[1, 1] = part
        slope = derivatives(lambda a: parts(a)[1].sum(), x)
        assert abs(slope[0, 0] - 1) < 1e-12
        assert abs(slope[1, 1] - passes) < 1e-12


@pytest.mark.parametrize("shape", [(2, 2, 3), (2, 3, 2), (1, 2, 2, 3)], ids=str)
def test_gradients_of_a_batch_match_each_matrix(shape: tuple[int, ...]) -> None:
    def loss(a: Value) -> Value:
        u, s, vh = parts(a)
        return (u @ vh).exp().sum() + (u.square() * s.reshape(shape=(*s.shape[:-1], 1, s.shape[-1]))).square().sum()

    x = real(*shape)
    each = [derivatives(loss, matrix) for matrix in x.reshape(-1, *shape[-2:])]
    np.testing.assert_allclose(derivatives(loss, x), np.reshape(each, shape), 1e-11, 1e-12)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 2)], ids=str)
def test_vectors_of_a_zero_matrix_are_omitted(shape: tuple[int, int]) -> None:
    def loss(a: Value, degenerate: str) -> Value:
        u, _, vh = parts(a, degenerate)
        return u.sin().sum() + vh.sin().sum()

    x = np.zeros(shape)
    assert not derivatives(partial(loss, degenerate="whole"), x).any()
    assert np.isnan(derivatives(partial(loss, degenerate="nan"), x)).any()


def test_values_only_op_decomposes_to_the_second_output() -> None:
    x = real(3, 2)
    (actual,) = evaluate(lambda a: SingularValues().written_out(a, degenerate="nan"), x)
    np.testing.assert_allclose(actual, np.linalg.svd(x)[1], 1e-13)
