"""Depthwise convolution: with a single channel there is no matrix product; vectors go along rows of a padded plane."""

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

#: largest number of taps whose loop is unrolled
MOST_TAPS: Final = 49
#: largest number of windows whose sums stay in registers
MOST_WINDOWS: Final = 24
#: rows of windows computed at a time
ROWS_ABREAST: Final = 4
ORIGIN: Final = (0, 0, 0)


def is_depthwise(geometry: CorrelationGeometry) -> bool:
    """Whether `depthwise` applies: one channel per group, one or two features, few taps."""
    return geometry.channels == 1 and geometry.taps <= MOST_TAPS and geometry.features <= 2


def is_depthwise_by_kernel(geometry: CorrelationGeometry) -> bool:
    """Whether `depthwise_by_kernel` applies: few windows over one image, one feature per group."""
    return geometry.images == 1 and geometry.features == 1 and geometry.windows <= MOST_WINDOWS


class Plane:
    """One channel of an image, zero-padded, in a thread's own memory: everything that windows and taps read."""

    def __init__(self, geometry: CorrelationGeometry, lanes: int) -> None:
        self.geometry = geometry
        self._begins = [min(_reached(axis)) for axis in geometry.axes]
        self._extents = [
            max(_reached(axis)) - begin + 1 for axis, begin in zip(geometry.axes, self._begins, strict=True)
        ]
        largest_step = max(abs(geometry.axes[2].step), abs(geometry.axes[2].tap_step))
        # Add room for vectors that read beyond the last row.
        self.nbytes = aligned((math.prod(self._extents) + 2 * lanes * largest_step) * geometry.itemsize)

    def clear(self, ir: Routine, plane: str) -> None:
        """Clear the plane. Its border stays zero, since channels are copied inside it."""
        with ir.loop(0, self.nbytes, ir.lanes * ir.size) as position:
            ir.store(ir.zero, ir.at(plane, position.index))

    def fill(self, ir: Routine, x: str, plane: str) -> None:
        """Copy a channel into the plane."""
        geometry, size = self.geometry, self.geometry.itemsize
        firsts = [max(0, begin) for begin in self._begins]
        pasts = [
            min(axis.extent, begin + extent)
            for axis, begin, extent in zip(geometry.axes, self._begins, self._extents, strict=True)
        ]
        if any(first >= past for first, past in zip(firsts, pasts, strict=True)):
            return
        with ir.loop(firsts[0], pasts[0]) as d, ir.loop(firsts[1], pasts[1]) as h:
            source = ir.at(x, ir.add(ir.mul(d.index, geometry.x.axes[0]), ir.mul(h.index, geometry.x.axes[1])))
            row = ir.add(ir.mul(ir.sub(d.index, self._begins[0]), self._extents[1]), ir.sub(h.index, self._begins[1]))
            target = ir.at(plane, ir.mul(row, self._extents[2] * size))
            for w, mask in _vectors(firsts[2], pasts[2], ir.lanes):
                read = ir.load_row(
                    ir.at(source, w * geometry.x.axes[2]), geometry.x.axes[2], ir.first(mask) if mask else ""
                )
                ir.store(read, ir.at(target, (w - self._begins[2]) * size), ir.first(mask) if mask else "")

    def offset(self, window: Sequence[int], tap: Sequence[int]) -> int:
        """Return the bytes from the plane's beginning to the element that a tap of a window reads."""
        position = 0
        for axis, begin, extent, w, t in zip(self.geometry.axes, self._begins, self._extents, window, tap, strict=True):
            position = position * extent + axis.start - begin + w * axis.step + t * axis.tap_step
        return position * self.geometry.itemsize


def _vectors(first: int, past: int, lanes: int) -> Iterator[tuple[int, int]]:
    """Yield each vector of a row: its first element, and its lanes if it is not full. The last two may overlap."""
    if past - first < lanes:
        yield first, past - first
        return
    yield from ((start, 0) for start in range(first, past - lanes, lanes))
    yield past - lanes, 0


