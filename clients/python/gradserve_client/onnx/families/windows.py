"""Geometry of the windows of convolutions and pools: kernels, strides and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gradserve_client.onnx.call import Call


class Windows(NamedTuple):
    """Geometry of windows, with one number for each spatial axis.

    `extents` are the operand's, `before` and `after` the stated padding, `counts` the numbers of windows. `missing` is
    how far the last window reaches beyond the stated padding.
    """

    extents: list[int]
    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    before: list[int]
    after: list[int]
    counts: list[int]
    missing: list[int]

    @property
    def axes(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel)

    @property
    def ceiled(self) -> list[int]:
        """Number of windows with `ceil_mode`: the last one begins in the operand or in the padding before it."""
        counts = []
        for e, b, k, d, s in zip(self.extents, self.before, self.kernel, self.dilation, self.stride, strict=True):
            count = -(-(e + 2 * b - d * (k - 1) - 1) // s) + 1
            counts.append(count - 1 if (count - 1) * s >= e + b else count)
        return counts

    @property
    def ends(self) -> list[int]:
        """Padding at the end of each axis, with what the last window needs beyond the stated one."""
        return [after + missing for after, missing in zip(self.after, self.missing, strict=True)]


def span_of(kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Return the extent of a dilated window along each axis."""
    return [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]


def per_axis(call: Call, name: str, default: Sequence[int]) -> list[int]:
    """Return an attribute with a number for each spatial axis."""
    return [int(each) for each in call.attrs.get(name) or default]


def windows_of(call: Call, kernel: Sequence[int]) -> Windows:
    """Return the windows of operand 0, [batch, channels, extents…], as many as the example's result has."""
    extents = [*call.shape()[2:]]
    ones = [1] * len(extents)
    stride, dilation = per_axis(call, "strides", ones), per_axis(call, "dilations", ones)
    counts = call.result_shape()[2:]
    spans = span_of(kernel, dilation)
    reach = [(count - 1) * s + span for count, s, span in zip(counts, stride, spans, strict=True)]
    before, after = _around(call, extents, reach)
    missing = [max(0, r - e - b - a) for r, e, b, a in zip(reach, extents, before, after, strict=True)]
    return Windows(extents, [*kernel], stride, dilation, before, after, counts, missing)


def _around(call: Call, extents: Sequence[int], reach: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the padding before and after each axis: the stated one, or for `SAME` as much as the windows need."""
    auto = call.text("auto_pad")
    axes = len(extents)
    if auto.startswith("SAME"):
        totals = [max(0, r - extent) for r, extent in zip(reach, extents, strict=True)]
        smaller, larger = [total // 2 for total in totals], [total - total // 2 for total in totals]
        return (smaller, larger) if auto == "SAME_UPPER" else (larger, smaller)
    pads = per_axis(call, "pads", [0] * (2 * axes)) if auto == "NOTSET" else [0] * (2 * axes)
    return pads[:axes], pads[axes:]
