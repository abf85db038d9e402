"""Convolution as a matrix product of the kernel and columns, one panel of columns at a time ("implicit GEMM").

y[n, f, w] = Σ_{c, t} x[n, c, start + w · step + t · tap_step] · k[f, c, t], for the features and channels of a group.
Each element is summed in the order of channels and taps. S. Chetlur et al., "cuDNN" (2014).
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
from engine.codegen.microkernels.routine import MOST_LANES, Int64, Routine, offsets_fit
from engine.ir.run_context import aligned

# Columns: the elements in the windows over an image, copied so that the same tap of neighbouring windows is contiguous.
# This is the "im2col" matrix, which turns convolution into a matrix product. Windows and taps may be exchanged, since
# element start + window · step + tap · tap_step is symmetric in them.

#: largest number of taps in a row for which loops over them are unrolled
MOST_UNROLLED: Final = 8


class Axis(NamedTuple):
    """A spatial axis. Tap t of window w reads element start + w · step + t · tap_step, or 0 outside the `extent`."""

    windows: int
    taps: int
    extent: int
    step: int
    tap_step: int
    start: int

    @property
    def exchanged(self) -> Axis:
        """The axis with windows and taps exchanged."""
        return Axis(self.taps, self.windows, self.extent, self.tap_step, self.step, self.start)

    @property
    def reach(self) -> int:
        """Largest distance from the image's beginning that a vector of windows or of taps may reach, in elements."""
        return (
            abs(self.start)
            + (self.windows + MOST_LANES) * abs(self.step)
            + (self.taps + MOST_LANES) * abs(self.tap_step)
        )

    @property
    def stays_inside(self) -> bool:
        """Whether no tap of any window is outside the image."""
        offsets = [w * self.step + t * self.tap_step for w in (0, self.windows - 1) for t in (0, self.taps - 1)]
        return self.start + min(offsets) >= 0 and self.start + max(offsets) < self.extent


class RowRun(NamedTuple):
    """Consecutive windows of one row that fill at most a vector of a panel: their indices, count and first column."""

    image: Int64
    row: Sequence[Int64]
    window: Int64
    #: windows from here to the end of the row or of the panel
    remaining: Int64
    column: Int64


