"""The recipes of convolution, of its adjoint and of its gradient, and the kernels of gradients with long sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Final, Literal, NamedTuple, TypeVar

from engine.codegen.microkernels.correlation import (
    Axis,
    Columns,
    CorrelationGeometry,
    CorrelationWriter,
    Lying,
    lies_flat,
)
from engine.codegen.microkernels.depthwise import depthwise, depthwise_by_kernel, is_depthwise, is_depthwise_by_kernel
from engine.codegen.microkernels.recipe import FLAG, KernelPhase, Recipe
from engine.codegen.microkernels.register_tile import Panel, RowTiles, SumLoop, lanes_for, tile_shape, transpose_rows
from engine.codegen.microkernels.routine import Int64, Routine
from engine.ir.run_context import aligned

_T = TypeVar("_T")
#: kernels that one adjoint may have: with its strides, they are as many as there are remainders
MOST_CLASSES: Final = 16
#: bytes that a thread may work in
MOST_OWN: Final = 1 << 22
#: taps that are taken at a time: so long what they see stays in the cache
TAPS_AT_ONCE: Final = 64
#: rows of an item, about: so many repay turning the kernel
ROWS_OF_AN_ITEM: Final = 288
#: items at least, so that threads find work; else the sum is taken in so many parts
PARTS: Final = 4


class _Writer:
    """Writer of a convolution with a kernel of many taps and few windows, as a gradient by the kernel is.

    It computes the same sums as `correlation`, with windows and taps exchanged: rows are the windows of some images, a
    panel has as columns the features, and each step is a tap of a channel. Sums stand in memory while channels and taps
    pass by.
    """

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
        """Add up in parts, then add up the parts, turned to their place in the result."""
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
        """Write the sums of some images and a part of the channels."""
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
        # Columns of one channel: what taps see, those of all windows of an image, image by image.
        d, h, w = (axis.exchanged for axis in of.axes)
        seen = Columns((d, h, w), 1, self.images, 0, of.x.outer, of.x.axes, of.readable)
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

    def _multiply(self, to: Routine, packed: str, k: str, sums: str, taps: Int64, done: Int64) -> None:
        """Add the products of some taps, a panel of features after the other.

        Rows of an item beyond the last image are written, too, and nobody reads them.
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
        """Turn for each image and group the sums of all parts from [windows, features] to [features, windows].

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


class Tensor(NamedTuple):
    """Layout of an operand or the result: extents and bytes to step along its axes, [outer, channels, 3 spatial]."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]


class ConvolutionGeometry(NamedTuple):
    """A convolution with windows on three axes: x, kernel and y, and one number for each axis.

    Windows over the wide one of x and y give a position of the narrow one each: these are images with all their
    channels and features. Of the spatial axes of a result it may be the leading part.
    """

    dtype: str
    itemsize: int
    groups: int
    x: Tensor
    kernel: Tensor
    y: Tensor
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


#: what is made: the narrow y of a wide x, the wide y of a narrow x, or the kernel between a wide x and a narrow y
Direction = Literal["forward", "adjoint", "by_kernel"]


class DirectedConvolution(NamedTuple):
    """A convolution, and which of its tensors is the result. The operands are the other two, in their order.

    "forward": y[n, o, p] = Σ x[n, c, p · stride + t · dilation − padding] · kernel[o, c, t];
    "by_kernel": kernel[o, c, t] = Σ x[n, c, p · stride + t · dilation − padding] · y[n, o, p];
    "adjoint": y[n, o, p · stride + t · dilation − padding] = Σ x[n, c, p] · kernel[c, o, t].
    """

    of: ConvolutionGeometry
    direction: Direction


def convolution(directed: DirectedConvolution) -> Recipe | None:
    """Write the kernels of a convolution; None if they do not fit."""
    of, direction = directed
    if direction == "adjoint":
        return _adjoint(of)
    correlation = _forward(of) if direction == "forward" else _by_kernel(of)
    if not correlation.is_addressable:
        return None
    return _within(_summed(correlation))


