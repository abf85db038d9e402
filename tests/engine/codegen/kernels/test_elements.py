"""Elementwise kernels: the same results at once, in blocks, bound, and on another device."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from engine.codegen.kernels.blocks import MOST_BOUND, SHARED_ROW_BLOCK, ElementKernel
from engine.codegen.kernels.program import KernelBuilder, Level, Scalar
from engine.ir.errors import DeadlineExceeded
from engine.ir.run_context import RunContext
from tests.engine.codegen.kernels.test_blocks import chained, elementwise
from tests.engine.runtime.test_stopping import Counted

Array = np.ndarray[Any, Any]
HOST, OTHER = RunContext(np), RunContext(np, device="new")
SHAPES = [
    ((), ()), ((3,), ()), ((1, 5), (4, 1)), ((0, 3), (3,)), ((MOST_BOUND + 1,),) * 2, ((300, 300), (300,)),
    ((SHARED_ROW_BLOCK + 1,), (SHARED_ROW_BLOCK + 1,)), ((1, 70_000), (2, 1)),
]  # fmt: skip


def kernel(x: Array, y: Array, dtype: str, number: str = "float64") -> ElementKernel:
    """`chain` of x and y, with a result of this dtype."""
    return ElementKernel(elementwise(number, 1, Level.ELEMENT), np.dtype(number), [x.dtype, y.dtype], np.dtype(dtype))


@pytest.mark.parametrize("number", ["float32", "float64"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_all_modes_have_the_same_bits(shapes: tuple[tuple[int, ...], tuple[int, ...]], number: str) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.normal(size=shape).astype(number) for shape in shapes)
    element_kernel = kernel(x, y, number, number)
    shape = np.broadcast_shapes(x.shape, y.shape)
    filled, bound, whole = (np.full(shape, np.nan, number) for _ in range(3))
    with np.errstate(all="ignore"):
        element_kernel.fill(HOST, [x, y], filled)
        element_kernel.fill(OTHER, [x, y], whole)
        function, arguments = element_kernel.bind(HOST, [x, y], bound)
        function(*arguments)
        expected = chained(np.broadcast_to(x, shape), np.broadcast_to(y, shape))
    np.testing.assert_array_equal(filled, expected)
    assert filled.tobytes() == bound.tobytes() == whole.tobytes()


@pytest.mark.parametrize("size", [5, MOST_BOUND + 5])
def test_bound_kernel_rereads_its_operands(size: int) -> None:
    rng = np.random.default_rng(4)
    x, y, out = rng.normal(size=size), rng.normal(size=size), np.empty(size)
    function, arguments = kernel(x, y, "float64").bind(HOST, [x, y], out)
    for _ in range(3):
        x[...], y[...] = rng.normal(size=(2, size))
        function(*arguments)
        np.testing.assert_array_equal(out, chained(x, y))


@pytest.mark.parametrize("given", ["int64", "bool", "float16"])
@pytest.mark.parametrize("size", [7, 100_000])
def test_operands_and_results_are_cast(given: str, size: int) -> None:
    x = (np.arange(size) % 3).astype(given)
    y = np.linspace(-1, 1, size)
    out = np.empty(size, "float16")
    kernel(x, y, "float16", "float32").fill(HOST, [x, y], out)
    np.testing.assert_array_equal(out, chained(x.astype("float32"), y.astype("float32")).astype("float16"))


def test_memory_is_bounded_and_matches_the_estimate() -> None:
    size = 1 << 20
    x, y, out = np.ones(size), np.ones(size), np.empty(size)
    element_kernel = kernel(x, y, "float64")
    element_kernel.fill(HOST, [x, y], out)
    tracemalloc.start()
    try:
        element_kernel.fill(HOST, [x, y], out)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    estimate = element_kernel.workspace(size)
    assert estimate == element_kernel.workspace(8 * size) < out.nbytes
    assert 0.5 * estimate <= peak <= estimate + (1 << 17)


def test_deadline_is_checked_between_blocks() -> None:
    size = 10 * SHARED_ROW_BLOCK
    x, y, out = np.ones(size), np.ones(size), np.zeros(size)
    with pytest.raises(DeadlineExceeded):
        kernel(x, y, "float64").fill(RunContext(np, Counted(3)), [x, y], out)
    assert out[0] != 0
    assert out[-1] == 0


@pytest.mark.slow
def test_long_formula_is_bound_block_by_block() -> None:
    """Calls for all blocks at once would take more memory than the data."""

    def long(x: Scalar) -> Scalar:
        for i in range(200):
            x = x * (1.0 + i / 1024) + 1.0
        return x

    builder = KernelBuilder("float32")
    builder.store("element", long(builder.load(Level.ELEMENT)))
    element_kernel = ElementKernel(builder.build(), np.dtype("float32"), [np.dtype("float32")], np.dtype("float32"))
    x, out = np.ones(1 << 24, "float32"), np.empty(1 << 24, "float32")
    tracemalloc.start()
    try:
        element_kernel.fill(HOST, [x], out)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= element_kernel.workspace(x.size) + (1 << 18)
