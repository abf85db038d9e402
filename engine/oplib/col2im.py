"""The kernel of transposed convolution, the adjoint of `correlation`: products added where the windows lie."""

from __future__ import annotations

import math

from engine.graph.op import Array, Namespace
from engine.graph.tensor_type import TensorType
from engine.oplib.im2col import matrices, matrix
from engine.oplib.tiling import Layout, layout
from engine.oplib.windows import Windows, each_index

ALL = (slice(None),) * 3  # images, groups, channels


def add_windows(xp: Namespace, x: Array, kernel: Array, out: Array, windows: Windows, groups: int) -> None:
    """out[n, o, p · stride + t · dilation − padding] = Σ x[n, c, p] · kernel[c, o, t], over c in o's group, t and p.

    The adjoint of `correlate` by its first operand. Shapes: x [images, channels, *positions], kernel [channels,
    features / groups, *size], out [images, features, *extents].
    """
    sizes = layout(out, x, out, windows, groups)
    for seen, given, count in sizes.parts(sizes.groups_at_once):
        _spread_groups(xp, x[:, given], kernel[given], out[:, seen], sizes.part(count))


def _spread_groups(xp: Namespace, x: Array, kernel: Array, out: Array, sizes: Layout) -> None:
    values = x.reshape(len(x), sizes.groups, sizes.features, *x.shape[2:])
    weights = matrices(xp, kernel.reshape(sizes.groups, sizes.features, *kernel.shape[1:]), sizes)
    results = out.reshape(len(x), sizes.groups, sizes.depth, *out.shape[2:])
    for part in sizes.image_chunks():
        _spread_images(xp, values[part], weights, results[part], sizes)


def _spread_images(xp: Namespace, x: Array, weights: Array, out: Array, sizes: Layout) -> None:
    extents = out.shape[3:]
    canvas = xp.zeros((*out.shape[:3], *sizes.windows.padded(extents)), sizes.dtype)
    seen = sizes.windows.view(xp, canvas, sizes.positions)
    for rows, _ in sizes.row_chunks():
        _add_products(xp, x[rows], weights, seen[rows], sizes)
    out[...] = canvas[(..., *sizes.windows.inside(extents))]


def _add_products(xp: Namespace, x: Array, weights: Array, seen: Array, sizes: Layout) -> None:
    """Add each value times the kernel to what its window sees: all windows, or all taps, at once."""
    lead, size, positions = seen.shape[:3], sizes.windows.size, x.shape[3:]
    values = matrix(xp, x.astype(sizes.dtype, copy=False), (*x.shape[:3], math.prod(positions)))
    if sizes.large_windows:
        rows = xp.matmul(values.swapaxes(2, 3), weights).reshape(*lead[:2], *positions, lead[2], *size)
        for place in each_index(positions):
            seen[(..., *place)] += rows[(*ALL[:2], *place)]
    else:
        columns = xp.matmul(weights.swapaxes(1, 2), values).reshape(*lead, *size, *positions)
        for tap in each_index(size):
            seen[(*ALL, *tap)] += columns[(*ALL, *tap)]


def add_windows_workspace(sizes: Layout, x: TensorType, kernel: TensorType) -> int:
    """Bytes that `add_windows` allocates."""
    sizes = sizes.part(sizes.groups_at_once)
    places = sizes.images_at_once * min(sizes.places, sizes.rows_at_once * sizes.rows[1])
    weights, values = (
        0 if type.is_dense and type.dtype == sizes.dtype else sizes.narrow[1] * each
        for type, each in ((kernel, sizes.depth * sizes.windows.taps), (x, places))
    )
    products = sizes.wide[1] * sizes.windows.taps * places
    canvas = sizes.images_at_once * sizes.wide[1] * sizes.plane_bytes
    return (weights + values + products) * sizes.dtype.itemsize + canvas
