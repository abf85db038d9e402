"""Convolution as matrix products on columns of windows ("im2col"), in chunks that stay in the cache.

The elements that each window sees are copied into a column, in runs as long as possible, and multiplied by the kernel
as a matrix (K. Chellapilla et al., "High performance convolutional neural networks for document processing", 2006).
With x = [1, 2, 3, 4] and a kernel of 3 taps, the columns of the two windows are [1, 2, 3] and [2, 3, 4]:

    [k₀ k₁ k₂] @ [[1, 2],   =  [y₀ y₁]
                   [2, 3],
                   [3, 4]]

A chunk is some groups; of these some images, or some rows of one image if it has many windows. The gradient with
respect to the kernel is the product of columns with the cotangent (`sum_kernel`). The gradient with respect to x, a
transposed convolution, is a convolution again, one for each residue of the stride (`add_windows`). If windows have more
taps than there are windows, images and channels exchange roles, and taps and positions too.
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
from engine.ops.common.numerics import accumulator, known_finite
from engine.ops.conv.windows import Windows

#: bytes of columns laid out at a time, unless one row of windows takes more: they stay in the cache, and the allocator
#: reuses them, while the system maps larger chunks page by page each time
CHUNK_BYTES = 2 << 20
#: windows laid out at a time at least: with fewer, reading the kernel takes longer than multiplying by it
LEAST_WINDOWS = 256
#: factor by which runs of channels must be longer than runs of positions for moving channels last to pay off
CHANNEL_RUN_FACTOR = 3
ALL = (slice(None),) * 3  # images, groups, channels
#: elements per window, on the stride's grid, above which windows are sparse
SPARSE_FACTOR = 2


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of a correlation or its adjoint: windows over `wide`, each of which gives one position of `narrow`.

    Both are shapes [images, channels, *extents].
    """

    windows: Windows
    groups: int
    wide: Shape
    narrow: Shape
    dtype: DType

    @property
    def positions(self) -> Shape:
        """Number of windows along each axis."""
        return self.narrow[2:]

    @property
    def window_count(self) -> int:
        """Number of windows on one image."""
        return math.prod(self.positions)

    @property
    def depth(self) -> int:
        """Channels of a group in `wide`."""
        return self.wide[1] // self.groups

    @property
    def features(self) -> int:
        """Channels of a group in `narrow`."""
        return self.narrow[1] // self.groups

    @property
    def column_length(self) -> int:
        """Elements that one window sees in all channels of a group: the length of a column."""
        return self.depth * self.windows.taps

    @property
    def large_windows(self) -> bool:
        """Whether a window has more taps than there are windows."""
        return self.windows.taps > self.window_count

    @property
    def products(self) -> int:
        """Total number of multiplications."""
        return math.prod(self.narrow) * self.column_length

    @property
    def channels_last(self) -> bool:
        """Whether columns are copied from images with their channels moved last.

        A row of a window is then one run of memory, if its taps are adjacent; otherwise the positions of a tap are.
        """
        width = self.windows.size[-1] if self.windows.dilation[-1] == 1 else 1
        return width * self.depth > CHANNEL_RUN_FACTOR * self.positions[-1]

    @property
    def exchanged(self) -> Layout:
        """Sizes with images and channels exchanged, and taps and positions."""
        w = self.windows
        wide = (self.depth, self.groups * self.wide[0], *self.wide[2:])
        narrow = (self.depth, self.narrow[1], *w.size)
        return replace(self, windows=w.exchanged(self.positions), wide=wide, narrow=narrow)

    @property
    def span_bytes(self) -> int:
        """Bytes of one channel of one image within the span of all windows."""
        return math.prod(self.windows.span(self.positions)) * self.dtype.itemsize

    @property
    def window_bytes(self) -> int:
        """Bytes that one window sees in all channels, or gives, if that is more."""
        return self.groups * max(self.column_length, self.features) * self.dtype.itemsize

    @property
    def groups_at_once(self) -> int:
        """Number of groups whose columns of one image fit into CHUNK_BYTES, at least 1."""
        return within_chunk(self.groups, self.window_count * self.window_bytes // self.groups)

    def parts(self) -> Iterator[tuple[slice, Layout]]:
        """Yield the groups, `groups_at_once` at a time, with the layout of each part."""
        for part in slices(self.groups, self.groups_at_once):
            yield part, self.part(part.stop - part.start)

    def part(self, groups: int) -> Layout:
        """Return the layout of `groups` of the groups."""
        wide = (self.wide[0], groups * self.depth, *self.wide[2:])
        narrow = (self.narrow[0], groups * self.features, *self.narrow[2:])
        return replace(self, groups=groups, wide=wide, narrow=narrow)

    @property
    def images_at_once(self) -> int:
        """Number of images whose columns fit into CHUNK_BYTES, or that have LEAST_WINDOWS, at least 1."""
        return _fit(
            max(CHUNK_BYTES, LEAST_WINDOWS * self.window_bytes), self.wide[0], self.window_count * self.window_bytes
        )

    def image_chunks(self) -> Iterator[slice]:
        """Yield the images, a few at a time."""
        return slices(self.wide[0], self.images_at_once)

    @property
    def rows(self) -> tuple[int, int]:
        """First axis of the positions with more than one, and the number of windows at each of its positions."""
        axis = next((i for i, n in enumerate(self.positions) if n > 1), 0)
        return axis, math.prod(self.positions[axis + 1 :])

    @property
    def rows_at_once(self) -> int:
        """Number of rows of windows whose columns fit into CHUNK_BYTES, or that have LEAST_WINDOWS."""
        axis, length = self.rows
        return _fit(max(CHUNK_BYTES // max(self.window_bytes, 1), LEAST_WINDOWS), self.positions[axis], length)

    @property
    def windows_at_once(self) -> int:
        """Largest number of windows laid out at a time, on all images of a chunk together."""
        return self.images_at_once * min(self.window_count, self.rows_at_once * self.rows[1])

    def row_slices(self) -> Iterator[slice]:
        """Yield the rows of windows of an image, a few at a time."""
        return slices(self.positions[self.rows[0]], self.rows_at_once)

    def row_chunks(self) -> Iterator[tuple[object, ...]]:
        """Yield the same as indices to the axes of the positions."""
        return map(self.at_rows, self.row_slices())

    def at_rows(self, rows: slice) -> tuple[object, ...]:
        """Return an index of `rows` to the axes of the positions."""
        return (..., rows, *[slice(None)] * (len(self.positions) - self.rows[0] - 1))


def within_chunk(count: int, nbytes: int) -> int:
    """Return how many of `count` things of `nbytes` bytes fit into CHUNK_BYTES, at least 1."""
    return _fit(CHUNK_BYTES, count, nbytes)


def _fit(capacity: int, count: int, nbytes: int) -> int:
    return max(1, min(count, capacity // max(nbytes, 1)))


def slices(count: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` from 0 to `count`."""
    return (slice(i, min(i + size, count)) for i in range(0, count, max(size, 1)))


def layout(
    wide: Array | TensorType, narrow: Array | TensorType, out: Array | TensorType, windows: Windows, groups: int
) -> Layout:
    """Return the layout of a correlation. The result `out` determines the dtype it accumulates in."""
    return Layout(windows, groups, wide.shape, narrow.shape, accumulator(out))


# The kernels of convolution: sums of products over sliding windows. float16 is multiplied and summed in float32.


def correlate(run: RunContext, x: Array, kernel: Array, out: Array, windows: Windows, groups: int) -> None:
    """Compute out[n, o, p] = Σ x[n, c, p · stride + t · dilation − padding] · kernel[o, c, t], over c and t.

    c is in o's group. Shapes: x [images, channels, *extents], kernel [features, channels / groups, *size], out [images,
    features, *positions].
    """
    sizes = layout(x, out, out, windows, groups)
    grouped, weights, results = split_groups(x, groups), _split(kernel, 0, groups), split_groups(out, groups)
    if sizes.large_windows:
        # Exchange images and channels of all three: the weights then take the role of positions.
        destination = _images_last(results)
        correlate_by_kernel(run, _channels_as_images(grouped), _channels_first(weights), destination, sizes.exchanged)
    else:
        correlate_groups(run, grouped, weights, results, sizes)


def sum_kernel(run: RunContext, wide: Array, narrow: Array, out: Array, windows: Windows, groups: int) -> None:
    """Compute out[o, c, t] = Σ wide[n, c, p · stride + t · dilation − padding] · narrow[n, o, p], over n and p.

    c is in o's group. This is the gradient of `correlate` with respect to its kernel: `wide` has the shape of x,
    `narrow` that of the result.
    """
    sizes = layout(wide, narrow, out, windows, groups)
    grouped, values, results = split_groups(wide, groups), split_groups(narrow, groups), _split(out, 0, groups)
    exchanged = sizes.exchanged
    if exchanged.large_windows:
        correlate_by_kernel(run, grouped, values, results, sizes)
    else:  # few windows with many taps each: the taps are the positions of the exchanged product
        correlate_groups(run, _channels_as_images(grouped), _images_last(values), _channels_first(results), exchanged)


def _channels_as_images(x: Array) -> Array:
    """Transpose images [n, groups, channels, …] to [channels, groups, n, …]."""
    return x.transpose(2, 1, 0, *range(3, x.ndim))


def _images_last(y: Array) -> Array:
    """Transpose results [n, groups, features, …] to kernels [groups, features, n, …]."""
    return y.transpose(1, 2, 0, *range(3, y.ndim))


def _channels_first(kernel: Array) -> Array:
    """Transpose kernels [groups, features, channels, …] to results [channels, groups, features, …]."""
    return kernel.transpose(2, 0, 1, *range(3, kernel.ndim))


def split_groups(x: Array, groups: int) -> Array:
    """Reshape x [images, channels, *extents] to [images, groups, channels / groups, *extents]."""
    return _split(x, 1, groups)


def _split(x: Array, axis: int, groups: int) -> Array:
    return x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])


def correlate_groups(run: RunContext, x: Array, weights: Array, out: Array, sizes: Layout) -> None:
    """Run `correlate` on arrays split by group: `x` and `out` on axis 1, `weights` on axis 0."""
    for groups, part in sizes.parts():
        rows = matrices(run.xp, weights[groups], part)
        for images in run.checked(part.image_chunks()):
            window_view = windows_of(run.xp, x[images, groups], part)
            for index in run.checked(part.row_chunks()):
                _multiply(run.xp, rows, window_view[index], out[images, groups][index], part)
            del window_view  # free the memory before the next chunk is laid out


def _multiply(xp: Namespace, weights: Array, window_view: Array, out: Array, sizes: Layout) -> None:
    images, groups, features, *positions = out.shape
    if sizes.channels_last:
        products = xp.matmul(weights, columns(xp, window_view, sizes))
        out[...] = products.reshape(groups, features, images, *positions).transpose(2, 0, 1, *range(3, out.ndim))
        return
    position_count = math.prod(positions)
    matrix_of_columns = matrix(xp, window_view, (images, groups, sizes.column_length, position_count), sizes.dtype)
    if out.dtype == sizes.dtype and _is_run(out.shape[3:], out.strides[3:], out.itemsize):
        xp.matmul(weights, matrix_of_columns, out=out.reshape(images, groups, features, position_count))
    else:
        out[...] = xp.matmul(weights, matrix_of_columns).reshape(out.shape)


def _is_run(extents: Shape, strides: Shape, step: int) -> bool:
    """Whether axes are contiguous in memory, as if they were one."""
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True


def correlate_by_kernel(run: RunContext, x: Array, narrow: Array, out: Array, sizes: Layout) -> None:
    """Compute out[g, o, c, t] = Σ x[n, g, c, p · stride + t · dilation − padding] · narrow[n, g, o, p], over n and p.

    The order of the partial sums depends on shapes only.
    """
    for groups, part in sizes.parts():
        sums = run.xp.zeros((part.groups, part.features, part.column_length), sizes.dtype)
        for images in run.checked(part.image_chunks()):
            window_view = windows_of(run.xp, x[images, groups], part)
            for index in run.checked(part.row_chunks()):
                _add_products(run.xp, narrow[images, groups][index], window_view[index], sums, part)
            del window_view  # free the memory before the next chunk is laid out
        out[groups] = _to_kernels(sums, part)


def _add_products(xp: Namespace, narrow: Array, window_view: Array, sums: Array, sizes: Layout) -> None:
    ordered = narrow.transpose(1, 2, 0, *range(3, narrow.ndim))
    values = matrix(xp, ordered, (sizes.groups, sizes.features, math.prod(ordered.shape[2:])), sizes.dtype)
    sums += xp.matmul(values, columns(xp, window_view, sizes).swapaxes(1, 2))


def windows_of(xp: Namespace, x: Array, sizes: Layout) -> Array:
    """View x [images, groups, channels, *extents] by windows: [images, groups, channels, *size, *positions].

    x is copied first if windows reach beyond it, if its dtype differs, or if channels go last.
    """
    within, inside = sizes.windows.overlap(x.shape[3:], sizes.positions)
    span = sizes.windows.span(sizes.positions)
    part = x[(..., *within)]
    if part.shape[3:] != span or x.dtype != sizes.dtype or sizes.channels_last:
        images, groups, channels = x.shape[:3]
        if sizes.channels_last:
            spanned = xp.moveaxis(xp.empty((groups, images, *span, channels), sizes.dtype), (1, -1), (0, 2))
        else:
            spanned = xp.empty((images, groups, channels, *span), sizes.dtype)
        if part.shape[3:] != span:
            spanned.fill(0)
        spanned[(..., *inside)] = part
        part = spanned
    return sizes.windows.view(xp, part, sizes.positions)


def columns(xp: Namespace, window_view: Array, sizes: Layout) -> Array:
    """Copy windows [images, groups, channels, *size, *positions] to [groups, window elements, images · positions]."""
    rank = len(sizes.positions)
    size, positions = range(3, 3 + rank), range(3 + rank, 3 + 2 * rank)
    count = len(window_view) * math.prod(window_view.shape[3 + rank :])
    if sizes.channels_last:
        ordered = window_view.transpose(1, 0, *positions, *size, 2)
        return matrix(xp, ordered, (sizes.groups, count, sizes.column_length), sizes.dtype).swapaxes(1, 2)
    ordered = window_view.transpose(1, 2, *size, 0, *positions)
    return matrix(xp, ordered, (sizes.groups, sizes.column_length, count), sizes.dtype)


def matrices(xp: Namespace, weights: Array, sizes: Layout) -> Array:
    """Reshape weights [groups, features, channels, *size] to [groups, features, window elements], in column order."""
    ordered = xp.moveaxis(weights, 2, -1) if sizes.channels_last else weights
    return xp.ascontiguousarray(ordered, sizes.dtype).reshape(sizes.groups, sizes.features, sizes.column_length)


def _to_kernels(sums: Array, sizes: Layout) -> Array:
    """Invert `matrices`."""
    size = sizes.windows.size
    if sizes.channels_last:
        return sums.reshape(*sums.shape[:2], *size, sizes.depth).transpose(0, 1, -1, *range(2, 2 + len(size)))
    return sums.reshape(*sums.shape[:2], sizes.depth, *size)


def matrix(xp: Namespace, array: Array, shape: Shape, dtype: DType) -> Array:
    """Return `array` in `shape` and `dtype`, copied unless BLAS can read its rows."""
    if array.dtype != dtype:
        return xp.ascontiguousarray(array, dtype).reshape(shape)
    reshaped = array.reshape(shape)
    row_stride, element_stride = reshaped.strides[-2:]
    is_readable = element_stride == reshaped.itemsize and row_stride >= reshaped.shape[-1] * element_stride
    return reshaped if is_readable else xp.ascontiguousarray(reshaped)


def correlate_workspace(sizes: Layout, out: TensorType, x: TensorType, kernel: TensorType) -> int:
    """Count the bytes that `correlate` allocates."""
    if sizes.large_windows:
        return _by_kernel_workspace(sizes.exchanged, x, kernel)
    weights_in_place = kernel.is_dense and kernel.dtype == sizes.dtype and not sizes.channels_last
    return groups_workspace(sizes, x, weights_in_place=weights_in_place, is_direct=out.dtype == sizes.dtype)


def sum_kernel_workspace(sizes: Layout, out: TensorType, wide: TensorType, narrow: TensorType) -> int:
    """Count the bytes that `sum_kernel` allocates."""
    exchanged = sizes.exchanged
    if exchanged.large_windows:
        return _by_kernel_workspace(sizes, wide, narrow)
    is_single = 1 in narrow.shape[:2]  # then the array already has its images last
    weights_in_place = is_single and narrow.is_dense and narrow.dtype == sizes.dtype and not exchanged.channels_last
    return groups_workspace(exchanged, wide, weights_in_place=weights_in_place, is_direct=out.dtype == sizes.dtype)


def groups_workspace(sizes: Layout, x: TensorType, *, weights_in_place: bool, is_direct: bool) -> int:
    """Count the bytes that `correlate_groups` allocates, if weights are used in place and results written directly."""
    part = sizes.part(sizes.groups_at_once)
    weights = 0 if weights_in_place else part.groups * part.features * part.column_length
    products = part.groups * part.features * part.windows_at_once if sizes.channels_last or not is_direct else 0
    return (weights + products) * sizes.dtype.itemsize + _columns_workspace(part, x)


def _by_kernel_workspace(sizes: Layout, x: TensorType, narrow: TensorType) -> int:
    part = sizes.part(sizes.groups_at_once)
    values_in_place = part.images_at_once == 1 and narrow.is_dense and narrow.dtype == sizes.dtype
    values = 0 if values_in_place else part.groups * part.features * part.windows_at_once
    sums = 2 * part.groups * part.features * part.column_length
    return (values + sums) * sizes.dtype.itemsize + _columns_workspace(part, x)


def _columns_workspace(sizes: Layout, x: TensorType) -> int:
    """Count the bytes of padded images and of columns."""
    within, span = sizes.windows.overlap(sizes.wide[2:], sizes.positions)[0], sizes.windows.span(sizes.positions)
    is_covered = all(s.stop - s.start == n for s, n in zip(within, span, strict=True))
    is_in_place = is_covered and x.dtype == sizes.dtype and not sizes.channels_last
    canvas = 0 if is_in_place else sizes.images_at_once * sizes.groups * sizes.depth * sizes.span_bytes
    is_whole = not is_in_place or (x.is_dense and span == sizes.wide[2:])
    as_is = sizes.windows.taps == 1 and set(sizes.windows.stride) == {1} and is_whole
    if as_is and (sizes.channels_last or sizes.images_at_once == 1):
        return canvas
    return canvas + sizes.groups * sizes.column_length * sizes.windows_at_once * sizes.dtype.itemsize


# Transposed convolution, the adjoint of `correlate`, as correlations with stride 1.
# Element e meets tap t of window p if e + padding = p · stride + t · dilation. Elements with the same residue modulo
# the stride meet the same taps, so that each residue class is a correlation of the windows' values with these taps in
# reverse order.


class ResidueClass(NamedTuple):
    """Elements at `places`, computed as the correlation of values by `windows` with the kernel at `taps`."""

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
    """Yield all classes that a tap meets, of windows at `positions` over a tensor of these `extents`."""
    axes = zip(windows.size, windows.stride, windows.padding, windows.dilation, extents, positions, strict=True)
    for residues in product(*(list(_axis_residues(*axis)) for axis in axes)):
        taps, places, size, padding, dilation = zip(*residues, strict=True)
        yield ResidueClass(taps, places, Windows(size, (1,) * len(size), padding, dilation))


def residues_cover(windows: Windows) -> bool:
    """Whether every element belongs to a class that a tap meets."""
    axes = zip(windows.size, windows.stride, windows.dilation, strict=True)
    return all(math.gcd(s, d) == 1 and k >= s for k, s, d in axes)


def _axis_residues(
    size: int, stride: int, padding: int, dilation: int, extent: int, positions: int
) -> Iterator[_AxisResidue]:
    """Yield the residue classes along one axis.

    With t = first + j · period, the condition e + padding = p · stride + t · dilation becomes e + padding = first ·
    dilation + u · stride for u = p + j · (dilation / common): e is element u of a correlation whose taps are reversed.
    Taps that lie outside all windows for every element are omitted: of taps that are far apart, only a few remain.
    """
    common = math.gcd(stride, dilation)
    period, step = stride // common, dilation // common
    for first in range(min(size, period)):
        first_element = -((first * dilation - padding) // stride)
        last_element = (extent - 1 + padding - first * dilation) // stride
        if first_element <= last_element:
            begin, end = (u * stride + first * dilation - padding for u in (first_element, last_element))
            last = (size - 1 - first) // period
            nearest = min(max(0, -((positions - 1 - first_element) // step)), last)
            farthest = max(nearest, min(last, last_element // step))
            taps = slice(farthest * period + first, nearest * period + first - 1 if nearest or first else None, -period)
            yield _AxisResidue(
                taps, slice(begin, end + 1, stride), farthest - nearest + 1, farthest * step - first_element, step
            )


# Each element of the result is a sum over the windows that see it: a correlation, as above. If windows are few and far
# apart, that would multiply mostly zeros, and if the kernel is not finite, zeros times infinity would give NaN. Each
# window is then added at its place.


def add_windows(run: RunContext, x: Array, kernel: Array, out: Array, windows: Windows, groups: int) -> None:
    """Compute out[n, o, p · stride + t · dilation − padding] = Σ x[n, c, p] · kernel[c, o, t], over c, t and p.

    c is in o's group. The adjoint of `correlate` with respect to its first operand. Shapes: x [images, channels,
    *positions], kernel [channels, features / groups, *size], out [images, features, *extents].
    """
    sizes = layout(out, x, out, windows, groups)
    weights = kernel.reshape(groups, sizes.features, *kernel.shape[1:])
    values, results = split_groups(x, groups), split_groups(out, groups)
    if _is_sparse(sizes) or not known_finite(run, kernel, dtype=FLOAT64):
        for part, part_sizes in sizes.parts():
            _spread_groups(run, values[:, part], weights[part], results[:, part], part_sizes)
        return
    if not residues_cover(windows):
        out.fill(0)
    transposed = weights.swapaxes(1, 2)
    for residue_sizes, (taps, places) in _residue_layouts(sizes):
        correlate_groups(run, values, transposed[(..., *taps)], results[(..., *places)], residue_sizes)


def _is_sparse(sizes: Layout) -> bool:
    return math.prod(sizes.wide[2:]) > SPARSE_FACTOR * sizes.window_count * math.prod(sizes.windows.stride)


def _residue_layouts(sizes: Layout) -> Iterator[tuple[Layout, tuple[tuple[slice, ...], tuple[slice, ...]]]]:
    """Yield the correlations that the adjoint consists of, with their taps and their places in the result."""
    for taps, places, windows in residue_classes(sizes.windows, sizes.wide[2:], sizes.positions):
        counts = (len(range(*p.indices(e))) for p, e in zip(places, sizes.wide[2:], strict=True))
        narrow = (*sizes.wide[:2], *counts)
        yield Layout(windows, sizes.groups, sizes.narrow, narrow, sizes.dtype), (taps, places)


def _spread_groups(run: RunContext, x: Array, weights: Array, out: Array, sizes: Layout) -> None:
    rows = run.xp.ascontiguousarray(weights, sizes.dtype).reshape(*weights.shape[:2], sizes.column_length)
    for images in run.checked(sizes.image_chunks()):
        _spread_images(run, x[images], rows, out[images], sizes)


def _spread_images(run: RunContext, x: Array, weights: Array, out: Array, sizes: Layout) -> None:
    sums, (axis, _) = run.xp.zeros(out.shape, sizes.dtype), sizes.rows
    for rows in run.checked(sizes.row_slices()):
        windows = sizes.windows.from_window(axis, rows.start)
        _add_spread_products(run.xp, x[sizes.at_rows(rows)], weights, sums, windows, sizes)
    out[...] = sums


def _add_spread_products(xp: Namespace, x: Array, weights: Array, sums: Array, windows: Windows, sizes: Layout) -> None:
    """Add each value times the kernel to `sums` where its window lies: window by window, or tap by tap."""
    lead, size, extents, positions = sums.shape[:3], windows.size, sums.shape[3:], x.shape[3:]
    values = matrix(xp, x, (*x.shape[:3], math.prod(positions)), sizes.dtype)
    if sizes.large_windows:
        rows = xp.matmul(values.swapaxes(2, 3), weights).reshape(*lead[:2], *positions, lead[2], *size)
        for position, taps, elements in windows.exchanged(positions).all_tap_slices(extents, size):
            sums[(*ALL, *elements)] += rows[(*ALL[:2], *position, ALL[2], *taps)]
    else:
        products = xp.matmul(weights.swapaxes(1, 2), values).reshape(*lead, *size, *positions)
        for tap, positions_index, elements in windows.all_tap_slices(extents, positions):
            sums[(*ALL, *elements)] += products[(*ALL, *tap, *positions_index)]


def add_windows_workspace(sizes: Layout, x: TensorType, kernel: TensorType) -> int:
    """Count the bytes that `add_windows` allocates."""
    if _is_sparse(sizes):
        return _spread_workspace(sizes, x, kernel)
    is_direct = set(sizes.windows.stride) == {1} and x.dtype == sizes.dtype
    workspaces = (
        groups_workspace(residue_sizes, x, weights_in_place=False, is_direct=is_direct)
        for residue_sizes, _ in _residue_layouts(sizes)
    )
    return max(workspaces, default=0)


def _spread_workspace(sizes: Layout, x: TensorType, kernel: TensorType) -> int:
    sizes = sizes.part(sizes.groups_at_once)
    weights, values = (
        0 if type.is_dense and type.dtype == sizes.dtype else sizes.narrow[1] * count
        for type, count in ((kernel, sizes.column_length), (x, sizes.windows_at_once))
    )
    products = sizes.groups * sizes.column_length * sizes.windows_at_once
    sums = sizes.images_at_once * sizes.wide[1] * math.prod(sizes.wide[2:])
    return (weights + values + products + sums) * sizes.dtype.itemsize