class Columns(NamedTuple):
    """The matrix with `images` · windows columns and `channels` · taps rows, over images with strides in bytes."""

    axes: tuple[Axis, Axis, Axis]
    images: int
    channels: int
    image_step: int
    channel_step: int
    steps: tuple[int, int, int]
    #: bytes that may be read before the first image's first element, and from it on
    readable: tuple[int, int]

    @property
    def taps(self) -> int:
        """Rows per channel."""
        return self.axes[0].taps * self.axes[1].taps * self.axes[2].taps

    @property
    def windows(self) -> int:
        """Columns per image."""
        return self.axes[0].windows * self.axes[1].windows * self.axes[2].windows

    @contextmanager
    def segments(self, ir: Routine, first: Int64, width: Int64) -> Iterator[RowRun]:
        """Write a loop over the columns `first` to before first + width, one vector of a row of windows at a time."""
        row_windows = self.axes[2].windows
        rows = self.images * self.axes[0].windows * self.axes[1].windows
        past = ir.add(first, width)
        last, _ = ir.divided(ir.add(past, row_windows - 1), row_windows)
        begin, _ = ir.divided(first, row_windows)
        with ir.loop(begin, ir.minimum(last, rows)) as row:
            image, d, h = ir.unravelled(row.index, (self.images, self.axes[0].windows, self.axes[1].windows))
            start = ir.mul(row.index, row_windows)
            begins = ir.maximum(ir.sub(first, start), 0)
            ends = ir.minimum(ir.sub(past, start), row_windows)
            # A vector never crosses the end of a row of windows, so its elements have a constant distance in x.
            with ir.loop(begins, ends, ir.lanes) as window:
                column = ir.sub(ir.add(start, window.index), first)
                yield RowRun(image, (d, h), window.index, ir.sub(ends, window.index), column)

    def pack(
        self, ir: Routine, memory: str, x: str, packed: str, first: Int64, width: int, channels: Int64, pitch: int
    ) -> None:
        """Write the panel of the columns from `first` on, as rows [channel][tap] of `pitch` bytes.

        `memory` is the whole operand, and x its first image to pack. In each row, one vector more than the panel has
        may be written.
        """
        begin = ir.address(memory)
        bounds = ir.sub(begin, self.readable[0]), ir.add(begin, self.readable[1])
        with self.segments(ir, first, width) as run:
            image = ir.at(x, ir.mul(run.image, self.image_step))
            target = ir.at(packed, ir.mul(run.column, ir.size))
            with ir.loop(0, self.axes[0].taps) as td, ir.loop(0, self.axes[1].taps) as th:
                self._pack_row(ir, bounds, image, target, run, (td.index, th.index), channels, pitch)

    def _pack_row(
        self,
        ir: Routine,
        bounds: tuple[Int64, Int64],
        image: str,
        target: str,
        run: RowRun,
        taps: tuple[Int64, Int64],
        channels: Int64,
        pitch: int,
    ) -> None:
        """Write one row of taps for all channels."""
        d, h, w = self.axes
        inside: list[Int64] = []
        for axis, window, tap, step in zip((d, h), run.row, taps, self.steps, strict=False):
            element = ir.add(axis.start, ir.add(ir.mul(window, axis.step), ir.mul(tap, axis.tap_step)))
            image = ir.at(image, ir.mul(element, step))
            inside += [] if axis.stays_inside else [ir.within(element, axis.extent)]
        row = ir.add(ir.mul(taps[0], h.taps), taps[1])
        target = ir.at(target, ir.mul(row, w.taps * pitch))
        start = ir.add(w.start, ir.mul(run.window, w.step))
        row_mask = ""
        for flag in inside:
            row_mask = ir.both(row_mask, ir.all_or_none(flag))
        step = self.steps[2]
        image = ir.at(image, ir.mul(start, step))
        if w.taps <= MOST_UNROLLED:
            self._pack_taps(ir, bounds, image, target, start, row_mask, run.remaining, range(w.taps), channels, pitch)
            return
        with ir.loop(0, w.taps) as each:
            tap_image = ir.at(image, ir.mul(each.index, w.tap_step * step))
            element, into = ir.add(start, ir.mul(each.index, w.tap_step)), ir.at(target, ir.mul(each.index, pitch))
            self._pack_taps(ir, bounds, tap_image, into, element, row_mask, run.remaining, range(1), channels, pitch)

    def _pack_taps(
        self,
        ir: Routine,
        bounds: tuple[Int64, Int64],
        image: str,
        target: str,
        start: Int64,
        row_mask: str,
        remaining: Int64,
        taps: range,
        channels: Int64,
        pitch: int,
    ) -> None:
        """Write consecutive taps of a row for all channels: by plain loads, if these stay inside the operand's memory.

        Plain loads write garbage beyond the end of a run, which the following runs overwrite. Masked loads take several
        times as long, and are used near the ends of the operand.
        """
        w, step = self.axes[2], self.steps[2]
        window_step = w.step * step
        masks = []
        for tap in taps:
            element = ir.add(start, tap * w.tap_step)
            inside = "" if w.stays_inside else ir.between(ir.sub(0, element), ir.sub(w.extent, element), w.step)
            masks.append(ir.both(row_mask, inside))
        offsets = [tap * w.tap_step * step for tap in taps]
        # This is decided once for all taps and channels, so that the inner loops have no branches.
        safe = self._is_safe(ir, bounds, image, offsets, window_step, channels)
        with ir.when("ne", safe, 0), self._each_channel(ir, image, target, channels, pitch) as (place, into):
            for tap, offset, mask in zip(taps, offsets, masks, strict=True):
                read = ir.masked(ir.load_strided(ir.at(place, offset), window_step), mask)
                ir.store(read, ir.at(into, tap * pitch))
        run_mask = ir.below(remaining) or ir.first(ir.lanes)
        with ir.when("eq", safe, 0), self._each_channel(ir, image, target, channels, pitch) as (place, into):
            for tap, offset, mask in zip(taps, offsets, masks, strict=True):
                pointer, masked = ir.at(place, offset), ir.both(run_mask, mask)
                ir.store(ir.load_row(pointer, window_step, masked), ir.at(into, tap * pitch))

    def _is_safe(
        self,
        ir: Routine,
        bounds: tuple[Int64, Int64],
        image: str,
        offsets: Sequence[int],
        window_step: int,
        channels: Int64,
    ) -> Int64:
        """Write 1 if whole vectors can be read for all taps and channels, else 0."""
        if self.channel_step < 0 or window_step <= 0:
            return 0
        place = ir.address(image)
        low = ir.add(place, min(offsets))
        high = ir.add(
            ir.add(place, max(offsets) + ir.lanes * window_step), ir.mul(ir.sub(channels, 1), self.channel_step)
        )
        return ir.both_hold(("sge", low, bounds[0]), ("sle", high, bounds[1]))

    @contextmanager
    def _each_channel(
        self, ir: Routine, image: str, target: str, channels: Int64, pitch: int
    ) -> Iterator[tuple[str, str]]:
        with ir.loop(0, channels, carried=[("ptr", image), ("ptr", target)]) as channel:
            source, into = channel.carried
            yield source, into
            channel.carry = [ir.at(source, self.channel_step), ir.at(into, self.taps * pitch)]


