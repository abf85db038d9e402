"""Row layouts of kernels: rows and columns that fit the strides of every operand, with as few row axes as possible."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.codegen.kernels.program import Level
from engine.compiler.fused_kernel import FLAT_ROW, MOST_SUMS, RowLayout, lay_out
from engine.ir.tensor_type import FLOAT64, Shape, Strided, TensorType

ELEMENT, ROW = Level.ELEMENT, Level.ROW


def dense(*shape: int) -> TensorType:
    return TensorType(shape, FLOAT64)


def row_layout(shape: Shape, operands: Sequence[TensorType], row_axes: int | None = None) -> RowLayout:
    layout = lay_out(shape, operands, row_axes)
    assert layout is not None
    return layout


def test_dense_tensors_are_split_into_flat_rows() -> None:
    layout = row_layout((3, 5000), [dense(3, 5000), dense(1)])
    assert (layout.rows, layout.columns, layout.length) == ((4,), FLAT_ROW, 15_000)
    assert layout.operands == ((ELEMENT, (FLAT_ROW,)), (ROW, (0,)))


def test_non_broadcastable_operands_have_no_layout() -> None:
    """It would be read out of bounds."""
    for operand in (dense(2), dense(2, 1), dense(1, 2, 14), dense(14, 14)):
        assert lay_out((2, 14), [dense(2, 14), operand], 1) is None or operand.shape == (2, 1)


def test_rows_span_the_reduced_axes() -> None:
    layout = row_layout((2, 3, 4), [dense(2, 3, 4), dense(4), dense(2, 3, 1)], row_axes=1)
    assert (layout.rows, layout.columns) == ((6,), 4)
    assert layout.operands == ((ELEMENT, (4,)), (ELEMENT, (0,)), (ROW, (1,)))
    assert (layout.element, layout.row) == ((4,), (1,))


def test_axes_with_different_strides_are_not_merged() -> None:
    layout = row_layout((2, 3, 4), [dense(2, 3, 4), dense(3, 4)], row_axes=1)
    assert layout.rows == (2, 3)
    assert layout.operands == ((ELEMENT, (12, 4)), (ELEMENT, (0, 4)))


def test_strided_rows_have_no_layout() -> None:
    turned = Strided(dense(3, 4), (8, 24))
    assert lay_out((3, 4), [dense(3, 4), turned], None) is None
    assert lay_out((3, 4), [turned], 1) is None


def test_column_sums_have_few_parts() -> None:
    layout = row_layout((100_000, 4), [dense(100_000, 4)], row_axes=1)
    parts = [-(-100_000 // layout.space([()], sums_columns=sums).block) for sums in (True, False)]
    assert parts[0] <= MOST_SUMS
    assert layout.space([(7,)], sums_columns=False).strides == ((4,), (7,))
    assert math.prod(layout.space([()], sums_columns=True).rows) == 100_000


@given(st.data())
def test_operand_positions_match_numpy_broadcasting(data: st.DataObject) -> None:
    """Element by element: at the steps of its row, and at its column if it has one value per element."""
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    kept_axes = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    lead = data.draw(st.integers(0, len(shape)))
    small = tuple(e if keep else 1 for e, keep in zip(shape, kept_axes, strict=True))[lead:]
    rows = data.draw(st.one_of(st.none(), st.integers(1, len(shape))))
    layout = lay_out(shape, [dense(*shape), dense(*small)], rows)
    if layout is None:
        return
    for type, (level, steps) in zip((dense(*shape), dense(*small)), layout.operands, strict=True):
        numbers = np.arange(type.size)
        expected = np.broadcast_to(numbers.reshape(type.shape), shape).reshape(-1)
        starts = sum(
            np.arange(extent).reshape((-1, *(1,) * (len(layout.rows) - 1 - axis))) * step
            for axis, (extent, step) in enumerate(zip(layout.rows, steps, strict=True))
        )
        columns = np.arange(layout.columns) if level == ELEMENT else np.zeros(layout.columns, int)
        places = (np.asarray(starts).reshape(-1, 1) + columns).reshape(-1)[: layout.length]
        np.testing.assert_array_equal(numbers[places], expected)
