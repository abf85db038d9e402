"""How much of a convolution is laid out in memory at a time, so that it stays in the cache.

Some groups; of these some images, or some rows of one, where windows are many, and some channels where the windows
themselves are large, as in the gradient by a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from engine.graph.op import Array
from engine.graph.tensor_type import DType, Shape, TensorType
from engine.oplib.accumulate import accumulator
from engine.oplib.windows import Windows

#: bytes of columns laid out at a time, unless one row of windows, or one channel, takes more
CHUNK = 4 << 20
#: windows laid out at a time, at least: for fewer, reading the kernel takes longer than multiplying by it
LEAST = 256


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of one correlation, or of its adjoint: `wide` is what the windows move over, `narrow` what they give.

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
    def large_windows(self) -> bool:
        """Whether a window has more taps than there are windows."""
        return self.windows.taps > self.places

    @property
    def products(self) -> int:
        """Multiplications in all."""
        return math.prod(self.narrow) * self.depth * self.windows.taps

    @property
    def plane_bytes(self) -> int:
        """Bytes of one padded channel of one image."""
        return math.prod(self.windows.padded(self.wide[2:])) * self.dtype.itemsize

    @property
    def place_bytes(self) -> int:
        """Bytes of what one window sees in all channels."""
        return self.wide[1] * self._tap_bytes

    @property
    def groups_at_once(self) -> int:
        """As many groups as CHUNK holds the columns of one image of, one at least."""
        return _at_once(self.groups, self.places * self.place_bytes // self.groups)

    @property
    def groups_of_a_channel(self) -> int:
        """As many groups as CHUNK holds the columns and weights of one channel of, one at least."""
        return _at_once(self.groups, (self.wide[0] * self.places + self.features) * self._tap_bytes)

    def parts(self, groups: int) -> Iterator[tuple[slice, slice, int]]:
        """`groups` at a time: their channels of `wide`, those of `narrow`, and how many they are."""
        for part in slices(self.groups, groups):
            seen, given = (slice(part.start * n, part.stop * n) for n in (self.depth, self.features))
            yield seen, given, part.stop - part.start

    def part(self, groups: int) -> Layout:
        """The layout of so many of the groups."""
        if groups == self.groups:
            return self
        wide = (self.wide[0], groups * self.depth, *self.wide[2:])
        narrow = (self.narrow[0], groups * self.features, *self.narrow[2:])
        return replace(self, groups=groups, wide=wide, narrow=narrow)

    @property
    def images_at_once(self) -> int:
        """As many images as CHUNK holds the columns of, one at least."""
        return _at_once(self.wide[0], self.places * self.place_bytes)

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
        fitting = max(CHUNK // max(self.place_bytes, 1), LEAST) // length
        return max(1, min(self.positions[axis], fitting))

    def row_chunks(self) -> Iterator[tuple[tuple[object, ...], slice]]:
        """The windows of an image, a few rows at a time: where on the axes of the positions, and where among all."""
        axis, length = self.rows
        for rows in slices(self.positions[axis], self.rows_at_once):
            where = (slice(None),) * axis + (rows,) + (slice(None),) * (len(self.positions) - axis - 1)
            yield (..., *where), slice(rows.start * length, rows.stop * length)

    @property
    def channels_at_once(self) -> int:
        """As many channels of each group as CHUNK holds the columns and weights of, one at least."""
        return _at_once(self.depth, (self.wide[0] * self.places + self.features) * self.groups * self._tap_bytes)

    @property
    def images_of_a_channel(self) -> int:
        """Images taken at a time: all, unless a single channel is all there is, and has one window on each of them."""
        if self.depth > 1 or self.places > 1:
            return self.wide[0]
        return _at_once(self.wide[0], 2 * self.groups * self._tap_bytes)

    @property
    def _tap_bytes(self) -> int:
        """Bytes of what one window sees in one channel."""
        return self.windows.taps * self.dtype.itemsize

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """Images, and channels of each group, a few at a time."""
        return product(slices(self.wide[0], self.images_of_a_channel), slices(self.depth, self.channels_at_once))


def _at_once(count: int, each: int) -> int:
    return max(1, min(count, CHUNK // max(each, 1)))


def slices(count: int, size: int) -> Iterator[slice]:
    """0 to `count`, `size` at a time."""
    return (slice(i, min(i + size, count)) for i in range(0, count, max(size, 1)))


def layout(
    wide: Array | TensorType, narrow: Array | TensorType, out: Array | TensorType, windows: Windows, groups: int
) -> Layout:
    """The layout for a result `out`, which is one of the other two."""
    return Layout(windows, groups, wide.shape, narrow.shape, accumulator(out))
