"""Convolution with a kernel of many taps and few windows, as a gradient by the kernel is: sums that are long.

The same sums as `correlation`, with windows and taps exchanged: rows are the windows of some images, a panel has as
columns the features, and each step is a tap of a channel. Sums stand in memory while channels and taps pass by.
"""

from __future__ import annotations

from typing import Final

from engine.graph.alignment import aligned
from engine.microkernels.columns import Columns
from engine.microkernels.correlation import CorrelationGeometry, lies_flat
from engine.microkernels.packing import transpose_rows
from engine.microkernels.recipe import KernelPhase, Recipe
from engine.microkernels.register_tile import SumLoop, lanes_for, tile_shape
from engine.microkernels.routine import Int64, Routine
from engine.microkernels.row_tiles import Panel, RowTiles

#: taps that are taken at a time: so long what they see stays in the cache
TAPS_AT_ONCE: Final = 64
#: rows of an item, about: so many repay turning the kernel
ROWS_OF_AN_ITEM: Final = 288
#: items at least, so that threads find work; else the sum is taken in so many parts
PARTS: Final = 4


def correlation_by_kernel(of: CorrelationGeometry) -> Recipe | None:
    """The kernels of such a correlation; None where the taps of the kernel do not lie side by side."""
    if not lies_flat(of.k.axes, [axis.taps for axis in of.axes], of.itemsize):
        return None
    return _Writer(of).recipe()


