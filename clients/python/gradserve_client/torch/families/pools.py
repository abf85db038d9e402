"""Pooling by maxima and means of windows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.pooling import append_pool
from gradserve_client.importing.writing import TO_THE_END, pad_or_crop
from gradserve_client.torch.call import Call, Results, require
from gradserve_client.torch.families.table import RULES


class Windows(NamedTuple):
    """Window parameters for each spatial axis: extents of operand and kernel, strides, padding, number of windows.

    `after` is the padding at the end that the last window needs.
    """

    extents: list[int]
    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    before: list[int]
    after: list[int]
    counts: list[int]
    ceiling: bool

    @classmethod
    def of(cls, call: Call, axes: int) -> Windows:
        """Return the windows of a call."""
        kernel, before = call.ints("kernel_size", axes), call.ints("padding", axes)
        stride = call.ints("stride", axes) if call["stride"] else kernel
        dilation = call.ints("dilation", axes) if "dilation" in call.arguments else [1] * axes
        extents, counts = [*call.shape()[-axes:]], [*call.result.shape[-axes:]]
        after = [
            max(p if not call["ceil_mode"] else 0, (n - 1) * s + d * (k - 1) + 1 - e - p)
            for n, s, d, k, e, p in zip(counts, stride, dilation, kernel, extents, before, strict=True)
        ]
        return cls(extents, kernel, stride, dilation, before, after, counts, bool(call["ceil_mode"]))

    def append_pool(self, op: str, x: Node) -> Node:
        """Write the pooling op of this name."""
        return append_pool(op, x, self.kernel, self.stride, self.before, self.dilation, self.ceiling)


@RULES("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(call: Call) -> Results:
    """Return the first maximum of each window, and its position in the flattened plane."""
    axes = int(call.op[len("max_pool")])
    windows = Windows.of(call, axes)
    if not call.is_used(1):
        return [windows.append_pool("max_pool", call.node()), None]
    if axes == 2 and {*windows.dilation} == {1} and not windows.ceiling:
        attributes: dict[str, Any] = {"stride": windows.stride, "padding": windows.before}
        return [
            call.node().max_pool2d(windows.kernel, **attributes),
            call.node().max_pool2d_indices(windows.kernel, **attributes),
        ]
    lead = [0] * (call.rank() - axes)
    stacked = _taps(
        call, pad_or_crop(call.node(), call.shape(), lead + windows.before, lead + windows.after, -np.inf), windows
    )
    first = stacked.argmax(0, keepdims=True)
    positions = call.graph.constant(_flat_positions(call, windows)).take_along(first, axis=0)
    return [each.squeeze(axes=[0]) for each in (stacked.take_along(first, axis=0), positions)]


def _taps(call: Call, padded: Node, windows: Windows) -> Node:
    """Return the elements that each tap of the kernel reads, [taps, ..., windows...]."""
    lead = call.rank() - len(windows.kernel)
    slices = []
    for tap in np.ndindex(*windows.kernel):
        first = [i * d for i, d in zip(tap, windows.dilation, strict=True)]
        last = [f + (n - 1) * s + 1 for f, n, s in zip(first, windows.counts, windows.stride, strict=True)]
        slices.append(
            padded.slice(starts=[0] * lead + first, stops=[TO_THE_END] * lead + last, steps=[1] * lead + windows.stride)
        )
    return call.graph.stack(*slices, axis=0)


def _flat_positions(call: Call, windows: Windows) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the position in its plane that each tap reads, [taps, 1..., windows...]."""
    axes, lead = len(windows.kernel), call.rank() - len(windows.kernel)
    taps, starts = np.indices(windows.kernel), np.indices(windows.counts)
    flat = np.zeros(1, np.int64)
    for a in range(axes):
        positions = (
            taps[a].reshape(-1, *[1] * axes) * windows.dilation[a]
            + starts[a][None] * windows.stride[a]
            - windows.before[a]
        )
        flat = flat * windows.extents[a] + positions
    return np.asarray(flat.reshape(flat.shape[0], *[1] * lead, *windows.counts), np.int64)


@RULES("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(call: Call) -> Results:
    """Compute means of windows. If PyTorch divides by another count than the op, rescale the means."""
    windows = Windows.of(call, int(call.op[len("avg_pool")]))
    means = windows.append_pool("avg_pool", call.node())
    divisor = call.arguments.get("divisor_override")
    if divisor is None and (call["count_include_pad"] or not any(windows.before)):
        return means
    divisors = _counts(windows, 0.0) if divisor is None else float(divisor)
    return means.mul(call.constant(_counts(windows, 1.0) / divisors, call.dtype()))


def _counts(windows: Windows, border: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Count the elements of each window, with weight `border` for elements in the padding."""
    weights = np.pad(np.ones(windows.extents), [(b, b) for b in windows.before], constant_values=border)
    extra = [(0, max(0, a - b)) for a, b in zip(windows.after, windows.before, strict=True)]
    weights = np.pad(weights, extra)
    counts = np.zeros(windows.counts)
    for tap in np.ndindex(*windows.kernel):
        per_axis = zip(tap, windows.counts, windows.stride, strict=True)
        counts += weights[tuple(slice(i, i + (n - 1) * s + 1, s) for i, n, s in per_axis)]
    return counts


@RULES("adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_avg_pool(call: Call) -> Results:
    """Compute means of windows that divide each axis as evenly as possible."""
    sizes = call.ints("output_size", 1)
    if {*sizes} == {1}:
        return call.node().mean(axes=[*range(call.rank() - len(sizes), call.rank())], keepdims=True)
    return call.node().adaptive_avg_pool(sizes)


@RULES("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(call: Call) -> Results:
    """Compute the first maximum of windows that divide each axis as evenly as possible."""
    require(not call.is_used(1), "it returns the positions of maxima in windows of different sizes", "use max_pool")
    return [call.node().adaptive_max_pool(call.ints("output_size", int(call.op[len("adaptive_max_pool")]))), None]
