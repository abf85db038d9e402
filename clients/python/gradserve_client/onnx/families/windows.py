"""Where windows lie: kernels, strides, and what is around the operand, of convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gradserve_client.onnx.call import Call


class Windows(NamedTuple):
    """For each spatial axis the operand's extent, the kernel's, how the windows lie, and how many there are.

    `after` is at the end what is stated, and `missing` how much further the last window reaches.
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
        """How many spatial axes there are."""
        return len(self.kernel)

    @property
    def ceiled(self) -> list[int]:
        """How many windows begin before the end of what is stated, and reach at most a stride beyond it."""
        found = []
        for e, b, k, d, s in zip(self.extents, self.before, self.kernel, self.dilation, self.stride, strict=True):
            count = -(-(e + 2 * b - d * (k - 1) - 1) // s) + 1
            found.append(count - 1 if (count - 1) * s >= e + b else count)
        return found

    @property
    def ends(self) -> list[int]:
        """All that is to be put at the ends."""
        return [after + missing for after, missing in zip(self.after, self.missing, strict=True)]


def span_of(kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """From the first of a window to its last, that one included."""
    return [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]


def listed(call: Call, name: str, otherwise: Sequence[int]) -> list[int]:
    """An attribute with a number for each spatial axis."""
    return [int(each) for each in call.attrs.get(name) or otherwise]


def windows_of(call: Call, kernel: Sequence[int]) -> Windows:
    """Of operand 0, [batch, channels, extents…], as many as the example's result has."""
    extents = [*call.shape()[2:]]
    ones = [1] * len(extents)
    stride, dilation = listed(call, "strides", ones), listed(call, "dilations", ones)
    counts = call.result_shape()[2:]
    spans = span_of(kernel, dilation)
    reach = [(count - 1) * s + span for count, s, span in zip(counts, stride, spans, strict=True)]
    before, after = _around(call, extents, reach)
    missing = [max(0, r - e - b - a) for r, e, b, a in zip(reach, extents, before, after, strict=True)]
    return Windows(extents, [*kernel], stride, dilation, before, after, counts, missing)


def _around(call: Call, extents: Sequence[int], reach: Sequence[int]) -> tuple[list[int], list[int]]:
    """What is put before and after each axis, stated, or as much as the windows need."""
    auto = call.text("auto_pad")
    axes = len(extents)
    if auto.startswith("SAME"):
        totals = [max(0, r - extent) for r, extent in zip(reach, extents, strict=True)]
        smaller, larger = [total // 2 for total in totals], [total - total // 2 for total in totals]
        return (smaller, larger) if auto == "SAME_UPPER" else (larger, smaller)
    pads = listed(call, "pads", [0] * (2 * axes)) if auto == "NOTSET" else [0] * (2 * axes)
    return pads[:axes], pads[axes:]
