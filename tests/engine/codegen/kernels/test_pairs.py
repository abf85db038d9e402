"""Complex numbers in loops: every op that has a formula of them by every printer, beside NumPy's and beside mpmath."""

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
#: of either part: zeros of both signs, what cancels, what overflows when it is squared, infinities and NaN
POINTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, -1e-30, 1e30, -1e30, 30.0, -88.0, INF, -INF, NAN)
#: whether NumPy multiplies complex numbers by fused multiply-adds here, as kernels do everywhere
FUSED_PRODUCTS = complex(np.multiply(*np.full((2, 8), 1 + 2.0**-30 + 1j))[0]).real != (1 + 2.0**-30) ** 2 - 1


class Formula(NamedTuple):
    """An op on complex operands, as many as there are; `exact` where each printer has NumPy's bits."""

    op: str
    operands: int = 1
    attrs: dict[str, Any] = {}  # noqa: RUF012
    exact: bool = True


_POWERS = [Formula("pow_scalar", 1, {"exponent": n}, FUSED_PRODUCTS) for n in (-2.0, -1.0, 1.0, 2.0, 3.0, 4.0)]
OF_TWO = (
    *(Formula(op, 2) for op in ("add", "sub", "equal", "not_equal", "div")),
    Formula("mul", 2, exact=FUSED_PRODUCTS),
)
OF_ONE = (
    *(Formula(op) for op in ("neg", "conj", "real", "imag", "is_finite", "reciprocal")),
    *(Formula(f"{op}_scalar", attrs={"scalar": 2.5}) for op in ("add", "sub", "mul", "div")),
    Formula("square", exact=FUSED_PRODUCTS),
    *_POWERS,
    *(Formula(op, exact=False) for op in ("abs", "angle", "log", "sqrt", "rsqrt")),
)
#: those with a circular function of the imaginary part, and of the real one
OF_AN_ANGLE = {
    "imag": [Formula(op, exact=False) for op in ("exp", "sigmoid", "sinh", "cosh", "tanh")],
    "real": [Formula(op, exact=False) for op in ("sin", "cos")],
}
FORMULAS = (*OF_TWO, *OF_ONE, *OF_AN_ANGLE["imag"], *OF_AN_ANGLE["real"])

each_dtype = pytest.mark.parametrize("dtype", COMPLEX)
#: each dtype, and each printer
each_way = pytest.mark.parametrize(("dtype", "printer"), sampled(itertools.product(COMPLEX, PRINTERS), set))
#: an element alone, vectors that are not whole, and more than one
ROWS = list(itertools.product([1, 2, 7, 63, 65, 1003], COMPLEX, PRINTERS))


def of_rows(case: tuple[int, str, str]) -> list[Hashable]:
    """A length by each dtype, and by each printer."""
    size, dtype, printer = case
    return [(size, dtype), (size, printer)]


def numbers(dtype: str, *shape: int, seed: int = 0) -> Array:
    parts = np.random.default_rng(seed).normal(size=(2, *shape)) * 2
    return (parts[0] + 1j * parts[1]).astype(dtype)


def grid(dtype: str, re: Sequence[float] = POINTS, im: Sequence[float] = POINTS) -> Array:
    """All pairs of these."""
    parts = np.array([*itertools.product(re, im)], real(dtype))
    return np.ascontiguousarray(parts).view(dtype)[:, 0]


def real(dtype: str) -> str:
    return np.zeros(0, dtype).real.dtype.name


def values(formulas: Sequence[Formula], *operands: Array, printer: str = "none") -> list[Array]:
    """All of them, of one plan."""
    known = registry()
    feeds = dict(enumerate(operands))
    leaves = [Statement(known.ops["input"]) for _ in operands]
    made = [Statement(known.get(f.op), tuple(range(f.operands)), f.attrs) for f in formulas]
    program = Program(known, [*leaves, *made], opset=LATEST)
    outputs = range(len(leaves), len(leaves) + len(made))
    plan = Compiler(Limits()).forward(program, {i: TensorType.of(a) for i, a in feeds.items()}, outputs).plan
    with printing(printer), np.errstate(all="ignore"):
        return EXECUTOR.run(plan, feeds)


