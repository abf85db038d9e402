"""Large data movement in strips, blocks and chunks: their boundaries, and remainders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.ir.run_context import RunContext, copying
from engine.ops.index.gather import CHUNK_ELEMENTS
from tests.engine.ops.run import run

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(23)
DTYPES = ["float64", "float32", "float16", "int64", "int8", "bool"]


def draw(shape: tuple[int, ...], dtype: str) -> Array:
    """Return random bits; for bool 0 and 1."""
    if dtype == "bool":
        return RNG.integers(0, 2, shape, "uint8").view("bool")
    return RNG.integers(0, 256, (*shape, np.dtype(dtype).itemsize), "uint8").view(dtype)[..., 0]


def assert_identical(actual: Array, expected: Array) -> None:
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    assert actual.tobytes() == expected.tobytes()


TRANSPOSES = [((517, 331), (1, 0)), ((7, 90, 130), (0, 2, 1)), ((33, 64, 65), (2, 1, 0)), ((33, 64, 65), (1, 2, 0))]


@pytest.mark.parametrize(("shape", "axes"), TRANSPOSES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_transpose_matches_numpy(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    x = draw(shape, dtype)
    assert_identical(run("transpose", x, axes=axes), np.ascontiguousarray(x.transpose(axes)))


def test_only_transposed_layouts_are_copied_in_strips() -> None:
    x = np.zeros((512, 512))
    strips, _ = copying(RunContext(np), x.T, np.empty_like(x))
    for other in (x, x[:, ::-1], np.broadcast_to(x[:1], x.shape), x[:20, :20].T, x[:, :8].T.reshape(8, 512)):
        plain, _ = copying(RunContext(np), other, np.empty(other.shape))
        assert plain != strips


@pytest.mark.parametrize("offset", [-300, -129, -128, -1, 0, 1, 64, 127, 200, 301])
@pytest.mark.parametrize("shape", [(257, 300), (300, 257), (2, 128, 129), (2, 129, 3)], ids=str)
def test_triangles(shape: tuple[int, ...], offset: int) -> None:
    x = RNG.normal(size=shape)
    x[x > 1] = np.inf
    x[x < -1] = np.nan
    mask = np.tri(*shape[-2:], offset, dtype=bool)
    assert_identical(run("tril", x, offset=offset), np.where(mask, x, 0.0))
    assert_identical(run("triu", x, offset=offset + 1), np.where(mask, 0.0, x))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("has_negative_zeros", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_sort_preserves_order_of_signed_zeros(dtype: str, axis: int, has_negative_zeros: bool) -> None:
    x = RNG.integers(-2, 3, (300, 200)).astype(dtype)
    x[RNG.random(x.shape) < 0.1] = np.nan
    if has_negative_zeros:
        x[(x == 0) & (RNG.random(x.shape) < 0.5)] = -0.0
    actual, expected = run("sort", x, axis=axis), np.sort(x, axis, kind="stable")
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual)[expected == 0], np.signbit(expected)[expected == 0])


#: shapes of x and of the index, and the axis: chunks that end inside an axis, and on one; x larger off the axis
GATHERS = [
    ((100,), (2 * CHUNK_ELEMENTS + 1,), 0),
    ((50, 301), (400, 301), 0),
    ((301, 50), (301, 400), 1),
    ((9, CHUNK_ELEMENTS + 2), (3, CHUNK_ELEMENTS + 2), 0),
    ((3, 11, 4000), (2, 7, 3999), 1),
    ((70, 11, 13), (70, 40, 12), 1),
]


@pytest.mark.parametrize(("shape", "indexed", "axis"), GATHERS)
@pytest.mark.parametrize("integer", ["int64", "int8"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bool"])
def test_large_gather_and_scatter_add(
    shape: tuple[int, ...], indexed: tuple[int, ...], axis: int, integer: str, dtype: str
) -> None:
    x, index = draw(shape, dtype), RNG.integers(0, min(shape[axis], 128), indexed).astype(integer)
    grid = list(np.ogrid[tuple(slice(n) for n in indexed)])
    grid[axis] = index.astype("int64")
    position = tuple(grid)
    assert_identical(run("gather", x, index, axis=axis), x[position])
    start, updates = RNG.integers(0, 9, shape).astype("float32"), RNG.integers(0, 9, indexed).astype("float32")
    expected = start.copy()
    np.add.at(expected, position, updates)
    assert_identical(run("scatter_add", start, index, updates, axis=axis), expected)
