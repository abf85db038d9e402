"""Kernels of convolution and its adjoint: matrix products on columns of windows, as many as stay in the cache.

Some groups; of these some images, or some rows of one, where windows are many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.graph.op import Array
from engine.graph.tensor_type import DType, Shape, TensorType
from engine.oplib.accumulate import accumulator
from engine.oplib.windows import Windows

#: bytes of columns laid out at a time, unless one row of windows takes more: they stay in the cache, and an allocator
#: keeps them, where larger chunks come from the system anew, page by page
CHUNK = 2 << 20
#: windows laid out at a time, at least: for fewer, reading the kernel takes longer than multiplying by it
LEAST = 256
#: how many times longer runs of channels must be than runs of positions, so that moving channels to the end pays
LONGER = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of one correlation, or of its adjoint: windows over `wide`, of which each gives one place of `narrow`.

    Both are shapes [images, channels, *extents].
    """

    windows: Windows
    groups: int
    wide: Shape
    narrow: Shape
    dtype: DType

    @property
    def positions(self) -> Shape:
        """How many windows there are along each axis."""
        return self.narrow[2:]

    @property
    def places(self) -> int:
        """How many windows there are on one image."""
        return math.prod(self.positions)

    @property
    def depth(self) -> int:
        """Channels of a group that the windows see."""
        return self.wide[1] // self.groups

    @property
    def features(self) -> int:
        """Channels of a group that the windows give."""
        return self.narrow[1] // self.groups

    @property
    def lines(self) -> int:
        """Elements that one window sees in all channels of a group."""
        return self.depth * self.windows.taps

    @property
    def large_windows(self) -> bool:
        """Whether a window has more taps than there are windows."""
        return self.windows.taps > self.places

    @property
    def products(self) -> int:
        """Multiplications in all."""
        return math.prod(self.narrow) * self.lines

    @property
    def channels_last(self) -> bool:
        """Whether columns are copied from images with their channels at the end.

        A row of a window is then one run of memory, if its taps are neighbours; else the positions of a tap are.
        """
        width = self.windows.size[-1] if self.windows.dilation[-1] == 1 else 1
        return width * self.depth > LONGER * self.positions[-1]

    @property
    def exchanged(self) -> Layout:
        """Of the correlation in which images and channels, taps and positions have changed places."""
        w = self.windows
        wide = (self.depth, self.groups * self.wide[0], *self.wide[2:])
        narrow = (self.depth, self.narrow[1], *w.size)
        return replace(self, windows=w.exchanged(self.positions), wide=wide, narrow=narrow)

    @property
    def span_bytes(self) -> int:
        """Bytes of what all windows see of one channel of one image, and of what lies between."""
        return math.prod(self.windows.span(self.positions)) * self.dtype.itemsize

    @property
    def place_bytes(self) -> int:
        """Bytes of what one window sees in all channels, or gives, if that is more."""
        return self.groups * max(self.lines, self.features) * self.dtype.itemsize

    @property
    def groups_at_once(self) -> int:
        """As many groups as CHUNK holds the columns of one image of, one at least."""
        return within_chunk(self.groups, self.places * self.place_bytes // self.groups)

    def parts(self) -> Iterator[tuple[slice, Layout]]:
        """Some groups at a time, and the layout of so many."""
        for part in slices(self.groups, self.groups_at_once):
            yield part, self.part(part.stop - part.start)

    def part(self, groups: int) -> Layout:
        """The layout of so many of the groups."""
        wide = (self.wide[0], groups * self.depth, *self.wide[2:])
        narrow = (self.narrow[0], groups * self.features, *self.narrow[2:])
        return replace(self, groups=groups, wide=wide, narrow=narrow)

    @property
    def images_at_once(self) -> int:
        """As many images as CHUNK holds the columns of, or as have LEAST windows, one at least."""
        return _within(max(CHUNK, LEAST * self.place_bytes), self.wide[0], self.places * self.place_bytes)

    def image_chunks(self) -> Iterator[slice]:
        """The images, a few at a time."""
        return slices(self.wide[0], self.images_at_once)

    @property
    def rows(self) -> tuple[int, int]:
        """The first axis of the positions that has several, and how many windows there are at each of them."""
        axis = next((i for i, n in enumerate(self.positions) if n > 1), 0)
        return axis, math.prod(self.positions[axis + 1 :])

    @property
    def rows_at_once(self) -> int:
        """As many rows of windows as CHUNK holds the columns of, LEAST windows at least."""
        axis, length = self.rows
        return _within(max(CHUNK // max(self.place_bytes, 1), LEAST), self.positions[axis], length)

    @property
    def places_at_once(self) -> int:
        """How many windows are laid out at a time, at most, on all images together."""
        return self.images_at_once * min(self.places, self.rows_at_once * self.rows[1])

    def row_slices(self) -> Iterator[slice]:
        """The windows of an image, a few rows at a time."""
        return slices(self.positions[self.rows[0]], self.rows_at_once)

    def row_chunks(self) -> Iterator[tuple[object, ...]]:
        """The same, as indices to the axes of the positions."""
        return map(self.at_rows, self.row_slices())

    def at_rows(self, rows: slice) -> tuple[object, ...]:
        """An index to the axes of the positions."""
        return (..., rows, *[slice(None)] * (len(self.positions) - self.rows[0] - 1))


def within_chunk(count: int, each: int) -> int:
    """How many of `count` things CHUNK holds, if each takes so many bytes; one at least."""
    return _within(CHUNK, count, each)


def _within(most: int, count: int, each: int) -> int:
    return max(1, min(count, most // max(each, 1)))


def slices(count: int, size: int) -> Iterator[slice]:
    """0 to `count`, `size` at a time."""
    return (slice(i, min(i + size, count)) for i in range(0, count, max(size, 1)))


def layout(
    wide: Array | TensorType, narrow: Array | TensorType, out: Array | TensorType, windows: Windows, groups: int
) -> Layout:
    """The layout for a result `out`, which is one of the other two."""
    return Layout(windows, groups, wide.shape, narrow.shape, accumulator(out))