def assert_alike(found: Array, wanted: Array, *, exact: bool, what: object = "") -> None:
    """The same numbers, and the same signs of zeros; or within four units of the larger part. NaN in a part is NaN."""
    there = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), ~there, str(what))
    parts = [(found, wanted)] if found.dtype.kind != "c" else [(found.real, wanted.real), (found.imag, wanted.imag)]
    for one, other in parts:
        same = (one == other) & (np.signbit(one) == np.signbit(other))
        if not exact:
            with np.errstate(all="ignore"):
                size = np.abs(wanted).astype(one.dtype)
                same |= np.isfinite(size) & (np.abs(one - other) <= 4 * np.finfo(one.dtype).eps * size) & (other != 0)
        wrong = np.flatnonzero(there & ~same)
        assert not wrong.size, f"{what}: {wrong.size}, first {found.flat[wrong[0]]}, not {wanted.flat[wrong[0]]}"


def assert_numpys(formulas: Sequence[Formula], printer: str, *operands: Array) -> None:
    """What a printer makes of them is NumPy's, to the bit where that is exact, or is NumPy."""
    found, wanted = values(formulas, *operands, printer=printer), values(formulas, *operands)
    for formula, one, other in zip(formulas, found, wanted, strict=True):
        assert_alike(one, other, exact=formula.exact or (printer in ("numpy", "arrays") and not COMPILED), what=formula)


@each_way
def test_special_values_are_numpys(dtype: str, printer: str) -> None:
    z = grid(dtype)
    assert_numpys(OF_ONE, printer, z)
    a, b = (np.ascontiguousarray(x).ravel() for x in np.meshgrid(z[::3], z[::2]))
    assert_numpys(OF_TWO, printer, a, b)


@each_way
@pytest.mark.parametrize("part", OF_AN_ANGLE)
def test_special_values_of_functions_are_numpys(part: str, dtype: str, printer: str) -> None:
    """Angles that kernels are written for, since all others are NumPy's; and then these."""
    angles = [x for x in POINTS if not abs(x) > 100]
    z = grid(dtype, POINTS, angles) if part == "imag" else grid(dtype, angles, POINTS)
    assert_numpys(OF_AN_ANGLE[part], printer, z)
    assert_numpys(OF_AN_ANGLE[part], printer, grid(dtype))


@pytest.mark.parametrize(("size", "dtype", "printer"), sampled(ROWS, of_rows))
def test_rows_of_any_length(size: int, dtype: str, printer: str) -> None:
    assert_numpys(OF_TWO, printer, numbers(dtype, size), numbers(dtype, size, seed=1))


@each_way
def test_operands_lie_and_broadcast_as_they_like(dtype: str, printer: str) -> None:
    """Rows, columns, single numbers, real ones, and what is seen across or in steps."""
    wide, real_dtype = numbers(dtype, 34, 118), real(dtype)
    a = np.ascontiguousarray(wide[::2, ::2])
    seen = [wide[::2, ::2], np.asfortranarray(a), a[:1], a[:, :1], a[0, 0], a.real, a.real[:1].copy(), a.real[:, :1]]
    for other in map(np.asarray, seen):
        assert other.dtype.name in (dtype, real_dtype)
        assert_numpys(OF_TWO, printer, a, other)
        assert_numpys(OF_TWO, printer, other, a)


@each_way
def test_parts_are_put_together_and_chosen(dtype: str, printer: str) -> None:
    z = grid(dtype)
    re, im = z.real.copy(), z.imag.copy()
    assert_numpys([Formula("make_complex", 2)], printer, re, im)
    other = z[::-1].copy()
    for on_false, truth in itertools.product((other, re, other[:1]), (im > 0, z)):
        assert_numpys([Formula("where", 3)], printer, truth, z, on_false)


