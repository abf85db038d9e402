"""Convolution of single channels: no tile of numbers and vectors, but vectors along the width of a padded plane."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from engine.codegen.microkernels.correlation import Axis, CorrelationGeometry
from engine.codegen.microkernels.recipe import KernelPhase, Recipe
from engine.codegen.microkernels.register_tile import SUMMED, lanes_for
from engine.codegen.microkernels.routine import Int64, Routine
from engine.ir.run_context import aligned

#: taps, or windows where these are few, that are written out one after the other
MOST_TAPS: Final = 49
#: sums in registers
MOST_WINDOWS: Final = 24
#: rows of windows at a time
ROWS_ABREAST: Final = 4
ORIGIN: Final = (0, 0, 0)


def is_depthwise(of: CorrelationGeometry) -> bool:
    """Whether `depthwise` makes it: features of one channel each, by few taps."""
    return of.channels == 1 and of.taps <= MOST_TAPS and of.features <= 2


def is_depthwise_by_kernel(of: CorrelationGeometry) -> bool:
    """Whether `depthwise_by_kernel` makes it: few windows of one image, and kernels of one feature."""
    return of.images == 1 and of.features == 1 and of.windows <= MOST_WINDOWS


class Plane:
    """One channel of an image with zeros around it, in a thread's own memory: all that windows and taps see."""

    def __init__(self, of: CorrelationGeometry, lanes: int) -> None:
        self.of = of
        self._begins = [min(_reached(axis)) for axis in of.axes]
        self._extents = [max(_reached(axis)) - begin + 1 for axis, begin in zip(of.axes, self._begins, strict=True)]
        far = max(abs(of.axes[2].step), abs(of.axes[2].tap_step))
        # and what a vector reads beyond the last row
        self.nbytes = aligned((math.prod(self._extents) + 2 * lanes * far) * of.itemsize)

    def clear(self, to: Routine, plane: str) -> None:
        """Write zeros everywhere: the border around channels stays so."""
        with to.loop(0, self.nbytes, to.lanes * to.size) as at:
            to.store(to.zero, to.at(plane, at.index))

    def fill(self, to: Routine, x: str, plane: str) -> None:
        """Copy a channel to its place."""
        of, size = self.of, self.of.itemsize
        firsts = [max(0, begin) for begin in self._begins]
        pasts = [
            min(axis.extent, begin + extent)
            for axis, begin, extent in zip(of.axes, self._begins, self._extents, strict=True)
        ]
        if any(first >= past for first, past in zip(firsts, pasts, strict=True)):
            return
        with to.loop(firsts[0], pasts[0]) as d, to.loop(firsts[1], pasts[1]) as h:
            here = to.at(x, to.add(to.mul(d.index, of.x.axes[0]), to.mul(h.index, of.x.axes[1])))
            row = to.add(to.mul(to.sub(d.index, self._begins[0]), self._extents[1]), to.sub(h.index, self._begins[1]))
            there = to.at(plane, to.mul(row, self._extents[2] * size))
            for w, mask in _vectors(firsts[2], pasts[2], to.lanes):
                read = to.load_row(to.at(here, w * of.x.axes[2]), of.x.axes[2], to.first(mask) if mask else "")
                to.store(read, to.at(there, (w - self._begins[2]) * size), to.first(mask) if mask else "")

    def offset(self, window: Sequence[int], tap: Sequence[int]) -> int:
        """Return the bytes from the plane's beginning to what a tap of a window sees."""
        at = 0
        for axis, begin, extent, w, t in zip(self.of.axes, self._begins, self._extents, window, tap, strict=True):
            at = at * extent + axis.start - begin + w * axis.step + t * axis.tap_step
        return at * self.of.itemsize


def _vectors(first: int, past: int, lanes: int) -> Iterator[tuple[int, int]]:
    """Yield the first element of each vector of a row, and its lanes if it is not full; the last vectors overlap."""
    if past - first < lanes:
        yield first, past - first
        return
    yield from ((at, 0) for at in range(first, past - lanes, lanes))
    yield past - lanes, 0


def _reached(axis: Axis) -> list[int]:
    """List the elements at the ends of what taps and windows see."""
    ends = product((0, axis.windows - 1), (0, axis.taps - 1))
    return [axis.start + w * axis.step + t * axis.tap_step for w, t in ends]


def depthwise(of: CorrelationGeometry) -> tuple[KernelPhase, int]:
    """Write the kernel where `is_depthwise`; return it, and its workspace. An item is a channel of an image."""
    to = Routine(of.dtype, lanes_for(of.itemsize))
    plane = Plane(of, to.lanes)
    own = to.place("own", 0, plane.nbytes)
    plane.clear(to, own)
    with to.loop("%first", "%past") as item:
        image, group = to.unravelled(item.index, (of.images, of.groups))
        x, k, y = _channel(to, of, group)
        plane.fill(to, to.at(x, to.mul(image, of.x.outer)), own)
        y = to.at(y, to.mul(image, of.y.outer))
        for feature in range(of.features):
            _correlate(to, plane, own, to.at(k, feature * of.k.outer), to.at(y, feature * of.y.channel))
    return to.phase(of.images * of.groups, of.flops), plane.nbytes


def _channel(to: Routine, of: CorrelationGeometry, group: Int64) -> tuple[str, str, str]:
    """Write the places of a group in x, k and y."""
    return (
        to.at(to.place("operand", 0), to.add(of.x.start, to.mul(group, of.x.group))),
        to.at(to.place("operand", 1), to.add(of.k.start, to.mul(group, of.k.group))),
        to.at(to.place("result", 0), to.add(of.y.start, to.mul(group, of.y.group))),
    )


