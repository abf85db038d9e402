"""Chunks of the im2col layout, and which parts of it are copied."""

from __future__ import annotations

import numpy as np
import pytest

from engine import TensorType
from engine.ir.run_context import RunContext
from engine.ops.conv import im2col as convolution_layout
from engine.ops.conv.im2col import add_windows, add_windows_workspace, correlate, correlate_workspace, matrix
from engine.ops.conv.windows import Windows
from tests.contract.cases import SLACK
from tests.engine.ops.convolutions import Axis, Setting
from tests.engine.ops.run import Array
from tests.engine.ops.values import allocated

RNG = np.random.default_rng(5)


def windows_of(setting: Setting) -> Windows:
    return Windows(*(tuple(setting.each(name)) for name in ("size", "stride", "padding", "dilation")))


def layout_of(axes: tuple[Axis, ...], dtype: str = "float64", **counts: int) -> convolution_layout.Layout:
    setting = Setting(axes, **counts)
    wide, narrow, _ = (TensorType(shape, np.dtype(dtype)) for shape in setting.shapes)
    return convolution_layout.layout(wide, narrow, narrow, windows_of(setting), setting.groups)


def test_chunks_of_rows_images_and_groups_are_2_mib() -> None:
    """Chunks are of rows, with enough windows each; and of groups if a row of all groups is too large."""
    chunk = 2 << 20
    large = layout_of((Axis(130, 3), Axis(130, 3)), images=1, depth=8)
    assert (large.groups_at_once, large.images_at_once) == (1, 1)
    assert large.rows_at_once == chunk // (8 * 9 * 8) // 128 == 28
    assert [rows[1].stop - rows[1].start for rows in large.row_chunks()] == [28] * 4 + [16]
    assert large.windows_at_once == 28 * 128
    small = layout_of((Axis(10, 3), Axis(10, 3)), images=64, depth=8)
    assert small.images_at_once == chunk // (8 * 9 * 8 * 64) == 56
    assert [s.stop - s.start for s in small.image_chunks()] == [56, 8]
    line = layout_of((Axis(1), Axis(100_000, 3)), images=1, depth=2)
    assert line.rows == (1, 1)
    assert line.rows_at_once == chunk // (2 * 3 * 8)
    assert layout_of((Axis(9, 3), Axis(1_000_000, 3)), images=1).rows_at_once == 1
    wide = layout_of((Axis(1, 1), Axis(10_000, 1)), images=4, groups=100)
    assert wide.groups_at_once == chunk // (10_000 * 2 * 8) == 13
    assert [part.groups for _, part in wide.parts()] == [13] * 7 + [9]
    assert wide.part(9).wide == (4, 9, 1, 10_000)
    assert wide.part(9).narrow == (4, 18, 1, 10_000)
    assert layout_of((Axis(9, 2),), depth=3, groups=4).part(2).wide == (2, 6, 9)


def test_chunks_hold_at_least_256_windows() -> None:
    """Reading the kernel would take longer than multiplying by it."""
    deep = layout_of((Axis(20, 3), Axis(20, 3)), images=1, depth=4096, features=1)
    assert deep.rows_at_once == 256 // 18 == 14
    assert layout_of((Axis(300, 3),), images=1, depth=1000, features=1).rows_at_once == 256
    assert layout_of((Axis(7, 3), Axis(7, 3)), images=40, depth=512, features=1).images_at_once == 256 // 25 == 10


def test_chunks_of_int8_columns_are_2_mib() -> None:
    assert layout_of((Axis(3000), Axis(3000)), "int8", images=1, features=1).rows_at_once == (2 << 20) // 3000 == 699
    assert layout_of((Axis(1), Axis(1)), "int8", images=5_000_000, features=1).images_at_once == 2 << 20


def test_windows_are_large_if_fewer_than_their_taps() -> None:
    """A single window is the first row."""
    assert not layout_of((Axis(3, 2), Axis(1))).large_windows
    assert layout_of((Axis(3, 3), Axis(2))).large_windows
    assert layout_of((Axis(2, 2),)).rows == (0, 1)
    assert list(layout_of((Axis(2, 2),)).row_chunks()) == [(..., slice(0, 1))]


def test_channels_are_last_if_their_runs_are_much_longer() -> None:
    assert layout_of((Axis(14, 3, padding=1), Axis(14, 3, padding=1)), depth=15).channels_last
    assert not layout_of((Axis(14, 3, padding=1), Axis(14, 3, padding=1)), depth=14).channels_last
    assert not layout_of((Axis(16, 3), Axis(16, 3, dilation=1 + 1, padding=1)), depth=40).channels_last


def test_kernel_gradient_has_the_layout_of_its_convolution() -> None:
    """The kernel gradient is a convolution in which images and kernel are exchanged."""
    axes = Axis(9, 3, 2, 1), Axis(7, 2, 1, 0, 3)
    forward = layout_of(axes, images=3, depth=4, features=5, groups=2)
    windows = Windows(forward.positions, (1, 3), (1, 0), (2, 1))
    wide, narrow = TensorType((4, 6, 9, 7), np.dtype("float64")), TensorType((4, 10, 3, 2), np.dtype("float64"))
    gradient = convolution_layout.layout(wide, narrow, narrow, windows, 2)
    assert gradient.large_windows
    assert gradient.exchanged == forward


@pytest.mark.parametrize(
    "setting",
    [
        Setting((Axis(64), Axis(64)), images=1, features=64),
        Setting((Axis(1), Axis(8, 2, 2)), images=1, depth=8, features=1, groups=30_000),
        Setting((Axis(9, 9), Axis(9, 8)), images=40, depth=30, features=20),
        Setting((Axis(9, 3, padding=1), Axis(9, 3, padding=1)), images=60, depth=80, features=90),
        Setting((Axis(40, 3, 2), Axis(40, 3, 2)), images=30, features=2, groups=40),
    ],
    ids=["many results", "many groups", "large windows", "channels last", "single channels"],
)
def test_memory_stays_within_stated_workspace(setting: Setting) -> None:
    """Sums are written in place, groups are chunked, and so are channels of large windows."""
    wide, narrow, kernel = setting.draw()
    types = [TensorType.of(a) for a in (wide, narrow, kernel)]
    windows, groups = windows_of(setting), setting.groups
    sizes = convolution_layout.layout(wide, narrow, narrow, windows, groups)
    peak = allocated(lambda: correlate(RunContext(np), wide, kernel, narrow, windows, groups))
    assert peak <= correlate_workspace(sizes, types[1], types[0], types[2]) + SLACK
    peak = allocated(lambda: add_windows(RunContext(np), narrow, kernel, wide, windows, groups))
    assert peak <= add_windows_workspace(sizes, *types[1:]) + SLACK


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
def test_matrix_is_a_view_if_blas_can_read_it(array: Array, lies: bool) -> None:
    """NumPy would multiply without BLAS if BLAS cannot read the matrix."""
    actual = matrix(np, array, array.shape, array.dtype)
    np.testing.assert_array_equal(actual, array)
    assert np.shares_memory(actual, array) == lies
    assert lies or actual.flags.c_contiguous