@pytest.mark.parametrize("op", sorted({f.op for f in FORMULAS} | {"make_complex", "where"}))
@each_dtype
def test_ops_have_loops(op: str, dtype: str) -> None:
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


def test_all_elementwise_ops_of_complex_numbers_are_tried_here() -> None:
    taking = {
        name
        for name, op in registry().ops.items()
        if isinstance(op, Elementwise) and not op.internal and set(COMPLEX) <= set(op.dtypes)
    }
    assert taking <= {f.op for f in FORMULAS} | {"where"}


@pytest.mark.parametrize("exponent", [0.0, 1.5, 7.0])
def test_powers_that_are_no_products_are_numpys(exponent: float) -> None:
    z = TensorType((3,), np.dtype("complex128"))
    op = registry().get("pow_scalar")
    assert isinstance(op, Elementwise)
    assert not op.is_fusible(z, z, exponent=exponent)


@pytest.mark.parametrize("dtypes", [("complex64", "float64"), ("complex128", "float32"), ("complex64", "complex128")])
def test_widths_are_not_mixed(dtypes: Sequence[str]) -> None:
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
    """Points of many sizes, near the axes and the unit circle, and where functions are about to overflow."""
    rng, most = np.random.default_rng(3), 85.0 if dtype == "complex64" else 700.0
    sizes = 10.0 ** rng.uniform(-12, 1.2, (2, 120)) * rng.choice([-1, 1], (2, 120))
    wide = rng.uniform(-most, most, (2, 60))
    near_one = np.exp(1j * rng.uniform(-4, 4, 120)) * (1 + sizes[0] / 100)
    near_one[::3] = 1 + (sizes[0] + 1j * sizes[1])[::3] / 100
    return np.concatenate([*(part[0] + 1j * part[1] for part in (sizes, wide)), near_one]).astype(dtype)


@each_dtype
@pytest.mark.parametrize("op", EXACT)
def test_functions_are_within_three_units_of_their_size(op: str, dtype: str) -> None:
    z = spread(dtype)
    found = values([Formula(op)], z, printer="llvm")[0]
    with mpmath.workdps(40):
        exact = [EXACT[op](mpmath.mpc(complex(x))) for x in z]
        least = mpmath.mpf(float(np.finfo(real(dtype)).tiny)) / np.finfo(real(dtype)).eps
        errors = [abs(mpmath.mpc(complex(y)) - e) / abs(e) for y, e in zip(found, exact, strict=True) if abs(e) > least]
    assert float(max(errors)) <= 3 * np.finfo(real(dtype)).eps


@each_dtype
def test_sizes_are_numbers_wherever_they_can_be(dtype: str) -> None:
    """Squares of the parts are none."""
    info = np.finfo(real(dtype))
    for size in (info.max / 8, info.tiny * 8, float(info.smallest_subnormal) * 8):
        z = np.array([(3 + 4j) * size], dtype)
        found, root = values([Formula("abs"), Formula("sqrt")], z, printer="llvm")
        np.testing.assert_array_equal(found, np.abs(z))
        np.testing.assert_allclose(root, np.sqrt(z), 4 * info.eps)


@each_way
def test_an_exponential_is_a_number_where_that_of_its_real_part_is_none(dtype: str, printer: str) -> None:
    largest = float(np.log(np.finfo(real(dtype)).max))
    z = np.array([largest + 1 + 1.5j, largest + 5 + 1.5703j, -largest - 5 + 1j], dtype)
    with np.errstate(over="ignore"):
        wanted = np.exp(z)
    assert np.isfinite(wanted.real).all()
    (found,) = values([Formula("exp")], z, printer=printer)
    np.testing.assert_allclose(found.real, wanted.real, 1e-4 if dtype == "complex64" else 1e-11)


@each_way
@pytest.mark.parametrize("op", ["sqrt", "rsqrt", "log"])
def test_cuts_are_seen_from_both_sides(op: str, dtype: str, printer: str) -> None:
    sides = [np.array([complex(-4.0, zero)], dtype) for zero in (-0.0, 0.0)]
    (below,), (above,) = (values([Formula(op)], z, printer=printer) for z in sides)
    np.testing.assert_array_equal(below, np.conj(above))
    assert above[0].imag * (-1 if op == "rsqrt" else 1) > 0


