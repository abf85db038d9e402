"""Recipes of convolutions, their adjoints and kernel gradients, and the kernels of gradients with long sums."""

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
    Layout,
    is_contiguous,
)
from engine.codegen.microkernels.depthwise import depthwise, depthwise_by_kernel, is_depthwise, is_depthwise_by_kernel
from engine.codegen.microkernels.recipe import FLAG, KernelPhase, Recipe
from engine.codegen.microkernels.register_tile import Panel, RowTiles, SumLoop, lanes_for, tile_shape, transpose_rows
from engine.codegen.microkernels.routine import Int64, Routine
from engine.ir.run_context import aligned

_T = TypeVar("_T")
#: largest number of kernels of an adjoint: one for each remainder of positions modulo the strides
MOST_CLASSES: Final = 16
#: largest workspace of a thread, in bytes
MOST_OWN: Final = 1 << 22
#: taps processed at a time, so that the elements they read stay in the cache
TAPS_AT_ONCE: Final = 64
#: approximate number of rows of an item: enough to repay transposing the kernel
ROWS_OF_AN_ITEM: Final = 288
#: least number of items, so that all threads have work; otherwise the sum is divided into this many parts
PARTS: Final = 4


class _Writer:
    """Writer of a convolution with many taps and few windows, such as the gradient with respect to a kernel.

    It computes the same sums as `correlation`, with windows and taps exchanged. The rows of the product are the windows
    of some images, its columns the features, and its steps the taps of a channel. The sums stay in memory while
    channels and taps are processed.
    """

    def __init__(self, geometry: CorrelationGeometry) -> None:
        self.geometry = geometry
        lanes = lanes_for(geometry.itemsize)
        windows = geometry.windows
        self.ranges = -(-geometry.images // max(1, ROWS_OF_AN_ITEM // windows))
        self.images = -(-geometry.images // self.ranges)
        self.parts = 1 if geometry.groups * self.ranges >= PARTS else min(geometry.channels, PARTS)
        self.tile = tile_shape(min(self.images * windows, ROWS_OF_AN_ITEM), geometry.features, lanes)
        self.width = self.tile.vectors * lanes
        self.panels = -(-geometry.features // self.width)
        self.depth = min(TAPS_AT_ONCE, -(-geometry.taps // lanes) * lanes)
        # Packing may write one vector more than a row has.
        self.pitch = (self.depth + lanes) * geometry.itemsize
        self.columns_bytes = aligned(self.images * windows * self.pitch + lanes * geometry.itemsize)
        self.row = self.panels * self.width * geometry.itemsize
        self.transposed_bytes = self.depth * self.width * geometry.itemsize
        #: bytes of the sums of one group in one part
        self.sums_bytes = self.ranges * self.images * windows * self.row

    def recipe(self) -> Recipe:
        """Compute sums in parts, then add up the parts, transposed, into the result."""
        own = self.columns_bytes + aligned(self.transposed_bytes)
        return Recipe((self._sum_phase(), self._transposed_phase()), aligned(self._all_sums), own)

    @property
    def _all_sums(self) -> int:
        return self.parts * self.geometry.groups * self.sums_bytes

    def _sums(self, ir: Routine) -> str:
        return ir.place("shared", 0, self._all_sums)

    def _sum_phase(self) -> KernelPhase:
        ir = Routine(self.geometry.dtype, lanes_for(self.geometry.itemsize))
        with ir.loop("%first", "%past") as item:
            self._sum(ir, item.index)
        return ir.phase(self.geometry.groups * self.ranges * self.parts, self.geometry.flops)

    def _sum(self, ir: Routine, item: Int64) -> None:
        """Write the sums of some images over a part of the channels."""
        geometry = self.geometry
        group, images, part = ir.unravelled(item, (geometry.groups, self.ranges, self.parts))
        memory, packed = ir.place("operand", 0), ir.place("own", 0, self.columns_bytes)
        x = ir.at(memory, ir.add(geometry.x.start, ir.mul(group, geometry.x.group)))
        k = ir.at(ir.place("operand", 1), ir.add(geometry.k.start, ir.mul(group, geometry.k.group)))
        begin = ir.mul(images, self.images)
        x = ir.at(x, ir.mul(begin, geometry.x.outer))
        count = ir.minimum(self.images, ir.sub(geometry.images, begin))
        sums = ir.at(self._sums(ir), ir.mul(ir.add(ir.mul(part, geometry.groups), group), self.sums_bytes))
        sums = ir.at(sums, ir.mul(begin, geometry.windows * self.row))
        first, past = self._channels(ir, part)
        # Columns of one channel, with windows and taps exchanged: the elements that a tap reads in all windows, image
        # by image.
        d, h, w = (axis.exchanged for axis in geometry.axes)
        columns = Columns((d, h, w), 1, self.images, 0, geometry.x.outer, geometry.x.axes, geometry.readable)
        with ir.loop(first, past) as channel, ir.loop(0, geometry.taps, self.depth) as tap:
            channel_x = ir.at(x, ir.mul(channel.index, geometry.x.channel))
            columns.pack(ir, memory, channel_x, packed, tap.index, self.depth, count, self.pitch)
            tap_k = ir.at(k, ir.add(ir.mul(channel.index, geometry.k.channel), ir.mul(tap.index, geometry.itemsize)))
            steps_done = ir.add(ir.sub(channel.index, first), tap.index)
            self._multiply(
                ir, packed, tap_k, sums, ir.minimum(self.depth, ir.sub(geometry.taps, tap.index)), steps_done
            )

    def _channels(self, ir: Routine, part: Int64) -> tuple[Int64, Int64]:
        count = self.geometry.channels
        if self.parts == 1:
            return 0, count
        first, _ = ir.divided(ir.mul(part, count), self.parts)
        past, _ = ir.divided(ir.mul(ir.add(part, 1), count), self.parts)
        return first, past

    def _multiply(self, ir: Routine, packed: str, k: str, sums: str, taps: Int64, steps_done: Int64) -> None:
        """Add the products of some taps, one panel of features after the other.

        Rows of an item beyond the last image are computed, too, but never read.
        """
        geometry, size = self.geometry, self.geometry.itemsize
        transposed = ir.place("own", self.columns_bytes, self.transposed_bytes)
        tiles = RowTiles(self.images * geometry.windows, self.pitch, self.row, self.tile.rows, self.tile.vectors)
        with ir.loop(0, self.panels) as panel:
            features = ir.mul(panel.index, self.width)
            remaining = ir.sub(geometry.features, features)
            source = ir.at(k, ir.mul(features, geometry.k.outer))
            transpose_rows(ir, source, transposed, taps, geometry.k.outer, size, self.tile.vectors, remaining)
            into = ir.at(sums, ir.mul(features, size))
            sum_loop = SumLoop(taps, size, self.width * size)
            tiles.multiply(ir, packed, Panel(transposed, [sum_loop], self.width, steps_done), into)

    def _transposed_phase(self) -> KernelPhase:
        """Transpose sums of an image and group from [windows, features] to [features, windows], adding up their parts.

        Windows are processed in runs that are contiguous in the result: all windows of an image, or those of a row.
        """
        geometry = self.geometry
        ir = Routine(geometry.dtype, lanes_for(geometry.itemsize))
        blocks = -(-geometry.features // ir.lanes)
        is_flat = is_contiguous(geometry.y.axes, [axis.windows for axis in geometry.axes], geometry.itemsize)
        run, step = (geometry.windows, geometry.itemsize) if is_flat else (geometry.axes[2].windows, geometry.y.axes[2])
        outer = [axis.windows for axis in geometry.axes[:2]] if run < geometry.windows else [1, 1]
        with ir.loop("%first", "%past") as item:
            image, group, block, d, h = ir.unravelled(item.index, (geometry.images, geometry.groups, blocks, *outer))
            features = ir.mul(block, ir.lanes)
            y = ir.at(ir.place("result", 0), ir.add(geometry.y.start, ir.mul(image, geometry.y.outer)))
            y = ir.at(y, ir.add(ir.mul(group, geometry.y.group), ir.mul(features, geometry.y.channel)))
            y = ir.at(y, ir.add(ir.mul(d, geometry.y.axes[0]), ir.mul(h, geometry.y.axes[1])))
            window = ir.mul(ir.add(ir.mul(d, outer[1]), h), run)
            sums = ir.at(self._sums(ir), ir.add(ir.mul(group, self.sums_bytes), ir.mul(features, geometry.itemsize)))
            sums = ir.at(sums, ir.mul(ir.add(ir.mul(image, geometry.windows), window), self.row))
            with ir.loop(0, run, ir.lanes) as window_block:
                self._transpose_block(ir, sums, y, window_block.index, run, step, ir.sub(geometry.features, features))
        items = geometry.images * geometry.groups * blocks * outer[0] * outer[1]
        return ir.phase(items, geometry.images * geometry.groups * geometry.features * geometry.windows * self.parts)

    def _transpose_block(
        self, ir: Routine, sums: str, y: str, window: Int64, run: int, step: int, features: Int64
    ) -> None:
        geometry, read = self.geometry, []
        for lane in range(ir.lanes):
            # A missing window is read as the last existing one, and never stored.
            window_sums = ir.at(sums, ir.mul(ir.minimum(ir.add(window, lane), run - 1), self.row))
            total = ir.load(window_sums)
            for part in range(1, self.parts):
                total = ir.sum(total, ir.load(ir.at(window_sums, part * geometry.groups * self.sums_bytes)))
            read.append(total)
        mask = ir.between(0, ir.sub(run, window))
        for lane, vector in enumerate(ir.transposed(read)):
            with ir.when("slt", lane, features):
                into = ir.at(y, ir.add(lane * geometry.y.channel, ir.mul(window, step)))
                ir.store_row(vector, into, step, mask)


class TensorLayout(NamedTuple):
    """Layout of an operand or the result: extents and strides in bytes along the axes [outer, channels, 3 spatial]."""

    shape: tuple[int, ...]
    steps: tuple[int, ...]


class ConvolutionGeometry(NamedTuple):
    """A convolution over three spatial axes: layouts of x, kernel and y, and a number for each axis.

    Each window over the wide tensor (x or y) belongs to a position of the narrow one. Both are images, with all
    channels or features. A result may have only the leading part of its spatial axes.
    """

    dtype: str
    itemsize: int
    groups: int
    x: TensorLayout
    kernel: TensorLayout
    y: TensorLayout
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


#: result: the narrow y from a wide x, the wide y from a narrow x, or the kernel from a wide x and a narrow y
Direction = Literal["forward", "adjoint", "by_kernel"]


class DirectedConvolution(NamedTuple):
    """A convolution and the tensor that is its result. The operands are the other two, in their order.

    "forward":   y[n, o, p] = Σ x[n, c, p · stride + t · dilation − padding] · kernel[o, c, t]
    "by_kernel": kernel[o, c, t] = Σ x[n, c, p · stride + t · dilation − padding] · y[n, o, p]
    "adjoint":   y[n, o, p · stride + t · dilation − padding] = Σ x[n, c, p] · kernel[c, o, t]
    """

    geometry: ConvolutionGeometry
    direction: Direction


def convolution(directed: DirectedConvolution) -> Recipe | None:
    """Write the kernels of a convolution; None if it exceeds their limits."""
    conv, direction = directed
    if direction == "adjoint":
        return _adjoint(conv)
    correlation = _forward(conv) if direction == "forward" else _by_kernel(conv)
    if not correlation.is_addressable:
        return None
    return _within_limits(_summed(correlation))


def _summed(geometry: CorrelationGeometry) -> Recipe | None:
    """Choose the algorithm of a sum. Sums of many taps for few windows, as in most kernel gradients, stay in memory."""
    if is_depthwise_by_kernel(geometry):
        return depthwise_by_kernel(geometry)
    if geometry.taps > geometry.windows:
        is_flat = is_contiguous(geometry.k.axes, [axis.taps for axis in geometry.axes], geometry.itemsize)
        return _Writer(geometry).recipe() if is_flat else None
    phase, own = _correlation(geometry)
    return Recipe((phase,), own=own)


def _forward(conv: ConvolutionGeometry) -> CorrelationGeometry:
    """Express the convolution as a correlation whose windows are the positions."""
    channels, features = conv.kernel.shape[1], conv.kernel.shape[0] // conv.groups
    sizes = zip(
        conv.y.shape[2:], conv.kernel.shape[2:], conv.x.shape[2:], conv.stride, conv.dilation, conv.padding, strict=True
    )
    axes = _three(Axis(windows, taps, extent, s, d, -p) for windows, taps, extent, s, d, p in sizes)
    x, y = (_layout(t, n) for t, n in ((conv.x, channels), (conv.y, features)))
    k = _kernel_layout(conv.kernel, features)
    return CorrelationGeometry(
        conv.dtype, conv.itemsize, conv.x.shape[0], conv.groups, channels, features, axes, x, k, y
    )


def _by_kernel(conv: ConvolutionGeometry) -> CorrelationGeometry:
    """Express the kernel gradient as a correlation whose taps are the positions, with images as channels."""
    channels, features = conv.kernel.shape[1], conv.kernel.shape[0] // conv.groups
    # With a single position there is no stride.
    strides = (stride if positions > 1 else 1 for stride, positions in zip(conv.stride, conv.y.shape[2:], strict=True))
    sizes = zip(
        conv.kernel.shape[2:], conv.y.shape[2:], conv.x.shape[2:], strides, conv.dilation, conv.padding, strict=True
    )
    axes = _three(Axis(taps, positions, extent, d, s, -p) for taps, positions, extent, s, d, p in sizes)
    x, k = (_images_as_channels(_layout(t, n)) for t, n in ((conv.x, channels), (conv.y, features)))
    y = _images_as_channels(_kernel_layout(conv.kernel, features))
    return CorrelationGeometry(
        conv.dtype, conv.itemsize, channels, conv.groups, conv.x.shape[0], features, axes, x, k, y
    )


def _adjoint(conv: ConvolutionGeometry) -> Recipe | None:
    """Write a correlation per remainder of positions modulo the stride, with the taps that reach these positions.

    Beyond x a correlation reads zeros, whose product with an infinite kernel element would be NaN. So the kernel is
    checked for non-finite elements first.
    """
    if math.prod(conv.stride) > MOST_CLASSES:
        return None
    classes = list(_classes(conv))
    if not all(correlation.is_addressable for correlation in classes):
        return None
    phases_and_workspaces = [_correlation(correlation) for correlation in classes]
    phases, workspaces = [phase for phase, _ in phases_and_workspaces], [own for _, own in phases_and_workspaces]
    return _within_limits(Recipe((_check(conv), *phases), aligned(8), max(workspaces), checked=True))


def _correlation(geometry: CorrelationGeometry) -> tuple[KernelPhase, int]:
    """Write a kernel; return it and its workspace per thread in bytes."""
    if is_depthwise(geometry):
        return depthwise(geometry)
    writer = CorrelationWriter(geometry)
    return writer.phase(), writer.own


def _within_limits(recipe: Recipe | None) -> Recipe | None:
    return recipe if recipe is not None and recipe.own <= MOST_OWN else None


def _layout(tensor: TensorLayout, channels: int) -> Layout:
    """Return the layout of an operand or result with `channels` channels per group."""
    return Layout(tensor.steps[0], tensor.steps[1] * channels, tensor.steps[1], _three(tensor.steps[2:]))


def _kernel_layout(tensor: TensorLayout, features: int) -> Layout:
    """Return the layout of a kernel with `features` features per group."""
    return Layout(tensor.steps[0], tensor.steps[0] * features, tensor.steps[1], _three(tensor.steps[2:]))


def _images_as_channels(layout: Layout) -> Layout:
    """Exchange the axis of images (or features) and the axis of channels."""
    return layout._replace(outer=layout.channel, channel=layout.outer)


def _three(numbers: Iterable[_T]) -> tuple[_T, _T, _T]:
    first, second, third = numbers
    return first, second, third


class _Residue(NamedTuple):
    """Positions with one remainder along an axis: the first position, and as a correlation the taps that reach them."""

    first: int
    tap: int
    tap_step: int
    axis: Axis


def _classes(conv: ConvolutionGeometry) -> Iterator[CorrelationGeometry]:
    """Yield a correlation for each combination of remainders."""
    channels, features = conv.kernel.shape[0] // conv.groups, conv.kernel.shape[1]
    x = _layout(conv.x, channels)
    for residues in product(*(list(_residues(conv, axis)) for axis in range(3))):
        steps = [s * t for s, t in zip(conv.kernel.steps[2:], (r.tap_step for r in residues), strict=True)]
        start = sum(s * r.tap for s, r in zip(conv.kernel.steps[2:], residues, strict=True))
        k = Layout(conv.kernel.steps[1], conv.kernel.steps[0] * channels, conv.kernel.steps[0], _three(steps), start)
        steps_of_positions = [s * stride for s, stride in zip(conv.y.steps[2:], conv.stride, strict=True)]
        begin = sum(s * r.first for s, r in zip(conv.y.steps[2:], residues, strict=True))
        y = Layout(conv.y.steps[0], conv.y.steps[1] * features, conv.y.steps[1], _three(steps_of_positions), begin)
        axes = _three([residue.axis for residue in residues])
        yield CorrelationGeometry(
            conv.dtype, conv.itemsize, conv.x.shape[0], conv.groups, channels, features, axes, x, k, y
        )


def _residues(conv: ConvolutionGeometry, axis: int) -> Iterator[_Residue]:
    stride, padding, dilation = conv.stride[axis], conv.padding[axis], conv.dilation[axis]
    taps, extent, x_extent = conv.kernel.shape[2 + axis], conv.y.shape[2 + axis], conv.x.shape[2 + axis]
    for first in range(min(stride, extent)):
        # Tap t reaches a position if position + padding − t · dilation is a multiple of the stride. Such taps are
        # equally spaced, so they form an axis of their own.
        reaching = [t for t in range(taps) if (first + padding - t * dilation) % stride == 0]
        positions = -(-(extent - first) // stride)
        if not reaching:  # no tap reaches these positions: a correlation over an empty extent gives zeros
            yield _Residue(first, 0, 1, Axis(positions, 1, 0, 1, 1, 0))
            continue
        tap = reaching[0]
        tap_step = reaching[1] - tap if len(reaching) > 1 else 1
        start = (first + padding - tap * dilation) // stride
        residue_axis = Axis(positions, len(reaching), x_extent, 1, -(dilation * tap_step // stride), start)
        yield _Residue(first, tap, tap_step, residue_axis)


def _check(conv: ConvolutionGeometry) -> KernelPhase:
    """Check that the kernel is finite: Σ (x − x) is 0 for finite numbers, and NaN otherwise."""
    ir = Routine(conv.dtype, lanes_for(conv.itemsize))
    outer, (count, step) = _runs(conv.kernel)
    with ir.loop("%first", "%past"):
        kernel = ir.place("operand", 1)
        extents, steps = [extent for extent, _ in outer], [axis_step for _, axis_step in outer]
        with ir.loop(0, math.prod(extents), carried=[(ir.vector, ir.zero)]) as run:
            run_start = ir.moved(kernel, ir.unravelled(run.index, extents), steps)
            with ir.loop(0, count, ir.lanes, carried=[(ir.vector, run.carried[0])]) as vector:
                mask = ir.between(0, ir.sub(count, vector.index))
                read = ir.load_row(ir.at(run_start, ir.mul(vector.index, step)), step, mask)
                vector.carry = [ir.sum(vector.carried[0], ir.assembly.value(f"fsub {ir.vector} {read}, {read}"))]
            run.carry = vector.carried
        total = ir.halved(run.carried[0])
        is_nan = ir.assembly.value(f"fcmp uno {ir.assembly.name('float')} {total}, {total}")
        flag = ir.assembly.value(f"zext i1 {is_nan} to i64")
        ir.memory.store("i64", flag, ir.place(*FLAG))
    return ir.phase(1, math.prod(conv.kernel.shape))


def _runs(tensor: TensorLayout) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Merge axes in order of decreasing strides; return the merged axes but the last, and the last."""
    axes = sorted(
        ((e, s) for e, s in zip(tensor.shape, tensor.steps, strict=True) if e > 1), key=lambda axis: -abs(axis[1])
    )
    merged: list[tuple[int, int]] = []
    for extent, step in axes:
        if merged and merged[-1][1] == extent * step:
            merged[-1] = (merged[-1][0] * extent, step)
        else:
            merged.append((extent, step))
    return merged[:-1], merged[-1] if merged else (1, tensor.steps[-1])
