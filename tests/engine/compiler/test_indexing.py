"""Geometries of gather and scatter-add kernels: which bytes of which operand, element by element."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import string_at
from typing import Any, cast

import numpy as np
import pytest

from engine import registry
from engine.codegen.microkernels.indexing import PICKED_AT_ONCE, GatherGeometry, ScatterAddGeometry
from engine.compiler import recipes as indexing
from engine.ir.op import Kernel
from engine.ir.tensor_type import Shape, Strided, TensorType

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)
OPS = {name: cast("Kernel", op) for name, op in registry().ops.items()}


@pytest.fixture(autouse=True)
def geometry_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace recipes by their geometry."""
    monkeypatch.setattr(indexing, "gather", lambda geometry: geometry)
    monkeypatch.setattr(indexing, "scatter_add", lambda geometry: geometry)


def strided_type(x: Array) -> TensorType:
    return Strided(TensorType.of(x), x.strides)


def numbers(*shape: int) -> Array:
    return RNG.normal(size=shape)


def read_at(x: Array, offset: int, dtype: Any, strides: Shape, place: Shape) -> Any:
    """Read the number at a byte offset from the first, and at the steps of a place."""
    offset += sum(step * i for step, i in zip(strides, place, strict=True))
    assert 0 <= offset <= sum(step * (n - 1) for step, n in zip(x.strides, x.shape, strict=True))
    return np.frombuffer(string_at(x.ctypes.data + offset, np.dtype(dtype).itemsize), dtype)[0].item()


def dtype_of(index_bytes: int, *, is_signed: bool) -> str:
    return f"{'int' if is_signed else 'uint'}{8 * index_bytes}"


#: dense and strided operands, shapes of indices, and the axis
GATHERS: list[tuple[Callable[[], Array], Shape, int]] = [
    (lambda: numbers(7), (9,), 0),
    (lambda: numbers(4, 3), (5, 3), 0),
    (lambda: numbers(4, 6), (4, 5), 1),
    (lambda: numbers(6, 4).T, (4, 5), 1),
    (lambda: numbers(3, 6, 8)[:, ::2, ::4], (3, 3, 5), 2),
    (lambda: numbers(3, 6, 2), (3, 4, 2), 1),
    (lambda: numbers(3, 4, 6), (3, 4, 1), 2),
    (lambda: numbers(3, 4, 6), (2, 3, 1), 2),
    (lambda: numbers(5, 3, 1), (5, 2, 1), 1),
    (lambda: numbers(6, 1), (4, 1), 0),
    (lambda: numbers(2, 3, 6, 4).swapaxes(2, 3), (2, 3, 4, 1), 3),
]


@pytest.mark.parametrize(("made", "indexed", "axis"), GATHERS, ids=[f"{i}-{a}" for _, i, a in GATHERS])
@pytest.mark.parametrize("integer", ["int64", "int8", "uint8"])
def test_gather_reads_the_indexed_elements(made: Callable[[], Array], indexed: Shape, axis: int, integer: str) -> None:
    x, index = made(), RNG.integers(0, made().shape[axis], indexed).astype(integer)
    out = TensorType(indexed, x.dtype)
    geometry = cast(
        "Any", indexing.body_gather_recipe(OPS["gather"], out, strided_type(x), strided_type(index), axis=axis)
    )
    assert isinstance(geometry, GatherGeometry)
    assert (geometry.itemsize, geometry.extent) == (8, x.shape[axis])
    integers, actual = dtype_of(geometry.index_bytes, is_signed=geometry.is_signed), []
    for place in np.ndindex(geometry.shape):
        picked = read_at(index, 0, integers, geometry.index, place)
        actual.append(read_at(x, geometry.step * picked, "f8", geometry.x, place))
    cut = tuple(slice(None) if a == axis else slice(n) for a, n in enumerate(indexed))
    expected = np.take_along_axis(x[cut], index.astype("int64"), axis)
    assert actual == expected.ravel().tolist()
    assert integers == integer


def test_gather_of_one_element_per_row_drops_the_unit_axis() -> None:
    """These are then the elements of a vector."""
    types = TensorType((3, 9), np.dtype("f8")), TensorType((3, 1), np.dtype("i8"))
    geometry = cast(
        "Any", indexing.body_gather_recipe(OPS["gather"], TensorType((3, 1), np.dtype("f8")), *types, axis=1)
    )
    assert (geometry.shape, geometry.x, geometry.index) == ((3,), (72,), (8,))


@pytest.mark.parametrize(
    ("indexed", "axis", "has_one"),
    [
        ((PICKED_AT_ONCE,), 0, True),
        ((PICKED_AT_ONCE - 1,), 0, False),
        ((20, PICKED_AT_ONCE - 1), 0, False),
        ((2, 3, PICKED_AT_ONCE), 2, True),
        ((2, PICKED_AT_ONCE, 3), 2, False),
        ((2, PICKED_AT_ONCE, 1), 2, True),
    ],
)
def test_vector_gather_needs_long_rows(indexed: Shape, axis: int, has_one: bool) -> None:
    out, x = TensorType(indexed, np.dtype("f8")), TensorType((20,) * len(indexed), np.dtype("f8"))
    index = TensorType(indexed, np.dtype("i8"))
    assert (indexing.gather_recipe(OPS["gather"], out, x, index, axis=axis) is not None) == has_one


def test_whole_rows_are_not_gathered_by_vectors() -> None:
    out, x = TensorType((3, 20), np.dtype("f8")), TensorType((9, 20), np.dtype("f8"))
    index = Strided(TensorType((3, 20), np.dtype("i8")), (8, 0))
    assert indexing.gather_recipe(OPS["gather"], out, x, index, axis=0) is None
    assert indexing.body_gather_recipe(OPS["gather"], out, x, index, axis=0) is not None


@pytest.mark.parametrize("integer", ["int64", "int8", "uint8"])
@pytest.mark.parametrize("axis", range(3))
def test_scatter_add_adds_at_the_indexed_elements(axis: int, integer: str) -> None:
    x = numbers(3, 4, 10)[:, :, ::2]
    shape = tuple(7 if a == axis else n for a, n in enumerate(x.shape))
    index = RNG.integers(0, x.shape[axis], shape).astype(integer)
    updates = numbers(*shape[::-1]).T
    types = TensorType(x.shape, x.dtype), strided_type(x), strided_type(index), strided_type(updates)
    geometry = cast("Any", indexing.body_scatter_recipe(OPS["scatter_add"], *types, axis=axis))
    assert isinstance(geometry, ScatterAddGeometry)
    integers = dtype_of(geometry.index_bytes, is_signed=geometry.is_signed)
    assert (geometry.dtype, geometry.itemsize, integers) == ("float64", 8, integer)
    actual = np.zeros(x.size)
    for place in np.ndindex(*geometry.rows, geometry.extent):
        actual[offset(geometry.y, place)] = read_at(x, 0, "f8", geometry.x, place)
    for *row, k in np.ndindex(*geometry.rows, geometry.count):
        to = read_at(index, 0, integers, geometry.index, (*row, k))
        actual[offset(geometry.y, (*row, to))] += read_at(updates, 0, "f8", geometry.updates, (*row, k))
    expected = x.copy()
    np.add.at(expected, tuple(index if a == axis else i for a, i in enumerate(np.indices(shape))), updates)
    np.testing.assert_array_equal(actual, expected.ravel())


def offset(strides: Shape, place: Shape) -> int:
    """Offset of a place, in elements."""
    return sum(step * i for step, i in zip(strides, place, strict=True)) // 8
