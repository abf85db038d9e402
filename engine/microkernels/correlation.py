"""Convolution as products of the kernel and columns, of which a panel exists at a time.

y[n, f, w] = Σ_{c, t} x[n, c, start + w · step + t · tap_step] · k[f, c, t], for features and channels of a group, each
summed up in the order of channels and taps ("implicit GEMM"; S. Chetlur et al., "cuDNN", 2014).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.graph.alignment import aligned
from engine.microkernels.columns import Axis, Columns
from engine.microkernels.offsets import hold_offsets
from engine.microkernels.recipe import KernelPhase, TableEntryOf
from engine.microkernels.register_tile import ITEMS, TILES_OF_A_PANEL, SumLoop, lanes_for, tile_shape
from engine.microkernels.routine import Int64, Routine
from engine.microkernels.row_tiles import Panel, RowTiles

#: rows of a panel, about: so that it stays in the nearest cache
PANEL_ROWS: Final = 288
#: bytes of a kernel that stays near by itself; and panels that share what is read of a larger one
NEAR: Final = 1 << 18
ABREAST: Final = 4
#: what part of its panels one image must fill for its columns to have panels of their own
_FILLED: Final = 0.9
_OPERANDS_AND_RESULT: Final = (TableEntryOf("operand", 0), TableEntryOf("operand", 1), TableEntryOf("result", 0))


class Lying(NamedTuple):
    """Bytes to the next image (or feature), group, and channel, and along each spatial axis; and where the first is."""

    outer: int
    group: int
    channel: int
    axes: tuple[int, int, int]
    start: int = 0


class CorrelationGeometry(NamedTuple):
    """The sizes, and how the three lie: x [images, channels, …], k [features, channels, …], y [images, features, …].

    `features` and `channels` are those of a group. A kernel's `outer` are features, and a result's `channel`s are.
    """

    dtype: str
    itemsize: int
    images: int
    groups: int
    channels: int
    features: int
    axes: tuple[Axis, Axis, Axis]
    x: Lying
    k: Lying
    y: Lying

    @property
    def taps(self) -> int:
        """Of all axes."""
        return math.prod(axis.taps for axis in self.axes)

    @property
    def windows(self) -> int:
        """On one image."""
        return math.prod(axis.windows for axis in self.axes)

    @property
    def flops(self) -> int:
        """A multiplication and an addition for each tap of each window, in each channel that it sees or gives."""
        return 2 * self.images * self.groups * self.features * self.channels * self.taps * self.windows

    @property
    def readable(self) -> tuple[int, int]:
        """Bytes before the first element of x, and from there, that belong to it."""
        extents = (self.images, self.groups, self.channels, *(axis.extent for axis in self.axes))
        if 0 in extents:  # of a kernel with fewer taps than steps, some windows see nothing
            return 0, 0
        reach = [(n - 1) * s for n, s in zip(extents, (*self.x[:3], *self.x.axes), strict=True)]
        return -sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach) + self.itemsize

    @property
    def is_addressable(self) -> bool:
        """Whether all offsets that kernels compute fit their words: in x, and in a plane with zeros around it."""
        reach = [axis.reach for axis in self.axes]
        outer = zip((self.images, self.groups, self.channels), self.x[:3], strict=True)
        apart = [step for axis in self.axes for step in (axis.step, axis.tap_step)]
        in_x, in_plane = [*outer, *zip(reach, self.x.axes, strict=True)], [(math.prod(reach), self.itemsize)]
        return hold_offsets(in_x, apart) and hold_offsets(in_plane, ())

    def columns(self, images: int) -> Columns:
        """Those of so many images."""
        return Columns(self.axes, images, self.channels, self.x.outer, self.x.channel, self.x.axes, self.readable)


class CorrelationWriter:
    """Writer of the kernel of one correlation."""

    def __init__(self, of: CorrelationGeometry) -> None:
        self.of = of
        self.to = Routine(of.dtype, lanes_for(of.itemsize))
        size, lanes = of.itemsize, self.to.lanes
        tile = tile_shape(of.features, of.images * of.windows, lanes)
        narrow = tile.vectors * lanes
        panels = -(-of.windows // narrow)
        #: whether a panel has columns of one image, and is added up where the result lies
        flat = lies_flat(of.y.axes, [axis.windows for axis in of.axes], size)
        self.direct = flat and of.windows >= _FILLED * panels * narrow
        self.at_once = 1 if self.direct else of.images
        self.columns = of.columns(self.at_once)
        self.outer = of.images // self.at_once
        self.abreast = self._abreast(-(-self.at_once * of.windows // narrow))
        self.width = self.abreast * narrow
        self.panels = -(-self.at_once * of.windows // self.width)
        self.chunk = self._chunk(tile.rows)
        self.chunks = -(-of.features // self.chunk)
        self.block = max(1, min(of.channels, PANEL_ROWS // of.taps))
        self.pitch = (self.width + lanes) * size
        self.panel_bytes = aligned(self.block * of.taps * self.pitch + lanes * size)
        result_step = of.y.channel if self.direct else self.width * size
        self.tiles = RowTiles(of.features, of.k.outer, result_step, tile.rows, tile.vectors)

    @property
    def own(self) -> int:
        """Bytes of workspace of a thread: a panel, and the sums where they do not lie flat."""
        return self.panel_bytes + (0 if self.direct else aligned(self.of.features * self.width * self.of.itemsize))

    def phase(self) -> KernelPhase:
        """The kernel."""
        with self.to.loop("%first", "%past") as item:
            self._item(item.index)
        return self.to.phase(self.outer * self.of.groups * self.panels * self.chunks, self.of.flops)

    def _abreast(self, panels: int) -> int:
        """How many panels share what is read of the kernel: several, where it is large, as long as items remain."""
        size = self.of.features * self.of.channels * self.of.taps * self.of.itemsize
        items = self.outer * self.of.groups * panels
        return max(1, min(ABREAST, panels, items // ITEMS)) if size > NEAR else 1

    def _chunk(self, rows: int) -> int:
        """Features of an item: all, unless there are few panels."""
        wanted = -(-ITEMS // (self.outer * self.of.groups * self.panels))
        tiles = -(-self.of.features // rows)
        return rows * max(-(-tiles // wanted), min(tiles, TILES_OF_A_PANEL))

    def _item(self, item: Int64) -> None:
        to, of = self.to, self.of
        image, group, panel, chunk = to.unravelled(item, (self.outer, of.groups, self.panels, self.chunks))
        memory = to.place("operand", 0)
        x, k, y = (
            to.at(to.place(*entry), to.add(lying.start, to.mul(group, lying.group)))
            for entry, lying in zip(_OPERANDS_AND_RESULT, (of.x, of.k, of.y), strict=True)
        )
        x, y = to.at(x, to.mul(image, of.x.outer)), to.at(y, to.mul(image, of.y.outer))
        first = to.mul(panel, self.width)
        packed, sums = to.place("own", 0, self.panel_bytes), to.at(y, to.mul(first, of.itemsize))
        if not self.direct:
            sums = to.place("own", self.panel_bytes, of.features * self.width * of.itemsize)
        left = to.sub(self.at_once * of.windows, first)
        begin = to.mul(chunk, self.chunk)
        past = to.least(to.add(begin, self.chunk), of.features)
        with to.loop(0, of.channels, self.block) as channel:
            count: Int64 = of.channels
            if self.block < of.channels:
                count = to.least(self.block, to.sub(of.channels, channel.index))
            here = to.at(x, to.mul(channel.index, of.x.channel))
            self.columns.pack(to, memory, here, packed, first, self.width, count, self.pitch)
            numbers = to.at(k, to.mul(channel.index, of.k.channel))
            adds = channel.index if self.block < of.channels else 0
            panel_of = Panel(packed, self._sum_loops(count), left, adds)
            self.tiles.multiply(to, numbers, panel_of, sums, begin, past, self.abreast)
        if not self.direct:
            self._spread(y, sums, first, begin, past)

    def _sum_loops(self, channels: Int64) -> list[SumLoop]:
        """The loops of a sum, one where they run through the kernel without a gap."""
        of, step = self.of, self.pitch
        sum_loops = [SumLoop(channels, of.k.channel, of.taps * step)]
        rows = of.taps
        for axis, lying in zip(of.axes, of.k.axes, strict=True):
            rows //= axis.taps
            sum_loops.append(SumLoop(axis.taps, lying, rows * step))
        return merged(self.to, sum_loops)

    def _spread(self, y: str, sums: str, first: Int64, begin: Int64, past: Int64) -> None:
        """Copy the sums to where they belong."""
        to, of = self.to, self.of
        step = of.y.axes[2]
        with self.columns.segments(to, first, self.width) as found:
            there = to.moved(y, (found.image, *found.row, found.window), (of.y.outer, *of.y.axes))
            here = to.at(sums, to.mul(found.column, to.size))
            mask = to.below(found.left)
            with to.loop(begin, past) as feature:
                vector = to.load(to.at(here, to.mul(feature.index, self.width * to.size)), mask)
                into = to.at(there, to.mul(feature.index, of.y.channel))
                to.store_row(vector, into, step, mask)


def lies_flat(steps: Sequence[int], extents: Sequence[int], size: int) -> bool:
    """Whether neighbours lie side by side over all axes, `size` bytes apart."""
    for step, extent in zip(reversed(steps), reversed(extents), strict=True):
        if extent > 1 and step != size:
            return False
        size *= extent
    return True


def merged(to: Routine, sum_loops: Sequence[SumLoop]) -> list[SumLoop]:
    """Loops in place of which one runs, where the outer one goes on where the inner one ends."""
    found: list[SumLoop] = []
    for each in sum_loops:
        if each.times == 1:
            continue
        if found and isinstance(each.times, int):
            outer = found[-1]
            if outer.row_step == each.row_step * each.times and outer.vector_step == each.vector_step * each.times:
                found[-1] = SumLoop(to.mul(outer.times, each.times), each.row_step, each.vector_step)
                continue
        found.append(each)
    return found
