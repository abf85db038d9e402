"""Sampling of images at fractional positions: `grid_sample`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Results, require
from gradserve_client.torch.families.table import RULES

_ZEROS, _BORDER = 0, 1


@dataclass(frozen=True)
class _Axis:
    """Positions on a spatial axis, [n, 1, positions], and its extent."""

    call: Call
    positions: Node
    extent: int

    def number(self, value: float) -> Node:
        """Add a constant of the positions' dtype."""
        return self.call.constant(value, self.call.dtype("grid"))

    def clipped(self) -> _Axis:
        """Clip positions to the image. Their gradient is 0 at the border and beyond, as in PyTorch."""
        low, high = self.number(0), self.number(self.extent - 1)
        inner = self.positions.greater_equal(high).where(high, self.positions)
        return _Axis(self.call, self.positions.less_equal(low).where(low, inner), self.extent)

    def reflected(self, corners: bool) -> _Axis:
        """Reflect positions at the centres of the outermost pixels, or at their outer edges, into the image."""
        least, span = (0.0, self.extent - 1) if corners else (-0.5, self.extent)
        if span == 0:
            return _Axis(self.call, self.positions.mul_scalar(0.0), self.extent)
        distance = self.positions.sub_scalar(least).abs()
        rest = distance.mod(self.number(span))
        flips = (
            distance.sub(rest).div_scalar(float(span)).round().mod(self.number(2)).equal(self.number(1)).stop_gradient()
        )
        reflected = flips.where(rest.neg().add_scalar(least + span), rest.add_scalar(least))
        return _Axis(self.call, reflected, self.extent)

    def inside(self, index: Node) -> Node:
        """Return whether an integral position lies in the image."""
        return index.greater_equal(self.number(0)).logical_and(index.less_equal(self.number(self.extent - 1)))


@RULES("grid_sampler_2d")
def grid_sampler(call: Call) -> Results:
    """Sample bilinearly or at the nearest position. Outside the image, read zeros, the border or the reflection."""
    mode, padding, corners = (call[name] for name in ("interpolation_mode", "padding_mode", "align_corners"))
    require(mode in (0, 1), "it uses cubic interpolation", "use bilinear interpolation")
    batch, channels, height, width = call.shape("input")
    _, *grid_shape, _ = call.shape("grid")
    axes = []
    # the grid has x before y
    for component, extent in ((1, height), (0, width)):
        unit = call.node("grid").select(component, axis=3).reshape(shape=[batch, 1, -1])
        scaled = unit.add_scalar(1.0)
        positions = (
            scaled.mul_scalar((extent - 1) / 2) if corners else scaled.mul_scalar(extent).sub_scalar(1.0).div_scalar(2)
        )
        axis = _Axis(call, positions, extent)
        axis = axis if padding in (_ZEROS, _BORDER) else axis.reflected(bool(corners))
        axes.append(axis if padding == _ZEROS else axis.clipped())
    flat = call.node("input").reshape(shape=[batch, channels, height * width])
    sampled = _nearest(flat, axes) if mode == 1 else _bilinear(flat, axes)
    return sampled.reshape(shape=[batch, channels, *grid_shape])


def _nearest(image: Node, axes: list[_Axis]) -> Node:
    return _read(image, axes, [axis.positions.round().stop_gradient() for axis in axes])


def _bilinear(image: Node, axes: list[_Axis]) -> Node:
    floor_positions = [axis.positions.floor().stop_gradient() for axis in axes]
    fraction = [axis.positions.sub(first) for axis, first in zip(axes, floor_positions, strict=True)]
    total = None
    for corner in itertools.product((0, 1), repeat=2):
        index = [first.add_scalar(float(c)) if c else first for first, c in zip(floor_positions, corner, strict=True)]
        weights = [part if c else part.neg().add_scalar(1.0) for part, c in zip(fraction, corner, strict=True)]
        part = _read(image, axes, index).mul(weights[0].mul(weights[1]))
        total = part if total is None else total.add(part)
    assert total is not None
    return total


def _read(image: Node, axes: list[_Axis], index: list[Node]) -> Node:
    """Read the pixels at integral positions, [n, channels, positions], and 0 outside the image."""
    is_inside = axes[0].inside(index[0]).logical_and(axes[1].inside(index[1]))
    flat = index[0].mul_scalar(float(axes[1].extent)).add(index[1])
    positions = is_inside.where(flat, axes[0].number(0)).cast("int64")
    pixels = image.take_along(positions, axis=2)
    return is_inside.where(pixels, axes[0].number(0))