def _reached(axis: Axis) -> list[int]:
    """List the extreme elements that windows and taps read."""
    ends = product((0, axis.windows - 1), (0, axis.taps - 1))
    return [axis.start + w * axis.step + t * axis.tap_step for w, t in ends]


def depthwise(geometry: CorrelationGeometry) -> tuple[KernelPhase, int]:
    """Write the kernel if `is_depthwise`; return it and its workspace per thread. An item is a channel of an image."""
    ir = Routine(geometry.dtype, lanes_for(geometry.itemsize))
    plane = Plane(geometry, ir.lanes)
    memory = ir.place("own", 0, plane.nbytes)
    plane.clear(ir, memory)
    with ir.loop("%first", "%past") as item:
        image, group = ir.unravelled(item.index, (geometry.images, geometry.groups))
        x, k, y = _channel(ir, geometry, group)
        plane.fill(ir, ir.at(x, ir.mul(image, geometry.x.outer)), memory)
        y = ir.at(y, ir.mul(image, geometry.y.outer))
        for feature in range(geometry.features):
            _correlate(ir, plane, memory, ir.at(k, feature * geometry.k.outer), ir.at(y, feature * geometry.y.channel))
    return ir.phase(geometry.images * geometry.groups, geometry.flops), plane.nbytes


def _channel(ir: Routine, geometry: CorrelationGeometry, group: Int64) -> tuple[str, str, str]:
    """Write the addresses of a group in x, k and y."""
    return (
        ir.at(ir.place("operand", 0), ir.add(geometry.x.start, ir.mul(group, geometry.x.group))),
        ir.at(ir.place("operand", 1), ir.add(geometry.k.start, ir.mul(group, geometry.k.group))),
        ir.at(ir.place("result", 0), ir.add(geometry.y.start, ir.mul(group, geometry.y.group))),
    )


def _correlate(ir: Routine, plane: Plane, memory: str, k: str, y: str) -> None:
    """Write the convolution of a channel, some rows at a time, so that elements shared by windows are loaded once."""
    geometry = plane.geometry
    taps = list(product(*(range(axis.taps) for axis in geometry.axes)))
    numbers = [ir.broadcast(ir.at(k, sum(t * s for t, s in zip(tap, geometry.k.axes, strict=True)))) for tap in taps]
    d, h, w = geometry.axes
    rows = min(ROWS_ABREAST, h.windows)
    with ir.loop(0, d.windows) as depth, ir.loop(0, h.windows, rows) as height:
        # The last group of rows begins earlier instead of being shorter: some rows are computed twice.
        first = ir.minimum(height.index, h.windows - rows)
        moved = ir.add(
            ir.mul(depth.index, plane.offset((1, 0, 0), ORIGIN) - plane.offset(ORIGIN, ORIGIN)),
            ir.mul(first, plane.offset((0, 1, 0), ORIGIN) - plane.offset(ORIGIN, ORIGIN)),
        )
        rows_pointer = ir.at(memory, moved)
        into = ir.at(y, ir.add(ir.mul(depth.index, geometry.y.axes[0]), ir.mul(first, geometry.y.axes[1])))
        for column, lanes in _vectors(0, w.windows, ir.lanes):
            read: dict[int, str] = {}
            for row in range(rows):
                total = ir.zero
                for tap, number in zip(taps, numbers, strict=True):
                    place = plane.offset((0, row, column), tap)
                    if place not in read:
                        read[place] = ir.load_strided(ir.at(rows_pointer, place), w.step * ir.size)
                    total = ir.fma(number, read[place], total)
                target = ir.at(into, row * geometry.y.axes[1] + column * geometry.y.axes[2])
                ir.store_row(total, target, geometry.y.axes[2], ir.first(lanes) if lanes else "")


