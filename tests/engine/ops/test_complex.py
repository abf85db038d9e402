"""Complex ops against the same ops on real and imaginary parts in opset 1; branch cuts and zeros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from engine import OPSET, Builder, Limits, TensorType, Value, open_executor, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from tests.engine.ops.run import Array, grads, run

EXECUTOR = open_executor("cpu")
#: the ops of opset 1; pairs are computed with these only
OPSET_1 = {name for name, op in registry().ops.items() if op.since == OPSET}


@dataclass(frozen=True)
class Pair:
    """A complex number as two real values."""

    re: Value
    im: Value

    def __add__(self, other: Pair) -> Pair:
        return Pair(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Pair) -> Pair:
        return Pair(self.re - other.re, self.im - other.im)

    def __neg__(self) -> Pair:
        return Pair(-self.re, -self.im)

    def __mul__(self, other: Pair) -> Pair:
        return Pair(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __matmul__(self, other: Pair) -> Pair:
        return Pair(self.re @ other.re - self.im @ other.im, self.re @ other.im + self.im @ other.re)

    def __truediv__(self, other: Pair) -> Pair:
        return self * other.inverse()

    def inverse(self) -> Pair:
        size = self.re.square() + self.im.square()
        return Pair(self.re / size, -self.im / size)

    def each(self, op: str, **attrs: Any) -> Pair:
        """Apply the same op to both parts."""
        return Pair(getattr(self.re, op)(**attrs), getattr(self.im, op)(**attrs))

    def angle(self) -> Value:
        return self.im.atan2(self.re)

    def size(self) -> Value:
        return (self.re.square() + self.im.square()).sqrt()

    def exp(self) -> Pair:
        return Pair(self.re.exp() * self.im.cos(), self.re.exp() * self.im.sin())

    def log(self) -> Pair:
        return Pair(self.size().log(), self.angle())

    def scaled(self, number: float) -> Pair:
        return Pair(self.re * number, self.im * number)

    def power(self, exponent: float) -> Pair:
        return self.log().scaled(exponent).exp()

    def shifted(self, number: float) -> Pair:
        return Pair(self.re + number, self.im)

    def doubled(self) -> Value:
        """[[a, −b], [b, a]], which multiplies and inverts like the matrix a + bi."""
        upper = self.re.cat(-self.im, axis=-1)
        return upper.cat(self.im.cat(self.re, axis=-1), axis=-2)


def halved(doubled: Value) -> Pair:
    """Return the pair that a doubled matrix represents."""
    n = doubled.shape[-1] // 2
    left = doubled.slice(starts=(0, 0), stops=(2 * n, n))
    return Pair(left.slice(stops=(n,)), left.slice(starts=(n,)))


def sinh(z: Pair) -> Pair:
    return Pair(z.re.sinh() * z.im.cos(), z.re.cosh() * z.im.sin())


def cosh(z: Pair) -> Pair:
    return Pair(z.re.cosh() * z.im.cos(), z.re.sinh() * z.im.sin())


def product(z: Pair) -> Pair:
    """Multiply the three columns of a matrix."""
    a, b, c = (z.each("select", index=i, axis=1) for i in range(3))
    return a * b * c


def running_product(z: Pair) -> Pair:
    a, b, c = (z.each("select", index=i, axis=1) for i in range(3))
    parts = [a, a * b, a * b * c]
    return Pair(
        parts[0].re.stack(*(p.re for p in parts[1:]), axis=1), parts[0].im.stack(*(p.im for p in parts[1:]), axis=1)
    )


def solved(a: Pair, b: Pair) -> Pair:
    columns = a.doubled().solve(b.re.cat(b.im, axis=0))
    n = b.re.shape[0]
    return Pair(columns.slice(stops=(n,)), columns.slice(starts=(n,)))


def lower(a: Pair) -> Pair:
    return a.each("tril")


ROWS, SQUARE = ((2, 3),), ((3, 3),)
TWO = ((2, 3), (3,))
SYSTEM = ((3, 3), (3, 2))
#: op, its attributes, shapes of its operands, and the equivalent rule on pairs
OPS: list[tuple[str, dict[str, Any], tuple[tuple[int, ...], ...], Callable[..., Pair | Value]]] = [
    ("add", {}, TWO, lambda a, b: a + b),
    ("sub", {}, TWO, lambda a, b: a - b),
    ("mul", {}, TWO, lambda a, b: a * b),
    ("div", {}, TWO, lambda a, b: a / b),
    ("neg", {}, ROWS, lambda a: -a),
    ("reciprocal", {}, ROWS, Pair.inverse),
    ("square", {}, ROWS, lambda a: a * a),
    ("pow_scalar", {"exponent": 3.0}, ROWS, lambda a: a * a * a),
    ("pow_scalar", {"exponent": -2.0}, ROWS, lambda a: (a * a).inverse()),
    ("pow_scalar", {"exponent": 0.5}, ROWS, lambda a: a.power(0.5)),
    ("pow_scalar", {"exponent": 2.5}, ROWS, lambda a: a.power(2.5)),
    ("add_scalar", {"scalar": 1.5}, ROWS, lambda a: a.shifted(1.5)),
    ("sub_scalar", {"scalar": 1.5}, ROWS, lambda a: a.shifted(-1.5)),
    ("mul_scalar", {"scalar": 1.5}, ROWS, lambda a: a.scaled(1.5)),
    ("div_scalar", {"scalar": 1.5}, ROWS, lambda a: a.scaled(1 / 1.5)),
    ("exp", {}, ROWS, Pair.exp),
    ("log", {}, ROWS, Pair.log),
    ("sqrt", {}, ROWS, lambda a: a.power(0.5)),
    ("rsqrt", {}, ROWS, lambda a: a.power(-0.5)),
    ("sinh", {}, ROWS, sinh),
    ("cosh", {}, ROWS, cosh),
    ("tanh", {}, ROWS, lambda a: sinh(a) / cosh(a)),
    ("sin", {}, ROWS, lambda a: Pair(a.re.sin() * a.im.cosh(), a.re.cos() * a.im.sinh())),
    ("cos", {}, ROWS, lambda a: Pair(a.re.cos() * a.im.cosh(), -a.re.sin() * a.im.sinh())),
    ("sigmoid", {}, ROWS, lambda a: (-a).exp().shifted(1.0).inverse()),
    ("abs", {}, ROWS, Pair.size),
    ("angle", {}, ROWS, Pair.angle),
    ("real", {}, ROWS, lambda a: a.re.identity()),
    ("imag", {}, ROWS, lambda a: a.im.identity()),
    ("conj", {}, ROWS, lambda a: Pair(a.re, -a.im)),
    ("sum", {"axes": [1]}, ROWS, lambda a: a.each("sum", axes=(1,))),
    ("mean", {"axes": [0]}, ROWS, lambda a: a.each("mean", axes=(0,))),
    ("prod", {"axes": [1]}, ROWS, product),
    ("cumsum", {"axis": 1}, ROWS, lambda a: a.each("cumsum", axis=1)),
    ("cumprod", {"axis": 1}, ROWS, running_product),
    ("matmul", {}, ((2, 3), (3, 2)), lambda a, b: a @ b),
    ("einsum", {"equation": "ij,jk->ki"}, ((2, 3), (3, 2)), lambda a, b: (a @ b).each("transpose")),
    ("linear", {}, ((2, 3), (3, 2), (2,)), lambda x, w, b: x @ w + b),
    ("solve", {}, SYSTEM, solved),
    ("inv", {}, SQUARE, lambda a: halved(a.doubled().inv())),
    ("triangular_solve", {}, SYSTEM, lambda a, b: solved(lower(a), b)),
    ("triangular_solve", {"transpose": True}, SYSTEM, lambda a, b: solved(lower(a).each("transpose"), b)),
    ("where", {}, ((3,), (2, 3), (3,)), lambda c, a, b: Pair(c.re.where(a.re, b.re), c.re.where(a.im, b.im))),
    ("transpose", {}, ROWS, lambda a: a.each("transpose")),
    ("pad", {"pad_width": [1, 0, 0, 2]}, ROWS, lambda a: a.each("pad", pad_width=(1, 0, 0, 2))),
    ("flip", {}, ROWS, lambda a: a.each("flip")),
    ("tril", {}, SQUARE, lambda a: a.each("tril")),
]


def draw(shapes: tuple[tuple[int, ...], ...], seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    result = []
    for shape in shapes:
        z = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
        result.append(z + 3 * np.eye(3) if shape == (3, 3) else z)
    return result


def evaluate(builder: Builder, outputs: list[Value], feeds: dict[Any, Array]) -> list[Array]:
    graph = optimise(builder.graph(outputs))
    return EXECUTOR.run(make_plan(graph, Limits()), {key: feeds[key] for key in graph.feeds})


def by_op(op: str, attrs: dict[str, Any], arrays: list[Array], seed: Array) -> list[Array]:
    """Return the value, the gradients, and second derivatives along ones, in complex numbers."""
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType.of(a), i) for i, a in enumerate(arrays)]
    if op == "where":
        leaves[0] = leaves[0].real()
    y = builder.emit(registry().ops[op], leaves, attrs)
    g = builder.constant(seed if y.type.is_complex else seed.real)
    first = vjp_or_zeros(builder, [(y, g)], leaves)
    second = vjp_or_zeros(builder, [(x, builder.constant(np.ones(x.shape, x.dtype))) for x in first], leaves)
    return evaluate(builder, [y, *first, *second], dict(enumerate(arrays)))


def by_parts(rule: Callable[..., Pair | Value], arrays: list[Array], seed: Array) -> list[Array]:
    """Return the same in real numbers, with ops of opset 1."""
    builder = Builder(registry())
    parts = [part for a in arrays for part in (a.real.copy(), a.imag.copy())]
    leaves = [builder.leaf(TensorType.of(a), i) for i, a in enumerate(parts)]
    y = rule(*(Pair(re, im) for re, im in zip(leaves[::2], leaves[1::2], strict=True)))
    results = [y.re, y.im] if isinstance(y, Pair) else [y]
    seeds = [builder.constant(s) for s in (seed.real.copy(), seed.imag.copy())[: len(results)]]
    first = vjp_or_zeros(builder, list(zip(results, seeds, strict=True)), leaves)
    seeds_of_gradients = [(x, x.full_like(float(i % 2 == 0))) for i, x in enumerate(first)]
    second = vjp_or_zeros(builder, seeds_of_gradients, leaves)
    assert {node.op.name for node in builder.nodes} <= OPSET_1
    result = evaluate(builder, [*results, *first, *second], dict(enumerate(parts)))
    value = [result[0] + 1j * result[1]] if len(results) == 2 else result[:1]
    rest = result[len(results) :]
    return [*value, *(re + 1j * im for re, im in zip(rest[::2], rest[1::2], strict=True))]


@pytest.mark.parametrize(("op", "attrs", "shapes", "rule"), OPS, ids=[f"{op}{attrs}" for op, attrs, *_ in OPS])
def test_complex_op_matches_real_and_imaginary_parts(
    op: str, attrs: dict[str, Any], shapes: tuple[tuple[int, ...], ...], rule: Callable[..., Pair | Value]
) -> None:
    """Values, gradients, and derivatives of the gradients."""
    arrays = draw(shapes, len(op))
    shape = run(op, *((arrays[0].real, *arrays[1:]) if op == "where" else arrays), **attrs).shape
    seed = draw((shape,), 99)[0] if shape != (3, 3) else draw(((3, 4),), 99)[0][:, :3]
    actual, expected = by_op(op, attrs, arrays, seed), by_parts(rule, arrays, seed)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b if np.iscomplexobj(a) else b.real, rtol=1e-9, atol=1e-11)


def test_slogdet_and_cholesky_match_the_doubled_matrix() -> None:
    """|det (a + bi)|² is the determinant of [[a, −b], [b, a]]; the factor times its adjoint is the Hermitian part."""
    (a,) = draw(SQUARE, 3)
    sign, size = (run_output("slogdet", a, k) for k in range(2))
    doubled = np.block([[a.real, -a.imag], [a.imag, a.real]])
    np.testing.assert_allclose(2 * size, np.linalg.slogdet(doubled)[1], rtol=1e-12)
    assert size.dtype == np.float64
    np.testing.assert_allclose(sign * np.exp(size), np.linalg.det(a), rtol=1e-12)
    factor = run("cholesky", a)
    np.testing.assert_allclose(factor @ factor.conj().T, (a + a.conj().T) / 2, rtol=1e-12, atol=1e-12)
    assert (np.diag(factor).imag == 0).all()
    assert (np.triu(factor, 1) == 0).all()


def run_output(op: str, x: Array, index: int) -> Array:
    builder = Builder(registry())
    y = builder.emit(registry().ops[op], [builder.leaf(TensorType.of(x), 0)], {}).output(index)
    return evaluate(builder, [y], {0: x})[0]


@pytest.mark.parametrize("n", [3, 70])
def test_large_and_small_complex_systems(n: int) -> None:
    (a,) = draw(((n, n),), 5)
    a = a + n * np.eye(n)
    (b,) = draw(((n, 2),), 6)
    np.testing.assert_allclose(a @ run("solve", a, b), b, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.tril(a).T @ run("triangular_solve", a, b, transpose=True), b, rtol=1e-9, atol=1e-10)
    factor = run("cholesky", a)
    np.testing.assert_allclose(factor @ factor.conj().T, (a + a.conj().T) / 2, rtol=1e-10, atol=1e-10)
    actual = run("solve", a.astype("complex64"), b.astype("complex64"))
    assert actual.dtype == np.complex64
    np.testing.assert_allclose(actual, run("solve", a, b), rtol=2e-5, atol=1e-6)


def test_singular_matrix_does_not_affect_the_others() -> None:
    a = np.stack([np.eye(2) * (1 + 1j), np.zeros((2, 2))])
    actual = run("inv", a)
    np.testing.assert_allclose(actual[0], np.eye(2) / (1 + 1j))
    assert np.isnan(actual[1]).all()
    factors = run("cholesky", np.stack([np.eye(2) + 0j, -np.eye(2) + 0j]))
    assert (factors[0] == np.eye(2)).all()
    assert np.isnan(factors[1]).all()


# ---------------------------------------------------------------- branch cuts, on the side given by the sign of zero

SIDES = [complex(-4, 0.0), complex(-4, -0.0)]


@pytest.mark.parametrize("z", SIDES, ids=["above", "below"])
@pytest.mark.parametrize("op", ["log", "sqrt", "angle", "rsqrt"])
def test_branch_cut_is_continuous_from_its_side(op: str, z: complex) -> None:
    """Value and gradient equal those of a point next to the cut, on the side given by the sign of zero."""
    side = np.copysign(1.0, z.imag)
    near = z + side * 1e-9j
    value, (gradient,) = grads(op, np.array([z]), wrt=[0])
    value_near, (gradient_near,) = grads(op, np.array([near]), wrt=[0])
    np.testing.assert_allclose(value, value_near, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(gradient, gradient_near, rtol=1e-8, atol=1e-8)
    value_across, _ = grads(op, np.array([np.conj(near)]), wrt=[0])
    assert abs(value_across - value_near) > 0.5, "there is a cut"


def test_values_on_the_branch_cut() -> None:
    above, below = (np.array([z]) for z in SIDES)
    assert run("angle", above)[0] == np.pi
    assert run("angle", below)[0] == -np.pi
    assert run("sqrt", above)[0] == 2j
    assert run("sqrt", below)[0] == -2j
    np.testing.assert_allclose(run("log", below)[0], np.log(4) - 1j * np.pi, rtol=1e-15)


@pytest.mark.parametrize("op", ["add_scalar", "mul_scalar", "neg", "conj"])
def test_sign_of_imaginary_zero(op: str) -> None:
    attrs = {"scalar": 0.5} if op.endswith("scalar") else {}
    for z in SIDES:
        is_flipped = op in ("neg", "conj")
        actual = run(op, np.array([z]), **attrs)[0]
        assert bool(np.signbit(actual.imag) != np.signbit(z.imag)) is is_flipped


# ---------------------------------------------------------------- at 0

ZEROS = np.array([0, complex(0.0, -0.0), complex(-0.0, 0.0)])


@pytest.mark.parametrize("op", ["abs", "angle"])
def test_gradients_of_abs_and_angle_at_zero_are_zero(op: str) -> None:
    _, (gradient,) = grads(op, ZEROS, wrt=[0])
    assert (gradient == 0).all()
    builder = Builder(registry())
    x = builder.leaf(TensorType.of(ZEROS), 0)
    y = builder.emit(registry().ops[op], [x], {})
    (first,) = vjp_or_zeros(builder, [(y, y.full_like(1.0))], [x])
    (second,) = vjp_or_zeros(builder, [(first, builder.constant(np.full(3, 1 + 1j)))], [x])
    assert (evaluate(builder, [second], {0: ZEROS})[0] == 0).all()


@pytest.mark.parametrize("op", ["log", "sqrt"])
def test_gradients_of_log_and_sqrt_at_zero_are_not_finite(op: str) -> None:
    _, (gradient,) = grads(op, ZEROS, wrt=[0])
    assert not np.isfinite(gradient).any()


def test_nan_in_either_part_is_nan() -> None:
    z = np.array([complex(np.nan, 1), complex(1, np.nan)])
    for op in ("abs", "angle", "exp", "sqrt", "sigmoid", "log"):
        assert np.isnan(run(op, z)).all(), op
    assert not run("is_finite", z).any()
    assert not run("equal", z, z).any()
    assert run("not_equal", z, z).all()


def test_real_and_imag_of_real_numbers() -> None:
    x = np.array([1.5, -2.0, np.inf])
    for dtype in ("float16", "float64"):
        np.testing.assert_array_equal(run("imag", x.astype(dtype)), np.zeros(3, dtype))
        np.testing.assert_array_equal(run("real", x.astype(dtype)), x.astype(dtype))
