"""Cholesky, triangular and general systems, inverses and determinants: closed forms and NumPy, to any order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.autodiff.vmap import vmap
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from tests.engine.ops.matrices import close, definite, evaluate, gradient_of_sum, real, regular, slogdet, transposed
from tests.engine.ops.planned import plan_of
from tests.engine.ops.run import EXECUTOR, Array, grads, run

SQUARES = [(3, 3), (1, 1), (6, 6), (4, 3, 3), (2, 3, 2, 2), (0, 0), (2, 0, 0), (0, 3, 3), (1, 5, 5)]

# ---------------------------------------------------------------- cholesky


@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_cholesky_matches_numpy(shape: tuple[int, ...]) -> None:
    x = definite(*shape)
    y = run("cholesky", x)
    close(y, np.linalg.cholesky(x))
    close(y @ transposed(y), x)
    assert not np.triu(y, 1).any()


def test_cholesky_factors_the_symmetric_part() -> None:
    x, tilt = definite(4, 4), real(4, 4)
    close(run("cholesky", x + tilt - tilt.T), run("cholesky", x))
    close(run("cholesky", np.tril(2 * x, -1) + np.diag(np.diag(x))), run("cholesky", x))


def test_gradient_of_cholesky_by_hand() -> None:
    """L = [[√a, 0], [b/√a, √(c − b²/a)]] for x = [[a, b], [b, c]]; b appears twice."""
    a, b, c = 2.0, 0.7, 1.5
    g = np.array([[0.3, 9.0], [-1.1, 0.4]])  # entries above the diagonal have no effect
    last = np.sqrt(c - b * b / a)
    by_a = g[0, 0] / (2 * np.sqrt(a)) - g[1, 0] * b / (2 * a**1.5) + g[1, 1] * b * b / (2 * a * a * last)
    by_b, by_c = g[1, 0] / np.sqrt(a) - g[1, 1] * b / (a * last), g[1, 1] / (2 * last)
    _, (actual,) = grads("cholesky", [[a, b], [b, c]], cotangent=g)
    close(actual, [[by_a, by_b / 2], [by_b / 2, by_c]])
    assert (actual == actual.T).all()


def log_determinant(x: Value) -> Value:
    return x.cholesky().diag().log().sum() * 2.0


def test_derivatives_of_log_determinant_via_cholesky() -> None:
    """d log det x = tr(x⁻¹ dx), d² = −tr(x⁻¹ dx x⁻¹ dx), d³ = 2 tr((x⁻¹ dx)³)."""
    x, direction = definite(4, 4), real(4, 4)
    symmetric = direction + direction.T
    close(gradient_of_sum(log_determinant, x), np.linalg.inv(x))

    def derivative(v: Value, order: int) -> Value:
        y = log_determinant(v)
        for _ in range(order):
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
            y = (g * v.builder.constant(symmetric)).sum()
        return y

    ratio = np.linalg.solve(x, symmetric)
    actual = [evaluate(lambda v, k=k: [derivative(v, k)], x)[0] for k in (1, 2, 3)]
    close(actual[0], np.trace(ratio))
    close(actual[1], -np.trace(ratio @ ratio))
    close(actual[2], 2 * np.trace(ratio @ ratio @ ratio))


# ---------------------------------------------------------------- triangular systems

SYSTEMS = [
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((3, 3), (3, 3)),
    ((1, 1), (1,)),
    ((2, 3, 3), (3,)),
    ((2, 3, 3), (3, 4)),
    ((2, 3, 3), (2, 3)),
    ((3, 3), (2, 3, 1)),
    ((3, 3), (4, 2, 3, 2)),
    ((2, 3, 3), (2, 3, 2)),
    ((4, 1, 3, 3), (2, 3, 2)),
    ((1, 3, 3), (5, 3, 2)),
    ((0, 0), (0,)),
    ((0, 0), (0, 2)),
    ((0, 3, 3), (3, 2)),
    ((3, 3), (0, 3, 2)),
    ((2, 3, 3), (3, 0)),
    ((3, 3), (2, 3, 0)),
]
UNAMBIGUOUS = [(a, b) for a, b in SYSTEMS if b != (2, 3)]


def solve_one_by_one(solve: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """Solve one system after the other, with explicit batch axes."""
    columns = b[:, None] if b.ndim == 1 else b
    batch = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    left = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    right = np.broadcast_to(columns, (*batch, *columns.shape[-2:]))
    y = np.zeros(right.shape)
    for i in np.ndindex(*batch):
        y[i] = solve(left[i], right[i])
    return y[..., 0] if b.ndim == 1 else y


def solver_vjp(solve: Callable[[Array, Array], Array], a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """Adjoint of a linear solver by definition, one coordinate at a time; dy = −a⁻¹ da y."""
    if b.ndim == 1:
        by_a, by_b = solver_vjp(solve, a, b[:, None], g[..., None])
        return by_a, by_b[:, 0]
    y = solve_one_by_one(solve, a, b)
    by_a, by_b = np.zeros_like(a), np.zeros_like(b)
    for gradient, right_hand_side in ((by_a, lambda unit: -unit @ y), (by_b, lambda unit: unit)):
        for position in np.ndindex(gradient.shape):
            unit = np.zeros_like(gradient)
            unit[position] = 1
            gradient[position] = np.sum(solve_one_by_one(solve, a, right_hand_side(unit)) * g)
    return by_a, by_b


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(("a", "b"), UNAMBIGUOUS, ids=str)
def test_triangular_systems(a: tuple[int, ...], b: tuple[int, ...], lower: bool, transpose: bool) -> None:
    left, right = regular(*a), real(*b)
    triangle_of = np.tril if lower else np.triu
    triangle = transposed(triangle_of(left)) if transpose else triangle_of(left)
    expected = solve_one_by_one(np.linalg.solve, triangle, right)
    g = real(*expected.shape)
    by_t, by_b = solver_vjp(np.linalg.solve, triangle, right, g)
    value, actual = grads("triangular_solve", left, right, cotangent=g, lower=lower, transpose=transpose)
    close(value, expected)
    close(actual[0], triangle_of(transposed(by_t) if transpose else by_t))
    close(actual[1], by_b)


def test_default_is_the_lower_triangle() -> None:
    a, b = regular(3, 3), real(3)
    close(run("triangular_solve", a, b), np.linalg.solve(np.tril(a), b))


@pytest.mark.parametrize("lower", [False, True])
def test_other_triangle_is_ignored(lower: bool) -> None:
    a, b = regular(2, 4, 4), real(2, 4, 3)
    spoiled = np.where(np.tri(4, k=-1, dtype=bool).T if lower else np.tri(4, k=-1, dtype=bool), np.nan, a)
    expected = grads("triangular_solve", a, b, lower=lower)
    value, actual = grads("triangular_solve", spoiled, b, lower=lower)
    np.testing.assert_array_equal(value, expected[0])
    for x, y in zip(actual, expected[1], strict=True):
        np.testing.assert_array_equal(x, y)


def test_singular_triangle_does_not_affect_the_others() -> None:
    a, b = regular(3, 4, 4), real(3, 4, 2)
    a[1, 2, 2] = 0
    y = run("triangular_solve", a, b)
    assert not np.isfinite(y[1, 2:]).any()
    for i in (0, 2):
        close(y[i], np.linalg.solve(np.tril(a[i]), b[i]))


# ---------------------------------------------------------------- systems


@pytest.mark.parametrize(("a", "b"), UNAMBIGUOUS, ids=str)
def test_solve_matches_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = regular(*a), real(*b)
    expected = np.linalg.solve(left, right) if 0 not in (*a, *b) else solve_one_by_one(np.linalg.solve, left, right)
    g = real(*expected.shape)
    value, actual = grads("solve", left, right, cotangent=g)
    close(value, expected)
    for x, y in zip(actual, solver_vjp(np.linalg.solve, left, right, g), strict=True):
        close(x, y)


@pytest.mark.parametrize("op", ["solve", "triangular_solve"])
@pytest.mark.parametrize("shape", [(4, 3, 3), (2, 5, 3, 3), (3, 2, 1, 1), (0, 2, 2), (2, 0, 0)], ids=str)
def test_one_vector_per_matrix(op: str, shape: tuple[int, ...]) -> None:
    a, b, g = regular(*shape), real(*shape[:-1]), real(*shape[:-1])
    value, (by_a, by_b) = grads(op, a, b, cotangent=g)
    expected, (columns_by_a, columns_by_b) = grads(op, a, b[..., None], cotangent=g[..., None])
    np.testing.assert_array_equal(value, expected[..., 0])
    np.testing.assert_array_equal(by_a, columns_by_a)
    np.testing.assert_array_equal(by_b, columns_by_b[..., 0])


@pytest.mark.parametrize("op", ["solve", "triangular_solve"])
def test_ambiguous_right_hand_side_is_a_matrix(op: str) -> None:
    """NumPy 2's rule: [3, 3, 3] and [3, 3] are three matrices, and one right-hand side of three columns."""
    a, b = regular(3, 3, 3), real(3, 3)
    left = np.tril(a) if op == "triangular_solve" else a
    close(run(op, a, b), np.linalg.solve(left, b))


