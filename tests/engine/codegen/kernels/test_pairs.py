"""Complex numbers in loops: every op with a complex formula, in every printer, against NumPy and mpmath."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from engine import LATEST, Compiler, Limits, Program, Statement, TensorType, Values, registry
from engine.codegen.functions.expansions import expand_functions, reports_range, split_pairs
from engine.codegen.kernels.c_text import c_expression
from engine.codegen.kernels.llvm_text import llvm_text
from engine.codegen.kernels.program import FusedKernel, KernelBuilder, Level
from engine.compiler.compiler import CompileRequest, compile_call
from engine.compiler.fused_kernel import Fused
from engine.compiler.fusion import fuse
from engine.compiler.plan import graph_of
from engine.cuda.cuda_text import OPTIONS, cuda_parts, cuda_text
from engine.ir.tensor_type import COMPLEX
from engine.ops.elementwise.base import Elementwise
from tests.engine.codegen.kernels import nvrtc
from tests.engine.looping import Writer
from tests.engine.ops.run import EXECUTOR, Array
from tests.engine.printers import COMPILED, PRINTERS, printing
from tests.sampling import sampled

mpmath: Any = pytest.importorskip("mpmath")

INF, NAN = np.inf, np.nan
#: values of either part: signed zeros, numbers that cancel or overflow when squared, infinities and NaN
POINTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, -1e-30, 1e30, -1e30, 30.0, -88.0, INF, -INF, NAN)
#: whether NumPy multiplies complex numbers with fused multiply-adds on this machine, as kernels always do
FUSED_PRODUCTS = complex(np.multiply(*np.full((2, 8), 1 + 2.0**-30 + 1j))[0]).real != (1 + 2.0**-30) ** 2 - 1


class Formula(NamedTuple):
    """An op on complex operands; `exact` if each printer has NumPy's bits."""

    op: str
    operands: int = 1
    attrs: dict[str, Any] = {}  # noqa: RUF012
    exact: bool = True


_POWERS = [Formula("pow_scalar", 1, {"exponent": n}, FUSED_PRODUCTS) for n in (-2.0, -1.0, 1.0, 2.0, 3.0, 4.0)]
BINARY = (
    *(Formula(op, 2) for op in ("add", "sub", "equal", "not_equal", "div")),
    Formula("mul", 2, exact=FUSED_PRODUCTS),
)
UNARY = (
    *(Formula(op) for op in ("neg", "conj", "real", "imag", "is_finite", "reciprocal")),
    *(Formula(f"{op}_scalar", attrs={"scalar": 2.5}) for op in ("add", "sub", "mul", "div")),
    Formula("square", exact=FUSED_PRODUCTS),
    *_POWERS,
    *(Formula(op, exact=False) for op in ("abs", "angle", "log", "sqrt", "rsqrt")),
)
#: ops with a circular function of the imaginary part, and of the real part
CIRCULAR = {
    "imag": [Formula(op, exact=False) for op in ("exp", "sigmoid", "sinh", "cosh", "tanh")],
    "real": [Formula(op, exact=False) for op in ("sin", "cos")],
}
FORMULAS = (*BINARY, *UNARY, *CIRCULAR["imag"], *CIRCULAR["real"])

each_dtype = pytest.mark.parametrize("dtype", COMPLEX)
#: each dtype and each printer
each_printer = pytest.mark.parametrize(("dtype", "printer"), sampled(itertools.product(COMPLEX, PRINTERS), set))
#: a single element, partial vectors, and several vectors
ROWS = list(itertools.product([1, 2, 7, 63, 65, 1003], COMPLEX, PRINTERS))


def row_aspects(case: tuple[int, str, str]) -> list[Hashable]:
    """Return a length with its dtype, and with its printer."""
    size, dtype, printer = case
    return [(size, dtype), (size, printer)]


def numbers(dtype: str, *shape: int, seed: int = 0) -> Array:
    parts = np.random.default_rng(seed).normal(size=(2, *shape)) * 2
    return (parts[0] + 1j * parts[1]).astype(dtype)


def grid(dtype: str, re: Sequence[float] = POINTS, im: Sequence[float] = POINTS) -> Array:
    """Build all pairs of real and imaginary parts."""
    parts = np.array([*itertools.product(re, im)], real(dtype))
    return np.ascontiguousarray(parts).view(dtype)[:, 0]


def real(dtype: str) -> str:
    return np.zeros(0, dtype).real.dtype.name


