"""Windows: maxima, means, norms, and what undoes them."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.pooling import pooled
from gradserve_client.importing.writing import TO_THE_END, bordered, lowest, size
from gradserve_client.onnx.call import Call, Said
from gradserve_client.onnx.families.table import RULES
from gradserve_client.onnx.families.windows import Windows, windows_of
from gradserve_client.tensors import Array


def _windows(call: Call) -> Windows:
    return windows_of(call, [int(each) for each in call.attrs["kernel_shape"]])


@RULES("MaxPool")
def max_pool(call: Call) -> Said:
    """Over one to three axes by an op; over more, or with where the maxima are, by what each tap reads."""
    at = _windows(call)
    indices = call.asked(1)
    if not indices and at.axes <= 3:
        return _by_pool(call, at)
    around = bordered(call.node(), call.shape(), [0, 0, *at.before], [0, 0, *at.ends], _lowest(call))
    stacked = _taps(call, around, at)
    if not indices:
        return stacked.max(axes=[0])
    first = stacked.argmax(0, keepdims=True)
    index = call.constant(_flat_places(call, at), np.int64).take_along(first, axis=0)
    return [stacked.take_along(first, axis=0).squeeze(axes=[0]), index.squeeze(axes=[0])]


def _lowest(call: Call) -> float:
    number: float = lowest(call.dtype())
    return number


def _by_pool(call: Call, at: Windows) -> Node:
    """What an op cannot put around is put there before."""
    half = all(2 * b <= k for b, k in zip(at.before, at.kernel, strict=True))
    if half and at.before == at.after and (not any(at.missing) or at.counts == at.ceiled):
        return pooled("max_pool", call.node(), at.kernel, at.stride, at.before, at.dilation, any(at.missing))
    x = bordered(call.node(), call.shape(), [0, 0, *at.before], [0, 0, *at.ends], _lowest(call))
    return pooled("max_pool", x, at.kernel, at.stride, [0] * at.axes, at.dilation)


def _taps(call: Call, around: Node, at: Windows) -> Node:
    """[taps, batch, channels, windows…]: what each tap of the kernel reads."""
    lead = [TO_THE_END] * 2
    read = []
    for tap in np.ndindex(*at.kernel):
        first = [i * d for i, d in zip(tap, at.dilation, strict=True)]
        last = [f + (n - 1) * s + 1 for f, n, s in zip(first, at.counts, at.stride, strict=True)]
        read.append(around.slice(starts=[0, 0, *first], stops=[*lead, *last], steps=[1, 1, *at.stride]))
    return call.graph.stack(*read, axis=0)


def _flat_places(call: Call, at: Windows) -> Array:
    """[taps, batch, channels, windows…]: where in the whole operand each tap reads, as ONNX counts it."""
    taps, places = np.indices(at.kernel), np.indices(at.counts)
    axes, spread = at.axes, (-1, *[1] * at.axes)
    where = [
        taps[a].reshape(spread) * at.dilation[a] + places[a][None] * at.stride[a] - at.before[a] for a in range(axes)
    ]
    if call.attrs.get("storage_order"):
        weights = [size(at.extents[:a]) for a in range(axes)]
    else:
        weights = [size(at.extents[a + 1 :]) for a in range(axes)]
    flat = sum((each * weight for each, weight in zip(where, weights, strict=True)), np.zeros((), np.int64))
    planes = np.arange(size(call.shape()[:2])).reshape(1, *call.shape()[:2], *[1] * axes)
    return np.asarray(planes * size(at.extents) + flat[:, None, None], np.int64)


def _summed(call: Call, x: Node, at: Windows) -> Node:
    """The sum of each window, by a convolution of each plane with ones."""
    if at.axes > 3:
        raise Blocked(f"it is over {at.axes} spatial axes, where one to three are possible")
    batch, channels = call.shape()[:2]
    around = bordered(x, call.shape(), [0, 0, *at.before], [0, 0, *at.ends])
    extents = [e + b + a for e, b, a in zip(at.extents, at.before, at.ends, strict=True)]
    planes = around.reshape(shape=[batch * channels, 1, *extents])
    ones = call.constant(np.ones((1, 1, *at.kernel)), call.dtype())
    summed = call.graph.op(f"conv{at.axes}d", planes, ones, stride=at.stride, dilation=at.dilation)
    made: Node = summed.slice(stops=[TO_THE_END, 1, *at.counts]).reshape(shape=[batch, channels, *at.counts])
    return made


@RULES("AveragePool", since=7)
def average_pool(call: Call) -> Said:
    """The sum of each window, over how many of its elements count; where all do, their mean."""
    at = _windows(call)
    counts = _counts(at, float(call.attrs.get("count_include_pad", 0)))
    if at.axes <= 3 and {*at.dilation} == {1} and (counts == size(at.kernel)).all():
        x = bordered(call.node(), call.shape(), [0, 0, *at.before], [0, 0, *at.ends])
        return pooled("avg_pool", x, at.kernel, at.stride, [0] * at.axes, at.dilation)
    return _summed(call, call.node(), at).div(call.like(counts))


def _counts(at: Windows, border: float) -> Array:
    """How many elements of each window count, where those of the border count so much."""
    inside = np.pad(np.ones(at.extents), [*zip(at.before, at.after, strict=True)], constant_values=border)
    inside = np.pad(inside, [(0, missing) for missing in at.missing])
    counts = np.zeros(at.counts)
    for tap in np.ndindex(*at.kernel):
        reads = zip(tap, at.dilation, at.counts, at.stride, strict=True)
        counts += inside[tuple(slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, n, s in reads)]
    return counts


@RULES("LpPool", since=2)
def lp_pool(call: Call) -> Said:
    """(Σ |x|ᵖ)^(1/p) over each window."""
    p = float(call.attrs["p"])
    return _summed(call, call.node().abs().pow_scalar(p), _windows(call)).pow_scalar(1 / p)


@RULES("GlobalAveragePool", "GlobalMaxPool")
def global_pool(call: Call) -> Said:
    """Over all spatial axes."""
    op = "mean" if call.op == "GlobalAveragePool" else "max"
    return call.graph.op(op, call.node(), axes=[*range(2, call.rank())], keepdims=True)


@RULES("GlobalLpPool", since=2)
def global_lp_pool(call: Call) -> Said:
    """(Σ |x|ᵖ)^(1/p) over all spatial axes."""
    p, axes = float(call.attrs["p"]), [*range(2, call.rank())]
    if p == 2:
        return call.node().norm(axes=axes, keepdims=True)
    return call.node().abs().pow_scalar(p).sum(axes=axes, keepdims=True).pow_scalar(1 / p)


@RULES("MaxUnpool", since=9)
def max_unpool(call: Call) -> Said:
    """Elements at the places that they were read from, in an image whose planes may be larger than what they were."""
    shape = call.result_shape()
    if call.has(2):
        call.static(2, "output shape")
    kernel = [int(each) for each in call.attrs["kernel_shape"]]
    axes = len(kernel)
    stride, pads = call.attrs.get("strides", [1] * axes), call.attrs.get("pads", [0] * (2 * axes))
    usual = [(n - 1) * stride[a] - pads[a] - pads[axes + a] + kernel[a] for a, n in enumerate(call.shape()[2:])]
    flat = call.node(1).cast("int64").reshape(shape=[-1])
    whole = [*shape[:2], *usual]
    empty = call.graph.full(shape=[size(whole)], dtype=call.dtype().name)
    placed = empty.scatter_add(flat, call.node().reshape(shape=[-1]), axis=0).reshape(shape=whole)
    return bordered(placed, whole, [0] * len(whole), [s - w for s, w in zip(shape, whole, strict=True)])
