"""Complex decompositions: factors multiply to the matrix, and phase-invariant functions of them have the gradients of
finite differences, to second order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from engine import Value
from engine.autodiff.vjp import vjp_or_zeros
from engine.ir.errors import DtypeMismatch
from tests.engine.ops.matrices import evaluate
from tests.engine.ops.run import Array, run

Loss = Callable[[Value], Value]
STEP = 1e-6


def draw(*shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    result: Array = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return result


def adjoint(x: Array) -> Array:
    result: Array = x.swapaxes(-1, -2).conj()
    return result


def hermitian_transpose(x: Value) -> Value:
    return x.transpose().conj()


def real_projection(x: Value, seed: int = 7) -> Value:
    """Return a real number from a complex matrix: its inner product with another."""
    weights = draw(*x.shape, seed=seed)
    return (x * x.builder.constant(weights.conj())).real().sum()


def eigenvector_loss(x: Value) -> Value:
    """Projector onto the eigenvectors, weighted by functions of the eigenvalues."""
    factors = x.eigh()
    w, v = factors.output(0), factors.output(1)
    weights = (w * 0.3).sin()
    return (
        real_projection((v * weights.reshape(shape=(*w.shape[:-1], 1, w.shape[-1]))) @ hermitian_transpose(v))
        + (w * w * w).sum()
    )


def one_eigenvector_loss(x: Value) -> Value:
    v = x.eigh().output(1)
    first = v.slice(starts=(0, 1), stops=(v.shape[0], 2))
    return real_projection(first @ hermitian_transpose(first))


def singular_vector_loss(x: Value) -> Value:
    factors = x.svd()
    u, s, vh = (factors.output(i) for i in range(3))
    return (
        real_projection((u * (s * 0.5).tanh()) @ vh)
        + real_projection(u @ hermitian_transpose(u), 8)
        + real_projection(hermitian_transpose(vh) @ vh, 9)
        + s.log().sum()
    )


def phase_loss(x: Value) -> Value:
    """Phases of one pair of singular vectors."""
    factors = x.svd()
    u, vh = factors.output(0), factors.output(2)
    k = vh.shape[0]
    return (
        real_projection(u.slice(starts=(0, 0), stops=(u.shape[0], 1)) @ vh.slice(starts=(0, 0), stops=(1, vh.shape[1])))
        * k
    )


def qr_loss(x: Value) -> Value:
    factors = x.qr()
    return real_projection(factors.output(0)) + real_projection(factors.output(1), 8)


def lu_loss(x: Value) -> Value:
    factors = x.lu()
    return real_projection(factors.output(1)) + real_projection(factors.output(2), 8)


LOSSES: Sequence[tuple[Loss, tuple[int, int]]] = [
    (eigenvector_loss, (3, 3)),
    (one_eigenvector_loss, (4, 4)),
    (singular_vector_loss, (3, 3)),
    (singular_vector_loss, (4, 2)),
    (singular_vector_loss, (2, 4)),
    (phase_loss, (3, 3)),
    (phase_loss, (4, 2)),
    (qr_loss, (3, 3)),
    (qr_loss, (4, 2)),
    (lu_loss, (3, 3)),
    (lu_loss, (4, 2)),
    (lu_loss, (2, 4)),
    (lambda x: real_projection(x.matrix_exp()), (3, 3)),
    (lambda x: real_projection(x.matrix_power(k=-3)), (2, 2)),
]
IDS = [f"{getattr(loss, '__name__', 'loss')}-{m}x{n}" for loss, (m, n) in LOSSES]


def gradient(loss: Loss, x: Array, order: int = 1) -> Array:
    """Return the gradient of the loss, or of the projection of that gradient."""

    def write(v: Value) -> list[Value]:
        (g,) = vjp_or_zeros(v.builder, [(loss(v), v.builder.full((), 1.0, np.dtype("float64")))], [v])
        if order == 2:
            y = real_projection(g, 11)
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
        return [g]

    return evaluate(write, x)[0]


def finite_differences(function: Callable[[Array], float], x: Array) -> Array:
    """∂/∂x + i ∂/∂y, entry by entry."""
    result = np.zeros_like(x)
    for position in np.ndindex(x.shape):
        for direction in (1, 1j):
            step = np.zeros_like(x)
            step[position] = STEP * direction
            result[position] += direction * (function(x + step) - function(x - step)) / (2 * STEP)
    return result


@pytest.mark.parametrize(("loss", "shape"), LOSSES, ids=IDS)
def test_gradients_match_finite_differences(loss: Loss, shape: tuple[int, int]) -> None:
    x = draw(*shape)
    expected = finite_differences(lambda a: float(evaluate(lambda v: [loss(v)], a)[0]), x)
    np.testing.assert_allclose(gradient(loss, x), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("loss", "shape"), LOSSES, ids=IDS)
def test_second_derivatives_match_finite_differences(loss: Loss, shape: tuple[int, int]) -> None:
    x, weights = draw(*shape), draw(*shape, seed=11)
    expected = finite_differences(lambda a: float(np.vdot(weights, gradient(loss, a)).real), x)
    np.testing.assert_allclose(gradient(loss, x, order=2), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 2, 2), (40, 40)])
def test_factors_multiply_to_the_matrix(dtype: str, shape: tuple[int, ...]) -> None:
    x = draw(*shape).astype(dtype)
    tolerance = 2e-5 if dtype == "complex64" else 2e-13

    def write(v: Value) -> list[Value]:
        results = [(v.eigh(), 2), (v.svd(), 3), (v.qr(), 2), (v.lu(), 3)]
        return [result.output(i) for result, count in results for i in range(count)]

    w, v, u, s, vh, q, r, rows, lower, upper = evaluate(write, x)
    assert {a.dtype.name for a in (v, u, vh, q, r, lower, upper)} == {dtype}
    assert {a.dtype for a in (w, s)} == {x.real.dtype}
    for actual, expected in (
        ((v * w[..., None, :]) @ adjoint(v), (x + adjoint(x)) / 2),
        ((u * s[..., None, :]) @ vh, x),
        (q @ r, x),
        (lower @ upper, np.take_along_axis(x, rows[..., None], -2)),
    ):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)
    assert not np.diagonal(r, axis1=-2, axis2=-1).imag.any()


def test_nan_matrix_does_not_affect_the_others() -> None:
    x = draw(3, 2, 2)
    x[1, 0, 0] = complex(0, np.nan)
    for name in ("eigh", "svd", "qr"):
        (actual,) = evaluate(lambda v, name=name: [getattr(v, name)().output(1)], x)
        assert np.isnan(actual[1]).all()
        assert np.isfinite(actual[[0, 2]]).all()
    assert np.isnan(run("matrix_exp", x)[1]).all()


def test_swept_and_lapack_lu_exchange_the_same_rows() -> None:
    """Pivots maximize |Re| + |Im|, as in LAPACK, not |z|."""
    x = np.array([[3 + 3j, 1], [5, 2]])
    many = np.broadcast_to(x, (40, 2, 2)).copy()
    (rows,) = evaluate(lambda v: [v.lu().output(0)], many)
    (alone,) = evaluate(lambda v: [v.lu().output(0)], x)
    assert rows.tolist() == [alone.tolist()] * 40 == [[0, 1]] * 40


def test_symmetric_function_refuses_complex_matrices() -> None:
    with pytest.raises(DtypeMismatch):
        run("symmetric_function", draw(2, 2), function="exp")
