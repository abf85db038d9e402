"""Convolution as products of the kernel and columns, of which a panel exists at a time.

y[n, f, w] = Σ_{c, t} x[n, c, start + w · step + t · tap_step] · k[f, c, t], for features and channels of a group, each
summed up in the order of channels and taps ("implicit GEMM"; S. Chetlur et al., "cuDNN", 2014).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from engine.codegen.microkernels.recipe import KernelPhase, TableEntryOf
from engine.codegen.microkernels.register_tile import (
    ITEMS,
    Panel,
    RowTiles,
    SumLoop,
    lanes_for,
    rows_of_item,
    tile_shape,
)
from engine.codegen.microkernels.routine import MOST_LANES, Int64, Routine, hold_offsets
from engine.ir.run_context import aligned

# Columns: what the windows over an image see, copied so that the same tap of neighbouring windows lies side by side.
# This is the matrix that turns convolution into a product ("im2col"). Windows and taps change places freely: element
# start + window · step + tap · tap_step is the same seen from either.

#: taps of a row that are written out one after the other
MOST_UNROLLED: Final = 8


class Axis(NamedTuple):
    """A spatial axis: the tap t of window w sees the element start + w · step + t · tap_step, 0 beyond `extent`."""

    windows: int
    taps: int
    extent: int
    step: int
    tap_step: int
    start: int

    @property
    def exchanged(self) -> Axis:
        """The axis with windows as taps, and taps as windows."""
        return Axis(self.taps, self.windows, self.extent, self.tap_step, self.step, self.start)

    @property
    def reach(self) -> int:
        """Elements from the image's beginning that a vector of windows or of taps may reach, either way."""
        return (
            abs(self.start)
            + (self.windows + MOST_LANES) * abs(self.step)
            + (self.taps + MOST_LANES) * abs(self.tap_step)
        )

    @property
    def stays_inside(self) -> bool:
        """Whether no tap of any window lies beyond the image."""
        far = [w * self.step + t * self.tap_step for w in (0, self.windows - 1) for t in (0, self.taps - 1)]
        return self.start + min(far) >= 0 and self.start + max(far) < self.extent


class RowRun(NamedTuple):
    """Windows of one row that fill a vector of a panel, or less: their place, their lanes, and their columns."""

    image: Int64
    row: Sequence[Int64]
    window: Int64
    #: windows from here to the end of the row, or of the panel
    left: Int64
    column: Int64


