"""Kernels with sin and cos match NumPy for arguments of any size."""

from __future__ import annotations

from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from engine.codegen.functions.expansions import expand_functions
from engine.codegen.kernels.blocks import bind_blocks, run_on_arrays
from engine.codegen.kernels.compiled import NativeKernel, bind_within_range, compile_kernel, native_kernel
from engine.codegen.kernels.program import FusedKernel, KernelBuilder, Level, Space
from engine.codegen.native.native_call import NativeCall, Otherwise, make_calls
from engine.ir.op import KernelCall
from engine.ir.run_context import RunContext

pytestmark = pytest.mark.skipif(find_spec("llvmlite") is None, reason="needs llvmlite")

Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 5, 37


def waves(dtype: str) -> FusedKernel:
    """Build a loop with every kind of result."""
    builder = KernelBuilder(dtype)
    x = builder.load(Level.ELEMENT)
    y = x.sin()
    builder.store("element", y)
    builder.store("columns", y)
    builder.store("total", x.cos().row_sum())
    builder.store("row", y.row_max())
    return builder.build()


@cache
def kernel_of(dtype: str) -> NativeKernel:
    """Compile a kernel once; calls are valid for as long as it exists."""
    loop = expand_functions(waves(dtype))
    return native_kernel(loop, 16, compile_kernel(loop, 16))


def bound(
    loop: FusedKernel, rows: int, x: Array, block: int, otherwise: Otherwise | None = None
) -> tuple[list[Array], list[KernelCall]]:
    results = [np.full(shape, -7, loop.dtype) for shape in ((rows, COLUMNS), (COLUMNS,), (), (rows,))]
    space = Space((rows,), COLUMNS, rows * COLUMNS, block, ((COLUMNS,), (COLUMNS,), (), (), (1,)))
    expanded = expand_functions(loop)
    kernel = kernel_of(loop.dtype)
    by_numpy = partial(bind_blocks, loop, space, threads=1)
    return results, bind_within_range(kernel, expanded, space, [x], results, 1, otherwise or by_numpy)


def expected(x: Array) -> list[Array]:
    wide = x.astype(np.float64)
    return [np.sin(wide), np.sin(wide).sum(0), np.cos(wide).sum(), np.sin(wide).max(1)]


def assert_close(actual: list[Array], x: Array) -> None:
    eps = 40 * np.finfo(x.dtype).eps
    for one, other in zip(actual, expected(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=eps, atol=eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("block", [1, 2, 8])
@pytest.mark.parametrize("far", [1.0, 1e9, 3e20, -3e38])
def test_arguments_of_any_size(dtype: str, block: int, far: float) -> None:
    x = np.linspace(-3, 3, ROWS * COLUMNS).reshape(ROWS, COLUMNS).astype(dtype)
    x[3, 36] = far
    results, calls = bound(waves(dtype), ROWS, x, block)
    make_calls(calls)
    assert_close(results, x)
    # and again, within range
    x[3, 36] = 0.5
    make_calls(calls)
    assert_close(results, x)


def test_fallback_is_not_bound_within_range() -> None:
    bindings: list[int] = []
    x = np.ones((ROWS, COLUMNS), np.float32)
    _, calls = bound(waves("float32"), ROWS, x, 2, lambda operands, results: bindings.append(1) or [])  # type: ignore[func-returns-value]
    make_calls(calls)
    x[0, 0] = np.nan
    make_calls(calls)
    assert not bindings
    x[4, 0] = 1e9
    make_calls(calls)
    assert bindings == [1]


def test_fallback_uses_rebound_arrays() -> None:
    x = np.full((ROWS, COLUMNS), 1e12, np.float32)
    results, calls = bound(waves("float32"), ROWS, np.zeros_like(x), block=2)
    call, layout = calls[0][0], kernel_of("float32").layout
    assert isinstance(call, NativeCall)
    moved = np.empty_like(x)
    call.point(layout.operands[0], x)
    call.point(layout.results[0], moved)
    make_calls(calls)
    assert_close([moved, *results[1:]], x)
    assert (results[0] == -7).all()


@pytest.mark.parametrize("length", [4095, 4097, 16_384, 16_385, 16_484, 20_479, 20_480, 20_481])
@pytest.mark.parametrize("function", ["sin", "cos", "lgamma", "mod"])
def test_fallback_on_a_short_last_row(length: int, function: str) -> None:
    """Results are right, and memory beyond them is not written."""
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    y = x.mod(3.0) if function == "mod" else getattr(x, function)()
    builder.store("element", y)
    builder.store("total", y.row_sum())
    loop = builder.build()
    expanded = expand_functions(loop)
    kernel = native_kernel(expanded, 16, compile_kernel(expanded, 16))
    space = Space((-(-length // 4096),), 4096, length, 4, ((4096,), (4096,), ()))
    operand = np.linspace(0.5, 3, length, dtype="float32")
    operand[length // 2] = {"lgamma": -2.5, "mod": 3e30}.get(function, 1e7)
    memory = np.full(length + 5_000, -7, "float32")
    results = [memory[:length], np.empty((), "float32")]
    by_numpy = partial(bind_blocks, loop, space, threads=1)
    calls = bind_within_range(kernel, expanded, space, [operand], results, 1, by_numpy)
    make_calls(calls)
    assert (memory[length:] == -7).all()
    references = [np.empty(length, "float32"), np.empty((), "float32")]
    run_on_arrays(RunContext(np), loop, space, [operand], references)
    for one, other in zip(results, references, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def test_no_rows() -> None:
    results, calls = bound(waves("float64"), 0, np.empty((0, COLUMNS)), block=2)
    make_calls(calls)
    assert (results[1] == 0).all()
    assert results[2] == 0


def test_loop_without_sin_and_cos_has_a_single_call() -> None:
    builder = KernelBuilder("float64")
    builder.store("element", builder.load(Level.ELEMENT).exp())
    loop = expand_functions(builder.build())
    x, y = np.zeros(COLUMNS), np.empty(COLUMNS)
    kernel = native_kernel(loop, 8, compile_kernel(loop, 8))
    space = Space((1,), COLUMNS, COLUMNS, 1, ((COLUMNS,), (COLUMNS,)))
    calls = bind_within_range(kernel, loop, space, [x], [y], 1, lambda operands, results: [])
    make_calls(calls)
    assert len(calls) == 1
    assert (y == 1).all()