# in plans


@each_way
def test_what_stands_at_rows_is_complex_too(dtype: str, printer: str) -> None:
    """A sum of a row's sizes times a number a row, and rows by that: two results of one loop."""
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
        found = EXECUTOR.run(plan, {0: z, 1: w})
    wanted = np.abs(z).sum(axis=1, keepdims=True) * w
    for one, other in zip(found, (wanted, z * wanted), strict=True):
        np.testing.assert_allclose(one, other, 40 * np.finfo(dtype).eps)


def test_a_cast_joins() -> None:
    """Beside what is complex anyway, it is no node of its own."""
    g = Writer()
    x, z = g.input(), g.input()
    g.mul(g.cast(g.exp(x), dtype="complex64"), z)
    program = Program(registry(), g.statements, opset=LATEST)
    types = {0: TensorType((1 << 22,), np.dtype("float32")), 1: TensorType((1 << 22,), np.dtype("complex64"))}
    plan = compile_call(
        CompileRequest(program, types, Values.of_program(program, None), Limits(), kernel_threads=1)
    ).plan
    assert [step.op.name for step in plan.steps] == ["fused", "get_output"]


# the language


def _loop(write: Callable[..., Any], operands: int = 2) -> FusedKernel:
    builder = KernelBuilder("float64")
    builder.store("element", write(*(builder.load(Level.ELEMENT, "pair") for _ in range(operands))))
    return builder.build()


def test_a_loop_in_parts_reads_and_writes_pairs_and_no_more() -> None:
    loop = split_pairs(_loop(lambda a, b: (a * b).exp() / b))
    pairs = [i.op for i in loop.instructions if "pair" in (i.type, *(loop.instructions[a].type for a in i.args))]
    assert sorted(pairs) == ["imag", "imag", "load", "load", "pair", "real", "real"]
    assert [operand.type for operand in loop.operands] == ["pair", "pair"]


def test_a_loop_without_pairs_stays_what_it_is() -> None:
    builder = KernelBuilder("float64")
    builder.store("element", builder.load(Level.ELEMENT).exp())
    loop = builder.build()
    assert split_pairs(loop) is loop


@pytest.mark.parametrize("write", [lambda a, b: a * b, lambda a, b: a + b])
def test_printers_refuse_what_is_not_in_parts(write: Callable[..., Any]) -> None:
    """A product of two vectors of parts by turns would be none of complex numbers."""
    loop = _loop(write)
    with pytest.raises(TypeError, match="of complex numbers has to be written in their parts"):
        llvm_text(loop, 4)
    with pytest.raises(TypeError, match="of complex numbers has to be written in their parts"):
        c_expression(loop, 2, ["a", "b"])
    assert llvm_text(expand_functions(loop), 4)


def test_what_complex_numbers_do_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="there is no minimum of complex numbers"):
        _loop(lambda a, b: a.minimum(b))


def test_parts_of_what_was_put_together_are_what_it_was_made_of() -> None:
    builder = KernelBuilder("float32")
    re, im = builder.load(Level.ELEMENT), builder.load(Level.ROW)
    assert re.pair(im).real() == re
    assert re.pair(im).imag() == im


@pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nvidias_compiler_takes_them(dtype: str) -> None:
    """Of elements and of rows, read and written."""
    builder = KernelBuilder(dtype)
    x, y = builder.load(Level.ELEMENT, "pair"), builder.load(Level.ROW, "pair")
    quotient = (x * y).exp() / x
    builder.store("element", quotient.log())
    builder.store("row", quotient.abs().row_sum() * y)
    loop = builder.build()
    parts = cuda_parts(expand_functions(loop), reports_range=reports_range(loop))
    assert nvrtc.compiled(cuda_text(parts, 32), [*OPTIONS, "--gpu-architecture=sm_90"])
