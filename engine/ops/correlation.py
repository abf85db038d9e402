"""The kernel of convolution: sums of products over sliding windows, as matrix products on columns.

What the windows see is copied out ("im2col"; K. Chellapilla et al., "High performance convolutional neural networks
for document processing", 2006) and multiplied by the kernel as a matrix, a bounded amount at a time. float16 is
multiplied and summed in float32.
"""

from __future__ import annotations

import math

from engine.op import Array, Namespace
from engine.ops.columns import Layout, layout, slices
from engine.tensor_type import DType, Shape, TensorType
from engine.windows import Windows


def correlate(xp: Namespace, x: Array, kernel: Array, out: Array, windows: Windows, groups: int) -> None:
    """out[n, o, p] = Σ x[n, c, p · stride + t · dilation − padding] · kernel[o, c, t], over taps t and c in o's group.

    Shapes: x [images, channels, *extents], kernel [features, channels / groups, *size], out [images, features,
    *positions].
    """
    sizes = layout(x, out, out, windows, groups)
    at_once = sizes.groups_of_a_channel if sizes.large_windows else sizes.groups_at_once
    for seen, given, count in sizes.parts(at_once):
        _correlate_groups(xp, x[:, seen], kernel[given], out[:, given], sizes.part(count))


def _correlate_groups(xp: Namespace, x: Array, kernel: Array, out: Array, sizes: Layout) -> None:
    weights = kernel.reshape(sizes.groups, sizes.features, *kernel.shape[1:])
    if sizes.large_windows:
        _correlate_channels(xp, x, weights, out, sizes)
        return
    weights = in_dtype(xp, weights, sizes.dtype)
    for part in sizes.image_chunks():
        _correlate_images(xp, x[part], weights, out[part], sizes)


def in_dtype(xp: Namespace, array: Array, dtype: DType) -> Array:
    """`array` where it has this dtype, else a contiguous copy that does."""
    return array if array.dtype == dtype else xp.ascontiguousarray(array, dtype)


def _correlate_images(xp: Namespace, x: Array, kernel: Array, out: Array, sizes: Layout) -> None:
    seen = sizes.windows.view(xp, sizes.windows.pad(xp, x, sizes.dtype), sizes.positions)
    results = out.reshape(len(x), sizes.groups, sizes.features, sizes.places)
    for rows, places in sizes.row_chunks():
        _multiply_columns(xp, seen[rows], kernel, results[..., places], sizes)


def _multiply_columns(xp: Namespace, seen: Array, kernel: Array, out: Array, sizes: Layout) -> None:
    lines = sizes.depth * sizes.windows.taps
    columns = matrix(xp, seen, (len(seen), sizes.groups, lines, out.shape[-1]))
    for part in slices(sizes.features, sizes.features if kernel.flags.c_contiguous else sizes.features_of_a_piece):
        _multiply(xp, rows_of(xp, kernel[:, part], lines), columns, out[:, :, part])


def matrix(xp: Namespace, array: Array, shape: Shape) -> Array:
    """`array` in `shape`: as it lies where BLAS can read its rows there, else a copy."""
    found = array.reshape(shape)
    row, step = found.strides[-2:]
    readable = step == found.itemsize and row >= found.shape[-1] * step
    return found if readable else xp.ascontiguousarray(found)


def rows_of(xp: Namespace, kernel: Array, lines: int) -> Array:
    """kernel [groups, rows, …] as [groups, rows, lines]."""
    return xp.ascontiguousarray(kernel).reshape(*kernel.shape[:2], lines)


def _multiply(xp: Namespace, a: Array, b: Array, out: Array) -> None:
    if out.dtype == a.dtype:
        xp.matmul(a, b, out=out)
    else:
        out[...] = xp.matmul(a, b)


def _correlate_channels(xp: Namespace, x: Array, kernel: Array, out: Array, sizes: Layout) -> None:
    split = x.reshape(len(x), sizes.groups, sizes.depth, *x.shape[2:])
    sums = xp.zeros((sizes.groups, sizes.features, len(x), sizes.places), sizes.dtype)
    for images, channels in sizes.blocks():
        _add_block(xp, split[images, :, channels], kernel[:, :, channels], sums[:, :, images], sizes)
    by_image = sums.transpose(2, 0, 1, 3)
    out.reshape(by_image.shape)[...] = by_image


def _add_block(xp: Namespace, x: Array, kernel: Array, sums: Array, sizes: Layout) -> None:
    columns = _rows(xp, x, sizes).swapaxes(1, 2)
    ready = kernel.flags.c_contiguous and kernel.dtype == sizes.dtype
    for part in slices(sizes.features, sizes.features if ready else sizes.features_of_a_channel):
        weights = xp.ascontiguousarray(kernel[:, part], sizes.dtype)
        products = xp.matmul(rows_of(xp, weights, columns.shape[1]), columns)
        sums[:, part] += products.reshape(sums[:, part].shape)


def _rows(xp: Namespace, x: Array, sizes: Layout) -> Array:
    """What the windows see in x [images, groups, channels, *extents], as [groups, images · places, lines]."""
    rank = len(sizes.positions)
    seen = sizes.windows.view(xp, sizes.windows.pad(xp, x, sizes.dtype), sizes.positions)
    # [images, groups, channels, *size, *positions] → [groups, images, *positions, channels, *size]
    order = (1, 0, *range(3 + rank, 3 + 2 * rank), *range(2, 3 + rank))
    rows = xp.ascontiguousarray(seen.transpose(order))
    return rows.reshape(sizes.groups, len(x) * sizes.places, x.shape[2] * sizes.windows.taps)


def correlate_workspace(sizes: Layout, out: TensorType, x: TensorType, kernel: TensorType) -> int:
    """Bytes that `correlate` allocates."""
    padded = sizes.plane_bytes if any(sizes.windows.padding) or x.dtype != sizes.dtype else 0
    if sizes.large_windows:
        return _channels_workspace(sizes.part(sizes.groups_of_a_channel), padded)
    sizes = sizes.part(sizes.groups_at_once)
    item, lines = sizes.dtype.itemsize, sizes.depth * sizes.windows.taps
    kept = sizes.features if kernel.dtype != sizes.dtype else sizes.features_of_a_piece
    places = sizes.images_at_once * min(sizes.places, sizes.rows_at_once * sizes.rows[1])
    products = sizes.narrow[1] * places if out.dtype != sizes.dtype else 0
    columns = sizes.wide[1] * sizes.windows.taps * places
    return (kept * sizes.groups * lines + columns + products) * item + sizes.images_at_once * sizes.wide[1] * padded


def _channels_workspace(sizes: Layout, padded: int) -> int:
    item, channels, images = sizes.dtype.itemsize, sizes.groups * sizes.channels_at_once, sizes.images_of_a_channel
    columns = channels * sizes.windows.taps * images * sizes.places * item
    weights = channels * sizes.windows.taps * sizes.features_of_a_channel * item
    products = sizes.narrow[1] * images * sizes.places * item
    return math.prod(sizes.narrow) * item + columns + max(weights + products, images * channels * padded)
