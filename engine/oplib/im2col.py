"""The kernel of convolution: sums of products over sliding windows, as matrix products on columns.

What the windows see is copied out ("im2col"; K. Chellapilla et al., "High performance convolutional neural networks
for document processing", 2006) and multiplied by the kernel as a matrix, a bounded amount at a time. float16 is
multiplied and summed in float32.
"""

from __future__ import annotations

import math

from engine.graph.op import Array, Namespace
from engine.graph.tensor_type import Shape, TensorType
from engine.oplib.tiling import Layout, layout
from engine.oplib.windows import Windows


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
    rows = matrices(xp, weights, sizes)
    for part in sizes.image_chunks():
        _correlate_images(xp, x[part], rows, out[part], sizes)


def matrices(xp: Namespace, kernel: Array, sizes: Layout) -> Array:
    """kernel [groups, features, channels, *size] as a matrix for each group, [groups, features, channels · taps]."""
    lines = kernel.shape[2] * sizes.windows.taps
    return xp.ascontiguousarray(kernel, sizes.dtype).reshape(*kernel.shape[:2], lines)


def _correlate_images(xp: Namespace, x: Array, weights: Array, out: Array, sizes: Layout) -> None:
    seen = sizes.windows.view(xp, sizes.windows.pad(xp, x, sizes.dtype), sizes.positions)
    results = out.reshape(len(x), sizes.groups, sizes.features, sizes.places)
    for rows, places in sizes.row_chunks():
        _multiply_columns(xp, seen[rows], weights, results[..., places], sizes)


def _multiply_columns(xp: Namespace, seen: Array, weights: Array, out: Array, sizes: Layout) -> None:
    columns = matrix(xp, seen, (len(seen), sizes.groups, weights.shape[2], out.shape[-1]))
    if out.dtype == columns.dtype:
        xp.matmul(weights, columns, out=out)
    else:
        out[...] = xp.matmul(weights, columns)


def matrix(xp: Namespace, array: Array, shape: Shape) -> Array:
    """`array` in `shape`: as it lies where BLAS can read its rows there, else a copy."""
    found = array.reshape(shape)
    row, step = found.strides[-2:]
    readable = step == found.itemsize and row >= found.shape[-1] * step
    return found if readable else xp.ascontiguousarray(found)


def _correlate_channels(xp: Namespace, x: Array, kernel: Array, out: Array, sizes: Layout) -> None:
    split = x.reshape(len(x), sizes.groups, sizes.depth, *x.shape[2:])
    sums = xp.zeros((sizes.groups, sizes.features, len(x), sizes.places), sizes.dtype)
    for images, channels in sizes.blocks():
        _add_block(xp, split[images, :, channels], kernel[:, :, channels], sums[:, :, images], sizes)
    by_image = sums.transpose(2, 0, 1, 3)
    out.reshape(by_image.shape)[...] = by_image


def _add_block(xp: Namespace, x: Array, kernel: Array, sums: Array, sizes: Layout) -> None:
    columns = _rows(xp, x, sizes).swapaxes(1, 2)
    sums += xp.matmul(matrices(xp, kernel, sizes), columns).reshape(sums.shape)


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
    dtype, windows = sizes.dtype, sizes.windows
    moved = any(windows.padding) or x.dtype != dtype
    padded = sizes.plane_bytes if moved else 0
    weights = 0 if kernel.is_dense and kernel.dtype == dtype else windows.taps * dtype.itemsize
    if sizes.large_windows:
        sizes = sizes.part(sizes.groups_of_a_channel)
        channels, images = sizes.groups * sizes.channels_at_once, sizes.images_of_a_channel
        if sizes.channels_at_once < sizes.depth:
            weights = windows.taps * dtype.itemsize
        columns = channels * windows.taps * images * sizes.places * dtype.itemsize
        products = sizes.narrow[1] * images * sizes.places * dtype.itemsize
        copied = max(weights * channels * sizes.features + products, images * channels * padded)
        return math.prod(sizes.narrow) * dtype.itemsize + columns + copied
    sizes = sizes.part(sizes.groups_at_once)
    places = sizes.images_at_once * min(sizes.places, sizes.rows_at_once * sizes.rows[1])
    products = sizes.narrow[1] * places if out.dtype != dtype else 0
    lies = windows.taps == 1 and x.is_dense and not moved and set(windows.stride) == {1}
    columns = 0 if lies else sizes.wide[1] * windows.taps * places
    laid_out = (columns + products) * dtype.itemsize
    return weights * sizes.narrow[1] * sizes.depth + laid_out + sizes.images_at_once * sizes.wide[1] * padded
