"""Resizing, one axis at a time, by products with constant matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.onnx.call import Call, RuleResult, is_float
from gradserve_client.onnx.families.helpers import as_dtype, at_positions
from gradserve_client.onnx.families.table import RULES
from gradserve_client.tensors import Array


class Resized(NamedTuple):
    """Resizing of one axis.

    `extent` is the operand's, `scale` the stated factor, `result` the new extent. `region` is the part of the axis that
    is read, in fractions, or None.
    """

    axis: int
    extent: int
    scale: float
    result: int
    region: tuple[float, float] | None


#: returns the weights of neighbouring entries, from the distance in (0, 1] between a position and the first of the
#: middle two entries, and the scale
Weights = Callable[[float, float], Array]


@RULES("Upsample", since=7)
def upsample(call: Call) -> RuleResult:
    """Resize with positions divided by the scale, and truncated or interpolated."""
    scales = call.static(1, "scales") if call.has(1) else np.asarray(call.attrs["scales"])
    mode = call.text("mode")
    coefficients = _weights("nearest", "floor", False, 0.0) if mode == "nearest" else _weights("linear", "", False, 0.0)
    x = call.node()
    for axis, extent in enumerate(call.shape()):
        spec = Resized(axis, extent, float(scales[axis]), call.result_shape()[axis], None)
        if spec.result != extent:
            x = _along(call, x, spec, "asymmetric", coefficients, False)
    return x


@RULES("Resize", since=11)
def resize(call: Call) -> RuleResult:
    """Resize each axis that changes, one after the other.

    Positions outside the image, which `tf_crop_and_resize` allows, get the extrapolation value.
    """
    transform = call.text("coordinate_transformation_mode")
    native = _as_op(call, transform)
    if native is not None:
        return native
    weights = _weights(
        call.text("mode"), call.text("nearest_mode"), bool(call.attrs.get("antialias")), call.attrs["cubic_coeff_a"]
    )
    # integers are interpolated in float64 and rounded once, as in ONNX's reference
    exact = is_float(call.dtype()) or call.text("mode") == "nearest"
    x = call.node() if exact else call.node().cast("float64")
    outside = np.zeros(call.result_shape(), np.bool_)
    for spec in _resized_axes(call):
        x = _along(call, x, spec, transform, weights, bool(call.attrs["exclude_outside"]))
        if transform == "tf_crop_and_resize":
            positions = _places(spec, transform)
            axis_shape = [-1 if axis == spec.axis else 1 for axis in range(call.rank())]
            outside |= ((positions < 0) | (positions > spec.extent - 1)).reshape(axis_shape)
    if outside.any():
        x = call.constant(outside).where(call.like(call.attrs["extrapolation_value"]), x)
    if exact:
        return x
    limits = np.iinfo(call.dtype())
    return as_dtype(x.round().clamp(min=float(limits.min), max=float(limits.max)), np.float64, call.dtype())


def _as_op(call: Call, transform: str) -> Node | None:
    """Translate to the op `resize` if it has these positions and weights and each result is scale times the extent."""
    mode, antialias = call.text("mode"), bool(call.attrs.get("antialias"))
    specs = _resized_axes(call)
    corners = transform == "align_corners" and not antialias and mode != "nearest"
    exact = all(each.scale * each.extent == each.result for each in specs) and is_float(call.dtype())
    half_pixel_modes = {"half_pixel", *(["pytorch_half_pixel"] if all(each.result > 1 for each in specs) else [])}
    if not specs or not exact or not (corners or transform in half_pixel_modes):
        return None
    if bool(call.attrs["exclude_outside"]) != antialias:
        return None
    if mode == "nearest" and call.text("nearest_mode") != "round_prefer_ceil":
        return None
    if mode == "cubic" and call.attrs["cubic_coeff_a"] != (-0.5 if antialias else -0.75):
        return None
    resized: Node = call.graph.op(
        "resize",
        call.node(),
        sizes=[each.result for each in specs],
        axes=[each.axis for each in specs],
        method=mode,
        antialias=True if antialias else None,
        corners=True if corners else None,
    )
    return resized


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
    specs = []
    for i, axis in enumerate(axes):
        region = None if regions is None else (float(regions[i]), float(regions[len(axes) + i]))
        spec = Resized(axis, shape[axis], scales[i], call.result_shape()[axis], region)
        if not (spec.result == spec.extent and math.isclose(spec.scale, 1.0) and region in {None, (0.0, 1.0)}):
            specs.append(spec)
    return specs


def _places(spec: Resized, transform: str) -> Array:
    """Return the positions in the operand of the result's entries."""
    y, extent, width = np.arange(spec.result, dtype=np.float64), spec.extent, spec.scale * spec.extent
    if transform == "align_corners":
        return np.zeros(spec.result) if width == 1 else y * (extent - 1) / (width - 1)
    if transform == "asymmetric":
        return y / spec.scale
    if transform == "tf_crop_and_resize":
        start, end = spec.region or (0.0, 1.0)
        if width == 1:
            return np.full(spec.result, (end - start) * (extent - 1) / 2 + start * (extent - 1))
        return y * (end - start) * (extent - 1) / (width - 1) + start * (extent - 1)
    if transform == "pytorch_half_pixel" and width == 1:
        return np.full(spec.result, -0.5)
    shift = extent / 2 * (1 - spec.result / width) if transform == "half_pixel_symmetric" else 0.0
    return shift + (y + 0.5) / spec.scale - 0.5