def _summed(of: CorrelationGeometry) -> Recipe | None:
    """Choose the way to add up; sums of many taps for few windows, as of most gradients by kernels, stand in memory."""
    if is_depthwise_by_kernel(of):
        return depthwise_by_kernel(of)
    if of.taps > of.windows:
        flat = lies_flat(of.k.axes, [axis.taps for axis in of.axes], of.itemsize)
        return _Writer(of).recipe() if flat else None
    phase, own = _correlation(of)
    return Recipe((phase,), own=own)


def _forward(of: ConvolutionGeometry) -> CorrelationGeometry:
    """Correlate with positions as windows."""
    channels, features = of.kernel.shape[1], of.kernel.shape[0] // of.groups
    sizes = zip(of.y.shape[2:], of.kernel.shape[2:], of.x.shape[2:], of.stride, of.dilation, of.padding, strict=True)
    axes = _three(Axis(windows, taps, extent, s, d, -p) for windows, taps, extent, s, d, p in sizes)
    x, y = (_lying(t, n) for t, n in ((of.x, channels), (of.y, features)))
    k = _lying_kernel(of.kernel, features)
    return CorrelationGeometry(of.dtype, of.itemsize, of.x.shape[0], of.groups, channels, features, axes, x, k, y)


def _by_kernel(of: ConvolutionGeometry) -> CorrelationGeometry:
    """Correlate with positions as taps, and taps as windows: images and channels change places, too."""
    channels, features = of.kernel.shape[1], of.kernel.shape[0] // of.groups
    # a single position has no neighbour to be apart from
    strides = (stride if positions > 1 else 1 for stride, positions in zip(of.stride, of.y.shape[2:], strict=True))
    sizes = zip(of.kernel.shape[2:], of.y.shape[2:], of.x.shape[2:], strides, of.dilation, of.padding, strict=True)
    axes = _three(Axis(taps, positions, extent, d, s, -p) for taps, positions, extent, s, d, p in sizes)
    x, k = (_images_as_channels(_lying(t, n)) for t, n in ((of.x, channels), (of.y, features)))
    y = _images_as_channels(_lying_kernel(of.kernel, features))
    return CorrelationGeometry(of.dtype, of.itemsize, channels, of.groups, of.x.shape[0], features, axes, x, k, y)


def _adjoint(of: ConvolutionGeometry) -> Recipe | None:
    """Correlate for each remainder by the stride: the positions of one are a correlation with the taps that reach them.

    Beyond x it sees zeros, which times an infinite number of the kernel are no zeros: so these are searched for.
    """
    if math.prod(of.stride) > MOST_CLASSES:
        return None
    classes = list(_classes(of))
    if not all(each.is_addressable for each in classes):
        return None
    made = [_correlation(each) for each in classes]
    phases, owns = [phase for phase, _ in made], [own for _, own in made]
    return _within(Recipe((_check(of), *phases), aligned(8), max(owns), checked=True))


def _correlation(of: CorrelationGeometry) -> tuple[KernelPhase, int]:
    """Write a kernel; return it, and the bytes of its own that a thread works in."""
    if is_depthwise(of):
        return depthwise(of)
    writer = CorrelationWriter(of)
    return writer.phase(), writer.own


def _within(recipe: Recipe | None) -> Recipe | None:
    return recipe if recipe is not None and recipe.own <= MOST_OWN else None


def _lying(of: Tensor, channels: int) -> Lying:
    """Lay out an operand or a result, with `channels` of each group."""
    return Lying(of.steps[0], of.steps[1] * channels, of.steps[1], _three(of.steps[2:]))


def _lying_kernel(of: Tensor, features: int) -> Lying:
    """Lay out a kernel with so many `features` in each group."""
    return Lying(of.steps[0], of.steps[0] * features, of.steps[1], _three(of.steps[2:]))


def _images_as_channels(of: Lying) -> Lying:
    """Exchange the first axis and the channels, of all groups."""
    return of._replace(outer=of.channel, channel=of.outer)


def _three(numbers: Iterable[_T]) -> tuple[_T, _T, _T]:
    first, second, third = numbers
    return first, second, third


class _Residue(NamedTuple):
    """The positions of one remainder along an axis: the first, and the taps that reach them, as a correlation."""

    first: int
    tap: int
    tap_step: int
    axis: Axis