def values(formulas: Sequence[Formula], *operands: Array, printer: str = "none") -> list[Array]:
    """Compute all formulas in one plan."""
    known_ops = registry()
    feeds = dict(enumerate(operands))
    leaves = [Statement(known_ops.ops["input"]) for _ in operands]
    nodes = [Statement(known_ops.get(f.op), tuple(range(f.operands)), f.attrs) for f in formulas]
    program = Program(known_ops, [*leaves, *nodes], opset=LATEST)
    outputs = range(len(leaves), len(leaves) + len(nodes))
    plan = Compiler(Limits()).forward(program, {i: TensorType.of(a) for i, a in feeds.items()}, outputs).plan
    with printing(printer), np.errstate(all="ignore"):
        return EXECUTOR.run(plan, feeds)


def assert_same(actual: Array, expected: Array, *, exact: bool, label: object = "") -> None:
    """Assert equal numbers with equal signs of zeros, or errors within four ulps of the modulus. NaN match NaN."""
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(actual), ~is_number, str(label))
    parts = (
        [(actual, expected)]
        if actual.dtype.kind != "c"
        else [(actual.real, expected.real), (actual.imag, expected.imag)]
    )
    for one, other in parts:
        same = (one == other) & (np.signbit(one) == np.signbit(other))
        if not exact:
            with np.errstate(all="ignore"):
                size = np.abs(expected).astype(one.dtype)
                same |= np.isfinite(size) & (np.abs(one - other) <= 4 * np.finfo(one.dtype).eps * size) & (other != 0)
        wrong = np.flatnonzero(is_number & ~same)
        assert not wrong.size, f"{label}: {wrong.size}, first {actual.flat[wrong[0]]}, not {expected.flat[wrong[0]]}"


def assert_matches_numpy(formulas: Sequence[Formula], printer: str, *operands: Array) -> None:
    """Assert that a printer matches NumPy, bitwise if the formula is exact or the printer is NumPy."""
    actual, expected = values(formulas, *operands, printer=printer), values(formulas, *operands)
    for formula, one, other in zip(formulas, actual, expected, strict=True):
        assert_same(one, other, exact=formula.exact or (printer in ("numpy", "arrays") and not COMPILED), label=formula)


@each_printer
def test_special_values_match_numpy(dtype: str, printer: str) -> None:
    z = grid(dtype)
    assert_matches_numpy(UNARY, printer, z)
    a, b = (np.ascontiguousarray(x).ravel() for x in np.meshgrid(z[::3], z[::2]))
    assert_matches_numpy(BINARY, printer, a, b)


@each_printer
@pytest.mark.parametrize("part", CIRCULAR)
def test_special_values_of_circular_functions_match_numpy(part: str, dtype: str, printer: str) -> None:
    """First the angles that kernels support; then all, since NumPy computes the others."""
    angles = [x for x in POINTS if not abs(x) > 100]
    z = grid(dtype, POINTS, angles) if part == "imag" else grid(dtype, angles, POINTS)
    assert_matches_numpy(CIRCULAR[part], printer, z)
    assert_matches_numpy(CIRCULAR[part], printer, grid(dtype))


@pytest.mark.parametrize(("size", "dtype", "printer"), sampled(ROWS, row_aspects))
def test_rows_of_any_length(size: int, dtype: str, printer: str) -> None:
    assert_matches_numpy(BINARY, printer, numbers(dtype, size), numbers(dtype, size, seed=1))


@each_printer
def test_operands_broadcast_in_any_layout(dtype: str, printer: str) -> None:
    """Rows, columns, scalars, real operands, and transposed or strided views."""
    wide, real_dtype = numbers(dtype, 34, 118), real(dtype)
    a = np.ascontiguousarray(wide[::2, ::2])
    views = [wide[::2, ::2], np.asfortranarray(a), a[:1], a[:, :1], a[0, 0], a.real, a.real[:1].copy(), a.real[:, :1]]
    for other in map(np.asarray, views):
        assert other.dtype.name in (dtype, real_dtype)
        assert_matches_numpy(BINARY, printer, a, other)
        assert_matches_numpy(BINARY, printer, other, a)


@each_printer
def test_make_complex_and_where(dtype: str, printer: str) -> None:
    z = grid(dtype)
    re, im = z.real.copy(), z.imag.copy()
    assert_matches_numpy([Formula("make_complex", 2)], printer, re, im)
    other = z[::-1].copy()
    for on_false, truth in itertools.product((other, re, other[:1]), (im > 0, z)):
        assert_matches_numpy([Formula("where", 3)], printer, truth, z, on_false)


@pytest.mark.parametrize("op", sorted({f.op for f in FORMULAS} | {"make_complex", "where"}))
@each_dtype
def test_ops_are_fusible(op: str, dtype: str) -> None:
    z = TensorType((3,), np.dtype(dtype))
    re = TensorType((3,), np.dtype(real(dtype)))
    formula = next((f for f in FORMULAS if f.op == op), Formula(op))
    operands = {"make_complex": [re, re], "where": [TensorType((3,), np.dtype(bool)), z, z]}.get(
        op, [z] * formula.operands
    )
    kernel = registry().get(op)
    assert isinstance(kernel, Elementwise)
    out = kernel.infer(*operands, **formula.attrs)
    assert kernel.is_fusible(out, *operands, **formula.attrs)


