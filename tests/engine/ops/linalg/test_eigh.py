"""Eigenvalues and eigenvectors: what does not depend on signs, equal eigenvalues, and matrices without an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from engine.ops.linalg import matrices
from tests.contract.cases import EXECUTOR
from tests.engine.ops.matrices import close, evaluate, mirrored, real
from tests.engine.ops.run import Array

Loss = Callable[[Value], Value]


def even(*shape: int) -> Array:
    x = real(*shape)
    return x + mirrored(x)


def turned(values: Sequence[float]) -> Array:
    """A matrix of these eigenvalues; rounding splits those that are equal."""
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((len(values), len(values))))
    return (q * values) @ q.T


def derivatives(loss: Loss, x: Array, order: int = 1) -> Array:
    """The gradient, or that of its sum of squares, and so on."""

    def write(v: Value) -> list[Value]:
        y, g = loss(v), v
        for i in range(order):
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
            y = g.square().sum() if i + 1 < order else y
        return [g]

    return evaluate(write, x)[0]


def both(x: Value, degenerate: str = "nan") -> tuple[Value, Value]:
    found = x.eigh(degenerate=degenerate)
    return found.output(0), found.output(1)


WEIGHTS = even(3, 3)


def projector(x: Value, degenerate: str) -> Value:
    """Onto the two largest eigenvalues."""
    _, v = both(x, degenerate)
    kept = v.slice(starts=(0, 1), stops=(3, 3))
    return (kept @ kept.transpose() * x.builder.constant(WEIGHTS)).sum()


def exact(x: Array, differences: Callable[[Array, Array], Array]) -> Array:
    """The derivative of a function of a matrix, by its divided differences; W. L. Daleckii, M. G. Krein (1951)."""
    w, v = np.linalg.eigh(x)
    return v @ (differences(w[:, None], w[None, :]) * (v.T @ WEIGHTS @ v)) @ v.T


def of_projector(a: Array, b: Array) -> Array:
    apart = np.where(np.abs(a - b) < 1e-9, np.inf, a - b)
    return ((a > 1.5) * 1.0 - (b > 1.5) * 1.0) / apart


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (2, 3, 2, 2), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3), (80, 80)])
def test_values_and_vectors(shape: tuple[int, ...]) -> None:
    x, tilt = even(*shape), real(*shape)
    w, v = evaluate(lambda a: [*both(a)], x + tilt - mirrored(tilt))
    assert (np.diff(w) >= 0).all()
    np.testing.assert_allclose(w, np.linalg.eigvalsh(x), 1e-12, 1e-12)
    np.testing.assert_allclose((v * w[..., None, :]) @ mirrored(v), x, 1e-12, 1e-12)
    np.testing.assert_allclose(mirrored(v) @ v, np.broadcast_to(np.eye(shape[-1]), shape), 1e-12, 1e-12)


def test_signs_of_vectors_change_no_gradient_of_what_does_not_depend_on_them() -> None:
    x = even(5, 5)

    def loss(a: Value, signs: Array) -> Value:
        w, v = both(a)
        v = v * a.builder.constant(signs)
        return ((v * w.exp()) @ v.transpose()).square().sum() + (v.square() @ w.sin().reshape(shape=(5, 1))).prod()

    plain = derivatives(lambda a: loss(a, np.ones(5)), x)
    second = derivatives(lambda a: loss(a, np.ones(5)), x, 2)
    for seed in range(3):
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], 5)
        turned_over = partial(loss, signs=signs)
        np.testing.assert_allclose(derivatives(turned_over, x), plain, 1e-10, 1e-10)
        np.testing.assert_allclose(derivatives(turned_over, x, 2), second, 1e-8, 1e-8)


EQUAL = {"as they are": np.diag([2.0, 2.0, 1.0]), "split by rounding": turned([2.0, 2.0, 1.0])}


@pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)
def test_equal_eigenvalues(x: Array) -> None:
    """Left out, they are right for a projector on both; and by default, nobody is answered a number."""
    assert np.isnan(derivatives(lambda a: projector(a, "nan"), x)).all()
    np.testing.assert_allclose(derivatives(lambda a: projector(a, "whole"), x), exact(x, of_projector), 1e-12, 1e-12)


@pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)
def test_a_function_of_the_matrix_does_not_depend_on_whole_spaces_alone(x: Array) -> None:
    """v √w vᵀ: `whole` is wrong there, by the derivative of the root within the pair; symmetric_function is not."""
    rng = np.random.default_rng(1).standard_normal((3, 3))
    weights = rng + rng.T

    def by_vectors(a: Value) -> Value:
        w, v = both(a, "whole")
        return ((v * w.sqrt()) @ v.transpose() * a.builder.constant(weights)).sum()

    def whole(a: Value) -> Value:
        return (a.symmetric_function(function="sqrt") * a.builder.constant(weights)).sum()

    w, v = np.linalg.eigh(x)
    wanted = v @ ((v.T @ weights @ v) / (np.sqrt(w)[:, None] + np.sqrt(w))) @ v.T
    np.testing.assert_allclose(derivatives(whole, x), wanted, 1e-12, 1e-12)
    assert np.abs(derivatives(by_vectors, x) - wanted).max() > 0.1


@pytest.mark.parametrize("degenerate", ["nan", "whole"])
@pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)
def test_second_derivatives_where_a_pair_is_left_out_are_nan(x: Array, degenerate: str) -> None:
    assert np.isnan(derivatives(lambda a: projector(a, degenerate), x, 2)).all()


@pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)
def test_equal_eigenvalues_whose_vectors_are_unread(x: Array) -> None:
    found = derivatives(lambda a: both(a)[0].log().sum(), x)
    np.testing.assert_allclose(found, np.linalg.inv(x), 1e-12, 1e-12)
    assert np.isnan(derivatives(lambda a: both(a)[0].log().sum(), x, 2)).all()


def test_one_of_a_batch_alone_has_equal_ones() -> None:
    batch = np.stack([EQUAL["as they are"], turned([2.0, 3.0, 1.0]), np.full((3, 3), np.nan), np.diag([np.inf, 1, 2])])

    def loss(a: Value) -> Value:
        _, v = both(a)
        kept = v.slice(starts=(0, 0, 1), stops=(4, 3, 3))
        return (kept @ kept.transpose() * a.builder.constant(WEIGHTS)).sum()

    found = derivatives(loss, batch)
    assert np.isnan(found[[0, 2, 3]]).all()
    np.testing.assert_allclose(found[1], exact(batch[1], of_projector), 1e-12, 1e-12)
    w, v = evaluate(lambda a: [*both(a)], batch)
    assert np.isnan(w[2:]).all()
    assert np.isnan(v[2:]).all()
    assert np.isfinite(w[:2]).all()
    (alone,) = evaluate(lambda a: [both(a)[0]], batch)
    np.testing.assert_allclose(alone, w, 1e-14, 1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_equal_depends_on_the_dtype(dtype: str) -> None:
    within = 16 * 3 * np.finfo(dtype).eps
    for factor, is_nan in ((0.5, True), (3.0, False)):
        x = np.diag([1.0, 1 + factor * within, 0.5]).astype(dtype)
        found = derivatives(lambda a: both(a)[1].sum(), x)
        assert found.dtype == dtype
        assert np.isnan(found).all() == is_nan


def ops_of(write: Callable[[Value], Sequence[Value]], x: Array) -> set[str]:
    builder = Builder(registry())
    leaf = builder.leaf(TensorType.of(x), 0)
    graph = optimise(builder.graph(list(write(leaf))))
    return {node.op.name for node in graph.nodes}


def test_what_is_unread_is_not_computed() -> None:
    x = even(3, 3)
    assert "eigh_values" in ops_of(lambda a: [both(a)[0].sum()], x)
    assert "eigh" in ops_of(lambda a: [both(a)[1].sum()], x)

    def gradient(a: Value) -> list[Value]:
        y = both(a)[0].sum()
        return vjp_or_zeros(a.builder, [(y, y.full_like(1.0))], [a])

    names = ops_of(gradient, x)
    assert "eigh" in names
    assert "reciprocal" not in names


def test_eigenvalues_alone_have_the_gradient_of_both() -> None:
    """As a body has that was narrowed before it is differentiated."""
    x = even(2, 3, 3)
    builder = Builder(registry())
    leaf = builder.leaf(TensorType.of(x), 0)
    narrowed = optimise(builder.graph([both(leaf)[0].exp().sum()]))
    writing = Builder(registry(), nodes=list(narrowed.nodes))
    y = writing.value(narrowed.outputs[0])
    assert any(node.op.name == "eigh_values" for node in writing.nodes)
    (gradient,) = vjp_or_zeros(writing, [(y, y.full_like(1.0))], [writing.value(narrowed.feeds[0])])
    plan = make_plan(optimise(writing.graph([gradient])), Limits())
    close(EXECUTOR.run(plan, {0: x})[0], derivatives(lambda a: both(a)[0].exp().sum(), x))


def test_float16_is_computed_in_a_wider_one() -> None:
    x = np.diag([40_000.0, 30_000.0, 1.0]).astype("float16")
    w, v = evaluate(lambda a: [*both(a)], x)
    assert (w.dtype, v.dtype) == (np.float16, np.float16)
    np.testing.assert_array_equal(w, np.array([1, 30_000, 40_000], "float16"))
    assert evaluate(lambda a: [both(a)[0]], x.astype("int64"))[0].dtype == np.float64


def test_without_what_is_not_public_the_answers_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = np.stack([even(3, 3), np.full((3, 3), np.nan), even(3, 3)])
    before = evaluate(lambda a: [*both(a)], batch)
    monkeypatch.setattr(matrices, "_GUFUNCS", None)
    for found, wanted in zip(evaluate(lambda a: [*both(a)], batch), before, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_matrix_that_is_refused_alone_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where LAPACK does not converge."""

    def refusing(x: Array) -> tuple[Array, Array]:
        if (x[..., 0, 0] > 5).any():
            raise np.linalg.LinAlgError
        return eigh(x)

    eigh, batch = np.linalg.eigh, np.stack([even(2, 2), np.diag([9.0, 1]), even(2, 2)])
    wanted = evaluate(lambda a: [*both(a)], batch)
    monkeypatch.setattr(matrices, "_GUFUNCS", None)
    monkeypatch.setattr(np.linalg, "eigh", refusing)
    found = evaluate(lambda a: [*both(a)], batch)
    for y, other in zip(found, wanted, strict=True):
        assert np.isnan(y[1]).all()
        np.testing.assert_array_equal(y[[0, 2]], other[[0, 2]])


