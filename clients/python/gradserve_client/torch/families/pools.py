"""Windows: maxima and means."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import TO_THE_END, size
from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.convolution import summed_windows
from gradserve_client.torch.families.helpers import bordered
from gradserve_client.torch.families.table import RULES


class Windows(NamedTuple):
    """For each spatial axis the operand's extent, the kernel's, how the windows lie, how many there are.

    `after` is how much has to be put at the end for the last window to lie within.
    """

    extents: list[int]
    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    before: list[int]
    after: list[int]
    counts: list[int]


def _windows(call: Call, axes: int) -> Windows:
    kernel, before = call.ints("kernel_size", axes), call.ints("padding", axes)
    stride = call.ints("stride", axes) if call["stride"] else kernel
    dilation = call.ints("dilation", axes) if "dilation" in call.arguments else [1] * axes
    extents, counts = [*call.shape()[-axes:]], [*call.result.shape[-axes:]]
    after = [
        max(p if not call["ceil_mode"] else 0, (n - 1) * s + d * (k - 1) + 1 - e - p)
        for n, s, d, k, e, p in zip(counts, stride, dilation, kernel, extents, before, strict=True)
    ]
    return Windows(extents, kernel, stride, dilation, before, after, counts)


@RULES("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(call: Call) -> Said:
    """The first maximum of each window, and where in its plane it is."""
    axes = int(call.op[len("max_pool")])
    at = _windows(call, axes)
    if axes == 2 and {*at.dilation} == {1} and not call["ceil_mode"]:
        stated: dict[str, Any] = {"stride": at.stride, "padding": at.before}
        places = call.node().max_pool2d_indices(at.kernel, **stated) if call.asked(1) else None
        return [call.node().max_pool2d(at.kernel, **stated), places]
    lead = [0] * (call.rank() - axes)
    fill = call.constant(-np.inf, call.dtype())
    around = bordered(call.node(), call.shape(), lead + at.before, lead + at.after, fill)
    stacked = _taps(call, around, at)
    first = stacked.argmax(0, keepdims=True)
    places = None
    if call.asked(1):
        places = call.graph.constant(_flat_places(call, at)).take_along(first, axis=0).squeeze(axes=[0])
    return [stacked.take_along(first, axis=0).squeeze(axes=[0]), places]


def _taps(call: Call, around: Node, at: Windows) -> Node:
    """[taps, …, windows…]: what each tap of the kernel reads."""
    lead = call.rank() - len(at.kernel)
    read = []
    for tap in np.ndindex(*at.kernel):
        first = [i * d for i, d in zip(tap, at.dilation, strict=True)]
        last = [f + (n - 1) * s + 1 for f, n, s in zip(first, at.counts, at.stride, strict=True)]
        read.append(
            around.slice(starts=[0] * lead + first, stops=[TO_THE_END] * lead + last, steps=[1] * lead + at.stride)
        )
    return call.graph.stack(*read, axis=0)


def _flat_places(call: Call, at: Windows) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """[taps, 1…, windows…]: where in its plane each tap reads."""
    axes, lead = len(at.kernel), call.rank() - len(at.kernel)
    taps, places = np.indices(at.kernel), np.indices(at.counts)
    flat = np.zeros(1, np.int64)
    for a in range(axes):
        where = taps[a].reshape(-1, *[1] * axes) * at.dilation[a] + places[a][None] * at.stride[a] - at.before[a]
        flat = flat * at.extents[a] + where
    return np.asarray(flat.reshape(flat.shape[0], *[1] * lead, *at.counts), np.int64)


@RULES("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(call: Call) -> Said:
    """The sum of each window, over how many of its elements count."""
    axes = int(call.op[len("avg_pool")])
    at = _windows(call, axes)
    divisor = call.arguments.get("divisor_override")
    plain = not any(at.before) or call["count_include_pad"]
    if axes == 2 and plain and not call["ceil_mode"] and divisor is None:
        return call.node().avg_pool2d(at.kernel, stride=at.stride, padding=at.before)
    lead = [0] * (call.rank() - axes)
    around = bordered(call.node(), call.shape(), lead + at.before, lead + at.after)
    extents = [e + b + a for e, b, a in zip(at.extents, at.before, at.after, strict=True)]
    planes = around.reshape(shape=[size(call.shape()[:-axes]), 1, *extents])
    summed = summed_windows(planes, extents, at.kernel, at.stride, call.dtype())
    summed = summed.slice(stops=[TO_THE_END, 1, *at.counts]).reshape(shape=list(call.result.shape))
    return summed.div(call.constant(_counts(call, at) if divisor is None else divisor, call.dtype()))


def _counts(call: Call, at: Windows) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """How many elements of each window count."""
    inside = np.pad(
        np.ones(at.extents),
        [(b, b) for b in at.before],
        constant_values=1.0 if call["count_include_pad"] else 0.0,
    )
    missing = [(0, max(0, a - b)) for a, b in zip(at.after, at.before, strict=True)]
    inside = np.pad(inside, missing)
    counts = np.zeros(at.counts)
    for tap in np.ndindex(*at.kernel):
        reads = zip(tap, at.counts, at.stride, strict=True)
        counts += inside[tuple(slice(i, i + (n - 1) * s + 1, s) for i, n, s in reads)]
    return counts


@RULES("adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_avg_pool(call: Call) -> Said:
    """Means of windows that part each axis as evenly as they can: a product with a constant matrix for each."""
    axes = len(call.ints("output_size", 1))
    rank, node = call.rank(), call.node()
    outs, extents = list(call.result.shape)[-axes:], list(call.shape())[-axes:]
    if {*outs} == {1}:
        return node.mean(axes=[*range(rank - axes, rank)], keepdims=True)
    for i, (n, extent) in enumerate(zip(outs, extents, strict=True)):
        if n != extent:
            node = along(node, _means(n, extent), rank - axes + i, rank, call.dtype())
    return node


def _means(n: int, extent: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """[extent, n]: window i from ⌊i · extent / n⌋ to ⌈(i + 1) · extent / n⌉."""
    matrix = np.zeros((extent, n))
    for i in range(n):
        first, last = i * extent // n, -(-(i + 1) * extent // n)
        matrix[first:last, i] = 1 / (last - first)
    return matrix


def along(
    node: Node, matrix: np.ndarray[tuple[int, ...], np.dtype[np.float64]], axis: int, rank: int, dtype: str
) -> Node:
    """The product of an axis with a matrix [extent, new extent]."""
    constant = node.graph.constant(np.asarray(matrix, dtype))
    if axis == rank - 1:
        return node.matmul(constant)
    order = [*(i for i in range(rank) if i != axis), axis]
    back = [int(i) for i in np.argsort(order)]
    return node.transpose(axes=order).matmul(constant).transpose(axes=back)