def _classes(of: ConvolutionGeometry) -> Iterator[CorrelationGeometry]:
    """Yield a correlation for each remainder that there is."""
    channels, features = of.kernel.shape[0] // of.groups, of.kernel.shape[1]
    x = _lying(of.x, channels)
    for residues in product(*(list(_residues(of, axis)) for axis in range(3))):
        steps = [s * t for s, t in zip(of.kernel.steps[2:], (r.tap_step for r in residues), strict=True)]
        start = sum(s * r.tap for s, r in zip(of.kernel.steps[2:], residues, strict=True))
        k = Lying(of.kernel.steps[1], of.kernel.steps[0] * channels, of.kernel.steps[0], _three(steps), start)
        apart = [s * stride for s, stride in zip(of.y.steps[2:], of.stride, strict=True)]
        begin = sum(s * r.first for s, r in zip(of.y.steps[2:], residues, strict=True))
        y = Lying(of.y.steps[0], of.y.steps[1] * features, of.y.steps[1], _three(apart), begin)
        axes = _three([residue.axis for residue in residues])
        yield CorrelationGeometry(of.dtype, of.itemsize, of.x.shape[0], of.groups, channels, features, axes, x, k, y)


def _residues(of: ConvolutionGeometry, axis: int) -> Iterator[_Residue]:
    stride, padding, dilation = of.stride[axis], of.padding[axis], of.dilation[axis]
    taps, extent, seen = of.kernel.shape[2 + axis], of.y.shape[2 + axis], of.x.shape[2 + axis]
    for first in range(min(stride, extent)):
        reaching = [t for t in range(taps) if (first + padding - t * dilation) % stride == 0]
        positions = -(-(extent - first) // stride)
        if not reaching:  # any tap will do, on nothing: that gives zeros
            yield _Residue(first, 0, 1, Axis(positions, 1, 0, 1, 1, 0))
            continue
        tap = reaching[0]
        tap_step = reaching[1] - tap if len(reaching) > 1 else 1
        start = (first + padding - tap * dilation) // stride
        moved = Axis(positions, len(reaching), seen, 1, -(dilation * tap_step // stride), start)
        yield _Residue(first, tap, tap_step, moved)


def _check(of: ConvolutionGeometry) -> KernelPhase:
    """Check that all numbers of the kernel are finite: x − x is 0 of those, and NaN of the others."""
    to = Routine(of.dtype, lanes_for(of.itemsize))
    outer, (count, step) = _runs(of.kernel)
    with to.loop("%first", "%past"):
        kernel = to.place("operand", 1)
        extents, steps = [extent for extent, _ in outer], [each for _, each in outer]
        with to.loop(0, math.prod(extents), carried=[(to.vector, to.zero)]) as run:
            at = to.moved(kernel, to.unravelled(run.index, extents), steps)
            with to.loop(0, count, to.lanes, carried=[(to.vector, run.carried[0])]) as some:
                mask = to.between(0, to.sub(count, some.index))
                read = to.load_row(to.at(at, to.mul(some.index, step)), step, mask)
                some.carry = [to.sum(some.carried[0], to.to.value(f"fsub {to.vector} {read}, {read}"))]
            run.carry = some.carried
        total = to.halved(run.carried[0])
        is_nan = to.to.value(f"fcmp uno {to.to.name('float')} {total}, {total}")
        flag = to.to.value(f"zext i1 {is_nan} to i64")
        to.memory.store("i64", flag, to.place(*FLAG))
    return to.phase(1, math.prod(of.kernel.shape))


def _runs(of: Tensor) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Merge the axes in the order of their steps; return all but that of the least step, and that."""
    axes = sorted(((e, s) for e, s in zip(of.shape, of.steps, strict=True) if e > 1), key=lambda axis: -abs(axis[1]))
    merged: list[tuple[int, int]] = []
    for extent, step in axes:
        if merged and merged[-1][1] == extent * step:
            merged[-1] = (merged[-1][0] * extent, step)
        else:
            merged.append((extent, step))
    return merged[:-1], merged[-1] if merged else (1, of.steps[-1])
