"""Convolutions of one to three axes, their adjoints, columns of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.importing.writing import bordered, size
from gradserve_client.torch.call import Call, Said, blocked_unless
from gradserve_client.torch.families.table import RULES


@RULES("convolution")
def convolution(call: Call) -> Said:
    """Or its adjoint."""
    axes = call.rank("input") - 2
    blocked_unless(1 <= axes <= 3, f"it is over {axes} spatial axes, where one to three are possible")
    stated: dict[str, Any] = {name: call.ints(name, axes) for name in ("stride", "padding", "dilation")}
    groups = int(call["groups"])
    x, kernel, bias = call.node("input"), call.node("weight"), call.node_or_none("bias")
    if not call["transposed"]:
        return call.graph.op(f"conv{axes}d", x, kernel, bias, **stated, groups=groups)
    stated["output_padding"] = call.ints("output_padding", axes)
    return call.graph.op(f"conv_transpose{axes}d", x, kernel, bias, **stated, groups=groups)


@RULES("col2im")
def col2im(call: Call) -> Said:
    """Added up at the positions that the columns were read from."""
    image, block, dilation, pads, stride = (
        call.ints(name, 2) for name in ("output_size", "kernel_size", "dilation", "padding", "stride")
    )
    whole = [n + 2 * p for n, p in zip(image, pads, strict=True)]
    index = _read_from(block, whole, dilation, stride)
    channels, batched = call.shape()[-2] // size(block), call.rank() == 3
    rows = channels * (call.shape()[0] if batched else 1)
    at = call.graph.constant(index).broadcast_to(shape=[rows, index.size])
    empty = call.graph.full(shape=[rows, size(whole)], dtype=call.dtype())
    summed = empty.scatter_add(at, call.node().reshape(shape=[rows, index.size]), axis=1)
    lead = [*call.shape()[:1], channels] if batched else [channels]
    cut = [*[0] * len(lead), *(-p for p in pads)]
    return bordered(summed.reshape(shape=[*lead, *whole]), [*lead, *whole], cut, cut)


def _read_from(
    block: list[int], whole: list[int], dilation: list[int], stride: list[int]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """[1, taps · windows]: where in the flattened plane each tap of each window lies."""
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(whole, dilation, block, stride, strict=True)]
    taps, places = np.indices(block).reshape(2, -1, 1), np.indices(counts).reshape(2, 1, -1)
    at = taps * np.reshape(dilation, (2, 1, 1)) + places * np.reshape(stride, (2, 1, 1))
    return np.asarray(np.ravel_multi_index(tuple(at), tuple(whole)).reshape(1, -1), np.int64)
