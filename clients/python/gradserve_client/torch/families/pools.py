"""Windows: maxima and means."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.pooling import pooled
from gradserve_client.importing.writing import TO_THE_END, bordered
from gradserve_client.torch.call import Call, Said, blocked_unless
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
    ceiling: bool

    @classmethod
    def of(cls, call: Call, axes: int) -> Windows:
        """Those of a call."""
        kernel, before = call.ints("kernel_size", axes), call.ints("padding", axes)
        stride = call.ints("stride", axes) if call["stride"] else kernel
        dilation = call.ints("dilation", axes) if "dilation" in call.arguments else [1] * axes
        extents, counts = [*call.shape()[-axes:]], [*call.result.shape[-axes:]]
        after = [
            max(p if not call["ceil_mode"] else 0, (n - 1) * s + d * (k - 1) + 1 - e - p)
            for n, s, d, k, e, p in zip(counts, stride, dilation, kernel, extents, before, strict=True)
        ]
        return cls(extents, kernel, stride, dilation, before, after, counts, bool(call["ceil_mode"]))

    def pooled(self, op: str, x: Node) -> Node:
        """By the op of this name."""
        return pooled(op, x, self.kernel, self.stride, self.before, self.dilation, self.ceiling)


@RULES("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(call: Call) -> Said:
    """The first maximum of each window, and where in its plane it is."""
    axes = int(call.op[len("max_pool")])
    at = Windows.of(call, axes)
    if not call.asked(1):
        return [at.pooled("max_pool", call.node()), None]
    if axes == 2 and {*at.dilation} == {1} and not at.ceiling:
        stated: dict[str, Any] = {"stride": at.stride, "padding": at.before}
        return [call.node().max_pool2d(at.kernel, **stated), call.node().max_pool2d_indices(at.kernel, **stated)]
    lead = [0] * (call.rank() - axes)
    stacked = _taps(call, bordered(call.node(), call.shape(), lead + at.before, lead + at.after, -np.inf), at)
    first = stacked.argmax(0, keepdims=True)
    places = call.graph.constant(_flat_places(call, at)).take_along(first, axis=0)
    return [each.squeeze(axes=[0]) for each in (stacked.take_along(first, axis=0), places)]


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
    """Means of windows; times what they were divided by, where other elements of them count."""
    at = Windows.of(call, int(call.op[len("avg_pool")]))
    means = at.pooled("avg_pool", call.node())
    divisor = call.arguments.get("divisor_override")
    if divisor is None and (call["count_include_pad"] or not any(at.before)):
        return means
    wanted = _counts(at, 0.0) if divisor is None else float(divisor)
    return means.mul(call.constant(_counts(at, 1.0) / wanted, call.dtype()))


def _counts(at: Windows, border: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """How many elements of each window count, where those of the border count so much."""
    inside = np.pad(np.ones(at.extents), [(b, b) for b in at.before], constant_values=border)
    missing = [(0, max(0, a - b)) for a, b in zip(at.after, at.before, strict=True)]
    inside = np.pad(inside, missing)
    counts = np.zeros(at.counts)
    for tap in np.ndindex(*at.kernel):
        reads = zip(tap, at.counts, at.stride, strict=True)
        counts += inside[tuple(slice(i, i + (n - 1) * s + 1, s) for i, n, s in reads)]
    return counts


@RULES("adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_avg_pool(call: Call) -> Said:
    """Means of windows that part each axis as evenly as they can."""
    sizes = call.ints("output_size", 1)
    if {*sizes} == {1}:
        return call.node().mean(axes=[*range(call.rank() - len(sizes), call.rank())], keepdims=True)
    return call.node().adaptive_avg_pool(sizes)


@RULES("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(call: Call) -> Said:
    """The first maximum of each of them."""
    blocked_unless(not call.asked(1), "it says where the maxima are, of windows that differ", "use max_pool")
    return [call.node().adaptive_max_pool(call.ints("output_size", int(call.op[len("adaptive_max_pool")]))), None]
