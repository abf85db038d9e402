"""Sampling of images between their pixels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.table import RULES

#: parameter `a` of R. G. Keys, Cubic convolution interpolation for digital image processing (1981), as in PyTorch
_CUBIC: float = -0.75


class Points(NamedTuple):
    """Sample positions of an image.

    `image` is flattened to [batch, channels, elements], with its `extents`. `positions` holds those on each axis,
    [batch, 1, n]. `padding_mode` is `zeros`, `border` or `reflection`; `aligned` puts the borders at the
    centres of the outer pixels, else they are at their edges.
    """

    call: Call
    image: Node
    extents: Sequence[int]
    positions: Sequence[Node]
    padding_mode: str
    aligned: bool


class Tap(NamedTuple):
    """A pixel position on one axis, integral but of the dtype of the sample positions, and its weight; None means 1."""

    position: Node
    weight: Node | None


def sampled(points: Points, mode: str) -> Node:
    """Return the image at these positions, [batch, channels, n], by nearest, linear or cubic interpolation."""
    taps = [_taps(position, mode) for position in points.positions]
    total = None
    for corner in itertools.product(*taps):
        read = _read(points, corner)
        total = read if total is None else total.add(read)
    assert total is not None, "each axis has a tap"
    return total


def _taps(position: Node, mode: str) -> list[Tap]:
    if mode == "nearest":
        return [Tap(position.round(), None)]
    first = position.floor()
    t = position.sub(first)
    if mode == "linear":
        return [Tap(first, t.neg().add_scalar(1.0)), Tap(first.add_scalar(1.0), t)]
    weights = (_outer(t.add_scalar(1.0)), _inner(t), _inner(t.neg().add_scalar(1.0)), _outer(t.neg().add_scalar(2.0)))
    return [Tap(first.add_scalar(float(i - 1)), weight) for i, weight in enumerate(weights)]


def _inner(x: Node) -> Node:
    """Compute (a + 2) x³ − (a + 3) x² + 1."""
    return x.mul_scalar(_CUBIC + 2).sub_scalar(_CUBIC + 3).mul(x.square()).add_scalar(1.0)


def _outer(x: Node) -> Node:
    """Compute a x³ − 5a x² + 8a x − 4a."""
    cubic = x.mul_scalar(_CUBIC).sub_scalar(5 * _CUBIC).mul(x)
    return cubic.add_scalar(8 * _CUBIC).mul(x).sub_scalar(4 * _CUBIC)


def _read(points: Points, corner: Sequence[Tap]) -> Node:
    """Return the pixels of one corner of each position's neighbourhood, times their weights."""
    call = points.call
    flat, weight, inside = None, None, None
    for axis, (tap, extent) in enumerate(zip(corner, points.extents, strict=True)):
        position = _within(points, tap.position, extent)
        step = position.cast("int64").mul(call.constant(size(points.extents[axis + 1 :]), np.int64))
        flat = step if flat is None else flat.add(step)
        if tap.weight is not None:
            weight = tap.weight if weight is None else weight.mul(tap.weight)
        if points.padding_mode == "zeros":
            hit = tap.position.equal(position)
            inside = hit if inside is None else inside.logical_and(hit)
    assert flat is not None, "there is an axis"
    value = points.image.take_along(flat, axis=2)
    value = value if weight is None else value.mul(weight)
    return value if inside is None else inside.where(value, call.like(0))


def _within(points: Points, position: Node, extent: int) -> Node:
    """Move a position into the image: to the nearest pixel, or to the pixel that it reflects."""
    if points.padding_mode == "reflection":
        position = reflected(points.call, position, *_borders(points, extent))
    return position.clamp(min=0.0, max=float(extent - 1))


def _borders(points: Points, extent: int) -> tuple[float, float]:
    return (0.0, extent - 1.0) if points.aligned else (-0.5, extent - 0.5)


def reflected(call: Call, x: Node, low: float, high: float) -> Node:
    """Reflect positions outside the borders, as often as needed to bring them inside."""
    if high <= low:
        return x.clamp(min=low, max=low)
    outside = x.less(call.like(low)).logical_or(x.greater(call.like(high)))
    phase = x.sub_scalar(low).mod(call.like(2 * (high - low)))
    folded = phase.greater(call.like(high - low)).where(phase.neg().add_scalar(2 * (high - low)), phase)
    return outside.where(folded.add_scalar(low), x)


_MODES = {"bilinear": "linear", "bicubic": "cubic", "linear": "linear", "cubic": "cubic", "nearest": "nearest"}


