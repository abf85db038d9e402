"""The kernel of transposed convolution, the adjoint of `correlate`: products added where the windows lie.

Where windows overlap everywhere, as they mostly do, each element is a sum over the windows that see it: a
correlation itself. Where they are few and large, that would be mostly zeros, and where the kernel is not finite,
zeros would not be nothing: each window is then added where it lies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from engine.graph.op import Array, Namespace
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import FLOAT64, TensorType
from engine.oplib.convolution_layout import Layout, layout
from engine.oplib.im2col import by_group, correlate_groups, groups_workspace, matrix
from engine.oplib.known_numbers import are_finite
from engine.oplib.residues import residue_classes, residues_cover
from engine.oplib.windows import Windows

ALL = (slice(None),) * 3  # images, groups, channels
#: how many elements there may be for each window, on the stride's grid
SPARSE = 2


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
        _add_products(run.xp, x[sizes.at_rows(rows)], weights, sums, windows, sizes)
    out[...] = sums


def _add_products(xp: Namespace, x: Array, weights: Array, sums: Array, windows: Windows, sizes: Layout) -> None:
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
