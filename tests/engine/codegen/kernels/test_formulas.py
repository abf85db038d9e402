"""Formulas of ops for fused kernels, against the ops' own kernels: on samples and on special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import registry
from engine.codegen.kernels.blocks import WholeArrayKernel
from engine.codegen.kernels.program import KernelBuilder, Level
from engine.ir.op import Kernel
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.elementwise.base import Elementwise
from engine.ops.reduce.sums import Rowwise
from tests.contract.cases import Case, all_cases
from tests.sampling import together

Array = np.ndarray[Any, Any]
INF, NAN = np.inf, np.nan
POINTS = [-INF, -1e30, -2.5, -1.0, -1e-30, -0.0, 0.0, 1e-30, 0.5, 1.0, 3.0, 40.0, 1e30, INF, NAN]
#: samples of all ops, except those that are an alias of another op and have no kernel
CASES = [
    case
    for case in all_cases()
    if isinstance(case.op, Elementwise | Rowwise) and (case.op.name != "pow" or "exponent" not in case.sample.attrs)
]


def canonical_call(case: Case) -> tuple[Kernel, dict[str, Any], list[Array]]:
    """Return the op, its attributes in canonical form, and operands."""
    arrays = case.arrays()
    types = [TensorType.of(a) for a in arrays]
    attrs = case.op.canonical(dict(case.program().attrs[len(types)]), *types)
    assert isinstance(case.op, Kernel)
    return case.op, attrs, arrays


def computed(op: Kernel, attrs: dict[str, Any], arrays: list[Array]) -> Array:
    """Run the op's own kernel."""
    type = op.infer(*map(TensorType.of, arrays), **attrs)
    assert isinstance(type, TensorType)
    out: Array = np.empty(type.shape, type.dtype)
    with np.errstate(all="ignore"):
        op.forward(RunContext(np), *arrays, out=out, **attrs)
    return out


def run_formula(op: Elementwise, attrs: dict[str, Any], arrays: list[Array], out: Array) -> Array | None:
    """Run the op's formula. Return None if it has none, or none for these dtypes."""
    if not op.is_fusible(TensorType.of(out), *map(TensorType.of, arrays), **attrs):
        return None
    builder = KernelBuilder(next(a.dtype.name for a in (out, *arrays) if a.dtype.kind == "f"))
    scalars = [builder.load(Level.ELEMENT, "bool" if a.dtype.kind == "b" else "float") for a in arrays]
    scalar = op.write_scalar(scalars, attrs)
    assert scalar is not None
    builder.store("element", scalar)
    result = np.empty_like(out)
    with np.errstate(all="ignore"):
        WholeArrayKernel(builder.build(), np.dtype(builder.dtype)).fill(RunContext(np), arrays, [result])
    return result


def run_row_formula(op: Rowwise, attrs: dict[str, Any], x: Array, out: Array) -> Array | None:
    """Run the op's formula of rows. Return None if it has none for these axes or dtypes."""
    extent = op.row_extent(TensorType.of(out), TensorType.of(x), attrs)
    if not extent:
        return None
    builder = KernelBuilder(x.dtype.name)
    scalar = op.row_scalar(builder.load(Level.ELEMENT), extent, attrs)
    is_row = scalar.level == Level.ROW
    builder.store("row" if is_row else "element", scalar)
    result = np.empty_like(out)
    with np.errstate(all="ignore"):
        WholeArrayKernel(builder.build(), np.dtype(builder.dtype)).fill(
            RunContext(np), [x.reshape(-1, extent)], [result.reshape(-1, 1 if is_row else extent)]
        )
    return result


def formula_of(op: Kernel, attrs: dict[str, Any], arrays: list[Array], out: Array) -> Array | None:
    if isinstance(op, Elementwise):
        return run_formula(op, attrs, arrays, out)
    assert isinstance(op, Rowwise)
    return run_row_formula(op, attrs, arrays[0], out)


@together
@pytest.mark.parametrize("case", CASES, ids=str)
def test_formulas_match_kernels_on_samples(case: Case) -> None:
    op, attrs, arrays = canonical_call(case)
    out = computed(op, attrs, arrays)
    actual = formula_of(op, attrs, arrays, out)
    if actual is not None:
        np.testing.assert_allclose(actual, out, 1e-14, 1e-15)


