"""The kernels of convolution: sums of products over sliding windows, as matrix products on columns.

What the windows see is copied out ("im2col"; K. Chellapilla et al., "High performance convolutional neural networks
for document processing", 2006) in runs as long as can be had, and multiplied by the kernel as a matrix, as much at a
time as stays in the cache. float16 is multiplied and summed in float32.
"""

from __future__ import annotations

import math

from engine.graph.op import Array, Namespace
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import DType, Shape, TensorType
from engine.oplib.convolution_layout import Layout, layout
from engine.oplib.windows import Windows


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


# ------------------------------------------------------------ columns


def windows_of(xp: Namespace, x: Array, sizes: Layout) -> Array:
    """What the windows see in x [images, groups, channels, *extents]: [images, groups, channels, *size, *positions]."""
    taken, inside = sizes.windows.met(x.shape[3:], sizes.positions)
    span = sizes.windows.span(sizes.positions)
    met = x[(..., *taken)]
    if met.shape[3:] != span or x.dtype != sizes.dtype or sizes.channels_last:
        spanned = _canvas(xp, (*x.shape[:3], *span), sizes)
        if met.shape[3:] != span:
            spanned.fill(0)
        spanned[(..., *inside)] = met
        met = spanned
    return sizes.windows.view(xp, met, sizes.positions)


def _canvas(xp: Namespace, shape: Shape, sizes: Layout) -> Array:
    if not sizes.channels_last:
        return xp.empty(shape, sizes.dtype)
    images, groups, channels, *extents = shape
    return xp.moveaxis(xp.empty((groups, images, *extents, channels), sizes.dtype), (1, -1), (0, 2))


def columns(xp: Namespace, seen: Array, sizes: Layout) -> Array:
    """What windows see, [images, groups, channels, *size, *positions], as [groups, lines, images · places]."""
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


# ------------------------------------------------------------ memory


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
