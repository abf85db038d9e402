"""QR factors: signs, dependent columns, and shapes that have values but no gradient."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from engine import EngineError, Value
from tests.engine.ops.linalg.test_eigh import derivatives
from tests.engine.ops.matrices import evaluate, real, transposed
from tests.engine.ops.run import Array

SHAPES = [(4, 4), (5, 3), (3, 5), (2, 3, 2, 4), (1, 1), (0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 3, 3), (70, 66)]


def parts(x: Value) -> list[Value]:
    result = x.qr()
    return [result.output(0), result.output(1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_match_numpy(shape: tuple[int, ...]) -> None:
    x = real(*shape)
    q, r = evaluate(parts, x)
    k = min(shape[-2:])
    assert (q.shape, r.shape) == ((*shape[:-1], k), (*shape[:-2], k, shape[-1]))
    np.testing.assert_allclose(q @ r, x, 1e-12, 1e-13)
    np.testing.assert_allclose(transposed(q) @ q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)), 1e-12, 1e-13)
    assert not np.tril(r, -1).any()
    if x.size:
        np.testing.assert_array_equal(r, np.linalg.qr(x)[1])


@pytest.mark.parametrize("shape", [(4, 4), (5, 3)], ids=str)
def test_gradients_of_invariant_losses_ignore_signs(shape: tuple[int, int]) -> None:
    x, n = real(*shape), shape[1]

    def loss(a: Value, signs: Array) -> Value:
        q, r = parts(a)
        flips = a.builder.constant(signs)
        q, r = q * flips, r * flips.reshape(shape=(n, 1))
        return (q @ q.transpose()).exp().sum() + r.square().sum(axes=(1,)).sin().sum() + (q @ r).square().sum()

    for order, tolerance in ((1, 1e-10), (2, 1e-8)):
        plain = derivatives(partial(loss, signs=np.ones(n)), x, order)
        for seed in range(3):
            signs = np.random.default_rng(seed).choice([-1.0, 1.0], n)
            np.testing.assert_allclose(derivatives(partial(loss, signs=signs), x, order), plain, tolerance, tolerance)


def test_float16_overflow_does_not_affect_gradients() -> None:
    """|r₁₁| is 67,082, beyond float16."""
    x = np.array([[60_000.0, 1000.0], [-30_000.0, 60_000.0]])
    by_narrow = derivatives(lambda a: parts(a)[1].sum(), x.astype("float16"))
    assert by_narrow.dtype == np.float16
    np.testing.assert_allclose(by_narrow, derivatives(lambda a: parts(a)[1].sum(), x), 1e-3)


def test_gradient_of_the_projector_onto_columns() -> None:
    """d(q qᵀ) = (1 − p) dx x⁺ plus its transpose, where p = x x⁺; G. Golub, V. Pereyra (1973)."""
    x, weights = real(5, 3), real(5, 5)
    pseudo = np.linalg.pinv(x)
    complement = np.eye(5) - x @ pseudo

    def loss(a: Value) -> Value:
        q = parts(a)[0]
        return (q @ q.transpose() * a.builder.constant(weights)).sum()

    np.testing.assert_allclose(derivatives(loss, x), complement @ (weights + weights.T) @ pseudo.T, 1e-10, 1e-12)


def test_wide_matrices_have_values_but_no_gradient() -> None:
    q, r = evaluate(parts, real(2, 3))
    assert (q.shape, r.shape) == ((2, 2), (2, 3))

    with pytest.raises(EngineError, match="must have at least as many rows as columns") as refused:
        derivatives(lambda a: parts(a)[1].sum(), real(2, 3))
    assert refused.value.code == "not_differentiable"
    assert (refused.value.operand, refused.value.got) == (0, "[2, 3]")


def test_rank_deficient_and_nan_matrices_do_not_affect_others() -> None:
    batch = np.stack([real(3, 2), np.full((3, 2), np.nan), np.zeros((3, 2)), real(3, 2)])
    batch[3, 2, 1] = np.inf
    for y in evaluate(parts, batch):
        assert np.isnan(y[[1, 3]]).all()
        assert np.isfinite(y[[0, 2]]).all()

    def loss(a: Value) -> Value:
        q, r = parts(a)
        return q.exp().sum() + r.square().sum()

    actual = derivatives(loss, batch)
    assert not np.isfinite(actual[1:]).all(axis=(1, 2)).any()
    np.testing.assert_allclose(actual[0], derivatives(loss, batch[0]), 1e-12, 1e-12)


def test_vectors_are_refused() -> None:
    with pytest.raises(
        EngineError, match=r"operand 0 \(x\) must hold matrices on its last two axes, but has shape \[3\]"
    ):
        evaluate(parts, real(3))
