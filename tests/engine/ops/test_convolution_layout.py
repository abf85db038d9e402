"""How much of a convolution is laid out at a time, and what of it is copied."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from engine import TensorType
from engine.oplib import tiling
from engine.oplib.col2im import add_windows, add_windows_workspace
from engine.oplib.im2col import correlate, correlate_workspace, matrix
from engine.oplib.windows import Windows
from tests.contract.cases import SLACK
from tests.engine.ops.convolutions import Axis, Setting
from tests.engine.ops.run import Array

RNG = np.random.default_rng(5)


def placed(setting: Setting) -> Windows:
    return Windows(*(tuple(setting.each(name)) for name in ("size", "stride", "padding", "dilation")))


def laid_out(axes: tuple[Axis, ...], dtype: str = "float64", **counts: int) -> tiling.Layout:
    setting = Setting(axes, **counts)
    wide, narrow, _ = (TensorType(shape, np.dtype(dtype)) for shape in setting.shapes)
    return tiling.layout(wide, narrow, narrow, placed(setting), setting.groups)


def test_rows_and_groups_are_laid_out_four_mebibytes_at_a_time() -> None:
    """Rows where an image has many windows, but never few windows; groups where a row of all of them is too much."""
    chunk = 4 << 20
    large = laid_out((Axis(130, 3), Axis(130, 3)), images=1, depth=8)
    assert (large.groups_at_once, large.images_at_once) == (1, 1)
    assert large.rows_at_once == chunk // (8 * 9 * 8) // 128 == 56
    assert [s.stop - s.start for _, s in large.row_chunks()] == [56 * 128, 56 * 128, 16 * 128]
    assert list(tiling.slices(3, 1)) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    line = laid_out((Axis(1), Axis(100_000, 3)), images=1, depth=2)
    assert line.rows == (1, 1)
    assert line.rows_at_once == chunk // (2 * 3 * 8)
    assert laid_out((Axis(9, 3), Axis(1_000_000, 3)), images=1).rows_at_once == 1
    deep = laid_out((Axis(20, 3), Axis(20, 3)), images=1, depth=4096, features=1)
    assert deep.rows_at_once == 256 // 18 == 14
    assert laid_out((Axis(300, 3),), images=1, depth=1000, features=1).rows_at_once == 256
    wide = laid_out((Axis(1, 1), Axis(10_000, 1)), images=4, groups=100)
    assert wide.groups_at_once == chunk // (10_000 * 8) == 52
    assert [count for *_, count in wide.parts(52)] == [52, 48]
    assert wide.part(48).wide == (4, 48, 1, 10_000)
    assert wide.part(48).narrow == (4, 96, 1, 10_000)
    assert laid_out((Axis(9, 2),), depth=3, groups=4).part(2).wide == (2, 6, 9)


def test_columns_of_single_bytes_are_laid_out_four_mebibytes_at_a_time() -> None:
    assert laid_out((Axis(3000), Axis(3000)), "int8", images=1).rows_at_once == (4 << 20) // 3000 == 1398
    assert laid_out((Axis(1), Axis(1)), "int8", images=5_000_000).images_at_once == 4 << 20


def test_windows_are_large_where_they_are_fewer_than_their_taps() -> None:
    """And a single one is the first row."""
    assert not laid_out((Axis(3, 2), Axis(1))).large_windows
    assert laid_out((Axis(3, 3), Axis(2))).large_windows
    assert laid_out((Axis(2, 2),)).rows == (0, 1)
    assert list(laid_out((Axis(2, 2),)).row_chunks()) == [((..., slice(0, 1)), slice(0, 1))]


def test_a_single_channel_is_laid_out_some_images_at_a_time() -> None:
    """Where its windows are the images themselves; otherwise all of them, whatever it takes."""
    dense = laid_out((Axis(64, 64), Axis(64, 64)), images=300, features=1)
    assert dense.large_windows
    assert (dense.channels_at_once, dense.images_of_a_channel) == (1, (4 << 20) // (2 * 64 * 64 * 8)) == (1, 64)
    assert laid_out((Axis(64, 63), Axis(64, 64)), images=300, features=1).images_of_a_channel == 300
    assert laid_out((Axis(64, 64), Axis(64, 64)), images=100, depth=2, features=1).images_of_a_channel == 100
    assert laid_out((Axis(64, 64), Axis(64, 64)), images=300, groups=2, features=1).images_of_a_channel == 32
    grouped = laid_out((Axis(64, 64), Axis(64, 64)), images=20, groups=9, features=2)
    assert grouped.groups_of_a_channel == (4 << 20) // ((20 + 2) * 64 * 64 * 8) == 5
    sliding = laid_out((Axis(64, 63), Axis(64, 64)), images=20, groups=9, features=2)
    assert sliding.groups_of_a_channel == (4 << 20) // ((20 * 2 + 2) * 63 * 64 * 8) == 3


@pytest.mark.parametrize(
    "setting",
    [
        Setting((Axis(64), Axis(64)), images=1, features=64),
        Setting((Axis(1), Axis(8, 2, 2)), images=1, depth=8, features=1, groups=30_000),
        Setting((Axis(9, 9), Axis(9, 8)), images=40, depth=30, features=20),
    ],
    ids=["many results", "many groups", "large windows"],
)
def test_no_more_is_laid_out_than_is_planned(setting: Setting) -> None:
    """Sums are written where they belong, groups are taken some at a time, and so are channels of large windows."""
    wide, narrow, kernel = setting.draw()
    types = [TensorType.of(a) for a in (wide, narrow, kernel)]
    windows, groups = placed(setting), setting.groups
    sizes = tiling.layout(wide, narrow, narrow, windows, groups)
    found = peak(lambda: correlate(np, wide, kernel, narrow, windows, groups))
    assert found <= correlate_workspace(sizes, types[1], types[0], types[2]) + SLACK
    found = peak(lambda: add_windows(np, narrow, kernel, wide, windows, groups))
    assert found <= add_windows_workspace(sizes, *types[1:]) + SLACK


def peak(work: Callable[[], None]) -> int:
    """Bytes that it has at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


BOX = RNG.normal(size=(5, 4, 6, 8))
LAYOUTS = [
    (BOX, True),
    (BOX[0], True),
    (BOX[..., :3], True),
    (RNG.normal(size=(9, 8, 7, 3))[:, ::2], True),
    (BOX[:, ::2, ::-3][:, :, ::-1], True),
    (BOX[..., ::2], False),
    (BOX[..., ::-1], False),
    (BOX[:, :, ::-1], False),
    (BOX.swapaxes(2, 3), False),
    (np.broadcast_to(BOX[:, :, :1, :3], (5, 4, 6, 3)), False),
    (np.lib.stride_tricks.sliding_window_view(BOX[0, 0], 3, axis=1), False),
]


@pytest.mark.parametrize(("array", "lies"), LAYOUTS)
def test_a_matrix_is_read_where_it_lies_if_its_rows_are_whole_and_apart(array: Array, lies: bool) -> None:
    """What BLAS cannot read NumPy would multiply without it."""
    found = matrix(np, array, array.shape)
    np.testing.assert_array_equal(found, array)
    assert np.shares_memory(found, array) == lies
    assert lies or found.flags.c_contiguous
