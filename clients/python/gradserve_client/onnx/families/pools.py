"""Pooling: maxima, means and norms over windows, and unpooling."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.pooling import append_pool
from gradserve_client.importing.writing import TO_THE_END, lowest, pad_or_crop, size
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.table import RULES
from gradserve_client.onnx.families.windows import Windows, windows_of
from gradserve_client.tensors import Array


def _windows(call: Call) -> Windows:
    return windows_of(call, [int(each) for each in call.attrs["kernel_shape"]])


@RULES("MaxPool")
def max_pool(call: Call) -> RuleResult:
    """Pool by an op for one to three axes. For more axes, or if indices are requested, stack the reads of all taps."""
    windows = _windows(call)
    with_indices = call.is_requested(1)
    if not with_indices and windows.axes <= 3:
        return _by_pool(call, windows)
    padded = pad_or_crop(call.node(), call.shape(), [0, 0, *windows.before], [0, 0, *windows.ends], _lowest(call))
    stacked = _taps(call, padded, windows)
    if not with_indices:
        return stacked.max(axes=[0])
    first = stacked.argmax(0, keepdims=True)
    positions = call.constant(_flat_positions(call, windows), np.int64).take_along(first, axis=0)
    return [stacked.take_along(first, axis=0).squeeze(axes=[0]), positions.squeeze(axes=[0])]


def _lowest(call: Call) -> float:
    number: float = lowest(call.dtype())
    return number


def _by_pool(call: Call, windows: Windows) -> Node:
    """Pool by an op. Padding that the op does not support is added before it."""
    within_half = all(2 * b <= k for b, k in zip(windows.before, windows.kernel, strict=True))
    if (
        within_half
        and windows.before == windows.after
        and (not any(windows.missing) or windows.counts == windows.ceiled)
    ):
        return append_pool(
            "max_pool",
            call.node(),
            windows.kernel,
            windows.stride,
            windows.before,
            windows.dilation,
            any(windows.missing),
        )
    x = pad_or_crop(call.node(), call.shape(), [0, 0, *windows.before], [0, 0, *windows.ends], _lowest(call))
    return append_pool("max_pool", x, windows.kernel, windows.stride, [0] * windows.axes, windows.dilation)


def _taps(call: Call, padded: Node, windows: Windows) -> Node:
    """Return [taps, batch, channels, windows…]: the elements that each tap of the kernel reads."""
    lead = [TO_THE_END] * 2
    reads = []
    for tap in np.ndindex(*windows.kernel):
        first = [i * d for i, d in zip(tap, windows.dilation, strict=True)]
        last = [f + (n - 1) * s + 1 for f, n, s in zip(first, windows.counts, windows.stride, strict=True)]
        reads.append(padded.slice(starts=[0, 0, *first], stops=[*lead, *last], steps=[1, 1, *windows.stride]))
    return call.graph.stack(*reads, axis=0)


def _flat_positions(call: Call, windows: Windows) -> Array:
    """Return [taps, batch, channels, windows…]: the flat position that each tap reads, as ONNX counts it."""
    taps, window_indices = np.indices(windows.kernel), np.indices(windows.counts)
    axes, spread = windows.axes, (-1, *[1] * windows.axes)
    positions = [
        taps[a].reshape(spread) * windows.dilation[a] + window_indices[a][None] * windows.stride[a] - windows.before[a]
        for a in range(axes)
    ]
    if call.attrs.get("storage_order"):
        weights = [size(windows.extents[:a]) for a in range(axes)]
    else:
        weights = [size(windows.extents[a + 1 :]) for a in range(axes)]
    flat = sum((each * weight for each, weight in zip(positions, weights, strict=True)), np.zeros((), np.int64))
    planes = np.arange(size(call.shape()[:2])).reshape(1, *call.shape()[:2], *[1] * axes)
    return np.asarray(planes * size(windows.extents) + flat[:, None, None], np.int64)


def _summed(call: Call, x: Node, windows: Windows) -> Node:
    """Return the sum of each window, by a convolution of each plane with ones."""
    if windows.axes > 3:
        raise Blocked(f"it is over {windows.axes} spatial axes, but only one to three are supported")
    batch, channels = call.shape()[:2]
    padded = pad_or_crop(x, call.shape(), [0, 0, *windows.before], [0, 0, *windows.ends])
    extents = [e + b + a for e, b, a in zip(windows.extents, windows.before, windows.ends, strict=True)]
    planes = padded.reshape(shape=[batch * channels, 1, *extents])
    ones = call.constant(np.ones((1, 1, *windows.kernel)), call.dtype())
    summed = call.graph.op(f"conv{windows.axes}d", planes, ones, stride=windows.stride, dilation=windows.dilation)
    sums: Node = summed.slice(stops=[TO_THE_END, 1, *windows.counts]).reshape(shape=[batch, channels, *windows.counts])
    return sums


@RULES("AveragePool", since=7)
def average_pool(call: Call) -> RuleResult:
    """Divide the sum of each window by the number of elements that count. If all count, use the pooling op."""
    windows = _windows(call)
    counts = _counts(windows, float(call.attrs.get("count_include_pad", 0)))
    if windows.axes <= 3 and {*windows.dilation} == {1} and (counts == size(windows.kernel)).all():
        x = pad_or_crop(call.node(), call.shape(), [0, 0, *windows.before], [0, 0, *windows.ends])
        return append_pool("avg_pool", x, windows.kernel, windows.stride, [0] * windows.axes, windows.dilation)
    return _summed(call, call.node(), windows).div(call.like(counts))


def _counts(windows: Windows, border: float) -> Array:
    """Count the elements of each window, where an element of the border counts as `border`."""
    inside = np.pad(
        np.ones(windows.extents), [*zip(windows.before, windows.after, strict=True)], constant_values=border
    )
    inside = np.pad(inside, [(0, missing) for missing in windows.missing])
    counts = np.zeros(windows.counts)
    for tap in np.ndindex(*windows.kernel):
        reads = zip(tap, windows.dilation, windows.counts, windows.stride, strict=True)
        counts += inside[tuple(slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, n, s in reads)]
    return counts


@RULES("LpPool", since=2)
def lp_pool(call: Call) -> RuleResult:
    """Compute (Σ |x|ᵖ)^(1/p) over each window."""
    p = float(call.attrs["p"])
    return _summed(call, call.node().abs().pow_scalar(p), _windows(call)).pow_scalar(1 / p)


@RULES("GlobalAveragePool", "GlobalMaxPool")
def global_pool(call: Call) -> RuleResult:
    """Reduce over all spatial axes."""
    op = "mean" if call.op == "GlobalAveragePool" else "max"
    return call.graph.op(op, call.node(), axes=[*range(2, call.rank())], keepdims=True)


@RULES("GlobalLpPool", since=2)
def global_lp_pool(call: Call) -> RuleResult:
    """Compute (Σ |x|ᵖ)^(1/p) over all spatial axes."""
    p, axes = float(call.attrs["p"]), [*range(2, call.rank())]
    if p == 2:
        return call.node().norm(axes=axes, keepdims=True)
    return call.node().abs().pow_scalar(p).sum(axes=axes, keepdims=True).pow_scalar(1 / p)


@RULES("MaxUnpool", since=9)
def max_unpool(call: Call) -> RuleResult:
    """Write elements to the positions that they were read from. The result may be larger than the pooled image."""
    shape = call.result_shape()
    if call.has(2):
        call.static(2, "output shape")
    kernel = [int(each) for each in call.attrs["kernel_shape"]]
    axes = len(kernel)
    stride, pads = call.attrs.get("strides", [1] * axes), call.attrs.get("pads", [0] * (2 * axes))
    pooled_extents = [
        (n - 1) * stride[a] - pads[a] - pads[axes + a] + kernel[a] for a, n in enumerate(call.shape()[2:])
    ]
    flat = call.node(1).cast("int64").reshape(shape=[-1])
    pooled_shape = [*shape[:2], *pooled_extents]
    empty = call.graph.full(shape=[size(pooled_shape)], dtype=call.dtype().name)
    placed = empty.scatter_add(flat, call.node().reshape(shape=[-1]), axis=0).reshape(shape=pooled_shape)
    return pad_or_crop(
        placed, pooled_shape, [0] * len(pooled_shape), [s - w for s, w in zip(shape, pooled_shape, strict=True)]
    )
