"""The kernels of convolution: sums of products over sliding windows, as matrix products on columns.

What the windows see is copied out ("im2col"; K. Chellapilla et al., "High performance convolutional neural networks
for document processing", 2006) and multiplied by the kernel as a matrix. A bounded amount is laid out at a time, so
that it stays in the cache: some images where windows are many, some channels where the windows themselves are large,
as in the gradient by a kernel. float16 is multiplied and summed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from engine.op import Array, Namespace
from engine.ops.sums import accumulator
from engine.tensor_type import DType, Shape, TensorType
from engine.windows import Windows, each_index

#: bytes of columns laid out at a time, unless a single image or channel takes more
CHUNK = 4 << 20

ALL = (slice(None),) * 3  # images, groups, channels


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of one correlation, or of its adjoint: `wide` is what the windows move over, `narrow` what they give.

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
    def large_windows(self) -> bool:
        """Whether a window has more taps than there are windows."""
        return self.windows.taps > self.places

    @property
    def plane_bytes(self) -> int:
        """Bytes of one padded channel of one image."""
        return math.prod(self.windows.padded(self.wide[2:])) * self.dtype.itemsize

    @property
    def column_bytes(self) -> int:
        """Bytes of the columns of one channel of one image."""
        return self.windows.taps * self.places * self.dtype.itemsize

    @property
    def products(self) -> int:
        """Multiplications in all."""
        return math.prod(self.narrow) * self.depth * self.windows.taps

    def image_chunks(self) -> Iterator[slice]:
        """The images, a few at a time."""
        return _slices(self.wide[0], self.images_at_once)

    @property
    def images_at_once(self) -> int:
        """As many images as CHUNK holds the columns of, one at least."""
        return _at_once(self.wide[0], self.wide[1] * self.column_bytes)

    def channel_chunks(self) -> Iterator[slice]:
        """The channels of each group, a few at a time."""
        return _slices(self.depth, self.channels_at_once)

    @property
    def channels_at_once(self) -> int:
        """As many channels of each group as CHUNK holds the columns of, one at least."""
        return _at_once(self.depth, self.wide[0] * self.groups * self.column_bytes)


def _at_once(count: int, each: int) -> int:
    return max(1, min(count, CHUNK // max(each, 1)))


def _slices(count: int, size: int) -> Iterator[slice]:
    return (slice(i, min(i + size, count)) for i in range(0, count, size))


def layout(
    wide: Array | TensorType, narrow: Array | TensorType, out: Array | TensorType, windows: Windows, groups: int
) -> Layout:
    """The layout for a result `out`, which is one of the other two."""
    return Layout(windows, groups, wide.shape, narrow.shape, accumulator(out))


def correlate(xp: Namespace, x: Array, kernel: Array, out: Array, windows: Windows, groups: int) -> None:
    """out[n, o, p] = Σ x[n, c, p · stride + t · dilation − padding] · kernel[o, c, t], over taps t and c in o's group.

    Shapes: x [images, channels, *extents], kernel [features, channels / groups, *size], out [images, features,
    *positions].
    """
    sizes = layout(x, out, out, windows, groups)
    weights = kernel.reshape(groups, sizes.features, *kernel.shape[1:])
    by_parts = _correlate_channels if sizes.large_windows else _correlate_images
    by_parts(xp, x, weights, out, sizes)


def _correlate_images(xp: Namespace, x: Array, kernel: Array, out: Array, sizes: Layout) -> None:
    lines = sizes.depth * sizes.windows.taps
    weights = xp.ascontiguousarray(kernel, sizes.dtype).reshape(sizes.groups, sizes.features, lines)
    for part in sizes.image_chunks():
        seen = sizes.windows.view(xp, sizes.windows.pad(xp, x[part], sizes.dtype), sizes.positions)
        columns = xp.ascontiguousarray(seen).reshape(len(seen), sizes.groups, lines, sizes.places)
        _multiply(xp, weights, columns, out[part].reshape(len(seen), sizes.groups, sizes.features, sizes.places))


def _correlate_channels(xp: Namespace, x: Array, kernel: Array, out: Array, sizes: Layout) -> None:
    images, rank = len(x), len(sizes.positions)
    split = x.reshape(images, sizes.groups, sizes.depth, *x.shape[2:])
    # [images, groups, channels, *size, *positions] → [groups, images, *positions, channels, *size]
    order = (1, 0, *range(3 + rank, 3 + 2 * rank), *range(2, 3 + rank))
    sums = xp.zeros((sizes.groups, sizes.features, images * sizes.places), sizes.dtype)
    for part in sizes.channel_chunks():
        seen = sizes.windows.view(xp, sizes.windows.pad(xp, split[:, :, part], sizes.dtype), sizes.positions)
        lines = seen.shape[2] * sizes.windows.taps
        rows = xp.ascontiguousarray(seen.transpose(order)).reshape(sizes.groups, images * sizes.places, lines)
        weights = xp.ascontiguousarray(kernel[:, :, part], sizes.dtype).reshape(sizes.groups, sizes.features, lines)
        sums += weights @ rows.swapaxes(1, 2)
    by_image = sums.reshape(sizes.groups, sizes.features, images, sizes.places).transpose(2, 0, 1, 3)
    out.reshape(by_image.shape)[...] = by_image


def _multiply(xp: Namespace, a: Array, b: Array, out: Array) -> None:
    if out.dtype == a.dtype:
        xp.matmul(a, b, out=out)
    else:
        out[...] = xp.matmul(a, b)


def correlate_workspace(sizes: Layout) -> int:
    """Bytes that `correlate` allocates."""
    item, weights = sizes.dtype.itemsize, sizes.narrow[1] * sizes.depth * sizes.windows.taps
    seen = sizes.plane_bytes + sizes.column_bytes
    if sizes.large_windows:
        parts = sizes.channels_at_once
        lines = parts * (sizes.wide[0] * sizes.groups * seen + sizes.narrow[1] * sizes.windows.taps * item)
        return lines + 2 * math.prod(sizes.narrow) * item
    products = sizes.narrow[1] * sizes.places * item
    return weights * item + sizes.images_at_once * (sizes.wide[1] * seen + products)


def spread(xp: Namespace, x: Array, kernel: Array, out: Array, windows: Windows, groups: int) -> None:
    """out[n, o, p · stride + t · dilation − padding] = Σ x[n, c, p] · kernel[c, o, t], over c in o's group, t and p.

    The adjoint of `correlate` by its first operand. Shapes: x [images, channels, *positions], kernel [channels,
    features / groups, *size], out [images, features, *extents].
    """
    sizes = layout(out, x, out, windows, groups)
    lines = sizes.depth * windows.taps
    weights = xp.ascontiguousarray(kernel, sizes.dtype).reshape(groups, sizes.features, lines)
    for part in sizes.image_chunks():
        values = xp.ascontiguousarray(x[part], sizes.dtype)
        values = values.reshape(len(values), groups, sizes.features, sizes.places)
        canvas = xp.zeros((len(values), groups, sizes.depth, *windows.padded(out.shape[2:])), sizes.dtype)
        _add_products(xp, values, weights, canvas, sizes)
        out[part].reshape(*canvas.shape[:3], *out.shape[2:])[...] = canvas[(..., *windows.inside(out.shape[2:]))]


def _add_products(xp: Namespace, values: Array, weights: Array, canvas: Array, sizes: Layout) -> None:
    """Add each value times the kernel to the canvas where its window lies: all windows, or all taps, at once."""
    size, positions, lead = sizes.windows.size, sizes.positions, canvas.shape[:3]
    seen = sizes.windows.view(xp, canvas, positions)
    if sizes.large_windows:
        rows = xp.matmul(values.swapaxes(2, 3), weights).reshape(*lead[:2], *positions, sizes.depth, *size)
        for place in each_index(positions):
            seen[(..., *place)] += rows[(*ALL[:2], *place)]
    else:
        columns = xp.matmul(weights.swapaxes(1, 2), values).reshape(*lead, *size, *positions)
        for tap in each_index(size):
            seen[(*ALL, *tap)] += columns[(*ALL, *tap)]


def spread_workspace(sizes: Layout) -> int:
    """Bytes that `spread` allocates."""
    item, weights = sizes.dtype.itemsize, sizes.narrow[1] * sizes.depth * sizes.windows.taps
    values = sizes.narrow[1] * sizes.places * item
    canvas = sizes.wide[1] * (sizes.plane_bytes + sizes.column_bytes)
    return weights * item + sizes.images_at_once * (values + canvas)