def depthwise_by_kernel(geometry: CorrelationGeometry) -> Recipe:
    """Write the kernel if `is_depthwise_by_kernel`. An item is a group; the sums of all windows stay in registers."""
    # The number of lanes determines the order of the sums, so it is the same on all processors.
    ir = Routine(geometry.dtype, SUMMED // geometry.itemsize)
    plane = Plane(geometry, ir.lanes)
    memory = ir.place("own", 0, plane.nbytes)
    plane.clear(ir, memory)
    d, h, w = geometry.axes
    windows = list(product(range(d.windows), range(h.windows), range(w.windows)))
    with ir.loop("%first", "%past") as group:
        x, k, y = _channel(ir, geometry, group.index)
        with ir.loop(0, geometry.channels, carried=[(ir.vector, ir.zero)] * len(windows)) as channel:
            plane.fill(ir, ir.at(x, ir.mul(channel.index, geometry.x.channel)), memory)
            channel_k = ir.at(k, ir.mul(channel.index, geometry.k.channel))
            channel.carry = _summed(ir, plane, memory, channel_k, windows, channel.carried)
        for window, total in zip(windows, channel.carried, strict=True):
            into = ir.at(y, sum(i * s for i, s in zip(window, geometry.y.axes, strict=True)))
            ir.store_number(ir.halved(total), into)
    return Recipe((ir.phase(geometry.groups, geometry.flops),), own=plane.nbytes)


def _summed(
    ir: Routine, plane: Plane, memory: str, k: str, windows: Sequence[tuple[int, int, int]], sums: Sequence[str]
) -> list[str]:
    """Add the products of one channel to the sums of all windows. Lanes beyond a row add zeros."""
    geometry = plane.geometry
    d, h, w = geometry.axes
    steps = [plane.offset(ORIGIN, unit) - plane.offset(ORIGIN, ORIGIN) for unit in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    with ir.loop(0, d.taps, carried=[(ir.vector, s) for s in sums]) as depth:
        with ir.loop(0, h.taps, carried=[(ir.vector, s) for s in depth.carried]) as height:
            numbers = ir.at(
                k, ir.add(ir.mul(depth.index, geometry.k.axes[0]), ir.mul(height.index, geometry.k.axes[1]))
            )
            row_elements = ir.at(memory, ir.add(ir.mul(depth.index, steps[0]), ir.mul(height.index, steps[1])))
            whole = w.taps - w.taps % ir.lanes
            with ir.loop(0, whole, ir.lanes, carried=[(ir.vector, s) for s in height.carried]) as tap:
                tap_numbers = ir.at(numbers, ir.mul(tap.index, geometry.k.axes[2]))
                elements = ir.at(row_elements, ir.mul(tap.index, steps[2]))
                tap.carry = _add_products(ir, plane, tap_numbers, elements, windows, tap.carried, "")
            totals = tap.carried
            if whole < w.taps:
                # The rest of a row: a masked vector; or, if the row has a full vector, its last vector with only the
                # lanes that are not added yet.
                last_taps = w.taps % ir.lanes
                start, mask = (w.taps - ir.lanes, ir.last(last_taps)) if whole else (0, ir.first(last_taps))
                tap_numbers, elements = (
                    ir.at(numbers, start * geometry.k.axes[2]),
                    ir.at(row_elements, start * steps[2]),
                )
                totals = _add_products(ir, plane, tap_numbers, elements, windows, totals, mask)
            height.carry = totals
        depth.carry = height.carried
    return depth.carried


def _add_products(
    ir: Routine,
    plane: Plane,
    numbers: str,
    elements: str,
    windows: Sequence[tuple[int, int, int]],
    sums: Sequence[str],
    mask: str,
) -> list[str]:
    """Add a vector of taps times the elements that it meets in each window."""
    geometry = plane.geometry
    whole = geometry.axes[2].taps >= ir.lanes
    vector = ir.masked(ir.load_row(numbers, geometry.k.axes[2], "" if whole else mask), mask)
    lane_step = geometry.axes[2].tap_step * ir.size
    read = (ir.load_strided(ir.at(elements, plane.offset(window, ORIGIN)), lane_step) for window in windows)
    return [ir.fma(vector, ir.masked(x, mask), total) for x, total in zip(read, sums, strict=True)]
