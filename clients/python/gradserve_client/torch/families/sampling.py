"""Reading images between their positions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from gradserve_client.graph import Node
from gradserve_client.torch.call import Call, Said, blocked_unless
from gradserve_client.torch.families.table import RULES

_ZEROS, _BORDER = 0, 1


@dataclass(frozen=True)
class _Axis:
    """Positions on a spatial axis, [n, 1, places], and its extent."""

    call: Call
    at: Node
    extent: int

    def number(self, value: float) -> Node:
        """A constant of the positions' dtype."""
        return self.call.constant(value, self.call.dtype("grid"))

    def clipped(self) -> _Axis:
        """Within the image; the gradient stops where they reach the border."""
        low, high = self.number(0), self.number(self.extent - 1)
        inner = self.at.greater_equal(high).where(high, self.at)
        return _Axis(self.call, self.at.less_equal(low).where(low, inner), self.extent)

    def reflected(self, corners: bool) -> _Axis:
        """Mirrored at the centres of the outermost pixels, or at their outer edges, until within."""
        least, span = (0.0, self.extent - 1) if corners else (-0.5, self.extent)
        if span == 0:
            return _Axis(self.call, self.at.mul_scalar(0.0), self.extent)
        far = self.at.sub_scalar(least).abs()
        rest = far.mod(self.number(span))
        flips = far.sub(rest).div_scalar(float(span)).round().mod(self.number(2)).equal(self.number(1)).stop_gradient()
        turned = flips.where(rest.neg().add_scalar(least + span), rest.add_scalar(least))
        return _Axis(self.call, turned, self.extent)

    def inside(self, index: Node) -> Node:
        """Whether a whole position is one of the image."""
        return index.greater_equal(self.number(0)).logical_and(index.less_equal(self.number(self.extent - 1)))


@RULES("grid_sampler_2d")
def grid_sampler(call: Call) -> Said:
    """Bilinear, or at the nearest position; beyond the image zeros, its border, or its reflection."""
    mode, padding, corners = (call[name] for name in ("interpolation_mode", "padding_mode", "align_corners"))
    blocked_unless(mode in (0, 1), "it interpolates by cubic curves", "interpolate bilinearly")
    batch, channels, height, width = call.shape("input")
    _, *out, _ = call.shape("grid")
    axes = []
    # the grid says x before y
    for part, extent in ((1, height), (0, width)):
        unit = call.node("grid").select(part, axis=3).reshape(shape=[batch, 1, -1])
        scaled = unit.add_scalar(1.0)
        at = scaled.mul_scalar((extent - 1) / 2) if corners else scaled.mul_scalar(extent).sub_scalar(1.0).div_scalar(2)
        axis = _Axis(call, at, extent)
        axis = axis if padding in (_ZEROS, _BORDER) else axis.reflected(bool(corners))
        axes.append(axis if padding == _ZEROS else axis.clipped())
    flat = call.node("input").reshape(shape=[batch, channels, height * width])
    read = _nearest(flat, axes) if mode == 1 else _bilinear(flat, axes)
    return read.reshape(shape=[batch, channels, *out])


def _nearest(image: Node, axes: list[_Axis]) -> Node:
    return _read(image, axes, [axis.at.round().stop_gradient() for axis in axes])


def _bilinear(image: Node, axes: list[_Axis]) -> Node:
    low = [axis.at.floor().stop_gradient() for axis in axes]
    rest = [axis.at.sub(first) for axis, first in zip(axes, low, strict=True)]
    total = None
    for corner in itertools.product((0, 1), repeat=2):
        index = [first.add_scalar(float(c)) if c else first for first, c in zip(low, corner, strict=True)]
        weights = [part if c else part.neg().add_scalar(1.0) for part, c in zip(rest, corner, strict=True)]
        part = _read(image, axes, index).mul(weights[0].mul(weights[1]))
        total = part if total is None else total.add(part)
    assert total is not None
    return total


def _read(image: Node, axes: list[_Axis], index: list[Node]) -> Node:
    """[n, channels, places]: the pixels at whole positions, 0 beyond the image."""
    there = axes[0].inside(index[0]).logical_and(axes[1].inside(index[1]))
    flat = index[0].mul_scalar(float(axes[1].extent)).add(index[1])
    at = there.where(flat, axes[0].number(0)).cast("int64")
    read = image.take_along(at, axis=2)
    return there.where(read, axes[0].number(0))
