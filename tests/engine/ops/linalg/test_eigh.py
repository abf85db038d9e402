"""Eigenvalues and eigenvectors: sign invariance, equal eigenvalues, and matrices without a decomposition."""

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
from tests.engine.ops.matrices import close, evaluate, real, transposed
from tests.engine.ops.run import Array

Loss = Callable[[Value], Value]


def symmetric(*shape: int) -> Array:
    x = real(*shape)
    return x + transposed(x)


def rotated(values: Sequence[float]) -> Array:
    """Return a matrix with these eigenvalues in a rotated basis; rounding splits equal ones."""
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((len(values), len(values))))
    return (q * values) @ q.T


def derivatives(loss: Loss, x: Array, order: int = 1) -> Array:
    """Return the gradient, or for higher orders the gradient of the sum of squares of the previous one."""

    def write(v: Value) -> list[Value]:
        y, g = loss(v), v
        for i in range(order):
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
            y = g.square().sum() if i + 1 < order else y
        return [g]

    return evaluate(write, x)[0]


def eigenpairs(x: Value, degenerate: str = "nan") -> tuple[Value, Value]:
    result = x.eigh(degenerate=degenerate)
    return result.output(0), result.output(1)


WEIGHTS = symmetric(3, 3)


def projector(x: Value, degenerate: str) -> Value:
    """Weighted sum of the projector onto the two largest eigenvalues."""
    _, v = eigenpairs(x, degenerate)
    top = v.slice(starts=(0, 1), stops=(3, 3))
    return (top @ top.transpose() * x.builder.constant(WEIGHTS)).sum()


def exact(x: Array, differences: Callable[[Array, Array], Array]) -> Array:
    """Derivative of a matrix function by its divided differences; W. L. Daleckii, M. G. Krein (1951)."""
    w, v = np.linalg.eigh(x)
    return v @ (differences(w[:, None], w[None, :]) * (v.T @ WEIGHTS @ v)) @ v.T


def projector_differences(a: Array, b: Array) -> Array:
    gaps = np.where(np.abs(a - b) < 1e-9, np.inf, a - b)
    return ((a > 1.5) * 1.0 - (b > 1.5) * 1.0) / gaps


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (2, 3, 2, 2), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3), (80, 80)])
def test_eigenvalues_and_eigenvectors(shape: tuple[int, ...]) -> None:
    x, tilt = symmetric(*shape), real(*shape)
    w, v = evaluate(lambda a: [*eigenpairs(a)], x + tilt - transposed(tilt))
    assert (np.diff(w) >= 0).all()
    np.testing.assert_allclose(w, np.linalg.eigvalsh(x), 1e-12, 1e-12)
    np.testing.assert_allclose((v * w[..., None, :]) @ transposed(v), x, 1e-12, 1e-12)
    np.testing.assert_allclose(transposed(v) @ v, np.broadcast_to(np.eye(shape[-1]), shape), 1e-12, 1e-12)


def test_gradients_of_invariant_losses_ignore_eigenvector_signs() -> None:
    x = symmetric(5, 5)

    def loss(a: Value, signs: Array) -> Value:
        w, v = eigenpairs(a)
        v = v * a.builder.constant(signs)
        return ((v * w.exp()) @ v.transpose()).square().sum() + (v.square() @ w.sin().reshape(shape=(5, 1))).prod()

    plain = derivatives(lambda a: loss(a, np.ones(5)), x)
    second = derivatives(lambda a: loss(a, np.ones(5)), x, 2)
    for seed in range(3):
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], 5)
        flipped = partial(loss, signs=signs)
        np.testing.assert_allclose(derivatives(flipped, x), plain, 1e-10, 1e-10)
        np.testing.assert_allclose(derivatives(flipped, x, 2), second, 1e-8, 1e-8)


EQUAL = {"as they are": np.diag([2.0, 2.0, 1.0]), "split by rounding": rotated([2.0, 2.0, 1.0])}


@pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)
def test_gradient_of_projector_at_equal_eigenvalues(x: Array) -> None:
    """With "whole", gradients of a projector onto the pair are right; by default they are NaN."""
    assert np.isnan(derivatives(lambda a: projector(a, "nan"), x)).all()
    np.testing.assert_allclose(
        derivatives(lambda a: projector(a, "whole"), x), exact(x, projector_differences), 1e-12, 1e-12
    )


@pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)
def test_whole_is_wrong_for_matrix_functions(x: Array) -> None:
    """v √w vᵀ: `whole` misses the derivative of the root within the pair; symmetric_function has it."""
    rng = np.random.default_rng(1).standard_normal((3, 3))
    weights = rng + rng.T

    def by_vectors(a: Value) -> Value:
        w, v = eigenpairs(a, "whole")
        return ((v * w.sqrt()) @ v.transpose() * a.builder.constant(weights)).sum()

    def whole(a: Value) -> Value:
        return (a.symmetric_function(function="sqrt") * a.builder.constant(weights)).sum()

    w, v = np.linalg.eigh(x)
    expected = v @ ((v.T @ weights @ v) / (np.sqrt(w)[:, None] + np.sqrt(w))) @ v.T
    np.testing.assert_allclose(derivatives(whole, x), expected, 1e-12, 1e-12)
    assert np.abs(derivatives(by_vectors, x) - expected).max() > 0.1


@pytest.mark.parametrize("degenerate", ["nan", "whole"])
@pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)
def test_second_derivatives_at_equal_eigenvalues_are_nan(x: Array, degenerate: str) -> None:
    assert np.isnan(derivatives(lambda a: projector(a, degenerate), x, 2)).all()


@pytest.mark.parametrize("x", EQUAL.values(), ids=EQUAL)
def test_gradient_of_equal_eigenvalues_without_vectors(x: Array) -> None:
    actual = derivatives(lambda a: eigenpairs(a)[0].log().sum(), x)
    np.testing.assert_allclose(actual, np.linalg.inv(x), 1e-12, 1e-12)
    assert np.isnan(derivatives(lambda a: eigenpairs(a)[0].log().sum(), x, 2)).all()


