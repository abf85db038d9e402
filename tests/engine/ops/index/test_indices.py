"""Index operands: integer dtypes, range checks, and selection."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.errors import DtypeMismatch, IndexOutOfRange
from engine.ir.tensor_type import TensorType
from engine.ops.index.indices import (
    INDEX_ERRORS,
    check_indices,
    coordinate_grid,
    index_error,
    is_broadcast_list,
    require_integer,
    selects_slices,
    take_slices,
)
from tests.engine.ops.values import come_to


@pytest.mark.parametrize("dtype", ["float64", "bool"])
def test_index_must_be_an_integer(dtype: str) -> None:
    require_integer(TensorType((2,), np.dtype("uint8")), 1, "index")
    with pytest.raises(DtypeMismatch, match=rf"operand 1 \(index\) .* but is {dtype}"):
        require_integer(TensorType((2,), np.dtype(dtype)), 1, "index")


@pytest.mark.parametrize("entry", [-1, 3, -(2**63), 2**63 - 1])
def test_index_must_be_in_range(entry: int) -> None:
    check_indices(np.array([0, 2]), 3, operand=1)
    check_indices(np.empty(0, "int64"), 0, operand=1)
    with pytest.raises(IndexOutOfRange, match=r"operand 1 .* within|operand 1 .* in \[0, 3\)"):
        check_indices(np.array([0, entry, 2]), 3, operand=1)


@pytest.mark.parametrize("entry", [-4, 3])
def test_lower_bound_allows_negative_indices(entry: int) -> None:
    check_indices(np.array([-3, 2]), 3, operand=1, lower=-3)
    with pytest.raises(IndexOutOfRange, match=r"operand 1 .* in \[-3, 3\)"):
        check_indices(np.array([0, entry, 2]), 3, operand=1, lower=-3)


def test_recorder_replaces_raising() -> None:
    class Recorder(list[tuple[int, int, int, int]]):
        def record(
            self, index: np.ndarray[tuple[int], np.dtype[np.int64]], extent: int, operand: int, lower: int
        ) -> None:
            self.append((int(index.max()), extent, operand, lower))

    recorder = Recorder()
    token = INDEX_ERRORS.set(recorder)
    try:
        check_indices(np.array([7]), 3, operand=2)
        check_indices(np.empty(0, "int64"), 3, operand=2)
        with pytest.raises(IndexOutOfRange):  # an empty axis has no entry to read instead
            check_indices(np.array([0]), 0, operand=2)
    finally:
        INDEX_ERRORS.reset(token)
    assert recorder == [(7, 3, 2, 0)]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_coordinate_grid_matches_take_along_axis(axis: int) -> None:
    rng = np.random.default_rng(0)
    x, index = rng.normal(size=(3, 4, 5)), rng.integers(0, 3, (3, 4, 5))
    np.testing.assert_array_equal(x[coordinate_grid(np, index, axis)], np.take_along_axis(x, index, axis))


def test_broadcast_list_selects_slices_of_equal_width() -> None:
    listed = np.broadcast_to(np.array([2, 0])[:, None], (2, 5))
    assert is_broadcast_list(listed, 0)
    assert not is_broadcast_list(listed.copy(), 0)
    assert not is_broadcast_list(listed, 1)
    assert is_broadcast_list(np.array([[1], [0]]), 0)
    assert selects_slices(np.empty((4, 5)), listed, 0)
    assert not selects_slices(np.empty((4, 6)), listed, 0)


@pytest.mark.parametrize("axis", range(3))
def test_take_slices_matches_numpy(axis: int) -> None:
    x, places = np.arange(24.0).reshape(2, 3, 4), np.array([1, 0, 1, 1, 0])
    np.testing.assert_array_equal(come_to(lambda a, p: take_slices(a, p, axis), x, places), x.take(places, axis))


def test_index_error_fields() -> None:
    error = index_error(4, 2)
    assert (error.operand, error.expected, error.got) == (2, "in [0, 4)", "an entry outside")