class Columns(NamedTuple):
    """The matrix of `images` · windows columns and `channels` · taps rows, over images with these steps in bytes."""

    axes: tuple[Axis, Axis, Axis]
    images: int
    channels: int
    image_step: int
    channel_step: int
    steps: tuple[int, int, int]
    #: bytes before the first image's first element, and from there, that may be read
    readable: tuple[int, int]

    @property
    def taps(self) -> int:
        """Rows for each channel."""
        return self.axes[0].taps * self.axes[1].taps * self.axes[2].taps

    @property
    def windows(self) -> int:
        """Columns for each image."""
        return self.axes[0].windows * self.axes[1].windows * self.axes[2].windows

    @contextmanager
    def segments(self, to: Routine, first: Int64, width: Int64) -> Iterator[RowRun]:
        """Write a loop over the columns `first` to before first + width: a vector at a time of each row of windows."""
        row_windows = self.axes[2].windows
        rows = self.images * self.axes[0].windows * self.axes[1].windows
        past = to.add(first, width)
        last, _ = to.divided(to.add(past, row_windows - 1), row_windows)
        begin, _ = to.divided(first, row_windows)
        with to.loop(begin, to.least(last, rows)) as each:
            image, d, h = to.unravelled(each.index, (self.images, self.axes[0].windows, self.axes[1].windows))
            start = to.mul(each.index, row_windows)
            begins = to.most(to.sub(first, start), 0)
            ends = to.least(to.sub(past, start), row_windows)
            with to.loop(begins, ends, to.lanes) as window:
                column = to.sub(to.add(start, window.index), first)
                yield RowRun(image, (d, h), window.index, to.sub(ends, window.index), column)

    def pack(
        self, to: Routine, memory: str, x: str, packed: str, first: Int64, width: int, channels: Int64, pitch: int
    ) -> None:
        """Write the panel of the columns from `first` on: rows [channel][tap] of `pitch` bytes, zeros where it is over.

        `memory` is the operand, of which x is the first image of these. A vector more than the panel has is written to
        in each row.
        """
        begin = to.address(memory)
        bounds = to.sub(begin, self.readable[0]), to.add(begin, self.readable[1])
        with self.segments(to, first, width) as found:
            image = to.at(x, to.mul(found.image, self.image_step))
            there = to.at(packed, to.mul(found.column, to.size))
            with to.loop(0, self.axes[0].taps) as td, to.loop(0, self.axes[1].taps) as th:
                self._pack_row(to, bounds, image, there, found, (td.index, th.index), channels, pitch)

    def _pack_row(
        self,
        to: Routine,
        bounds: tuple[Int64, Int64],
        image: str,
        there: str,
        found: RowRun,
        taps: tuple[Int64, Int64],
        channels: Int64,
        pitch: int,
    ) -> None:
        """Write one row of taps, of all channels."""
        d, h, w = self.axes
        inside: list[Int64] = []
        for axis, window, tap, step in zip((d, h), found.row, taps, self.steps, strict=False):
            at = to.add(axis.start, to.add(to.mul(window, axis.step), to.mul(tap, axis.tap_step)))
            image = to.at(image, to.mul(at, step))
            inside += [] if axis.stays_inside else [to.within(at, axis.extent)]
        row = to.add(to.mul(taps[0], h.taps), taps[1])
        there = to.at(there, to.mul(row, w.taps * pitch))
        start = to.add(w.start, to.mul(found.window, w.step))
        rows = ""
        for flag in inside:
            rows = to.both(rows, to.all_or_none(flag))
        step = self.steps[2]
        image = to.at(image, to.mul(start, step))
        if w.taps <= MOST_UNROLLED:
            self._pack_taps(to, bounds, image, there, start, rows, found.left, range(w.taps), channels, pitch)
            return
        with to.loop(0, w.taps) as each:
            here = to.at(image, to.mul(each.index, w.tap_step * step))
            at, into = to.add(start, to.mul(each.index, w.tap_step)), to.at(there, to.mul(each.index, pitch))
            self._pack_taps(to, bounds, here, into, at, rows, found.left, range(1), channels, pitch)

    def _pack_taps(
        self,
        to: Routine,
        bounds: tuple[Int64, Int64],
        image: str,
        there: str,
        start: Int64,
        rows: str,
        left: Int64,
        taps: range,
        channels: Int64,
        pitch: int,
    ) -> None:
        """Write neighbouring taps of a row, of all channels: by plain loads if these stay inside the operand's memory.

        What these read beyond the row is written over by the rows that follow. Loads with masks take several times as
        long, and are for the ends.
        """
        w, step = self.axes[2], self.steps[2]
        apart = w.step * step
        seen = []
        for tap in taps:
            at = to.add(start, tap * w.tap_step)
            inside = "" if w.stays_inside else to.between(to.sub(0, at), to.sub(w.extent, at), w.step)
            seen.append(to.both(rows, inside))
        offsets = [tap * w.tap_step * step for tap in taps]
        safe = self._is_safe(to, bounds, image, offsets, apart, channels)
        with to.when("ne", safe, 0), self._each_channel(to, image, there, channels, pitch) as (place, into):
            for tap, offset, mask in zip(taps, offsets, seen, strict=True):
                read = to.kept(to.load_apart(to.at(place, offset), apart), mask)
                to.store(read, to.at(into, tap * pitch))
        some = to.below(left) or to.first(to.lanes)
        with to.when("eq", safe, 0), self._each_channel(to, image, there, channels, pitch) as (place, into):
            for tap, offset, mask in zip(taps, offsets, seen, strict=True):
                here, masked = to.at(place, offset), to.both(some, mask)
                to.store(to.load_row(here, apart, masked), to.at(into, tap * pitch))

    def _is_safe(
        self, to: Routine, bounds: tuple[Int64, Int64], image: str, offsets: Sequence[int], apart: int, channels: Int64
    ) -> Int64:
        """Write 1 if whole vectors can be read for all taps and channels, else 0."""
        if self.channel_step < 0 or apart <= 0:
            return 0
        place = to.address(image)
        low = to.add(place, min(offsets))
        high = to.add(to.add(place, max(offsets) + to.lanes * apart), to.mul(to.sub(channels, 1), self.channel_step))
        return to.both_hold(("sge", low, bounds[0]), ("sle", high, bounds[1]))

    @contextmanager
    def _each_channel(
        self, to: Routine, image: str, there: str, channels: Int64, pitch: int
    ) -> Iterator[tuple[str, str]]:
        with to.loop(0, channels, carried=[("ptr", image), ("ptr", there)]) as channel:
            here, into = channel.carried
            yield here, into
            channel.carry = [to.at(here, self.channel_step), to.at(into, self.taps * pitch)]


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
        """Taps of all axes."""
        return math.prod(axis.taps for axis in self.axes)

    @property
    def windows(self) -> int:
        """Windows on one image."""
        return math.prod(axis.windows for axis in self.axes)

    @property
    def flops(self) -> int:
        """A multiplication and an addition for each tap of each window, for each channel and feature."""
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
        """Return the columns of so many images."""
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
        self.chunk = rows_of_item(of.features, tile.rows, self.outer * of.groups * self.panels)
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
        """Choose how many panels share what is read of the kernel: several if it is large, as long as items remain."""
        size = self.of.features * self.of.channels * self.of.taps * self.of.itemsize
        items = self.outer * self.of.groups * panels
        return max(1, min(ABREAST, panels, items // ITEMS)) if size > NEAR else 1

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
        """Return the loops of a sum; one if they run through the kernel without a gap."""
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
    """Merge loops of which the outer one goes on where the inner one ends."""
    loops: list[SumLoop] = []
    for each in sum_loops:
        if each.times == 1:
            continue
        if loops and isinstance(each.times, int):
            outer = loops[-1]
            if outer.row_step == each.row_step * each.times and outer.vector_step == each.vector_step * each.times:
                loops[-1] = SumLoop(to.mul(outer.times, each.times), each.row_step, each.vector_step)
                continue
        loops.append(each)
    return loops