def test_all_complex_elementwise_ops_are_covered() -> None:
    taking = {
        name
        for name, op in registry().ops.items()
        if isinstance(op, Elementwise) and not op.internal and set(COMPLEX) <= set(op.dtypes)
    }
    assert taking <= {f.op for f in FORMULAS} | {"where"}


@pytest.mark.parametrize("exponent", [0.0, 1.5, 7.0])
def test_other_powers_are_left_to_numpy(exponent: float) -> None:
    z = TensorType((3,), np.dtype("complex128"))
    op = registry().get("pow_scalar")
    assert isinstance(op, Elementwise)
    assert not op.is_fusible(z, z, exponent=exponent)


@pytest.mark.parametrize("dtypes", [("complex64", "float64"), ("complex128", "float32"), ("complex64", "complex128")])
def test_mixed_precisions_are_not_fusible(dtypes: Sequence[str]) -> None:
    a, b = (TensorType((3,), np.dtype(dtype)) for dtype in dtypes)
    op = registry().get("mul")
    assert isinstance(op, Elementwise)
    assert not op.is_fusible(op.infer(a, b), a, b)


# functions, against 40 digits

EXACT: dict[str, Callable[[Any], Any]] = {
    "abs": mpmath.fabs,
    "angle": mpmath.arg,
    "log": mpmath.log,
    "sqrt": mpmath.sqrt,
    "exp": mpmath.exp,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
}


def spread(dtype: str) -> Array:
    """Points of many sizes, near the axes and the unit circle, and close to overflow."""
    rng, most = np.random.default_rng(3), 85.0 if dtype == "complex64" else 700.0
    sizes = 10.0 ** rng.uniform(-12, 1.2, (2, 120)) * rng.choice([-1, 1], (2, 120))
    wide = rng.uniform(-most, most, (2, 60))
    near_one = np.exp(1j * rng.uniform(-4, 4, 120)) * (1 + sizes[0] / 100)
    near_one[::3] = 1 + (sizes[0] + 1j * sizes[1])[::3] / 100
    return np.concatenate([*(part[0] + 1j * part[1] for part in (sizes, wide)), near_one]).astype(dtype)


@each_dtype
@pytest.mark.parametrize("op", EXACT)
def test_errors_of_functions_are_within_three_ulps(op: str, dtype: str) -> None:
    z = spread(dtype)
    results = values([Formula(op)], z, printer="llvm")[0]
    with mpmath.workdps(40):
        exact = [EXACT[op](mpmath.mpc(complex(x))) for x in z]
        least = mpmath.mpf(float(np.finfo(real(dtype)).tiny)) / np.finfo(real(dtype)).eps
        errors = [
            abs(mpmath.mpc(complex(y)) - e) / abs(e) for y, e in zip(results, exact, strict=True) if abs(e) > least
        ]
    assert float(max(errors)) <= 3 * np.finfo(real(dtype)).eps


@each_dtype
def test_abs_and_sqrt_do_not_overflow_early(dtype: str) -> None:
    """Squares of the parts overflow or underflow."""
    info = np.finfo(real(dtype))
    for size in (info.max / 8, info.tiny * 8, float(info.smallest_subnormal) * 8):
        z = np.array([(3 + 4j) * size], dtype)
        modulus, root = values([Formula("abs"), Formula("sqrt")], z, printer="llvm")
        np.testing.assert_array_equal(modulus, np.abs(z))
        np.testing.assert_allclose(root, np.sqrt(z), 4 * info.eps)


@each_printer
def test_exp_is_finite_if_exp_of_the_real_part_overflows(dtype: str, printer: str) -> None:
    largest = float(np.log(np.finfo(real(dtype)).max))
    z = np.array([largest + 1 + 1.5j, largest + 5 + 1.5703j, -largest - 5 + 1j], dtype)
    with np.errstate(over="ignore"):
        expected = np.exp(z)
    assert np.isfinite(expected.real).all()
    (actual,) = values([Formula("exp")], z, printer=printer)
    np.testing.assert_allclose(actual.real, expected.real, 1e-4 if dtype == "complex64" else 1e-11)


@each_printer
@pytest.mark.parametrize("op", ["sqrt", "rsqrt", "log"])
def test_branch_cuts_from_both_sides(op: str, dtype: str, printer: str) -> None:
    sides = [np.array([complex(-4.0, zero)], dtype) for zero in (-0.0, 0.0)]
    (below,), (above,) = (values([Formula(op)], z, printer=printer) for z in sides)
    np.testing.assert_array_equal(below, np.conj(above))
    assert above[0].imag * (-1 if op == "rsqrt" else 1) > 0