@pytest.mark.parametrize("op", ["solve", "triangular_solve"])
def test_two_axes_are_a_matrix_shared_by_the_batch(op: str) -> None:
    a, b = regular(3, 3, 3), real(3, 3)
    assert run(op, a, b).shape == (3, 3, 3)
    assert run(op, a, b[0]).shape == (3, 3)
    left = np.tril(a) if op == "triangular_solve" else a
    close(run(op, a, b), np.stack([np.linalg.solve(x, b) for x in left]))
    close(run(op, a, b[0]), np.stack([np.linalg.solve(x, b[0]) for x in left]))


@pytest.mark.parametrize("op", ["solve", "triangular_solve"])
@pytest.mark.parametrize("mapped", [{0}, {1}, {0, 1}], ids=str)
@pytest.mark.parametrize(
    ("a", "b"), [((3, 3), (3,)), ((3, 3), (3, 3)), ((3, 3, 3), (3,)), ((3, 3), (3, 3, 3))], ids=str
)
def test_vmap_of_systems_with_equal_extents(op: str, mapped: set[int], a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """The shape alone does not show which axis is mapped."""
    builder = Builder(registry())
    types = [TensorType(shape, np.dtype(float)) for shape in (a, b)]
    x, y = (builder.leaf(type, i) for i, type in enumerate(types))
    graph = vmap(builder.graph([x.builder.emit(registry().get(op), (x, y), {})]), mapped, 3)
    feeds = [regular(3, *a) if 0 in mapped else regular(*a), real(3, *b) if 1 in mapped else real(*b)]
    (actual,) = EXECUTOR.run(make_plan(optimise(graph), Limits()), dict(enumerate(feeds)))
    close(actual, np.stack([run(op, *(f[i] if k in mapped else f for k, f in enumerate(feeds))) for i in range(3)]))


def test_shared_matrix_is_factored_once() -> None:
    n, m, count = 8, 2, 50
    assert plan_of("solve", (n, n), (count, n, m)).flops == 2 * n**3 // 3 + 2 * n * n * m * count
    assert plan_of("triangular_solve", (n, n), (count, n, m)).flops == n * n * m * count


# ---------------------------------------------------------------- inverses and determinants


@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_inverse_matches_numpy(shape: tuple[int, ...]) -> None:
    x, g = regular(*shape), real(*shape)
    value, (actual,) = grads("inv", x, cotangent=g)
    close(value, np.linalg.inv(x))
    inverse = transposed(np.linalg.inv(x))
    close(actual, -inverse @ g @ inverse)


@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_slogdet_matches_numpy(shape: tuple[int, ...]) -> None:
    x = regular(*shape) * np.where(np.arange(shape[-1]) == 0, -1, 1)
    expected = np.linalg.slogdet(x)
    for actual, reference in zip(slogdet(x), expected, strict=True):
        close(actual, reference)
    close(gradient_of_sum(lambda v: v.slogdet().output(1), x), transposed(np.linalg.inv(x)))
    assert not gradient_of_sum(lambda v: v.slogdet().output(0), x).any()


def test_slogdet_beyond_the_range_of_float64() -> None:
    x = 1e200 * np.diag([1.0, -1.0, 1.0])
    sign, log = slogdet(x)
    assert sign == -1
    close(log, 600 * np.log(10))
    close(slogdet(1e-200 * np.eye(3))[1], -600 * np.log(10))
    close(slogdet(np.eye(3)[[1, 2, 0]])[0], 1.0)


def test_second_derivative_of_slogdet() -> None:
    """d² log|det x| = −tr(x⁻¹ dx x⁻¹ dx)."""
    x, direction = regular(4, 4), real(4, 4)

    def derivative(v: Value, order: int) -> Value:
        y = v.slogdet().output(1)
        for _ in range(order):
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
            y = (g * v.builder.constant(direction)).sum()
        return y

    ratio = np.linalg.solve(x, direction)
    close(evaluate(lambda v: [derivative(v, 2)], x)[0], -np.trace(ratio @ ratio))
    close(evaluate(lambda v: [derivative(v, 3)], x)[0], 2 * np.trace(ratio @ ratio @ ratio))