#: approximate number of rows of a panel, so that it stays in the nearest cache
PANEL_ROWS: Final = 288
#: largest kernel, in bytes, that stays in a near cache; and the number of panels for which a larger one is read once
NEAR: Final = 1 << 18
ABREAST: Final = 4
#: fraction of its panels that an image's columns must fill; if they fill less, panels hold columns of several images
_FILLED: Final = 0.9
_OPERANDS_AND_RESULT: Final = (TableEntryOf("operand", 0), TableEntryOf("operand", 1), TableEntryOf("result", 0))


class Layout(NamedTuple):
    """Bytes to the next image (or feature), group, channel, and along spatial axes; offset of the first element."""

    outer: int
    group: int
    channel: int
    axes: tuple[int, int, int]
    start: int = 0


class CorrelationGeometry(NamedTuple):
    """Sizes and layouts of x [images, channels, …], k [features, channels, …] and y [images, features, …].

    `features` and `channels` are those of a group. In the layout of k, `outer` is the axis of features; in that of y,
    `channel` is.
    """

    dtype: str
    itemsize: int
    images: int
    groups: int
    channels: int
    features: int
    axes: tuple[Axis, Axis, Axis]
    x: Layout
    k: Layout
    y: Layout

    @property
    def taps(self) -> int:
        """Number of taps of all axes."""
        return math.prod(axis.taps for axis in self.axes)

    @property
    def windows(self) -> int:
        """Number of windows on one image."""
        return math.prod(axis.windows for axis in self.axes)

    @property
    def flops(self) -> int:
        """A multiplication and an addition per tap, window, channel and feature."""
        return 2 * self.images * self.groups * self.features * self.channels * self.taps * self.windows

    @property
    def readable(self) -> tuple[int, int]:
        """Bytes of x's memory before its first element, and from it on."""
        extents = (self.images, self.groups, self.channels, *(axis.extent for axis in self.axes))
        if 0 in extents:  # if a kernel has fewer taps than steps, some windows are empty
            return 0, 0
        reach = [(n - 1) * s for n, s in zip(extents, (*self.x[:3], *self.x.axes), strict=True)]
        return -sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach) + self.itemsize

    @property
    def is_addressable(self) -> bool:
        """Whether all offsets that kernels compute fit their integers, in x and in a zero-padded plane."""
        reach = [axis.reach for axis in self.axes]
        outer = zip((self.images, self.groups, self.channels), self.x[:3], strict=True)
        lane_steps = [step for axis in self.axes for step in (axis.step, axis.tap_step)]
        in_x, in_plane = [*outer, *zip(reach, self.x.axes, strict=True)], [(math.prod(reach), self.itemsize)]
        return offsets_fit(in_x, lane_steps) and offsets_fit(in_plane, ())

    def columns(self, images: int) -> Columns:
        """Return the columns of `images` images."""
        return Columns(self.axes, images, self.channels, self.x.outer, self.x.channel, self.x.axes, self.readable)


