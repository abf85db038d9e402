"""Decompositions of complex matrices: their results multiply to the matrix, and functions that phases do not change
have the gradients that differences have, to second order."""

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


def drawn(*shape: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    found: Array = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return found


def adjoint(x: Array) -> Array:
    found: Array = x.swapaxes(-1, -2).conj()
    return found


def h(x: Value) -> Value:
    return x.transpose().conj()


def seen(x: Value, seed: int = 7) -> Value:
    """A real number of a complex matrix: what it is along another."""
    weights = drawn(*x.shape, seed=seed)
    return (x * x.builder.constant(weights.conj())).real().sum()


def of_vectors(x: Value) -> Value:
    """A projector onto two eigenvectors, weighed by their values."""
    found = x.eigh()
    w, v = found.output(0), found.output(1)
    weights = (w * 0.3).sin()
    return seen((v * weights.reshape(shape=(*w.shape[:-1], 1, w.shape[-1]))) @ h(v)) + (w * w * w).sum()


def of_one_vector(x: Value) -> Value:
    v = x.eigh().output(1)
    first = v.slice(starts=(0, 1), stops=(v.shape[0], 2))
    return seen(first @ h(first))


def of_singular_vectors(x: Value) -> Value:
    found = x.svd()
    u, s, vh = (found.output(i) for i in range(3))
    return seen((u * (s * 0.5).tanh()) @ vh) + seen(u @ h(u), 8) + seen(h(vh) @ vh, 9) + s.log().sum()


def of_phases(x: Value) -> Value:
    """u's and v's phases together, of one pair alone."""
    found = x.svd()
    u, vh = found.output(0), found.output(2)
    k = vh.shape[0]
    return seen(u.slice(starts=(0, 0), stops=(u.shape[0], 1)) @ vh.slice(starts=(0, 0), stops=(1, vh.shape[1]))) * k


def of_factors(x: Value) -> Value:
    found = x.qr()
    return seen(found.output(0)) + seen(found.output(1), 8)


def of_triangles(x: Value) -> Value:
    found = x.lu()
    return seen(found.output(1)) + seen(found.output(2), 8)


LOSSES: Sequence[tuple[Loss, tuple[int, int]]] = [
    (of_vectors, (3, 3)),
    (of_one_vector, (4, 4)),
    (of_singular_vectors, (3, 3)),
    (of_singular_vectors, (4, 2)),
    (of_singular_vectors, (2, 4)),
    (of_phases, (3, 3)),
    (of_phases, (4, 2)),
    (of_factors, (3, 3)),
    (of_factors, (4, 2)),
    (of_triangles, (3, 3)),
    (of_triangles, (4, 2)),
    (of_triangles, (2, 4)),
    (lambda x: seen(x.matrix_exp()), (3, 3)),
    (lambda x: seen(x.matrix_power(k=-3)), (2, 2)),
]
IDS = [f"{getattr(loss, '__name__', 'loss')}-{m}x{n}" for loss, (m, n) in LOSSES]


def gradient(loss: Loss, x: Array, order: int = 1) -> Array:
    """Of the loss; or of what its gradient is along a matrix."""

    def write(v: Value) -> list[Value]:
        (g,) = vjp_or_zeros(v.builder, [(loss(v), v.builder.full((), 1.0, np.dtype("float64")))], [v])
        if order == 2:
            y = seen(g, 11)
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
        return [g]

    return evaluate(write, x)[0]


def by_differences(function: Callable[[Array], float], x: Array) -> Array:
    """∂/∂x + i ∂/∂y, entry by entry."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        for direction in (1, 1j):
            step = np.zeros_like(x)
            step[place] = STEP * direction
            found[place] += direction * (function(x + step) - function(x - step)) / (2 * STEP)
    return found


@pytest.mark.parametrize(("loss", "shape"), LOSSES, ids=IDS)
def test_the_gradient_is_that_of_differences(loss: Loss, shape: tuple[int, int]) -> None:
    x = drawn(*shape)
    wanted = by_differences(lambda a: float(evaluate(lambda v: [loss(v)], a)[0]), x)
    np.testing.assert_allclose(gradient(loss, x), wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("loss", "shape"), LOSSES, ids=IDS)
def test_so_is_the_second(loss: Loss, shape: tuple[int, int]) -> None:
    x, weights = drawn(*shape), drawn(*shape, seed=11)
    wanted = by_differences(lambda a: float(np.vdot(weights, gradient(loss, a)).real), x)
    np.testing.assert_allclose(gradient(loss, x, order=2), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 2, 2), (40, 40)])
def test_what_the_results_multiply_to(dtype: str, shape: tuple[int, ...]) -> None:
    x = drawn(*shape).astype(dtype)
    most = 2e-5 if dtype == "complex64" else 2e-13

    def write(v: Value) -> list[Value]:
        results = [(v.eigh(), 2), (v.svd(), 3), (v.qr(), 2), (v.lu(), 3)]
        return [found.output(i) for found, count in results for i in range(count)]

    w, v, u, s, vh, q, r, rows, lower, upper = evaluate(write, x)
    assert {a.dtype.name for a in (v, u, vh, q, r, lower, upper)} == {dtype}
    assert {a.dtype for a in (w, s)} == {x.real.dtype}
    for found, wanted in (
        ((v * w[..., None, :]) @ adjoint(v), (x + adjoint(x)) / 2),
        ((u * s[..., None, :]) @ vh, x),
        (q @ r, x),
        (lower @ upper, np.take_along_axis(x, rows[..., None], -2)),
    ):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=most)
    assert not np.diagonal(r, axis1=-2, axis2=-1).imag.any()


def test_one_without_an_answer_stands_alone() -> None:
    x = drawn(3, 2, 2)
    x[1, 0, 0] = complex(0, np.nan)
    for name in ("eigh", "svd", "qr"):
        (found,) = evaluate(lambda v, name=name: [getattr(v, name)().output(1)], x)
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2]]).all()
    assert np.isnan(run("matrix_exp", x)[1]).all()


def test_small_and_large_matrices_exchange_the_same_rows() -> None:
    """By |Re| + |Im|, as LAPACK compares them, and not by |z|."""
    x = np.array([[3 + 3j, 1], [5, 2]])
    many = np.broadcast_to(x, (40, 2, 2)).copy()
    (rows,) = evaluate(lambda v: [v.lu().output(0)], many)
    (alone,) = evaluate(lambda v: [v.lu().output(0)], x)
    assert rows.tolist() == [alone.tolist()] * 40 == [[0, 1]] * 40


def test_functions_of_symmetric_matrices_are_of_real_ones() -> None:
    with pytest.raises(DtypeMismatch):
        run("symmetric_function", drawn(2, 2), function="exp")
