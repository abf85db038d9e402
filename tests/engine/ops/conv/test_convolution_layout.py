"""Chunks of a convolution cover all of it once, each within the chunk size."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.tensor_type import TensorType
from engine.ops.conv import im2col as convolution_layout
from engine.ops.conv.im2col import Layout, layout, slices, within_chunk
from engine.ops.conv.windows import Windows

SIZES = layout(
    TensorType((3, 4, 9, 8), np.dtype("float32")),
    TensorType((3, 6, 4, 7), np.dtype("float32")),
    TensorType((3, 6, 4, 7), np.dtype("float16")),
    Windows((3, 2), (2, 1), (0, 0), (1, 1)),
    2,
)


def test_sizes() -> None:
    assert (SIZES.positions, SIZES.window_count, SIZES.depth, SIZES.features) == ((4, 7), 28, 2, 3)
    assert (SIZES.column_length, SIZES.products, SIZES.dtype) == (12, 3 * 6 * 28 * 12, "float32")
    assert SIZES.span_bytes == 9 * 8 * 4
    assert SIZES.window_bytes == 2 * 12 * 4


def test_slices_are_contiguous() -> None:
    assert list(slices(5, 2)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(slices(0, 2)) == []


@pytest.mark.parametrize("chunk", [1, 300, 5000, 1 << 21])
def test_chunks_cover_everything_once(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_layout, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(convolution_layout, "LEAST_WINDOWS", 2)
    visits = np.zeros((SIZES.groups, *SIZES.narrow[:1], *SIZES.positions), int)
    for groups, part in SIZES.parts():
        assert part.groups == groups.stop - groups.start
        assert (part.depth, part.features) == (SIZES.depth, SIZES.features)
        for images in part.image_chunks():
            for rows in part.row_chunks():
                visits[groups, images][rows] += 1
    assert (visits == 1).all()
    limit = max(chunk, SIZES.part(1).window_bytes * max(2, SIZES.rows[1]) * (SIZES.images_at_once or 1))
    assert SIZES.part(1).windows_at_once * SIZES.part(1).window_bytes <= limit


def test_count_within_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_layout, "CHUNK_BYTES", 100)
    assert [within_chunk(7, each) for each in (0, 1, 30, 50, 101)] == [7, 7, 3, 2, 1]


def test_rows_use_the_first_axis_with_several_positions() -> None:
    one = Layout(Windows((1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1)), 1, (1, 1, 1, 5, 6), (1, 1, 1, 5, 6), SIZES.dtype)
    assert one.rows == (1, 6)
    assert one.at_rows(slice(2, 3)) == (..., slice(2, 3), slice(None))
    assert one.exchanged.windows == Windows((1, 5, 6), (1, 1, 1), (0, 0, 0), (1, 1, 1))