# in plans


@each_printer
def test_row_results_are_complex(dtype: str, printer: str) -> None:
    """A row's sum of moduli times a number per row, and the row times that: two results of one loop."""
    z, w = numbers(dtype, 9, 67), numbers(dtype, 9, 1, seed=1)
    g = Writer()
    a, b = g.input(), g.input()
    scaled = g.mul(g.sum(g.abs(a), axes=[1], keepdims=True), b)
    g.mul(a, scaled)
    program = Program(registry(), g.statements, opset=LATEST)
    types = {0: TensorType.of(z), 1: TensorType.of(w)}
    plan = Compiler(Limits()).forward(program, types, [scaled, len(g.statements) - 1]).plan
    loops = [node.op for node in fuse(graph_of(plan, registry()), 0, compiled=True).nodes if isinstance(node.op, Fused)]
    assert [[result.kind for result in loop.kernel.results] for loop in loops] == [["row", "element"]]
    with printing(printer):
        results = EXECUTOR.run(plan, {0: z, 1: w})
    row_sums = np.abs(z).sum(axis=1, keepdims=True) * w
    for one, other in zip(results, (row_sums, z * row_sums), strict=True):
        np.testing.assert_allclose(one, other, 40 * np.finfo(dtype).eps)


def test_cast_is_fused() -> None:
    """A cast to complex beside a complex operand is no node of its own."""
    g = Writer()
    x, z = g.input(), g.input()
    g.mul(g.cast(g.exp(x), dtype="complex64"), z)
    program = Program(registry(), g.statements, opset=LATEST)
    types = {0: TensorType((1 << 22,), np.dtype("float32")), 1: TensorType((1 << 22,), np.dtype("complex64"))}
    plan = compile_call(
        CompileRequest(program, types, Values.of_program(program, None), Limits(), kernel_threads=1)
    ).plan
    assert [step.op.name for step in plan.steps] == ["fused", "get_output"]


# the kernel language


def _loop(write: Callable[..., Any], operands: int = 2) -> FusedKernel:
    builder = KernelBuilder("float64")
    builder.store("element", write(*(builder.load(Level.ELEMENT, "pair") for _ in range(operands))))
    return builder.build()


def test_split_loop_has_pairs_only_at_loads_and_stores() -> None:
    loop = split_pairs(_loop(lambda a, b: (a * b).exp() / b))
    pairs = [i.op for i in loop.instructions if "pair" in (i.type, *(loop.instructions[a].type for a in i.args))]
    assert sorted(pairs) == ["imag", "imag", "load", "load", "pair", "real", "real"]
    assert [operand.type for operand in loop.operands] == ["pair", "pair"]


def test_loop_without_pairs_is_unchanged() -> None:
    builder = KernelBuilder("float64")
    builder.store("element", builder.load(Level.ELEMENT).exp())
    loop = builder.build()
    assert split_pairs(loop) is loop


@pytest.mark.parametrize("write", [lambda a, b: a * b, lambda a, b: a + b])
def test_printers_refuse_pairs_that_are_not_split(write: Callable[..., Any]) -> None:
    """A product of two vectors of interleaved parts is no complex product."""
    loop = _loop(write)
    with pytest.raises(TypeError, match="of complex numbers has to be written in their parts"):
        llvm_text(loop, 4)
    with pytest.raises(TypeError, match="of complex numbers has to be written in their parts"):
        c_expression(loop, 2, ["a", "b"])
    assert llvm_text(expand_functions(loop), 4)


def test_minimum_of_complex_numbers_is_refused() -> None:
    with pytest.raises(TypeError, match="there is no minimum of complex numbers"):
        _loop(lambda a, b: a.minimum(b))


def test_parts_of_a_pair_are_its_operands() -> None:
    builder = KernelBuilder("float32")
    re, im = builder.load(Level.ELEMENT), builder.load(Level.ROW)
    assert re.pair(im).real() == re
    assert re.pair(im).imag() == im


@pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nvrtc_compiles_pairs(dtype: str) -> None:
    """Pairs of elements and of rows, loaded and stored."""
    builder = KernelBuilder(dtype)
    x, y = builder.load(Level.ELEMENT, "pair"), builder.load(Level.ROW, "pair")
    quotient = (x * y).exp() / x
    builder.store("element", quotient.log())
    builder.store("row", quotient.abs().row_sum() * y)
    loop = builder.build()
    parts = cuda_parts(expand_functions(loop), reports_range=reports_range(loop))
    assert nvrtc.compiled(cuda_text(parts, 32), [*OPTIONS, "--gpu-architecture=sm_90"])