def _correlate(to: Routine, plane: Plane, own: str, k: str, y: str) -> None:
    """Write one channel, some rows at a time: elements that neighbours share are read once."""
    of = plane.of
    taps = list(product(*(range(axis.taps) for axis in of.axes)))
    numbers = [to.broadcast(to.at(k, sum(t * s for t, s in zip(tap, of.k.axes, strict=True)))) for tap in taps]
    d, h, w = of.axes
    rows = min(ROWS_ABREAST, h.windows)
    with to.loop(0, d.windows) as depth, to.loop(0, h.windows, rows) as height:
        first = to.least(height.index, h.windows - rows)
        moved = to.add(
            to.mul(depth.index, plane.offset((1, 0, 0), ORIGIN) - plane.offset(ORIGIN, ORIGIN)),
            to.mul(first, plane.offset((0, 1, 0), ORIGIN) - plane.offset(ORIGIN, ORIGIN)),
        )
        here = to.at(own, moved)
        into = to.at(y, to.add(to.mul(depth.index, of.y.axes[0]), to.mul(first, of.y.axes[1])))
        for at, lanes in _vectors(0, w.windows, to.lanes):
            read: dict[int, str] = {}
            for row in range(rows):
                total = to.zero
                for tap, number in zip(taps, numbers, strict=True):
                    place = plane.offset((0, row, at), tap)
                    if place not in read:
                        read[place] = to.load_apart(to.at(here, place), w.step * to.size)
                    total = to.fma(number, read[place], total)
                there = to.at(into, row * of.y.axes[1] + at * of.y.axes[2])
                to.store_row(total, there, of.y.axes[2], to.first(lanes) if lanes else "")


def depthwise_by_kernel(of: CorrelationGeometry) -> Recipe:
    """Write the kernel where `is_depthwise_by_kernel`: an item is a group; the sum of a window stays in a register."""
    to = Routine(of.dtype, SUMMED // of.itemsize)
    plane = Plane(of, to.lanes)
    own = to.place("own", 0, plane.nbytes)
    plane.clear(to, own)
    d, h, w = of.axes
    windows = list(product(range(d.windows), range(h.windows), range(w.windows)))
    with to.loop("%first", "%past") as group:
        x, k, y = _channel(to, of, group.index)
        with to.loop(0, of.channels, carried=[(to.vector, to.zero)] * len(windows)) as channel:
            plane.fill(to, to.at(x, to.mul(channel.index, of.x.channel)), own)
            here = to.at(k, to.mul(channel.index, of.k.channel))
            channel.carry = _summed(to, plane, own, here, windows, channel.carried)
        for window, total in zip(windows, channel.carried, strict=True):
            into = to.at(y, sum(i * s for i, s in zip(window, of.y.axes, strict=True)))
            to.store_number(to.halved(total), into)
    return Recipe((to.phase(of.groups, of.flops),), own=plane.nbytes)


def _summed(
    to: Routine, plane: Plane, own: str, k: str, windows: Sequence[tuple[int, int, int]], sums: Sequence[str]
) -> list[str]:
    """Add the products of one channel to the sums of all windows; lanes beyond a row add zeros."""
    of = plane.of
    d, h, w = of.axes
    steps = [plane.offset(ORIGIN, one) - plane.offset(ORIGIN, ORIGIN) for one in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    with to.loop(0, d.taps, carried=[(to.vector, s) for s in sums]) as depth:
        with to.loop(0, h.taps, carried=[(to.vector, s) for s in depth.carried]) as height:
            numbers = to.at(k, to.add(to.mul(depth.index, of.k.axes[0]), to.mul(height.index, of.k.axes[1])))
            seen = to.at(own, to.add(to.mul(depth.index, steps[0]), to.mul(height.index, steps[1])))
            whole = w.taps - w.taps % to.lanes
            with to.loop(0, whole, to.lanes, carried=[(to.vector, s) for s in height.carried]) as tap:
                at = to.at(numbers, to.mul(tap.index, of.k.axes[2]))
                here = to.at(seen, to.mul(tap.index, steps[2]))
                tap.carry = _add_products(to, plane, at, here, windows, tap.carried, "")
            totals = tap.carried
            if whole < w.taps:
                # the vector of what whole ones leave of a row: its first lanes, or if it is full, its last ones
                left = w.taps % to.lanes
                start, mask = (w.taps - to.lanes, to.last(left)) if whole else (0, to.first(left))
                at, here = to.at(numbers, start * of.k.axes[2]), to.at(seen, start * steps[2])
                totals = _add_products(to, plane, at, here, windows, totals, mask)
            height.carry = totals
        depth.carry = height.carried
    return depth.carried


def _add_products(
    to: Routine,
    plane: Plane,
    numbers: str,
    seen: str,
    windows: Sequence[tuple[int, int, int]],
    sums: Sequence[str],
    mask: str,
) -> list[str]:
    """Add a vector of taps, times what it sees from each window."""
    of = plane.of
    whole = of.axes[2].taps >= to.lanes
    vector = to.kept(to.load_row(numbers, of.k.axes[2], "" if whole else mask), mask)
    apart = of.axes[2].tap_step * to.size
    read = (to.load_apart(to.at(seen, plane.offset(window, ORIGIN)), apart) for window in windows)
    return [to.fma(vector, to.kept(x, mask), total) for x, total in zip(read, sums, strict=True)]
