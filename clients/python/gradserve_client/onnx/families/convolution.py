"""Convolutions of one to three axes, their adjoints, `Col2Im`, and deformable convolution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import pad_or_crop, size
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.sampling import Points, sampled
from gradserve_client.onnx.families.table import RULES
from gradserve_client.onnx.families.windows import per_axis, span_of, windows_of


def _require_axes(axes: int) -> None:
    if not 1 <= axes <= 3:
        raise Blocked(f"it is over {axes} spatial axes, but only one to three are supported")


@RULES("Conv")
def conv(call: Call) -> RuleResult:
    """Translate to a convolution. Asymmetric padding is added by a separate op."""
    kernel = call.shape(1)[2:]
    _require_axes(len(kernel))
    windows = windows_of(call, kernel)
    x, padding = call.node(), windows.before
    if windows.before != windows.after:
        no_padding = [0, 0]
        x = pad_or_crop(x, call.shape(), no_padding + windows.before, no_padding + windows.after)
        padding = [0] * windows.axes
    return call.graph.op(
        f"conv{windows.axes}d",
        x,
        call.node(1),
        call.node_or_none(2),
        stride=windows.stride,
        padding=padding,
        dilation=windows.dilation,
        groups=call.attrs["group"],
    )


@RULES("ConvTranspose")
def conv_transpose(call: Call) -> RuleResult:
    """Compute the full adjoint, then crop the pads or add zeros."""
    kernel = [*call.shape(1)[2:]]
    axes = len(kernel)
    _require_axes(axes)
    ones = [1] * axes
    stride, dilation = per_axis(call, "strides", ones), per_axis(call, "dilations", ones)
    extents = [
        (n - 1) * s + span for n, s, span in zip(call.shape()[2:], stride, span_of(kernel, dilation), strict=True)
    ]
    y = _adjoint(call, stride, dilation)
    before, after = _cuts(call, extents)
    channels = call.result_shape()[1]
    shape = [call.shape()[0], channels, *extents]
    y = pad_or_crop(y, shape, [0, 0, *before], [0, 0, *after])
    return y.add(call.node(2).reshape(shape=[1, channels, *ones])) if call.has(2) else y


def _adjoint(call: Call, stride: list[int], dilation: list[int]) -> Node:
    """Compute the adjoint without pads."""
    return call.graph.op(
        f"conv_transpose{len(stride)}d",
        call.node(),
        call.node(1),
        stride=stride,
        dilation=dilation,
        groups=call.attrs["group"],
    )


def _cuts(call: Call, extents: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the padding before and after the adjoint on each axis, negative to crop."""
    axes = len(extents)
    result = call.result_shape()[2:]
    auto = call.text("auto_pad")
    if "output_shape" not in call.attrs and not auto.startswith("SAME"):
        before = per_axis(call, "pads", [0] * (2 * axes))[:axes] if auto == "NOTSET" else [0] * axes
        return [-b for b in before], [r - e + b for r, e, b in zip(result, extents, before, strict=True)]
    output_padding = per_axis(call, "output_padding", [0] * axes)
    totals = [e + x - r for e, x, r in zip(extents, output_padding, result, strict=True)]
    cropped = [total // 2 if auto == "SAME_UPPER" else total - total // 2 for total in totals]
    return [-b for b in cropped], [r - e + b for r, e, b in zip(result, extents, cropped, strict=True)]


@RULES("Col2Im", since=18)
def col2im(call: Call) -> RuleResult:
    """Add columns up at the positions that they were read from."""
    image = [int(each) for each in call.static(1, "image's shape")]
    block = [int(each) for each in call.static(2, "block's shape")]
    axes = len(image)
    ones = [1] * axes
    stride, dilation = per_axis(call, "strides", ones), per_axis(call, "dilations", ones)
    pads = per_axis(call, "pads", [0] * (2 * axes))
    padded = [n + pads[i] + pads[axes + i] for i, n in enumerate(image)]
    counts = [(n - span) // s + 1 for n, span, s in zip(padded, span_of(block, dilation), stride, strict=True)]
    # flat positions in the padded image that each column was read from: [taps, windows]
    taps, windows = np.indices(block).reshape(axes, -1, 1), np.indices(counts).reshape(axes, 1, -1)
    steps = np.asarray(dilation).reshape(-1, 1, 1), np.asarray(stride).reshape(-1, 1, 1)
    index = np.ravel_multi_index(tuple(taps * steps[0] + windows * steps[1]), tuple(padded)).reshape(1, -1)
    batch, columns = call.shape()[0], call.shape()[1]
    rows = batch * columns // size(block)
    positions = call.constant(index, np.int64).broadcast_to(shape=[rows, index.size])
    empty = call.graph.full(shape=[rows, size(padded)], dtype=call.dtype().name)
    summed = empty.scatter_add(positions, call.node().reshape(shape=[rows, index.size]), axis=1)
    shape = [batch, columns // size(block), *padded]
    before, after = [0, 0, *(-p for p in pads[:axes])], [0, 0, *(-p for p in pads[axes:])]
    return pad_or_crop(summed.reshape(shape=shape), shape, before, after)


@RULES("DeformConv", since=19)
def deform_conv(call: Call) -> RuleResult:
    """Sample each tap of the kernel at its own fractional position, and multiply with the kernel."""
    if call.rank() != 4:
        raise Blocked(f"it is over {call.rank() - 2} spatial axes, but only two are supported")
    batch, channels, height, width = call.shape()
    features, per_group, *kernel = call.shape(1)
    groups, offset_groups, taps = call.attrs["group"], call.attrs["offset_group"], size(kernel)
    out_extents = call.shape(2)[2:]
    pads = per_axis(call, "pads", [0] * 4)
    stride, dilation = per_axis(call, "strides", [1, 1]), per_axis(call, "dilations", [1, 1])
    offsets = call.node(2).reshape(shape=[batch * offset_groups, taps, 2, *out_extents])
    grid = _undeformed(kernel, out_extents, pads, stride, dilation)
    flat_shape = [batch * offset_groups, 1, taps * size(out_extents)]
    positions = [
        offsets.select(axis, axis=2).add(call.like(grid[axis], 2)).reshape(shape=flat_shape) for axis in range(2)
    ]
    image = call.node().reshape(shape=[batch * offset_groups, channels // offset_groups, height * width])
    samples = sampled(Points(call, image, [height, width], positions, "zeros", False), "linear")
    if call.has(4):
        samples = samples.mul(call.node(4).reshape(shape=flat_shape))
    # n: batch, g: groups, c: channels of a group, t: taps, p: output positions, f: features of a group
    columns = samples.reshape(shape=[batch, groups, per_group, taps, size(out_extents)])
    weights = call.node(1).reshape(shape=[groups, features // groups, per_group, taps])
    result = call.graph.einsum(columns, weights, equation="ngctp,gfct->ngfp").reshape(
        shape=[batch, features, *out_extents]
    )
    return result.add(call.node(3).reshape(shape=[1, features, 1, 1])) if call.has(3) else result


def _undeformed(
    kernel: Sequence[int], out: Sequence[int], pads: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Return the positions, without offsets, that taps read on each axis: [1, taps, out…]."""
    taps, positions = np.indices(kernel).reshape(2, -1, 1, 1), np.indices(out).reshape(2, 1, *out)
    return [(taps[a] * dilation[a] + positions[a] * stride[a] - pads[a])[None].astype(np.float64) for a in range(2)]
