"""Resizing, axis by axis, by constant matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.onnx.call import Call, Said, is_float
from gradserve_client.onnx.families.helpers import as_dtype, at_positions
from gradserve_client.onnx.families.table import RULES
from gradserve_client.tensors import Array


class Resized(NamedTuple):
    """How an axis is resized: its extent, by how much, to what, and which part of it is read, in fractions."""

    axis: int
    extent: int
    scale: float
    result: int
    region: tuple[float, float] | None


#: weights of neighbours, by how far behind the first of the middle two a place lies, in (0, 1], and the scale
Weights = Callable[[float, float], Array]


@RULES("Upsample", since=7)
def upsample(call: Call) -> Said:
    """As `Resize` by places that are divided by the scale, and cut off or interpolated."""
    scales = call.static(1, "scales") if call.has(1) else np.asarray(call.attrs["scales"])
    mode = call.text("mode")
    coefficients = _weights("nearest", "floor", False, 0.0) if mode == "nearest" else _weights("linear", "", False, 0.0)
    x = call.node()
    for axis, extent in enumerate(call.shape()):
        how = Resized(axis, extent, float(scales[axis]), call.result_shape()[axis], None)
        if how.result != extent:
            x = _along(call, x, how, "asymmetric", coefficients, False)
    return x


@RULES("Resize", since=11)
def resize(call: Call) -> Said:
    """Each axis that changes, one after the other. A part of the image that is not there is the extrapolation value."""
    transform = call.text("coordinate_transformation_mode")
    plain = _as_op(call, transform)
    if plain is not None:
        return plain
    weights = _weights(
        call.text("mode"), call.text("nearest_mode"), bool(call.attrs.get("antialias")), call.attrs["cubic_coeff_a"]
    )
    # whole numbers are interpolated as ONNX's reference does it, in float64, and rounded once
    exact = is_float(call.dtype()) or call.text("mode") == "nearest"
    x = call.node() if exact else call.node().cast("float64")
    beyond = np.zeros(call.result_shape(), np.bool_)
    for how in _resized_axes(call):
        x = _along(call, x, how, transform, weights, bool(call.attrs["exclude_outside"]))
        if transform == "tf_crop_and_resize":
            places = _places(how, transform)
            along = [-1 if axis == how.axis else 1 for axis in range(call.rank())]
            beyond |= ((places < 0) | (places > how.extent - 1)).reshape(along)
    if beyond.any():
        x = call.constant(beyond).where(call.like(call.attrs["extrapolation_value"]), x)
    if exact:
        return x
    limits = np.iinfo(call.dtype())
    return as_dtype(x.round().clamp(min=float(limits.min), max=float(limits.max)), np.float64, call.dtype())


def _as_op(call: Call, transform: str) -> Node | None:
    """By `resize`, which has these places and weights, where each axis becomes as long as its scale says."""
    mode, wide = call.text("mode"), bool(call.attrs.get("antialias"))
    how = _resized_axes(call)
    corners = transform == "align_corners" and not wide and mode != "nearest"
    same = all(each.scale * each.extent == each.result for each in how) and is_float(call.dtype())
    halves = {"half_pixel", *(["pytorch_half_pixel"] if all(each.result > 1 for each in how) else [])}
    if not how or not same or not (corners or transform in halves):
        return None
    if bool(call.attrs["exclude_outside"]) != wide:
        return None
    if mode == "nearest" and call.text("nearest_mode") != "round_prefer_ceil":
        return None
    if mode == "cubic" and call.attrs["cubic_coeff_a"] != (-0.5 if wide else -0.75):
        return None
    made: Node = call.graph.op(
        "resize",
        call.node(),
        sizes=[each.result for each in how],
        axes=[each.axis for each in how],
        method=mode,
        antialias=True if wide else None,
        corners=True if corners else None,
    )
    return made


def _resized_axes(call: Call) -> list[Resized]:
    rank, shape = call.rank(), call.shape()
    axes = [int(axis) % rank for axis in call.attrs.get("axes") or range(rank)]
    sizes = call.static(3, "sizes") if call.has(3) and call.value(3).example.size else None
    scales = (
        [float(each) for each in call.static(2, "scales")]
        if sizes is None
        else [float(each) / shape[axis] for axis, each in zip(axes, sizes, strict=True)]
    )
    policy = call.attrs.get("keep_aspect_ratio_policy", b"stretch").decode()
    if sizes is not None and policy != "stretch":
        scales = [min(scales) if policy == "not_larger" else max(scales)] * len(axes)
    regions = call.static(1, "region") if call.has(1) and call.value(1).example.size else None
    found = []
    for i, axis in enumerate(axes):
        region = None if regions is None else (float(regions[i]), float(regions[len(axes) + i]))
        how = Resized(axis, shape[axis], scales[i], call.result_shape()[axis], region)
        if not (how.result == how.extent and math.isclose(how.scale, 1.0) and region in {None, (0.0, 1.0)}):
            found.append(how)
    return found


def _places(how: Resized, transform: str) -> Array:
    """Where in the operand the entries of the result lie."""
    y, extent, width = np.arange(how.result, dtype=np.float64), how.extent, how.scale * how.extent
    if transform == "align_corners":
        return np.zeros(how.result) if width == 1 else y * (extent - 1) / (width - 1)
    if transform == "asymmetric":
        return y / how.scale
    if transform == "tf_crop_and_resize":
        start, end = how.region or (0.0, 1.0)
        if width == 1:
            return np.full(how.result, (end - start) * (extent - 1) / 2 + start * (extent - 1))
        return y * (end - start) * (extent - 1) / (width - 1) + start * (extent - 1)
    if transform == "pytorch_half_pixel" and width == 1:
        return np.full(how.result, -0.5)
    shift = extent / 2 * (1 - how.result / width) if transform == "half_pixel_symmetric" else 0.0
    return shift + (y + 0.5) / how.scale - 0.5


def _along(call: Call, x: Node, how: Resized, transform: str, weights: Weights, exclude: bool) -> Node:
    """One axis resized: a product with a matrix, or a choice of entries where each is one of the operand's."""
    matrix = _matrix(how, _places(how, transform), weights, exclude)
    if ((matrix == 1).sum(axis=1) == 1).all() and ((matrix == 0).sum(axis=1) == how.extent - 1).all():
        return at_positions(x, matrix.argmax(axis=1).tolist(), how.axis)
    rank = call.rank()
    order = [*(i for i in range(rank) if i != how.axis), how.axis]
    dtype = call.dtype() if is_float(call.dtype()) else np.dtype(np.float64)
    if rank == 1:
        return x.matmul(call.constant(matrix.T, dtype))
    made = x.transpose(axes=order).matmul(call.constant(matrix.T, dtype))
    return made.transpose(axes=[int(i) for i in np.argsort(order)])