def _along(call: Call, x: Node, spec: Resized, transform: str, weights: Weights, exclude: bool) -> Node:
    """Resize one axis by a matrix product, or by a gather if each result is an entry of the operand."""
    matrix = _matrix(spec, _places(spec, transform), weights, exclude)
    if ((matrix == 1).sum(axis=1) == 1).all() and ((matrix == 0).sum(axis=1) == spec.extent - 1).all():
        return at_positions(x, matrix.argmax(axis=1).tolist(), spec.axis)
    rank = call.rank()
    order = [*(i for i in range(rank) if i != spec.axis), spec.axis]
    dtype = call.dtype() if is_float(call.dtype()) else np.dtype(np.float64)
    if rank == 1:
        return x.matmul(call.constant(matrix.T, dtype))
    product = x.transpose(axes=order).matmul(call.constant(matrix.T, dtype))
    return product.transpose(axes=[int(i) for i in np.argsort(order)])


def _matrix(spec: Resized, positions: Array, weights: Weights, exclude: bool) -> Array:
    """Return [result, extent]: the weight of each entry in each result. Beyond the ends the end entries repeat."""
    matrix = np.zeros((spec.result, spec.extent))
    for row, position in enumerate(positions):
        floor = math.floor(position)
        is_integral = position == floor
        coefficients = weights(1.0 if is_integral else position - floor, spec.scale)
        count = len(coefficients)
        # an integral position uses the window of the positions just before it, at distance 1
        if count % 2 == 0:
            start = floor - count // 2 + (0 if is_integral else 1)
        else:
            start = floor - (count - 1) // 2 + (1 if position - floor > 0.5 else 0)
        neighbours = start + np.arange(count)
        if exclude:
            outside = (neighbours < 0) | (neighbours >= spec.extent)
            coefficients = np.where(outside, 0.0, coefficients)
            coefficients = coefficients / (coefficients.sum() or 1.0)
        np.add.at(matrix[row], neighbours.clip(0, spec.extent - 1), coefficients)
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
    """Compute the kernel of R. G. Keys, Cubic convolution interpolation for digital image processing (1981)."""
    x = np.abs(distances)
    inner = (a + 2) * x**3 - (a + 3) * x**2 + 1
    outer = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0.0))


def _linear_wide(ratio: float, scale: float) -> Array:
    """Return triangle weights for antialiasing: as wide as a result entry, but at least as wide as an operand entry."""
    scale = min(scale, 1.0)
    start = math.floor(-1 / scale) + 1
    weights = np.clip(1 - np.abs((np.arange(start, 2 - start) - ratio) * scale), 0, 1)
    return np.asarray(weights / weights.sum())


def _cubic_wide(ratio: float, scale: float, a: float) -> Array:
    """Return the weights of Keys' kernel, widened in the same way."""
    scale = min(scale, 1.0)
    start = math.floor(-2 / scale) + 1
    weights = _keys(scale * (np.arange(start, 2 - start) - ratio), a)
    return np.asarray(weights / weights.sum())
