"""Loops on whole arrays, as other devices run them, against NumPy in blocks: all kinds of results and layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine.codegen.functions.expansions import expand_functions
from engine.codegen.kernels.blocks import WholeArrayKernel, bind_blocks, run_on_arrays
from engine.codegen.kernels.program import FusedKernel, KernelBuilder, Level, Space
from engine.codegen.native.native_call import make_calls
from engine.ir.run_context import RunContext
from tests.engine.codegen.kernels.test_blocks import chained, elementwise, softmax_and_sums

Array = np.ndarray[Any, Any]
OTHER = RunContext(np, device="new")


def run_both(
    loop: FusedKernel, space: Space, operands: Sequence[Array], shapes: Sequence[tuple[int, ...]]
) -> list[tuple[Array, Array]]:
    """Compute each result on whole arrays and in blocks."""
    actual, expected = ([np.full(shape, 7.0) for shape in shapes] for _ in range(2))
    with np.errstate(all="ignore"):
        run_on_arrays(OTHER, loop, space, operands, actual)
        make_calls(bind_blocks(loop, space, operands, expected, 1))
    return list(zip(actual, expected, strict=True))


@pytest.mark.parametrize(("rows", "columns"), [((1,), 1), ((5,), 13), ((2, 3), 40), ((300,), 70), ((0,), 4)])
def test_every_kind_of_result(rows: tuple[int, ...], columns: int) -> None:
    rng, axes = np.random.default_rng(0), len(rows)
    x, weight = rng.normal(size=(*rows, columns)), rng.normal(size=(*rows, 1))
    dense = tuple(s // 8 for s in x.strides[:axes])
    by_row = tuple(s // 8 for s in weight.strides[:axes])
    space = Space(rows, columns, x.size, 4, (dense, by_row, dense, by_row, (), (), by_row))
    shapes = [(*rows, columns), (*rows, 1), (columns,), (), (*rows, 1)]
    for actual, expected in run_both(softmax_and_sums("float64", axes), space, [x, weight], shapes):
        np.testing.assert_allclose(actual, expected, 1e-12, 1e-13)


@pytest.mark.parametrize("length", [1, 40, 41, 80, 119])
def test_short_last_row(length: int) -> None:
    """Elements and a total: values beyond the last element are ignored."""
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    builder.store("element", x * x + 1.0)
    builder.store("total", (x * x).row_sum())
    columns = min(length, 40)
    space = Space((-(-length // columns),), columns, length, 4, ((columns,), (columns,), ()))
    x_values = np.random.default_rng(1).normal(size=length)
    (element, _), (total, _) = run_both(builder.build(), space, [x_values], [(length,), ()])
    np.testing.assert_array_equal(element, x_values * x_values + 1.0)
    np.testing.assert_allclose(total, (x_values**2).sum(), 1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("second", [Level.ELEMENT, Level.ROW])
def test_operands_broadcast_and_are_cast(dtype: str, second: Level) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(-3, 4, (4, 6)).astype("int64")
    y = rng.normal(size=(4, 6 if second == Level.ELEMENT else 1)).astype("float64")
    expected = chained(x.astype(dtype), y.astype(dtype))
    for given in (dtype, "float16"):
        out = np.empty((4, 6), given)
        WholeArrayKernel(elementwise(dtype, 1, second), np.dtype(dtype)).fill(OTHER, [x, y], [out])
        np.testing.assert_array_equal(out, expected.astype(given))


def test_rows_and_expanded_functions_are_refused() -> None:
    with pytest.raises(TypeError, match="for kernels"):
        WholeArrayKernel(softmax_and_sums("float64", 1), np.dtype("float64"))
    builder = KernelBuilder("float64")
    builder.store("element", builder.load(Level.ELEMENT).exp())
    expanded = expand_functions(builder.build())
    space = Space((1,), 3, 3, 4, ((3,),) * (len(expanded.operands) + len(expanded.results)))
    with pytest.raises(TypeError):
        run_on_arrays(OTHER, expanded, space, [np.ones(3)], [np.ones(3) for _ in expanded.results])