def _matrix(how: Resized, places: Array, weights: Weights, exclude: bool) -> Array:
    """[result, extent]: how much of each entry there is in each of the result. Beyond the ends there are the ends."""
    matrix = np.zeros((how.result, how.extent))
    for row, place in enumerate(places):
        whole = math.floor(place)
        is_whole = place == whole
        coefficients = weights(1.0 if is_whole else place - whole, how.scale)
        many = len(coefficients)
        # of a place that is whole, the window is that of the places before it
        if many % 2 == 0:
            start = whole - many // 2 + (0 if is_whole else 1)
        else:
            start = whole - (many - 1) // 2 + (1 if place - whole > 0.5 else 0)
        neighbours = start + np.arange(many)
        if exclude:
            outside = (neighbours < 0) | (neighbours >= how.extent)
            coefficients = np.where(outside, 0.0, coefficients)
            coefficients = coefficients / (coefficients.sum() or 1.0)
        np.add.at(matrix[row], neighbours.clip(0, how.extent - 1), coefficients)
    return matrix


def _weights(mode: str, nearest: str, antialias: bool, a: float) -> Weights:
    if mode == "nearest":
        return lambda ratio, scale: _nearest(ratio, nearest)
    if mode == "linear":
        return _linear_wide if antialias else lambda ratio, scale: np.asarray([1 - ratio, ratio])
    if antialias:
        return lambda ratio, scale: _cubic_wide(ratio, scale, a)
    return lambda ratio, scale: _keys(np.asarray([1 + ratio, ratio, 1 - ratio, 2 - ratio]), a)


def _nearest(ratio: float, mode: str) -> Array:
    if ratio == 1:
        second = True
    else:
        second = {
            "round_prefer_floor": ratio > 0.5,
            "round_prefer_ceil": ratio >= 0.5,
            "floor": False,
            "ceil": True,
        }[mode]
    return np.asarray([0.0, 1.0] if second else [1.0, 0.0])


def _keys(distances: Array, a: float) -> Array:
    """R. G. Keys, Cubic convolution interpolation for digital image processing (1981)."""
    x = np.abs(distances)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _linear_wide(ratio: float, scale: float) -> Array:
    """A triangle as wide as an entry of the result, where that is wider than one of the operand."""
    scale = min(scale, 1.0)
    start = math.floor(-1 / scale) + 1
    weights = np.clip(1 - np.abs((np.arange(start, 2 - start) - ratio) * scale), 0, 1)
    return np.asarray(weights / weights.sum())


def _cubic_wide(ratio: float, scale: float, a: float) -> Array:
    """Keys' curve, as wide."""
    scale = min(scale, 1.0)
    start = math.floor(-2 / scale) + 1
    weights = _keys(scale * (np.arange(start, 2 - start) - ratio), a)
    return np.asarray(weights / weights.sum())
