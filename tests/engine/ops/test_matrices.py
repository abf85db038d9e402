"""Cholesky, triangular and general systems, inverses, determinants: closed forms and NumPy's, of any order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.autodiff.vmap import vmap
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from tests.engine.ops.matrices import close, definite, evaluate, mirrored, real, regular, slogdet, slope
from tests.engine.ops.planned import plan_of
from tests.engine.ops.run import EXECUTOR, Array, grads, run

SQUARES = [(3, 3), (1, 1), (6, 6), (4, 3, 3), (2, 3, 2, 2), (0, 0), (2, 0, 0), (0, 3, 3), (1, 5, 5)]

# ---------------------------------------------------------------- cholesky


@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_a_factor_is_numpys(shape: tuple[int, ...]) -> None:
    x = definite(*shape)
    y = run("cholesky", x)
    close(y, np.linalg.cholesky(x))
    close(y @ mirrored(y), x)
    assert not np.triu(y, 1).any()


def test_what_is_factored_is_the_symmetric_part() -> None:
    x, tilt = definite(4, 4), real(4, 4)
    close(run("cholesky", x + tilt - tilt.T), run("cholesky", x))
    close(run("cholesky", np.tril(2 * x, -1) + np.diag(np.diag(x))), run("cholesky", x))


def test_the_gradient_of_a_factor_by_hand() -> None:
    """L = [[√a, 0], [b/√a, √(c − b²/a)]] for x = [[a, b], [b, c]]; b stands in two places."""
    a, b, c = 2.0, 0.7, 1.5
    g = np.array([[0.3, 9.0], [-1.1, 0.4]])  # what stands above the diagonal has nothing to act on
    last = np.sqrt(c - b * b / a)
    by_a = g[0, 0] / (2 * np.sqrt(a)) - g[1, 0] * b / (2 * a**1.5) + g[1, 1] * b * b / (2 * a * a * last)
    by_b, by_c = g[1, 0] / np.sqrt(a) - g[1, 1] * b / (a * last), g[1, 1] / (2 * last)
    _, (found,) = grads("cholesky", [[a, b], [b, c]], cotangent=g)
    close(found, [[by_a, by_b / 2], [by_b / 2, by_c]])
    assert (found == found.T).all()


def log_determinant(x: Value) -> Value:
    return x.cholesky().diag().log().sum() * 2.0


def test_the_logarithm_of_a_determinant_by_its_factor() -> None:
    """d log det x = tr(x⁻¹ dx), d² = −tr(x⁻¹ dx x⁻¹ dx), d³ = 2 tr((x⁻¹ dx)³)."""
    x, direction = definite(4, 4), real(4, 4)
    even = direction + direction.T
    close(slope(log_determinant, x), np.linalg.inv(x))

    def along(v: Value, order: int) -> Value:
        y = log_determinant(v)
        for _ in range(order):
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
            y = (g * v.builder.constant(even)).sum()
        return y

    ratio = np.linalg.solve(x, even)
    found = [evaluate(lambda v, k=k: [along(v, k)], x)[0] for k in (1, 2, 3)]
    close(found[0], np.trace(ratio))
    close(found[1], -np.trace(ratio @ ratio))
    close(found[2], 2 * np.trace(ratio @ ratio @ ratio))


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
FITTING = [(a, b) for a, b in SYSTEMS if b != (2, 3)]


def by_pairs(solve: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """One system after the other, with the batch axes written out."""
    columns = b[:, None] if b.ndim == 1 else b
    batch = np.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
    left = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    right = np.broadcast_to(columns, (*batch, *columns.shape[-2:]))
    y = np.zeros(right.shape)
    for i in np.ndindex(*batch):
        y[i] = solve(left[i], right[i])
    return y[..., 0] if b.ndim == 1 else y


def pulled(solve: Callable[[Array, Array], Array], a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """The adjoint of a linear solver from its definition, a coordinate at a time; dy = −a⁻¹ da y."""
    if b.ndim == 1:
        by_a, by_b = pulled(solve, a, b[:, None], g[..., None])
        return by_a, by_b[:, 0]
    y = by_pairs(solve, a, b)
    by_a, by_b = np.zeros_like(a), np.zeros_like(b)
    for found, moved in ((by_a, lambda unit: -unit @ y), (by_b, lambda unit: unit)):
        for place in np.ndindex(found.shape):
            unit = np.zeros_like(found)
            unit[place] = 1
            found[place] = np.sum(by_pairs(solve, a, moved(unit)) * g)
    return by_a, by_b


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(("a", "b"), FITTING, ids=str)
def test_triangular_systems(a: tuple[int, ...], b: tuple[int, ...], lower: bool, transpose: bool) -> None:
    left, right = regular(*a), real(*b)
    cut = np.tril if lower else np.triu
    triangle = mirrored(cut(left)) if transpose else cut(left)
    wanted = by_pairs(np.linalg.solve, triangle, right)
    g = real(*wanted.shape)
    by_t, by_b = pulled(np.linalg.solve, triangle, right, g)
    value, found = grads("triangular_solve", left, right, cotangent=g, lower=lower, transpose=transpose)
    close(value, wanted)
    close(found[0], cut(mirrored(by_t) if transpose else by_t))
    close(found[1], by_b)


def test_the_defaults_are_the_lower_triangle_as_it_is() -> None:
    a, b = regular(3, 3), real(3)
    close(run("triangular_solve", a, b), np.linalg.solve(np.tril(a), b))


@pytest.mark.parametrize("lower", [False, True])
def test_the_other_triangle_may_hold_anything(lower: bool) -> None:
    a, b = regular(2, 4, 4), real(2, 4, 3)
    spoiled = np.where(np.tri(4, k=-1, dtype=bool).T if lower else np.tri(4, k=-1, dtype=bool), np.nan, a)
    wanted = grads("triangular_solve", a, b, lower=lower)
    value, found = grads("triangular_solve", spoiled, b, lower=lower)
    np.testing.assert_array_equal(value, wanted[0])
    for x, y in zip(found, wanted[1], strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_zero_on_the_diagonal_spoils_its_own_system_only() -> None:
    a, b = regular(3, 4, 4), real(3, 4, 2)
    a[1, 2, 2] = 0
    y = run("triangular_solve", a, b)
    assert not np.isfinite(y[1, 2:]).any()
    for i in (0, 2):
        close(y[i], np.linalg.solve(np.tril(a[i]), b[i]))


# ---------------------------------------------------------------- systems


@pytest.mark.parametrize(("a", "b"), FITTING, ids=str)
def test_systems(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = regular(*a), real(*b)
    wanted = np.linalg.solve(left, right) if 0 not in (*a, *b) else by_pairs(np.linalg.solve, left, right)
    g = real(*wanted.shape)
    value, found = grads("solve", left, right, cotangent=g)
    close(value, wanted)
    for x, y in zip(found, pulled(np.linalg.solve, left, right, g), strict=True):
        close(x, y)


@pytest.mark.parametrize("op", ["solve", "triangular_solve"])
@pytest.mark.parametrize("shape", [(4, 3, 3), (2, 5, 3, 3), (3, 2, 1, 1), (0, 2, 2), (2, 0, 0)], ids=str)
def test_a_vector_for_each_matrix(op: str, shape: tuple[int, ...]) -> None:
    a, b, g = regular(*shape), real(*shape[:-1]), real(*shape[:-1])
    value, (by_a, by_b) = grads(op, a, b, cotangent=g)
    wanted, (columns_by_a, columns_by_b) = grads(op, a, b[..., None], cotangent=g[..., None])
    np.testing.assert_array_equal(value, wanted[..., 0])
    np.testing.assert_array_equal(by_a, columns_by_a)
    np.testing.assert_array_equal(by_b, columns_by_b[..., 0])


@pytest.mark.parametrize("op", ["solve", "triangular_solve"])
def test_what_fits_as_matrices_is_matrices(op: str) -> None:
    """As NumPy 2 reads it: [3, 3, 3] and [3, 3] is three matrices, and one right-hand side of three columns."""
    a, b = regular(3, 3, 3), real(3, 3)
    left = np.tril(a) if op == "triangular_solve" else a
    close(run(op, a, b), np.linalg.solve(left, b))


@pytest.mark.parametrize("op", ["solve", "triangular_solve"])
def test_two_axes_are_a_matrix_even_where_they_could_be_a_batch_of_vectors(op: str) -> None:
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
def test_batches_of_systems_whose_axes_are_all_alike(
    op: str, mapped: set[int], a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    """No shape tells a mapped axis from the others."""
    builder = Builder(registry())
    types = [TensorType(shape, np.dtype(float)) for shape in (a, b)]
    x, y = (builder.leaf(type, i) for i, type in enumerate(types))
    graph = vmap(builder.graph([x.builder.emit(registry().get(op), (x, y), {})]), mapped, 3)
    feeds = [regular(3, *a) if 0 in mapped else regular(*a), real(3, *b) if 1 in mapped else real(*b)]
    (found,) = EXECUTOR.run(make_plan(optimise(graph), Limits()), dict(enumerate(feeds)))
    close(found, np.stack([run(op, *(f[i] if k in mapped else f for k, f in enumerate(feeds))) for i in range(3)]))


def test_one_matrix_is_factored_once_for_all_right_hand_sides() -> None:
    n, m, count = 8, 2, 50
    assert plan_of("solve", (n, n), (count, n, m)).flops == 2 * n**3 // 3 + 2 * n * n * m * count
    assert plan_of("triangular_solve", (n, n), (count, n, m)).flops == n * n * m * count


# ---------------------------------------------------------------- inverses and determinants


@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_an_inverse_is_numpys(shape: tuple[int, ...]) -> None:
    x, g = regular(*shape), real(*shape)
    value, (found,) = grads("inv", x, cotangent=g)
    close(value, np.linalg.inv(x))
    turned = mirrored(np.linalg.inv(x))
    close(found, -turned @ g @ turned)


@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_a_determinant_is_numpys(shape: tuple[int, ...]) -> None:
    x = regular(*shape) * np.where(np.arange(shape[-1]) == 0, -1, 1)
    wanted = np.linalg.slogdet(x)
    for found, part in zip(slogdet(x), wanted, strict=True):
        close(found, part)
    close(slope(lambda v: v.slogdet().output(1), x), mirrored(np.linalg.inv(x)))
    assert not slope(lambda v: v.slogdet().output(0), x).any()


def test_determinants_beyond_what_a_number_can_hold() -> None:
    x = 1e200 * np.diag([1.0, -1.0, 1.0])
    sign, log = slogdet(x)
    assert sign == -1
    close(log, 600 * np.log(10))
    close(slogdet(1e-200 * np.eye(3))[1], -600 * np.log(10))
    close(slogdet(np.eye(3)[[1, 2, 0]])[0], 1.0)


def test_the_second_derivative_of_a_determinant() -> None:
    """d² log|det x| = −tr(x⁻¹ dx x⁻¹ dx)."""
    x, direction = regular(4, 4), real(4, 4)

    def along(v: Value, order: int) -> Value:
        y = v.slogdet().output(1)
        for _ in range(order):
            (g,) = vjp_or_zeros(v.builder, [(y, y.full_like(1.0))], [v])
            y = (g * v.builder.constant(direction)).sum()
        return y

    ratio = np.linalg.solve(x, direction)
    close(evaluate(lambda v: [along(v, 2)], x)[0], -np.trace(ratio @ ratio))
    close(evaluate(lambda v: [along(v, 3)], x)[0], 2 * np.trace(ratio @ ratio @ ratio))
