"""cumsum: long rows, slices across the axis, infinities, and results that do not depend on other rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.reduce.cumulative import running_bytes, running_sums
from tests.engine.ops.run import grads, run
from tests.engine.ops.values import allocated

Array = np.ndarray[Any, Any]

#: bytes of Python's own objects, and of buffers of ufuncs
OVERHEAD = 1 << 17
SHAPES = [
    ((2, 127), 1), ((2, 128), 1), ((5, 129), -1), ((2, 3, 160), 2), ((70_001,), 0), ((100, 1000), 1),
    ((300, 400), 0), ((4, 5, 300), 1), ((3, 200, 16), 1), ((40, 8, 32), 1), ((1, 128), 1), ((0, 128), 1), ((128, 0), 0),
]  # fmt: skip


def layouts(x: Array, axis: int) -> list[Array]:
    """The same numbers, dense, reversed along the axis, and with gaps."""
    gaps = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)[..., ::2]
    gaps[...] = x
    return [x, np.flip(np.flip(x, axis).copy(), axis), gaps]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_sums_are_as_accurate_as_sequential_ones(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    x = np.random.default_rng(6).normal(size=shape).astype(dtype)
    exact = np.cumsum(x.astype(np.longdouble), axis=axis)
    sizes = np.cumsum(abs(x.astype(np.longdouble)), axis=axis)
    for array in layouts(x, axis):
        actual = np.asarray(run("cumsum", array, axis=axis))
        assert actual.dtype == dtype
        assert (abs(actual - exact) <= 40 * np.finfo(dtype).eps * sizes).all()


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((200, 3, 1), 0), ((1, 200, 1), 1), ((3, 200), 0), ((3, 200), 1), ((4, 3, 200), 2)], ids=str
)
def test_integer_sums_match_numpy_in_every_layout(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    """With trailing axes of extent 1, transposed, and in a wider dtype; all sums are exact."""
    x = np.random.default_rng(10).integers(-3, 4, shape).astype(dtype)
    for array in (x, x.T.copy().T, np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)):
        for wide in (dtype, "float64"):
            out = np.full(shape, 77, wide)
            running_sums(RunContext(np), array, out, axis)
            np.testing.assert_array_equal(out, np.cumsum(x, axis=axis, dtype=wide))


@pytest.mark.parametrize("shape", [(2, 70_000), (100, 1000), (3, 40_000)], ids=str)
def test_memory_stays_within_the_declared_bytes(shape: tuple[int, ...]) -> None:
    x, out = np.ones(shape), np.empty(shape)
    limit = running_bytes(TensorType.of(x), x.dtype, 1)
    assert allocated(lambda: running_sums(RunContext(np), x, out, 1)) <= limit + OVERHEAD


def test_gradient_sums_from_the_end() -> None:
    x = np.random.default_rng(7).normal(size=(3, 300))
    _, (actual,) = grads("cumsum", x, axis=1)
    np.testing.assert_allclose(actual, np.broadcast_to(np.arange(300, 0, -1.0), (3, 300)), 1e-13)


@pytest.mark.parametrize("where", [0, 31, 32, 500, 999])
def test_infinities_propagate(where: int) -> None:
    x = np.random.default_rng(8).normal(size=(4, 1000)).astype("float32")
    x[1, where], x[2, where], x[2, 0] = np.inf, np.nan, -np.inf
    actual = run("cumsum", x, axis=1)
    expected = np.cumsum(x.astype("float64"), axis=1)
    np.testing.assert_array_equal(
        np.where(np.isfinite(expected), 0, actual), np.where(np.isfinite(expected), 0, expected)
    )
    assert (np.isfinite(actual) == np.isfinite(expected)).all()


def test_rows_do_not_depend_on_other_rows() -> None:
    x = np.random.default_rng(9).normal(size=(200, 1000)).astype("float32")
    x[150, 3] = np.inf
    whole = run("cumsum", x, axis=1)
    x[150, 3] = 0
    np.testing.assert_array_equal(np.delete(whole, 150, 0), np.delete(run("cumsum", x, axis=1), 150, 0))