class _Writer:
    def __init__(self, of: CorrelationGeometry) -> None:
        self.of = of
        lanes = lanes_for(of.itemsize)
        each = of.windows
        self.ranges = -(-of.images // max(1, ROWS_OF_AN_ITEM // each))
        self.images = -(-of.images // self.ranges)
        self.parts = 1 if of.groups * self.ranges >= PARTS else min(of.channels, PARTS)
        self.tile = tile_shape(min(self.images * each, ROWS_OF_AN_ITEM), of.features, lanes)
        self.width = self.tile.vectors * lanes
        self.panels = -(-of.features // self.width)
        self.depth = min(TAPS_AT_ONCE, -(-of.taps // lanes) * lanes)
        self.pitch = (self.depth + lanes) * of.itemsize
        self.columns_bytes = aligned(self.images * each * self.pitch + lanes * of.itemsize)
        self.row = self.panels * self.width * of.itemsize
        self.turned_bytes = self.depth * self.width * of.itemsize
        #: of the sums of a group, of one part
        self.sums_bytes = self.ranges * self.images * each * self.row

    def recipe(self) -> Recipe:
        """Sums in parts, then the parts together, turned to where they belong."""
        own = self.columns_bytes + aligned(self.turned_bytes)
        return Recipe((self._summed(), self._turned()), aligned(self._all_sums), own)

    @property
    def _all_sums(self) -> int:
        return self.parts * self.of.groups * self.sums_bytes

    def _sums(self, to: Routine) -> str:
        return to.place("shared", 0, self._all_sums)

    def _summed(self) -> KernelPhase:
        to = Routine(self.of.dtype, lanes_for(self.of.itemsize))
        with to.loop("%first", "%past") as item:
            self._sum(to, item.index)
        return to.phase(self.of.groups * self.ranges * self.parts, self.of.flops)

    def _sum(self, to: Routine, item: Int64) -> None:
        """The sums of some images and a part of the channels."""
        of = self.of
        group, images, part = to.unravelled(item, (of.groups, self.ranges, self.parts))
        memory, packed = to.place("operand", 0), to.place("own", 0, self.columns_bytes)
        x = to.at(memory, to.add(of.x.start, to.mul(group, of.x.group)))
        k = to.at(to.place("operand", 1), to.add(of.k.start, to.mul(group, of.k.group)))
        begin = to.mul(images, self.images)
        x = to.at(x, to.mul(begin, of.x.outer))
        count = to.least(self.images, to.sub(of.images, begin))
        sums = to.at(self._sums(to), to.mul(to.add(to.mul(part, of.groups), group), self.sums_bytes))
        sums = to.at(sums, to.mul(begin, of.windows * self.row))
        first, past = self._channels(to, part)
        seen = self._columns()
        with to.loop(first, past) as channel, to.loop(0, of.taps, self.depth) as tap:
            here = to.at(x, to.mul(channel.index, of.x.channel))
            seen.pack(to, memory, here, packed, tap.index, self.depth, count, self.pitch)
            there = to.at(k, to.add(to.mul(channel.index, of.k.channel), to.mul(tap.index, of.itemsize)))
            done = to.add(to.sub(channel.index, first), tap.index)
            self._multiply(to, packed, there, sums, to.least(self.depth, to.sub(of.taps, tap.index)), done)

    def _channels(self, to: Routine, part: Int64) -> tuple[Int64, Int64]:
        count = self.of.channels
        if self.parts == 1:
            return 0, count
        first, _ = to.divided(to.mul(part, count), self.parts)
        past, _ = to.divided(to.mul(to.add(part, 1), count), self.parts)
        return first, past

    def _columns(self) -> Columns:
        """Of one channel: what taps see, those of all windows of an image, image by image."""
        of = self.of
        d, h, w = of.axes
        axes = d.exchanged, h.exchanged, w.exchanged
        return Columns(axes, 1, self.images, 0, of.x.outer, of.x.axes, of.readable)

    def _multiply(self, to: Routine, packed: str, k: str, sums: str, taps: Int64, done: Int64) -> None:
        """Add the products of some taps, a panel of features after the other.

        Where there are fewer images than an item has rows for, it has the rows of none, and nobody reads them.
        """
        of, size = self.of, self.of.itemsize
        turned = to.place("own", self.columns_bytes, self.turned_bytes)
        tiles = RowTiles(self.images * of.windows, self.pitch, self.row, self.tile.rows, self.tile.vectors)
        with to.loop(0, self.panels) as panel:
            features = to.mul(panel.index, self.width)
            left = to.sub(of.features, features)
            source = to.at(k, to.mul(features, of.k.outer))
            transpose_rows(to, source, turned, taps, of.k.outer, size, self.tile.vectors, left)
            into = to.at(sums, to.mul(features, size))
            sum_loop = SumLoop(taps, size, self.width * size)
            tiles.multiply(to, packed, Panel(turned, [sum_loop], self.width, done), into)

    def _turned(self) -> KernelPhase:
        """For each image and group the sums of all parts, [windows, features], turned to [features, windows].

        Windows are taken by runs that lie side by side in the result: all of an image, or those of a row.
        """
        of = self.of
        to = Routine(of.dtype, lanes_for(of.itemsize))
        blocks = -(-of.features // to.lanes)
        flat = lies_flat(of.y.axes, [axis.windows for axis in of.axes], of.itemsize)
        run, step = (of.windows, of.itemsize) if flat else (of.axes[2].windows, of.y.axes[2])
        outer = [axis.windows for axis in of.axes[:2]] if run < of.windows else [1, 1]
        with to.loop("%first", "%past") as item:
            image, group, block, d, h = to.unravelled(item.index, (of.images, of.groups, blocks, *outer))
            features = to.mul(block, to.lanes)
            y = to.at(to.place("result", 0), to.add(of.y.start, to.mul(image, of.y.outer)))
            y = to.at(y, to.add(to.mul(group, of.y.group), to.mul(features, of.y.channel)))
            y = to.at(y, to.add(to.mul(d, of.y.axes[0]), to.mul(h, of.y.axes[1])))
            window = to.mul(to.add(to.mul(d, outer[1]), h), run)
            sums = to.at(self._sums(to), to.add(to.mul(group, self.sums_bytes), to.mul(features, of.itemsize)))
            sums = to.at(sums, to.mul(to.add(to.mul(image, of.windows), window), self.row))
            with to.loop(0, run, to.lanes) as some:
                self._turn(to, sums, y, some.index, run, step, to.sub(of.features, features))
        items = of.images * of.groups * blocks * outer[0] * outer[1]
        return to.phase(items, of.images * of.groups * of.features * of.windows * self.parts)

    def _turn(self, to: Routine, sums: str, y: str, window: Int64, run: int, step: int, features: Int64) -> None:
        of, read = self.of, []
        for lane in range(to.lanes):
            # a window that is not there is read as the last one that is, and never stored
            here = to.at(sums, to.mul(to.least(to.add(window, lane), run - 1), self.row))
            total = to.load(here)
            for part in range(1, self.parts):
                total = to.sum(total, to.load(to.at(here, part * of.groups * self.sums_bytes)))
            read.append(total)
        some = to.between(0, to.sub(run, window))
        for lane, vector in enumerate(to.transposed(read)):
            with to.when("slt", lane, features):
                into = to.at(y, to.add(lane * of.y.channel, to.mul(window, step)))
                to.store_row(vector, into, step, some)