@RULES("GridSample", since=16)
def grid_sample(call: Call) -> RuleResult:
    """Sample at positions given as fractions of the image between −1 and 1, the last axis first."""
    if call.dtype(1) != call.dtype():
        raise Blocked(f"its grid is {call.dtype(1)}, but its image is {call.dtype()}", "cast one of them")
    mode, padding_mode, aligned = (
        _MODES[call.text("mode")],
        call.text("padding_mode"),
        bool(call.attrs["align_corners"]),
    )
    batch, channels, *extents = call.shape()
    out = call.shape(1)[1:-1]
    count, axes = size(out), len(extents)
    if not count or not size(extents):
        return np.zeros(call.result_shape(), call.dtype())
    image = call.node().reshape(shape=[batch, channels, size(extents)])
    points = Points(call, image, extents, [], padding_mode, aligned)
    positions = []
    for axis, extent in enumerate(extents):
        n = call.node(1).select(axes - 1 - axis, axis=axes + 1).reshape(shape=[batch, 1, count])
        position = _to_position(n, extent, aligned)
        if mode == "nearest":
            position = position.round()
        positions.append(_padded_position(points, position, extent))
    return sampled(points._replace(positions=positions), mode).reshape(shape=[batch, channels, *out])


def _to_position(n: Node, extent: int, aligned: bool) -> Node:
    """Convert a fraction to a position.

    −1 and 1 are the centres of the outer pixels if `aligned`, else their outer edges.
    """
    if aligned:
        return n.add_scalar(1.0).mul_scalar((extent - 1) / 2)
    return n.add_scalar(1.0).mul_scalar(extent / 2).sub_scalar(0.5)


def _padded_position(points: Points, position: Node, extent: int) -> Node:
    """Apply the padding mode to positions beyond the borders, before their neighbouring pixels are read."""
    if points.padding_mode == "zeros":
        return position
    low, high = _borders(points, extent)
    if points.padding_mode == "reflection":
        return reflected(points.call, position, low, high)
    outside = position.less(points.call.like(low)).logical_or(position.greater(points.call.like(high)))
    return outside.where(position.clamp(min=0.0, max=float(extent - 1)), position)


@RULES("RoiAlign", since=10)
def roi_align(call: Call) -> RuleResult:
    """Sample regions at a grid of points within each bin, and take the mean or maximum of each bin."""
    ratio, rows, columns = call.attrs["sampling_ratio"], call.attrs["output_height"], call.attrs["output_width"]
    if ratio <= 0:
        raise Blocked("without a sampling_ratio, the number of sampled points depends on the regions", "set one")
    offset = 0.5 if call.attrs.get("coordinate_transformation_mode") == b"half_pixel" else 0.0
    regions, channels, height, width = call.shape(1)[0], *call.shape()[1:]
    corners = call.node(1).mul_scalar(call.attrs["spatial_scale"]).sub_scalar(offset)
    first, last = corners.slice(stops=[regions, 2]), corners.slice(starts=[0, 2])
    extent = last.sub(first)
    if not offset:
        extent = extent.maximum(call.like(1, 1))
    inside = []
    positions = []
    for axis, (bins, pixels) in enumerate(((rows, height), (columns, width))):
        # in units of bins: the centres of `ratio` equal parts of each bin
        steps = (np.arange(bins)[:, None] + (np.arange(ratio) + 0.5) / ratio).reshape(1, -1) / bins
        position = first.select(1 - axis, axis=1).unsqueeze(axes=[1])
        position = position.add(extent.select(1 - axis, axis=1).unsqueeze(axes=[1]).mul(call.like(steps, 1)))
        shape = [regions, -1, 1] if axis == 0 else [regions, 1, -1]
        position = (
            position.reshape(shape=shape)
            .broadcast_to(shape=[regions, rows * ratio, columns * ratio])
            .reshape(shape=[regions, 1, -1])
        )
        inside.append(
            position.greater_equal(call.like(-1.0, 1)).logical_and(position.less_equal(call.like(float(pixels), 1)))
        )
        positions.append(position.clamp(min=0.0, max=float(pixels - 1)))
    image = call.node().embedding(call.node(2)).reshape(shape=[regions, channels, height * width])
    points = Points(call, image, [height, width], positions, "border", True)
    return _pooled(call, points, inside[0].logical_and(inside[1]), [regions, channels, rows, ratio, columns, ratio])


def _pooled(call: Call, points: Points, inside: Node, shape: list[int]) -> Node:
    """Return the mean of the points of a bin, or the maximum.

    ONNX defines the maximum over the weighted neighbours of each point, not over the interpolated values.
    """
    if call.text("mode") == "avg":
        read = inside.where(sampled(points, "linear"), call.like(0))
        return read.reshape(shape=shape).mean(axes=[3, 5])
    corners = itertools.product(*(_taps(position, "linear") for position in points.positions))
    each = [inside.where(_read(points, corner), call.like(0)).reshape(shape=shape) for corner in corners]
    return call.graph.stack(*each, axis=0).max(axes=[0, 4, 6])
