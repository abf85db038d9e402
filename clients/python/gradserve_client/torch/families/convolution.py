"""Convolutions over one to three axes, transposed convolutions, and `fold`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.importing.writing import pad_or_crop, size
from gradserve_client.torch.call import Call, Results, require
from gradserve_client.torch.families.table import RULES


@RULES("convolution")
def convolution(call: Call) -> Results:
    """Write a convolution or a transposed convolution."""
    axes = call.rank("input") - 2
    require(1 <= axes <= 3, f"it is over {axes} spatial axes, but only one to three are supported")
    attributes: dict[str, Any] = {name: call.ints(name, axes) for name in ("stride", "padding", "dilation")}
    groups = int(call["groups"])
    x, kernel, bias = call.node("input"), call.node("weight"), call.optional_node("bias")
    if not call["transposed"]:
        return call.graph.op(f"conv{axes}d", x, kernel, bias, **attributes, groups=groups)
    attributes["output_padding"] = call.ints("output_padding", axes)
    return call.graph.op(f"conv_transpose{axes}d", x, kernel, bias, **attributes, groups=groups)


@RULES("col2im")
def col2im(call: Call) -> Results:
    """Add columns up at the positions that `unfold` reads them from."""
    image, block, dilation, pads, stride = (
        call.ints(name, 2) for name in ("output_size", "kernel_size", "dilation", "padding", "stride")
    )
    padded = [n + 2 * p for n, p in zip(image, pads, strict=True)]
    index = _tap_positions(block, padded, dilation, stride)
    channels, batched = call.shape()[-2] // size(block), call.rank() == 3
    rows = channels * (call.shape()[0] if batched else 1)
    positions = call.graph.constant(index).broadcast_to(shape=[rows, index.size])
    empty = call.graph.full(shape=[rows, size(padded)], dtype=call.dtype())
    summed = empty.scatter_add(positions, call.node().reshape(shape=[rows, index.size]), axis=1)
    lead = [*call.shape()[:1], channels] if batched else [channels]
    cut = [*[0] * len(lead), *(-p for p in pads)]
    return pad_or_crop(summed.reshape(shape=[*lead, *padded]), [*lead, *padded], cut, cut)


def _tap_positions(
    block: list[int], plane: list[int], dilation: list[int], stride: list[int]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the positions of the taps of all windows in the flattened plane, [1, taps · windows]."""
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(plane, dilation, block, stride, strict=True)]
    taps, windows = np.indices(block).reshape(2, -1, 1), np.indices(counts).reshape(2, 1, -1)
    positions = taps * np.reshape(dilation, (2, 1, 1)) + windows * np.reshape(stride, (2, 1, 1))
    return np.asarray(np.ravel_multi_index(tuple(positions), tuple(plane)).reshape(1, -1), np.int64)
