"""Columns: what the windows over an image see, copied so that the same tap of neighbouring windows lies side by side.

The matrix that turns convolution into a product ("im2col"), of which a panel exists at a time. Windows and taps
change places freely: element start + window · step + tap · tap_step is the same seen from either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from engine.microkernels.offsets import MOST_LANES
from engine.microkernels.routine import Int64, Routine

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
        """Windows as taps, and taps as windows."""
        return Axis(self.taps, self.windows, self.extent, self.tap_step, self.step, self.start)

    @property
    def reach(self) -> int:
        """How far from the image's beginning a vector of windows or of taps may look, either way."""
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
    """Windows of one row that fill a vector of a panel, or less: where they are, which lanes, and where they go."""

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
        """For the columns `first` to before first + width: each row of windows that they cut, a vector at a time."""
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
        self,
        to: Routine,
        memory: str,
        x: str,
        packed: str,
        first: Int64,
        width: int,
        channels: Int64,
        pitch: int,
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
        """One row of taps, of all channels."""
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
        """Neighbouring taps of a row, of all channels: by plain loads where they stay inside the operand's memory.

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
        self,
        to: Routine,
        bounds: tuple[Int64, Int64],
        image: str,
        offsets: Sequence[int],
        apart: int,
        channels: Int64,
    ) -> Int64:
        """1 where whole vectors can be read for all taps and channels, else 0."""
        if self.channel_step < 0 or apart <= 0:
            return 0
        at = to.address(image)
        low = to.add(at, min(offsets))
        high = to.add(to.add(at, max(offsets) + to.lanes * apart), to.mul(to.sub(channels, 1), self.channel_step))
        return to.both_hold(("sge", low, bounds[0]), ("sle", high, bounds[1]))

    @contextmanager
    def _each_channel(
        self, to: Routine, image: str, there: str, channels: Int64, pitch: int
    ) -> Iterator[tuple[str, str]]:
        with to.loop(0, channels, carried=[("ptr", image), ("ptr", there)]) as channel:
            here, into = channel.carried
            yield here, into
            channel.carry = [to.at(here, self.channel_step), to.at(into, self.taps * pitch)]
