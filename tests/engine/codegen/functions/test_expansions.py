"""Functions of compiled kernels: errors, special values, and instructions that expansion leaves alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest

from engine.codegen.functions import elementary as circular
from engine.codegen.functions.expansions import WRITERS, expand_functions, reports_range
from engine.codegen.kernels.program import FUNCTIONS, RANDOM, Instruction, KernelBuilder, KernelResult, Level, Scalar
from tests.engine.codegen.kernels.accuracy import CASES, DTYPES, PROMISED, compiled, farthest, loop_of

pytestmark = pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")

INF, NAN = math.inf, math.nan
#: arguments and their exact results
SPECIAL = {
    "exp": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (1e4, INF), (-1e4, 0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1), (1e4, INF), (-1e4, -1)],
    "log": [(0.0, -INF), (-0.0, -INF), (1, 0), (INF, INF), (-1, NAN), (-INF, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1, -INF), (INF, INF), (-1.5, NAN), (-INF, NAN)],
    "log2": [(0.0, -INF), (-0.0, -INF), (1, 0), (0.25, -2), (2.0**100, 100), (INF, INF), (-1, NAN), (-INF, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (1e30, 1), (-1e30, -1)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (1e30, 1), (-1e30, -1)],
    "erfc": [(0.0, 1), (-0.0, 1), (INF, 0), (-INF, 2), (1e30, 0), (-1e30, 2)],
    "lgamma": [(0.0, INF), (-0.0, INF), (1, 0.0), (2, 0.0), (1e37, INF), (INF, INF)],
    "trigamma": [(0.0, INF), (-0.0, INF), (1e-30, INF), (INF, 0)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (-INF, NAN)],
    "log_ndtr": [(INF, -0.0), (1e30, -0.0), (-INF, -INF), (-1e30, -INF)],
}


def function(name: str) -> Callable[[Scalar], Scalar]:
    return lambda x: getattr(x, name)()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_errors_are_within_bounds(name: str, dtype: str) -> None:
    if dtype == "float64":
        pytest.importorskip("mpmath")
    largest = farthest(name, dtype, 30_000 if dtype == "float32" else 600)
    assert 0.4 < largest.ulps <= PROMISED[dtype], largest


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_special_values(name: str, dtype: str) -> None:
    x, expected = np.array([*SPECIAL[name], (NAN, NAN)], dtype).T
    actual = compiled(loop_of(function(name), dtype), [np.ascontiguousarray(x)])[0]
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual) | np.isnan(actual), np.signbit(expected) | np.isnan(expected))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["expm1", "log1p", "tanh", "sin"])
def test_arguments_near_zero_are_returned_unchanged(name: str, dtype: str) -> None:
    least = np.finfo(dtype).smallest_subnormal
    x = np.array([least, -least, 3 * least, np.finfo(dtype).tiny, -1e-30], dtype)
    np.testing.assert_array_equal(compiled(loop_of(function(name), dtype), [x])[0], x)


@pytest.mark.parametrize("name", ["lgamma", "trigamma"])
def test_arguments_below_zero_are_reported(name: str) -> None:
    loop = loop_of(function(name), "float32")
    assert reports_range(loop)
    for x, reported in ((0.0, 0), (-0.0, 0), (NAN, 0), (INF, 0), (-1e-45, 1), (-1.5, 1), (-INF, 1)):
        assert compiled(loop, [np.array([1, x], np.float32)])[1] == reported


@pytest.mark.parametrize("dtype", DTYPES)
def test_exp_and_log2_handle_subnormal_numbers(dtype: str) -> None:
    least = np.finfo(dtype).smallest_subnormal
    x = least * np.array([1, 2, 3, 1000], dtype)
    logs = compiled(loop_of(function("log2"), dtype), [x])[0]
    np.testing.assert_allclose(logs, np.log2(x.astype(np.longdouble)).astype(dtype), rtol=2 * np.finfo(dtype).eps)
    assert compiled(loop_of(function("exp"), dtype), [np.array([math.log(least)], dtype)])[0] == least


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_arguments_out_of_range_are_reported(name: str, dtype: str) -> None:
    limit = circular.CIRCULAR_LIMIT[dtype]
    beyond = np.nextafter(np.array(limit, dtype), np.array(INF, dtype))
    loop = loop_of(function(name), dtype)
    assert reports_range(loop)
    assert compiled(loop, [np.array([limit, -limit, NAN, 0], dtype)])[1] == 0
    for x in (beyond, -beyond, INF, -INF):
        assert compiled(loop, [np.array([NAN, 1, x, 0, 1], dtype)])[1] == 1


def test_two_functions_share_one_range_report() -> None:
    builder = KernelBuilder("float32")
    x, y = builder.load(Level.ELEMENT), builder.load(Level.ELEMENT)
    builder.store("element", x.sin() + y.cos())
    far, near = np.array([1e9, 0], np.float32), np.zeros(2, np.float32)
    assert [compiled(builder.build(), pair)[1] for pair in ([far, near], [near, far], [near, near])] == [1, 1, 0]


def test_row_scalar_out_of_range_is_reported() -> None:
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    builder.store("element", x + x.row_max().sin())
    assert compiled(builder.build(), [np.array([1e300, 0.0])])[1] == 1
    assert compiled(builder.build(), [np.array([-1e300, 0.0])])[1] == 0


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_expansion_leaves_no_function(name: str, dtype: str) -> None:
    assert set(WRITERS) == {*FUNCTIONS, *RANDOM}
    assert not {i.op for i in expand_functions(loop_of(function(name), dtype)).instructions} & set(FUNCTIONS)


def test_other_instructions_are_unchanged() -> None:
    builder = KernelBuilder("float32", row_axes=2)
    mask, x, y = builder.load(Level.ROW, "bool"), builder.load(Level.ELEMENT), builder.load(Level.CONSTANT)
    shifted = x - x.row_max()
    builder.store("element", mask.where(shifted * y, -0.0))
    builder.store("columns", shifted)
    builder.store("total", shifted.row_sum())
    builder.store("element", x.bits().iadd(builder.integer(1)).from_bits())
    assert expand_functions(builder.build()) == builder.build()


def test_expansion_loads_operands_in_order() -> None:
    builder = KernelBuilder("float32")
    x, y = builder.load(Level.ELEMENT), builder.load(Level.ROW)
    builder.store("element", x - y)
    loop = builder.build()
    first, second, difference = loop.instructions
    reordered = loop._replace(instructions=(second, first, Instruction("sub", (1, 0), *difference[2:])))
    assert reordered != loop
    assert expand_functions(reordered) == loop


def test_common_subexpressions_are_shared() -> None:
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    builder.store("element", x.sin())
    alone = len(expand_functions(builder.build()).instructions)
    builder.store("element", x.cos())
    both = expand_functions(builder.build())
    assert len(both.instructions) - alone < 12
    assert [result.kind for result in both.results] == ["element", "element", "total"]
    assert isinstance(both.results[0], KernelResult)


@pytest.mark.parametrize("dtype", DTYPES)
def test_erfc_shares_the_exponential_of_its_derivative(dtype: str) -> None:
    """A GELU needs both, and so costs no more than one built from erf."""

    def operations(*formulas: Callable[[Scalar], Scalar]) -> int:
        builder = KernelBuilder(dtype)
        x = builder.load(Level.ELEMENT)
        for formula in formulas:
            builder.store("element", formula(x))
        return sum(i.op not in ("load", "constant") for i in expand_functions(builder.build()).instructions)

    def slope(x: Scalar) -> Scalar:
        return (-(x * x)).exp()

    assert operations(function("erfc"), slope) <= operations(function("erfc")) + 2
    assert operations(function("erfc"), slope) <= operations(function("erf"), slope) + 2