def test_gradients_of_float16_are_computed_in_a_wider_one() -> None:
    """Where its own eigenvalues, 2⁻⁶ apart, would be taken for equal: 1 / gap is 64."""
    x = np.diag([1.0, 1 + 2**-6]).astype("float16")
    found = derivatives(lambda a: (both(a)[1] * a.builder.constant(np.float16([[0, 0.5], [0, 0]]))).sum(), x)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(np.abs(found), np.array([[0, 16], [16, 0]]))


def test_what_is_equal_depends_on_the_extent_of_matrices_and_of_nothing_else() -> None:
    """Of 2 × 2 ones what is closer than 32 ε, however many there are."""
    x = np.broadcast_to(np.diag([1.0, 1 + 64 * 2.0**-52]), (8, 8, 2, 2))
    assert np.isfinite(derivatives(lambda a: both(a)[1].sum(), x)).all()


def test_eigenvalues_alone_are_written_out_as_those_of_both() -> None:
    x = even(3, 3)
    builder = Builder(registry())
    narrowed = optimise(builder.graph([both(builder.leaf(TensorType.of(x), 0))[0]]))
    (node,) = (node for node in narrowed.nodes if node.op.name == "eigh_values")
    (found,) = evaluate(lambda a: node.op.written_out(a, **node.attrs), x)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(x), 1e-13)
