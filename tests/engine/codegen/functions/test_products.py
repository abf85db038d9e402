"""Row products computed in lanes, and rows whose lanes leave the range."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from engine.codegen.functions.expansions import expand_functions
from engine.codegen.kernels.compiled import bind_native, compile_kernel, native_kernel
from engine.codegen.kernels.program import KernelBuilder, Level, Space
from engine.codegen.native.native_call import make_calls
from tests.engine.codegen.kernels.accuracy import DTYPES

pytestmark = pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")

Array = np.ndarray[Any, Any]


def products(x: Array, lanes: int = 16) -> tuple[Array, float]:
    """Compute the product of each row of a matrix, and the number of rows reported as out of range."""
    builder = KernelBuilder(x.dtype.name)
    builder.store("row", builder.load(Level.ELEMENT).row_prod())
    loop = expand_functions(builder.build())
    rows, columns = x.shape
    space = Space((rows,), columns, x.size, rows, ((columns,), (1,), ()))
    result, count = np.empty(rows, x.dtype), np.empty((), x.dtype)
    kernel = native_kernel(loop, lanes, compile_kernel(loop, lanes))
    make_calls(bind_native(kernel, loop, space, [x], [result, count]))
    return result, float(count)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 15, 16, 100])
def test_products_within_range(columns: int, dtype: str) -> None:
    x = np.random.default_rng(4).uniform(0.5, 2, (7, columns)) * [[1], [-1], [1], [1], [1], [1], [1]]
    x = x.astype(dtype)
    x[3, -1] = 0
    x[4, 0], x[5] = math.nan, -0.0
    actual, reported = products(x)
    assert not reported
    expected = np.prod(x.astype(np.longdouble), axis=1).astype(dtype)
    np.testing.assert_allclose(actual, expected, columns * np.finfo(dtype).eps)
    np.testing.assert_array_equal(
        np.signbit(actual[3:]) | np.isnan(expected[3:]), np.signbit(expected[3:]) | np.isnan(expected[3:])
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_out_of_range_are_reported(dtype: str) -> None:
    """Some rows have all sequential products within range, but not the products of lanes."""
    most, least = (float(v) for v in (np.finfo(dtype).max, np.finfo(dtype).tiny))
    root = math.sqrt(most) / 2
    rows = [
        [root, 1 / root] * 48,
        [1 / root, root] * 48,
        [root, root, root, *[1 / root] * 3, *[1.0] * 90],
        [least, 0.5, 2.0, *[1.0] * 93],
        [math.inf, *[1.0] * 95],
        [0.0, least, 0.5, *[1.0] * 93],
    ]
    for row in rows:
        assert products(np.array([row, [1.5] * 96], dtype))[1] == 1
    assert products(np.array([[root, 1 / root, *[1.0] * 94]], dtype))[1] == 0