class CorrelationWriter:
    """Writer of the kernel of a correlation."""

    def __init__(self, geometry: CorrelationGeometry) -> None:
        self.geometry = geometry
        self.ir = Routine(geometry.dtype, lanes_for(geometry.itemsize))
        size, lanes = geometry.itemsize, self.ir.lanes
        tile = tile_shape(geometry.features, geometry.images * geometry.windows, lanes)
        narrow = tile.vectors * lanes
        panels = -(-geometry.windows // narrow)
        #: whether a panel has columns of one image only, so that its sums are stored directly in the result
        is_contiguous_result = is_contiguous(geometry.y.axes, [axis.windows for axis in geometry.axes], size)
        self.direct = is_contiguous_result and geometry.windows >= _FILLED * panels * narrow
        self.at_once = 1 if self.direct else geometry.images
        self.columns = geometry.columns(self.at_once)
        self.outer = geometry.images // self.at_once
        self.abreast = self._abreast(-(-self.at_once * geometry.windows // narrow))
        self.width = self.abreast * narrow
        self.panels = -(-self.at_once * geometry.windows // self.width)
        self.chunk = rows_of_item(geometry.features, tile.rows, self.outer * geometry.groups * self.panels)
        self.chunks = -(-geometry.features // self.chunk)
        self.block = max(1, min(geometry.channels, PANEL_ROWS // geometry.taps))
        # Packing may write one vector more than a row has.
        self.pitch = (self.width + lanes) * size
        self.panel_bytes = aligned(self.block * geometry.taps * self.pitch + lanes * size)
        result_step = geometry.y.channel if self.direct else self.width * size
        self.tiles = RowTiles(geometry.features, geometry.k.outer, result_step, tile.rows, tile.vectors)

    @property
    def own(self) -> int:
        """Bytes of a thread's workspace: a panel, and the sums unless they are stored directly."""
        return self.panel_bytes + (
            0 if self.direct else aligned(self.geometry.features * self.width * self.geometry.itemsize)
        )

    def phase(self) -> KernelPhase:
        """Write the kernel."""
        with self.ir.loop("%first", "%past") as item:
            self._item(item.index)
        return self.ir.phase(self.outer * self.geometry.groups * self.panels * self.chunks, self.geometry.flops)

    def _abreast(self, panels: int) -> int:
        """Choose how many panels share one read of the kernel: several if it is large and there are enough items."""
        size = self.geometry.features * self.geometry.channels * self.geometry.taps * self.geometry.itemsize
        items = self.outer * self.geometry.groups * panels
        return max(1, min(ABREAST, panels, items // ITEMS)) if size > NEAR else 1

    def _item(self, item: Int64) -> None:
        ir, geometry = self.ir, self.geometry
        image, group, panel, chunk = ir.unravelled(item, (self.outer, geometry.groups, self.panels, self.chunks))
        memory = ir.place("operand", 0)
        x, k, y = (
            ir.at(ir.place(*entry), ir.add(layout.start, ir.mul(group, layout.group)))
            for entry, layout in zip(_OPERANDS_AND_RESULT, (geometry.x, geometry.k, geometry.y), strict=True)
        )
        x, y = ir.at(x, ir.mul(image, geometry.x.outer)), ir.at(y, ir.mul(image, geometry.y.outer))
        first = ir.mul(panel, self.width)
        packed, sums = ir.place("own", 0, self.panel_bytes), ir.at(y, ir.mul(first, geometry.itemsize))
        if not self.direct:
            sums = ir.place("own", self.panel_bytes, geometry.features * self.width * geometry.itemsize)
        remaining = ir.sub(self.at_once * geometry.windows, first)
        begin = ir.mul(chunk, self.chunk)
        past = ir.minimum(ir.add(begin, self.chunk), geometry.features)
        with ir.loop(0, geometry.channels, self.block) as channel:
            count: Int64 = geometry.channels
            if self.block < geometry.channels:
                count = ir.minimum(self.block, ir.sub(geometry.channels, channel.index))
            channel_x = ir.at(x, ir.mul(channel.index, geometry.x.channel))
            self.columns.pack(ir, memory, channel_x, packed, first, self.width, count, self.pitch)
            numbers = ir.at(k, ir.mul(channel.index, geometry.k.channel))
            adds = channel.index if self.block < geometry.channels else 0
            tile_panel = Panel(packed, self._sum_loops(count), remaining, adds)
            self.tiles.multiply(ir, numbers, tile_panel, sums, begin, past, self.abreast)
        if not self.direct:
            self._spread(y, sums, first, begin, past)

    def _sum_loops(self, channels: Int64) -> list[SumLoop]:
        """Return the loops of a sum, merged to one if they run through the kernel without gaps."""
        geometry, step = self.geometry, self.pitch
        sum_loops = [SumLoop(channels, geometry.k.channel, geometry.taps * step)]
        rows = geometry.taps
        for axis, step_of_axis in zip(geometry.axes, geometry.k.axes, strict=True):
            rows //= axis.taps
            sum_loops.append(SumLoop(axis.taps, step_of_axis, rows * step))
        return merged(self.ir, sum_loops)

    def _spread(self, y: str, sums: str, first: Int64, begin: Int64, past: Int64) -> None:
        """Copy the sums to the result."""
        ir, geometry = self.ir, self.geometry
        step = geometry.y.axes[2]
        with self.columns.segments(ir, first, self.width) as run:
            target = ir.moved(y, (run.image, *run.row, run.window), (geometry.y.outer, *geometry.y.axes))
            source = ir.at(sums, ir.mul(run.column, ir.size))
            mask = ir.below(run.remaining)
            with ir.loop(begin, past) as feature:
                vector = ir.load(ir.at(source, ir.mul(feature.index, self.width * ir.size)), mask)
                into = ir.at(target, ir.mul(feature.index, geometry.y.channel))
                ir.store_row(vector, into, step, mask)


def is_contiguous(steps: Sequence[int], extents: Sequence[int], size: int) -> bool:
    """Whether neighbours over all axes are contiguous, `size` bytes apart."""
    for step, extent in zip(reversed(steps), reversed(extents), strict=True):
        if extent > 1 and step != size:
            return False
        size *= extent
    return True


def merged(ir: Routine, sum_loops: Sequence[SumLoop]) -> list[SumLoop]:
    """Merge nested loops if the outer loop continues where the inner loop ends."""
    loops: list[SumLoop] = []
    for inner in sum_loops:
        if inner.times == 1:
            continue
        if loops and isinstance(inner.times, int):
            outer = loops[-1]
            # The outer loop continues where the inner one ends if its steps are the inner steps times the inner count.
            if outer.row_step == inner.row_step * inner.times and outer.vector_step == inner.vector_step * inner.times:
                loops[-1] = SumLoop(ir.mul(outer.times, inner.times), inner.row_step, inner.vector_step)
                continue
        loops.append(inner)
    return loops