@together
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", [case for case in CASES if not case.number or case.sample.attrs], ids=str)
def test_formulas_match_kernels_on_special_values(case: Case, dtype: str) -> None:
    """Two operands get all pairs of points; rows have each point beside 1 and beside itself."""
    op, attrs, arrays = canonical_call(case)
    with np.errstate(over="ignore"):
        points = np.array(POINTS, dtype)
    if isinstance(op, Rowwise):
        attrs = {**attrs, **({"axis": 1} if "axis" in attrs else {"axes": (1,)})}
        arrays = [np.stack([np.concatenate([points, points]), np.concatenate([np.ones_like(points), points])], 1)]
    else:
        grid = np.meshgrid(*[points] * len(arrays))
        arrays = [g.ravel() > 0 if a.dtype.kind == "b" else g.ravel() for a, g in zip(arrays, grid, strict=True)]
    out = computed(op, attrs, arrays)
    actual = formula_of(op, attrs, arrays, out)
    if actual is not None:
        np.testing.assert_allclose(actual, out, 4 * np.finfo(dtype).eps, 0)


def test_op_without_a_formula_is_not_fusible() -> None:
    x = TensorType((3,), np.dtype("float32"))
    pow_scalar, asin = registry().get("pow_scalar"), registry().get("asin")
    assert isinstance(pow_scalar, Elementwise)
    assert isinstance(asin, Elementwise)
    assert pow_scalar.is_fusible(x, x, exponent=-0.5)
    assert not pow_scalar.is_fusible(x, x, exponent=2.5)
    assert not asin.is_fusible(x, x)


@pytest.mark.parametrize(
    ("name", "out", "operands", "fusible"),
    [
        ("add", "float32", ["float32", "float32"], True),
        ("add", "float32", ["float32", "bool"], True),
        ("add", "float64", ["float32", "float64"], False),
        ("add", "float16", ["float16", "float16"], False),
        ("add", "int64", ["int64", "int64"], False),
        ("add", "bool", ["bool", "bool"], False),
        ("maximum", "bool", ["bool", "bool"], False),
        ("less", "bool", ["float64", "float64"], True),
        ("less", "bool", ["int32", "float64"], False),
        ("logical_and", "bool", ["float32", "bool"], True),
        ("where", "float32", ["bool", "float32", "float32"], True),
        ("where", "float32", ["float32", "bool", "float32"], True),
        ("where", "float32", ["float64", "float32", "float32"], False),
    ],
)
def test_fusible_dtypes(name: str, out: str, operands: list[str], fusible: bool) -> None:
    op = registry().get(name)
    assert isinstance(op, Elementwise)
    types = [TensorType((2,), np.dtype(dtype)) for dtype in (out, *operands)]
    assert op.is_fusible(*types) is fusible


def test_conversion_between_bools_and_numbers() -> None:
    builder = KernelBuilder("float32")
    flag, x = builder.load(Level.ELEMENT, "bool"), builder.load(Level.ELEMENT)
    add, both = registry().get("add"), registry().get("logical_and")
    assert isinstance(add, Elementwise)
    assert isinstance(both, Elementwise)
    for op in (add, both):
        scalar = op.write_scalar([flag, x], {})
        assert scalar is not None
        builder.store("element", scalar)
    arrays = np.array([True, False, True]), np.array([0.5, 2.0, 0.0], "float32")
    results = [np.empty(3, "float32"), np.empty(3, bool)]
    WholeArrayKernel(builder.build(), np.dtype(builder.dtype)).fill(RunContext(np), arrays, results)
    assert results[0].tolist() == [1.5, 2.0, 1.0]
    assert results[1].tolist() == [True, False, False]


def test_signed_zeros_are_distinct_attributes() -> None:
    div = registry().get("div_scalar")
    assert isinstance(div, Elementwise)
    x, out = np.ones(1), np.empty(1)
    quotients = []
    with np.errstate(divide="ignore"):
        for scalar in (0.0, -0.0):
            div.forward(RunContext(np), x, out=out, scalar=scalar)
            quotients.append(out[0])
    assert quotients == [INF, -INF]


@pytest.mark.parametrize("name", ["sigmoid", "leaky_relu", "where", "add_scalar", "erf"])
@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_large_arrays_match_small_ones(name: str, dtype: str, transposed: bool) -> None:
    op = registry().get(name)
    assert isinstance(op, Elementwise)
    rng = np.random.default_rng(5)
    arrays = [np.round(rng.standard_normal((600, 300)) * 3).astype(dtype) for _ in op.operands]
    arrays = [a.T for a in arrays] if transposed else arrays
    attrs = dict.fromkeys(op.attrs, 0.25)
    whole = computed(op, attrs, arrays)
    parts = [computed(op, attrs, [a[i : i + 30] for a in arrays]) for i in range(0, len(whole), 30)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