def test_degenerate_matrix_does_not_affect_its_batch() -> None:
    batch = np.stack([EQUAL["as they are"], rotated([2.0, 3.0, 1.0]), np.full((3, 3), np.nan), np.diag([np.inf, 1, 2])])

    def loss(a: Value) -> Value:
        _, v = eigenpairs(a)
        top = v.slice(starts=(0, 0, 1), stops=(4, 3, 3))
        return (top @ top.transpose() * a.builder.constant(WEIGHTS)).sum()

    actual = derivatives(loss, batch)
    assert np.isnan(actual[[0, 2, 3]]).all()
    np.testing.assert_allclose(actual[1], exact(batch[1], projector_differences), 1e-12, 1e-12)
    w, v = evaluate(lambda a: [*eigenpairs(a)], batch)
    assert np.isnan(w[2:]).all()
    assert np.isnan(v[2:]).all()
    assert np.isfinite(w[:2]).all()
    (alone,) = evaluate(lambda a: [eigenpairs(a)[0]], batch)
    np.testing.assert_allclose(alone, w, 1e-14, 1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_equality_tolerance_depends_on_the_dtype(dtype: str) -> None:
    within = 16 * 3 * np.finfo(dtype).eps
    for factor, is_nan in ((0.5, True), (3.0, False)):
        x = np.diag([1.0, 1 + factor * within, 0.5]).astype(dtype)
        actual = derivatives(lambda a: eigenpairs(a)[1].sum(), x)
        assert actual.dtype == dtype
        assert np.isnan(actual).all() == is_nan


def ops_of(write: Callable[[Value], Sequence[Value]], x: Array) -> set[str]:
    builder = Builder(registry())
    leaf = builder.leaf(TensorType.of(x), 0)
    graph = optimise(builder.graph(list(write(leaf))))
    return {node.op.name for node in graph.nodes}


def test_unused_outputs_are_not_computed() -> None:
    x = symmetric(3, 3)
    assert "eigh_values" in ops_of(lambda a: [eigenpairs(a)[0].sum()], x)
    assert "eigh" in ops_of(lambda a: [eigenpairs(a)[1].sum()], x)

    def gradient(a: Value) -> list[Value]:
        y = eigenpairs(a)[0].sum()
        return vjp_or_zeros(a.builder, [(y, y.full_like(1.0))], [a])

    names = ops_of(gradient, x)
    assert "eigh" in names
    assert "reciprocal" not in names


def test_eigenvalues_only_op_has_the_same_gradient() -> None:
    """A body may be narrowed to eigenvalues before it is differentiated."""
    x = symmetric(2, 3, 3)
    builder = Builder(registry())
    leaf = builder.leaf(TensorType.of(x), 0)
    narrowed = optimise(builder.graph([eigenpairs(leaf)[0].exp().sum()]))
    extended = Builder(registry(), nodes=list(narrowed.nodes))
    y = extended.value(narrowed.outputs[0])
    assert any(node.op.name == "eigh_values" for node in extended.nodes)
    (gradient,) = vjp_or_zeros(extended, [(y, y.full_like(1.0))], [extended.value(narrowed.feeds[0])])
    plan = make_plan(optimise(extended.graph([gradient])), Limits())
    close(EXECUTOR.run(plan, {0: x})[0], derivatives(lambda a: eigenpairs(a)[0].exp().sum(), x))


def test_float16_is_computed_in_a_wider_dtype() -> None:
    x = np.diag([40_000.0, 30_000.0, 1.0]).astype("float16")
    w, v = evaluate(lambda a: [*eigenpairs(a)], x)
    assert (w.dtype, v.dtype) == (np.float16, np.float16)
    np.testing.assert_array_equal(w, np.array([1, 30_000, 40_000], "float16"))
    assert evaluate(lambda a: [eigenpairs(a)[0]], x.astype("int64"))[0].dtype == np.float64


def test_results_do_not_depend_on_private_gufuncs(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = np.stack([symmetric(3, 3), np.full((3, 3), np.nan), symmetric(3, 3)])
    before = evaluate(lambda a: [*eigenpairs(a)], batch)
    monkeypatch.setattr(matrices, "_GUFUNCS", None)
    for actual, expected in zip(evaluate(lambda a: [*eigenpairs(a)], batch), before, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_only_the_matrix_that_fails_to_converge_is_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """LAPACK does not converge on one matrix of the batch."""

    def refusing(x: Array) -> tuple[Array, Array]:
        if (x[..., 0, 0] > 5).any():
            raise np.linalg.LinAlgError
        return eigh(x)

    eigh, batch = np.linalg.eigh, np.stack([symmetric(2, 2), np.diag([9.0, 1]), symmetric(2, 2)])
    expected = evaluate(lambda a: [*eigenpairs(a)], batch)
    monkeypatch.setattr(matrices, "_GUFUNCS", None)
    monkeypatch.setattr(np.linalg, "eigh", refusing)
    actual = evaluate(lambda a: [*eigenpairs(a)], batch)
    for y, other in zip(actual, expected, strict=True):
        assert np.isnan(y[1]).all()
        np.testing.assert_array_equal(y[[0, 2]], other[[0, 2]])


def test_float16_gradients_are_computed_in_a_wider_dtype() -> None:
    """At float16 tolerance its eigenvalues, 2⁻⁶ apart, would count as equal: 1 / gap is 64."""
    x = np.diag([1.0, 1 + 2**-6]).astype("float16")
    actual = derivatives(lambda a: (eigenpairs(a)[1] * a.builder.constant(np.float16([[0, 0.5], [0, 0]]))).sum(), x)
    assert actual.dtype == np.float16
    np.testing.assert_array_equal(np.abs(actual), np.array([[0, 16], [16, 0]]))


def test_equality_tolerance_depends_on_the_matrix_extent_only() -> None:
    """For 2 × 2 matrices the tolerance is 32 ε, whatever the batch size."""
    x = np.broadcast_to(np.diag([1.0, 1 + 64 * 2.0**-52]), (8, 8, 2, 2))
    assert np.isfinite(derivatives(lambda a: eigenpairs(a)[1].sum(), x)).all()


def test_eigenvalues_only_op_decomposes_to_eigh() -> None:
    x = symmetric(3, 3)
    builder = Builder(registry())
    narrowed = optimise(builder.graph([eigenpairs(builder.leaf(TensorType.of(x), 0))[0]]))
    (node,) = (node for node in narrowed.nodes if node.op.name == "eigh_values")
    (actual,) = evaluate(lambda a: node.op.written_out(a, **node.attrs), x)
    np.testing.assert_allclose(actual, np.linalg.eigvalsh(x), 1e-13)
