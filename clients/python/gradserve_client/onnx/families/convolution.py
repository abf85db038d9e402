"""Convolutions of one to three axes, their adjoints, columns of images, and deformed ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import bordered, size
from gradserve_client.onnx.call import Call, Said
from gradserve_client.onnx.families.sampling import Points, sampled
from gradserve_client.onnx.families.table import RULES
from gradserve_client.onnx.families.windows import listed, span_of, windows_of


def _require_axes(axes: int) -> None:
    if not 1 <= axes <= 3:
        raise Blocked(f"it is over {axes} spatial axes, where one to three are possible")


@RULES("Conv")
def conv(call: Call) -> Said:
    """Zeros that are not the same on both sides are put around before."""
    kernel = call.shape(1)[2:]
    _require_axes(len(kernel))
    at = windows_of(call, kernel)
    x, padding = call.node(), at.before
    if at.before != at.after:
        around = [0, 0]
        x = bordered(x, call.shape(), around + at.before, around + at.after)
        padding = [0] * at.axes
    return call.graph.op(
        f"conv{at.axes}d",
        x,
        call.node(1),
        call.node_or_none(2),
        stride=at.stride,
        padding=padding,
        dilation=at.dilation,
        groups=call.attrs["group"],
    )


@RULES("ConvTranspose")
def conv_transpose(call: Call) -> Said:
    """The whole adjoint, of which the pads are cut off, or to which zeros are added."""
    kernel = [*call.shape(1)[2:]]
    axes = len(kernel)
    _require_axes(axes)
    ones = [1] * axes
    stride, dilation = listed(call, "strides", ones), listed(call, "dilations", ones)
    extents = [
        (n - 1) * s + span for n, s, span in zip(call.shape()[2:], stride, span_of(kernel, dilation), strict=True)
    ]
    y = _adjoint(call, stride, dilation)
    before, after = _cuts(call, extents)
    channels = call.result_shape()[1]
    shape = [call.shape()[0], channels, *extents]
    y = bordered(y, shape, [0, 0, *before], [0, 0, *after])
    return y.add(call.node(2).reshape(shape=[1, channels, *ones])) if call.has(2) else y


def _adjoint(call: Call, stride: list[int], dilation: list[int]) -> Node:
    """Without pads."""
    return call.graph.op(
        f"conv_transpose{len(stride)}d",
        call.node(),
        call.node(1),
        stride=stride,
        dilation=dilation,
        groups=call.attrs["group"],
    )


def _cuts(call: Call, extents: Sequence[int]) -> tuple[list[int], list[int]]:
    """What is put before and after the adjoint on each axis: negative where it is cut off."""
    axes = len(extents)
    result = call.result_shape()[2:]
    auto = call.text("auto_pad")
    if "output_shape" not in call.attrs and not auto.startswith("SAME"):
        before = listed(call, "pads", [0] * (2 * axes))[:axes] if auto == "NOTSET" else [0] * axes
        return [-b for b in before], [r - e + b for r, e, b in zip(result, extents, before, strict=True)]
    extra = listed(call, "output_padding", [0] * axes)
    totals = [e + x - r for e, x, r in zip(extents, extra, result, strict=True)]
    first = [total // 2 if auto == "SAME_UPPER" else total - total // 2 for total in totals]
    return [-b for b in first], [r - e + b for r, e, b in zip(result, extents, first, strict=True)]


@RULES("Col2Im", since=18)
def col2im(call: Call) -> Said:
    """Added up at the positions that the columns were read from."""
    image = [int(each) for each in call.static(1, "image's shape")]
    block = [int(each) for each in call.static(2, "block's shape")]
    axes = len(image)
    ones = [1] * axes
    stride, dilation = listed(call, "strides", ones), listed(call, "dilations", ones)
    pads = listed(call, "pads", [0] * (2 * axes))
    whole = [n + pads[i] + pads[axes + i] for i, n in enumerate(image)]
    counts = [(n - span) // s + 1 for n, span, s in zip(whole, span_of(block, dilation), stride, strict=True)]
    taps, places = np.indices(block).reshape(axes, -1, 1), np.indices(counts).reshape(axes, 1, -1)
    steps = np.asarray(dilation).reshape(-1, 1, 1), np.asarray(stride).reshape(-1, 1, 1)
    index = np.ravel_multi_index(tuple(taps * steps[0] + places * steps[1]), tuple(whole)).reshape(1, -1)
    batch, columns = call.shape()[0], call.shape()[1]
    rows = batch * columns // size(block)
    at = call.constant(index, np.int64).broadcast_to(shape=[rows, index.size])
    empty = call.graph.full(shape=[rows, size(whole)], dtype=call.dtype().name)
    summed = empty.scatter_add(at, call.node().reshape(shape=[rows, index.size]), axis=1)
    shape = [batch, columns // size(block), *whole]
    before, after = [0, 0, *(-p for p in pads[:axes])], [0, 0, *(-p for p in pads[axes:])]
    return bordered(summed.reshape(shape=shape), shape, before, after)


@RULES("DeformConv", since=19)
def deform_conv(call: Call) -> Said:
    """Read between positions, each tap at a place of its own, and multiplied with the kernel."""
    if call.rank() != 4:
        raise Blocked(f"it is over {call.rank() - 2} spatial axes, where two are possible")
    batch, channels, height, width = call.shape()
    features, per_group, *kernel = call.shape(1)
    groups, offset_groups, taps = call.attrs["group"], call.attrs["offset_group"], size(kernel)
    out = call.shape(2)[2:]
    pads = listed(call, "pads", [0] * 4)
    stride, dilation = listed(call, "strides", [1, 1]), listed(call, "dilations", [1, 1])
    offsets = call.node(2).reshape(shape=[batch * offset_groups, taps, 2, *out])
    grid = _undeformed(kernel, out, pads, stride, dilation)
    flat = [batch * offset_groups, 1, taps * size(out)]
    places = [offsets.select(axis, axis=2).add(call.like(grid[axis], 2)).reshape(shape=flat) for axis in range(2)]
    image = call.node().reshape(shape=[batch * offset_groups, channels // offset_groups, height * width])
    read = sampled(Points(call, image, [height, width], places, "zeros", False), "linear")
    if call.has(4):
        read = read.mul(call.node(4).reshape(shape=flat))
    # groups, their channels, taps and places, against groups, features, channels and taps
    columns = read.reshape(shape=[batch, groups, per_group, taps, size(out)])
    weights = call.node(1).reshape(shape=[groups, features // groups, per_group, taps])
    made = call.graph.einsum(columns, weights, equation="ngctp,gfct->ngfp").reshape(shape=[batch, features, *out])
    return made.add(call.node(3).reshape(shape=[1, features, 1, 1])) if call.has(3) else made


def _undeformed(
    kernel: Sequence[int], out: Sequence[int], pads: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Where taps read without offsets, on each axis: [1, taps, out…]."""
    taps, places = np.indices(kernel).reshape(2, -1, 1, 1), np.indices(out).reshape(2, 1, *out)
    return [(taps[a] * dilation[a] + places[a] * stride[a] - pads[a])[None].astype(np.float64) for a in range(2)]
