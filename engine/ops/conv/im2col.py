"""Kernels of convolution and its adjoint: matrix products on columns of windows, as many as stay in the cache.

Some groups; of these some images, or some rows of one, where windows are many.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from engine.ir.op import Array, Namespace
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import FLOAT64, DType, Shape, TensorType
from engine.ops.common.numerics import accumulator, are_finite
from engine.ops.conv.windows import Windows

#: bytes of columns laid out at a time, unless one row of windows takes more: they stay in the cache, and an allocator
#: keeps them, where larger chunks come from the system anew, page by page
CHUNK = 2 << 20
#: windows laid out at a time, at least: for fewer, reading the kernel takes longer than multiplying by it
LEAST = 256
#: how many times longer runs of channels must be than runs of positions, so that moving channels to the end pays
LONGER = 3
ALL = (slice(None),) * 3  # images, groups, channels
#: how many elements there may be for each window, on the stride's grid
SPARSE = 2


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of one correlation, or of its adjoint: windows over `wide`, of which each gives one place of `narrow`.

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
    def lines(self) -> int:
        """Elements that one window sees in all channels of a group."""
        return self.depth * self.windows.taps

    @property
    def large_windows(self) -> bool:
        """Whether a window has more taps than there are windows."""
        return self.windows.taps > self.places

    @property
    def products(self) -> int:
        """Multiplications in all."""
        return math.prod(self.narrow) * self.lines

    @property
    def channels_last(self) -> bool:
        """Whether columns are copied from images with their channels at the end.

        A row of a window is then one run of memory, if its taps are neighbours; else the positions of a tap are.
        """
        width = self.windows.size[-1] if self.windows.dilation[-1] == 1 else 1
        return width * self.depth > LONGER * self.positions[-1]

    @property
    def exchanged(self) -> Layout:
        """Return the sizes with images and channels, and taps and positions, exchanged."""
        w = self.windows
        wide = (self.depth, self.groups * self.wide[0], *self.wide[2:])
        narrow = (self.depth, self.narrow[1], *w.size)
        return replace(self, windows=w.exchanged(self.positions), wide=wide, narrow=narrow)

    @property
    def span_bytes(self) -> int:
        """Bytes of what all windows see of one channel of one image, and of what lies between."""
        return math.prod(self.windows.span(self.positions)) * self.dtype.itemsize

    @property
    def place_bytes(self) -> int:
        """Bytes of what one window sees in all channels, or gives, if that is more."""
        return self.groups * max(self.lines, self.features) * self.dtype.itemsize

    @property
    def groups_at_once(self) -> int:
        """Count the groups whose columns of one image CHUNK holds, at least 1."""
        return within_chunk(self.groups, self.places * self.place_bytes // self.groups)

    def parts(self) -> Iterator[tuple[slice, Layout]]:
        """Some groups at a time, and the layout of so many."""
        for part in slices(self.groups, self.groups_at_once):
            yield part, self.part(part.stop - part.start)

    def part(self, groups: int) -> Layout:
        """The layout of so many of the groups."""
        wide = (self.wide[0], groups * self.depth, *self.wide[2:])
        narrow = (self.narrow[0], groups * self.features, *self.narrow[2:])
        return replace(self, groups=groups, wide=wide, narrow=narrow)

    @property
    def images_at_once(self) -> int:
        """Count the images whose columns CHUNK holds, or that have LEAST windows, at least 1."""
        return _within(max(CHUNK, LEAST * self.place_bytes), self.wide[0], self.places * self.place_bytes)

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
        """Count the rows of windows whose columns CHUNK holds, of at least LEAST windows."""
        axis, length = self.rows
        return _within(max(CHUNK // max(self.place_bytes, 1), LEAST), self.positions[axis], length)

    @property
    def places_at_once(self) -> int:
        """How many windows are laid out at a time, at most, on all images together."""
        return self.images_at_once * min(self.places, self.rows_at_once * self.rows[1])

    def row_slices(self) -> Iterator[slice]:
        """The windows of an image, a few rows at a time."""
        return slices(self.positions[self.rows[0]], self.rows_at_once)

    def row_chunks(self) -> Iterator[tuple[object, ...]]:
        """The same, as indices to the axes of the positions."""
        return map(self.at_rows, self.row_slices())

    def at_rows(self, rows: slice) -> tuple[object, ...]:
        """An index to the axes of the positions."""
        return (..., rows, *[slice(None)] * (len(self.positions) - self.rows[0] - 1))


def within_chunk(count: int, each: int) -> int:
    """Count the things, of `count`, that CHUNK holds, if each takes so many bytes; one at least."""
    return _within(CHUNK, count, each)


def _within(most: int, count: int, each: int) -> int:
    return max(1, min(count, most // max(each, 1)))


def slices(count: int, size: int) -> Iterator[slice]:
    """0 to `count`, `size` at a time."""
    return (slice(i, min(i + size, count)) for i in range(0, count, max(size, 1)))


def layout(
    wide: Array | TensorType, narrow: Array | TensorType, out: Array | TensorType, windows: Windows, groups: int
) -> Layout:
    """The layout for a result `out`, which is one of the other two."""
    return Layout(windows, groups, wide.shape, narrow.shape, accumulator(out))


# The kernels of convolution: sums of products over sliding windows, as matrix products on columns.
#
# What the windows see is copied out ("im2col"; K. Chellapilla et al., "High performance convolutional neural networks
# for document processing", 2006) in runs as long as can be had, and multiplied by the kernel as a matrix, as much at a
# time as stays in the cache. float16 is multiplied and summed in float32.


def correlate(run: RunContext, x: Array, kernel: Array, out: Array, windows: Windows, groups: int) -> None:
    """out[n, o, p] = Σ x[n, c, p · stride + t · dilation − padding] · kernel[o, c, t], over taps t and c in o's group.

    Shapes: x [images, channels, *extents], kernel [features, channels / groups, *size], out [images, features,
    *positions].
    """
    sizes = layout(x, out, out, windows, groups)
    split, weights, results = by_group(x, groups), _split(kernel, 0, groups), by_group(out, groups)
    if sizes.large_windows:
        # Each of the three with the role of images and channels exchanged: the weights are the places of windows.
        into = _images_last(results)
        correlate_by_kernel(run, _exchanged(split), _channels_first(weights), into, sizes.exchanged)
    else:
        correlate_groups(run, split, weights, results, sizes)


def sum_kernel(run: RunContext, wide: Array, narrow: Array, out: Array, windows: Windows, groups: int) -> None:
    """out[o, c, t] = Σ wide[n, c, p · stride + t · dilation − padding] · narrow[n, o, p], over n and p, c in o's group.

    The derivative of `correlate` by its kernel: `wide` is shaped as x is there, `narrow` as its result.
    """
    sizes = layout(wide, narrow, out, windows, groups)
    split, values, results = by_group(wide, groups), by_group(narrow, groups), _split(out, 0, groups)
    exchanged = sizes.exchanged
    if exchanged.large_windows:
        correlate_by_kernel(run, split, values, results, sizes)
    else:  # few windows, each with many taps: these are the places that are multiplied at once
        correlate_groups(run, _exchanged(split), _images_last(values), _channels_first(results), exchanged)


def _exchanged(x: Array) -> Array:
    """Images [n, groups, channels, …] as [channels, groups, n, …]."""
    return x.transpose(2, 1, 0, *range(3, x.ndim))


def _images_last(y: Array) -> Array:
    """Results [n, groups, features, …] as kernels [groups, features, n, …]."""
    return y.transpose(1, 2, 0, *range(3, y.ndim))


def _channels_first(kernel: Array) -> Array:
    """Kernels [groups, features, channels, …] as results [channels, groups, features, …]."""
    return kernel.transpose(2, 0, 1, *range(3, kernel.ndim))


def by_group(x: Array, groups: int) -> Array:
    """x [images, channels, *extents] as [images, groups, channels / groups, *extents]."""
    return _split(x, 1, groups)


def _split(x: Array, axis: int, groups: int) -> Array:
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


def correlate_groups(run: RunContext, x: Array, weights: Array, out: Array, sizes: Layout) -> None:
    """`correlate` of what is split by group, on axis 1 of `x` and `out`, and axis 0 of `weights`."""
    for groups, part in sizes.parts():
        rows = matrices(run.xp, weights[groups], part)
        for images in run.through(part.image_chunks()):
            seen = windows_of(run.xp, x[images, groups], part)
            for places in run.through(part.row_chunks()):
                _multiply(run.xp, rows, seen[places], out[images, groups][places], part)
            del seen  # before the next ones are laid out


def _multiply(xp: Namespace, weights: Array, seen: Array, out: Array, sizes: Layout) -> None:
    images, groups, features, *positions = out.shape
    if sizes.channels_last:
        products = xp.matmul(weights, columns(xp, seen, sizes))
        out[...] = products.reshape(groups, features, images, *positions).transpose(2, 0, 1, *range(3, out.ndim))
        return
    places = math.prod(positions)
    each = matrix(xp, seen, (images, groups, sizes.lines, places), sizes.dtype)
    if out.dtype == sizes.dtype and _is_run(out.shape[3:], out.strides[3:], out.itemsize):
        xp.matmul(weights, each, out=out.reshape(images, groups, features, places))
    else:
        out[...] = xp.matmul(weights, each).reshape(out.shape)


def _is_run(extents: Shape, strides: Shape, step: int) -> bool:
    """Whether axes lie as one without gaps."""
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


def correlate_by_kernel(run: RunContext, x: Array, narrow: Array, out: Array, sizes: Layout) -> None:
    """out[g, o, c, t] = Σ x[n, g, c, p · stride + t · dilation − padding] · narrow[n, g, o, p], over n and p.

    Parts of the sum are added in an order that shapes determine.
    """
    for groups, part in sizes.parts():
        sums = run.xp.zeros((part.groups, part.features, part.lines), sizes.dtype)
        for images in run.through(part.image_chunks()):
            seen = windows_of(run.xp, x[images, groups], part)
            for places in run.through(part.row_chunks()):
                _add_products(run.xp, narrow[images, groups][places], seen[places], sums, part)
            del seen  # before the next ones are laid out
        out[groups] = _kernels(sums, part)


def _add_products(xp: Namespace, narrow: Array, seen: Array, sums: Array, sizes: Layout) -> None:
    ordered = narrow.transpose(1, 2, 0, *range(3, narrow.ndim))
    values = matrix(xp, ordered, (sizes.groups, sizes.features, math.prod(ordered.shape[2:])), sizes.dtype)
    sums += xp.matmul(values, columns(xp, seen, sizes).swapaxes(1, 2))


def windows_of(xp: Namespace, x: Array, sizes: Layout) -> Array:
    """View x [images, groups, channels, *extents] by windows: [images, groups, channels, *size, *positions]."""
    taken, inside = sizes.windows.met(x.shape[3:], sizes.positions)
    span = sizes.windows.span(sizes.positions)
    met = x[(..., *taken)]
    if met.shape[3:] != span or x.dtype != sizes.dtype or sizes.channels_last:
        images, groups, channels = x.shape[:3]
        if sizes.channels_last:
            spanned = xp.moveaxis(xp.empty((groups, images, *span, channels), sizes.dtype), (1, -1), (0, 2))
        else:
            spanned = xp.empty((images, groups, channels, *span), sizes.dtype)
        if met.shape[3:] != span:
            spanned.fill(0)
        spanned[(..., *inside)] = met
        met = spanned
    return sizes.windows.view(xp, met, sizes.positions)


def columns(xp: Namespace, seen: Array, sizes: Layout) -> Array:
    """Lay out windows [images, groups, channels, *size, *positions] as [groups, lines, images · places]."""
    rank = len(sizes.positions)
    size, positions = range(3, 3 + rank), range(3 + rank, 3 + 2 * rank)
    places = len(seen) * math.prod(seen.shape[3 + rank :])
    if sizes.channels_last:
        ordered = seen.transpose(1, 0, *positions, *size, 2)
        return matrix(xp, ordered, (sizes.groups, places, sizes.lines), sizes.dtype).swapaxes(1, 2)
    ordered = seen.transpose(1, 2, *size, 0, *positions)
    return matrix(xp, ordered, (sizes.groups, sizes.lines, places), sizes.dtype)


def matrices(xp: Namespace, weights: Array, sizes: Layout) -> Array:
    """Weights [groups, features, channels, *size] as [groups, features, lines], in the order of the columns."""
    ordered = xp.moveaxis(weights, 2, -1) if sizes.channels_last else weights
    return xp.ascontiguousarray(ordered, sizes.dtype).reshape(sizes.groups, sizes.features, sizes.lines)


def _kernels(sums: Array, sizes: Layout) -> Array:
    """The inverse of `matrices`."""
    size = sizes.windows.size
    if sizes.channels_last:
        return sums.reshape(*sums.shape[:2], *size, sizes.depth).transpose(0, 1, -1, *range(2, 2 + len(size)))
    return sums.reshape(*sums.shape[:2], sizes.depth, *size)


def matrix(xp: Namespace, array: Array, shape: Shape, dtype: DType) -> Array:
    """`array` in `shape` and `dtype`: as it lies where BLAS can read its rows there, else a copy."""
    if array.dtype != dtype:
        return xp.ascontiguousarray(array, dtype).reshape(shape)
    found = array.reshape(shape)
    row, step = found.strides[-2:]
    readable = step == found.itemsize and row >= found.shape[-1] * step
    return found if readable else xp.ascontiguousarray(found)


def correlate_workspace(sizes: Layout, out: TensorType, x: TensorType, kernel: TensorType) -> int:
    """Bytes that `correlate` allocates."""
    if sizes.large_windows:
        return _by_kernel_workspace(sizes.exchanged, x, kernel)
    lie = kernel.is_dense and kernel.dtype == sizes.dtype and not sizes.channels_last
    return groups_workspace(sizes, x, weights_lie=lie, is_direct=out.dtype == sizes.dtype)


def sum_kernel_workspace(sizes: Layout, out: TensorType, wide: TensorType, narrow: TensorType) -> int:
    """Bytes that `sum_kernel` allocates."""
    exchanged = sizes.exchanged
    if exchanged.large_windows:
        return _by_kernel_workspace(sizes, wide, narrow)
    one = 1 in narrow.shape[:2]  # then images last is how they lie
    lie = one and narrow.is_dense and narrow.dtype == sizes.dtype and not exchanged.channels_last
    return groups_workspace(exchanged, wide, weights_lie=lie, is_direct=out.dtype == sizes.dtype)


def groups_workspace(sizes: Layout, x: TensorType, *, weights_lie: bool, is_direct: bool) -> int:
    """Bytes that `correlate_groups` allocates, if weights lie as they are read, and results as they are made."""
    part = sizes.part(sizes.groups_at_once)
    weights = 0 if weights_lie else part.groups * part.features * part.lines
    products = part.groups * part.features * part.places_at_once if sizes.channels_last or not is_direct else 0
    return (weights + products) * sizes.dtype.itemsize + _columns_workspace(part, x)


def _by_kernel_workspace(sizes: Layout, x: TensorType, narrow: TensorType) -> int:
    part = sizes.part(sizes.groups_at_once)
    lie = part.images_at_once == 1 and narrow.is_dense and narrow.dtype == sizes.dtype
    values = 0 if lie else part.groups * part.features * part.places_at_once
    sums = 2 * part.groups * part.features * part.lines
    return (values + sums) * sizes.dtype.itemsize + _columns_workspace(part, x)


def _columns_workspace(sizes: Layout, x: TensorType) -> int:
    """Bytes of padded images and of columns."""
    inside, span = sizes.windows.met(sizes.wide[2:], sizes.positions)[0], sizes.windows.span(sizes.positions)
    is_met = all(s.stop - s.start == n for s, n in zip(inside, span, strict=True))
    lie = is_met and x.dtype == sizes.dtype and not sizes.channels_last
    canvas = 0 if lie else sizes.images_at_once * sizes.groups * sizes.depth * sizes.span_bytes
    is_whole = not lie or (x.is_dense and span == sizes.wide[2:])
    as_is = sizes.windows.taps == 1 and set(sizes.windows.stride) == {1} and is_whole
    if as_is and (sizes.channels_last or sizes.images_at_once == 1):
        return canvas
    return canvas + sizes.groups * sizes.lines * sizes.places_at_once * sizes.dtype.itemsize


# The adjoint of a correlation with a stride, as correlations without one.
#
# Of the elements that windows lie over, those at the same distance from the stride's grid are seen by the same taps.
# So they are a correlation of the windows' values with these taps, turned round; each such class is one by itself.


class ResidueClass(NamedTuple):
    """The elements at `places`, which are correlations of values by `windows` with the kernel at `taps`."""

    taps: tuple[slice, ...]
    places: tuple[slice, ...]
    windows: Windows


class _AxisResidue(NamedTuple):
    taps: slice
    places: slice
    size: int
    padding: int
    dilation: int


def residue_classes(windows: Windows, extents: Sequence[int], positions: Sequence[int]) -> Iterator[ResidueClass]:
    """All classes that a tap sees, from windows at `positions`, of a tensor of these `extents`."""
    axes = zip(windows.size, windows.stride, windows.padding, windows.dilation, extents, positions, strict=True)
    for each in product(*(list(_along(*axis)) for axis in axes)):
        taps, places, size, padding, dilation = zip(*each, strict=True)
        yield ResidueClass(taps, places, Windows(size, (1,) * len(size), padding, dilation))


def residues_cover(windows: Windows) -> bool:
    """Whether every element is of a class that a tap sees."""
    axes = zip(windows.size, windows.stride, windows.dilation, strict=True)
    return all(math.gcd(s, d) == 1 and k >= s for k, s, d in axes)


def _along(size: int, stride: int, padding: int, dilation: int, extent: int, positions: int) -> Iterator[_AxisResidue]:
    """The classes along one axis.

    Element e meets tap t of window p where e + padding = p · stride + t · dilation. With t = first + j · period, that
    is e + padding = first · dilation + u · stride for u = p + j · (dilation / common): so e is element u of a
    correlation whose taps look back. Those that look beyond the windows, wherever they look from, are left out: of taps
    that are far apart, all but a few.
    """
    common = math.gcd(stride, dilation)
    period, step = stride // common, dilation // common
    for first in range(min(size, period)):
        least = -((first * dilation - padding) // stride)
        most = (extent - 1 + padding - first * dilation) // stride
        if least <= most:
            begin, end = (u * stride + first * dilation - padding for u in (least, most))
            last = (size - 1 - first) // period
            near = min(max(0, -((positions - 1 - least) // step)), last)
            far = max(near, min(last, most // step))
            taps = slice(far * period + first, near * period + first - 1 if near or first else None, -period)
            yield _AxisResidue(taps, slice(begin, end + 1, stride), far - near + 1, far * step - least, step)


# The kernel of transposed convolution, the adjoint of `correlate`: products added where the windows lie.
#
# Where windows overlap everywhere, as they mostly do, each element is a sum over the windows that see it: a
# correlation itself. Where they are few and large, that would be mostly zeros, and where the kernel is not finite,
# zeros would not be nothing: each window is then added where it lies.


def add_windows(run: RunContext, x: Array, kernel: Array, out: Array, windows: Windows, groups: int) -> None:
    """out[n, o, p · stride + t · dilation − padding] = Σ x[n, c, p] · kernel[c, o, t], over c in o's group, t and p.

    The adjoint of `correlate` by its first operand. Shapes: x [images, channels, *positions], kernel [channels,
    features / groups, *size], out [images, features, *extents].
    """
    sizes = layout(out, x, out, windows, groups)
    weights = kernel.reshape(groups, sizes.features, *kernel.shape[1:])
    values, results = by_group(x, groups), by_group(out, groups)
    if _is_sparse(sizes) or not are_finite(run, kernel, dtype=FLOAT64):
        for part, some in sizes.parts():
            _spread_groups(run, values[:, part], weights[part], results[:, part], some)
        return
    if not residues_cover(windows):
        out.fill(0)
    turned = weights.swapaxes(1, 2)
    for one, (taps, places) in _by_residue(sizes):
        correlate_groups(run, values, turned[(..., *taps)], results[(..., *places)], one)


def _is_sparse(sizes: Layout) -> bool:
    return math.prod(sizes.wide[2:]) > SPARSE * sizes.places * math.prod(sizes.windows.stride)


def _by_residue(sizes: Layout) -> Iterator[tuple[Layout, tuple[tuple[slice, ...], tuple[slice, ...]]]]:
    """The correlations that the adjoint consists of, with their taps and their places in the result."""
    for taps, places, windows in residue_classes(sizes.windows, sizes.wide[2:], sizes.positions):
        counts = (len(range(*p.indices(e))) for p, e in zip(places, sizes.wide[2:], strict=True))
        narrow = (*sizes.wide[:2], *counts)
        yield Layout(windows, sizes.groups, sizes.narrow, narrow, sizes.dtype), (taps, places)


def _spread_groups(run: RunContext, x: Array, weights: Array, out: Array, sizes: Layout) -> None:
    rows = run.xp.ascontiguousarray(weights, sizes.dtype).reshape(*weights.shape[:2], sizes.lines)
    for images in run.through(sizes.image_chunks()):
        _spread_images(run, x[images], rows, out[images], sizes)


def _spread_images(run: RunContext, x: Array, weights: Array, out: Array, sizes: Layout) -> None:
    sums, (axis, _) = run.xp.zeros(out.shape, sizes.dtype), sizes.rows
    for rows in run.through(sizes.row_slices()):
        windows = sizes.windows.from_window(axis, rows.start)
        _add_spread_products(run.xp, x[sizes.at_rows(rows)], weights, sums, windows, sizes)
    out[...] = sums


def _add_spread_products(xp: Namespace, x: Array, weights: Array, sums: Array, windows: Windows, sizes: Layout) -> None:
    """Add each value times the kernel to what its window sees of `sums`: all windows, or all taps, at once."""
    lead, size, extents, positions = sums.shape[:3], windows.size, sums.shape[3:], x.shape[3:]
    values = matrix(xp, x, (*x.shape[:3], math.prod(positions)), sizes.dtype)
    if sizes.large_windows:
        rows = xp.matmul(values.swapaxes(2, 3), weights).reshape(*lead[:2], *positions, lead[2], *size)
        for place, taps, seen in windows.exchanged(positions).all_meetings(extents, size):
            sums[(*ALL, *seen)] += rows[(*ALL[:2], *place, ALL[2], *taps)]
    else:
        products = xp.matmul(weights.swapaxes(1, 2), values).reshape(*lead, *size, *positions)
        for tap, places, seen in windows.all_meetings(extents, positions):
            sums[(*ALL, *seen)] += products[(*ALL, *tap, *places)]


def add_windows_workspace(sizes: Layout, x: TensorType, kernel: TensorType) -> int:
    """Bytes that `add_windows` allocates."""
    if _is_sparse(sizes):
        return _spread_workspace(sizes, x, kernel)
    is_direct = set(sizes.windows.stride) == {1} and x.dtype == sizes.dtype
    each = (groups_workspace(one, x, weights_lie=False, is_direct=is_direct) for one, _ in _by_residue(sizes))
    return max(each, default=0)


def _spread_workspace(sizes: Layout, x: TensorType, kernel: TensorType) -> int:
    sizes = sizes.part(sizes.groups_at_once)
    weights, values = (
        0 if type.is_dense and type.dtype == sizes.dtype else sizes.narrow[1] * each
        for type, each in ((kernel, sizes.lines), (x, sizes.places_at_once))
    )
    products = sizes.groups * sizes.lines * sizes.places_at_once
    sums = sizes.images_at_once * sizes.wide[1] * math.prod(sizes.wide[2:])
    return (weights + values + products + sums) * sizes.dtype.itemsize
