"""Sums and extremes of windows, and the gradient of a windowed maximum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.pooling import append_pool
from gradserve_client.importing.writing import highest, lowest, pad_or_crop, size
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.helpers import gapped_shape, insert_gaps, inverse_order, transpose_axes
from gradserve_client.jax.families.table import RULES


@dataclass(frozen=True)
class _Windows:
    """Window parameters for each axis of the operand: extents, strides, dilation, padding, gaps in the operand."""

    extents: list[int]
    strides: list[int]
    dilation: list[int]
    before: list[int]
    after: list[int]
    interior: list[int]

    @classmethod
    def of(cls, call: Call) -> _Windows:
        rank = len(call.params["window_dimensions"])
        padding = call.params["padding"]
        ones = (1,) * rank
        return cls(
            [int(each) for each in call.params["window_dimensions"]],
            [int(each) for each in call.params["window_strides"]],
            [int(each) for each in call.params.get("window_dilation", ones)],
            [int(pair[0]) for pair in padding],
            [int(pair[1]) for pair in padding],
            [int(each) - 1 for each in call.params.get("base_dilation", ones)],
        )

    @property
    def axes(self) -> list[int]:
        """The axes along which a window has more than one element or moves by more than one."""
        return [
            i
            for i, (extent, stride) in enumerate(zip(self.extents, self.strides, strict=True))
            if extent > 1 or stride > 1
        ]


def _pad_operand(call: Call, windows: _Windows, i: int, fill: float) -> tuple[Node, list[int]]:
    """Return operand i with padding and gaps filled with `fill`, and its new shape."""
    node, shape = call.node(i), [*call.shape(i)]
    if any(windows.interior):
        is_element = insert_gaps(call.constant(np.ones(shape)), shape, windows.interior).greater(call.constant(0.0))
        node = is_element.where(insert_gaps(node, shape, windows.interior), call.like(fill, i))
        shape = gapped_shape(shape, windows.interior)
    node = pad_or_crop(node, shape, windows.before, windows.after, fill)
    return node, [n + b + a for n, b, a in zip(shape, windows.before, windows.after, strict=True)]


def _taps(call: Call, node: Node, windows: _Windows, result_shape: Sequence[int]) -> Node:
    """Return the elements that each tap of the windows reads, [taps, result...]."""
    slices = []
    for tap in np.ndindex(*windows.extents):
        first = [i * d for i, d in zip(tap, windows.dilation, strict=True)]
        last = [f + (n - 1) * s + 1 for f, n, s in zip(first, result_shape, windows.strides, strict=True)]
        slices.append(node.slice(starts=first, stops=last, steps=windows.strides))
    return call.graph.stack(*slices, axis=0)


@RULES("reduce_window_sum")
def reduce_window_sum(call: Call) -> Results:
    """A convolution with ones, or a `sum` of one slice per tap for integers and more than three axes."""
    windows = _Windows.of(call)
    if not call.is_float() or not 1 <= len(windows.axes) <= 3:
        node, _ = _pad_operand(call, windows, 0, 0)
        return call.cast(_taps(call, node, windows, call.results[0].shape).sum(axes=[0]), _sum_dtype(call))
    node, shape = _pad_operand(call, windows, 0, 0)
    rest = [axis for axis in range(call.rank()) if axis not in windows.axes]
    order = [*rest, *windows.axes]
    extents = [shape[axis] for axis in windows.axes]
    planes = transpose_axes(node, order).reshape(shape=[size([shape[axis] for axis in rest]), 1, *extents])
    ones = call.constant(np.ones((1, 1, *(windows.extents[axis] for axis in windows.axes))), call.dtype())
    summed = call.graph.op(
        f"conv{len(windows.axes)}d",
        planes,
        ones,
        stride=[windows.strides[axis] for axis in windows.axes],
        dilation=[windows.dilation[axis] for axis in windows.axes],
    )
    result = call.results[0].shape
    return transpose_axes(summed.reshape(shape=[result[axis] for axis in order]), inverse_order(order))


def _sum_dtype(call: Call) -> object:
    return call.dtype() if call.is_float() else np.dtype(np.int64)


def _extreme(call: Call, greatest: bool) -> Results:
    windows = _Windows.of(call)
    identity = lowest(call.dtype()) if greatest else highest(call.dtype())
    node, _ = _pad_operand(call, windows, 0, identity)
    if call.is_float() and len(windows.axes) <= 3:
        return _max_pool(call, node, windows) if greatest else _max_pool(call, node.neg(), windows).neg()
    taps = _taps(call, node, windows, call.results[0].shape)
    first = taps.argmax(0, keepdims=True) if greatest else taps.argmin(0, keepdims=True)
    return taps.take_along(first, axis=0).squeeze(axes=[0])


def _window_axes_last(windows: _Windows, rank: int, count: int) -> list[int]:
    """Return an order of axes whose last `count` ones include those of the windows."""
    axes = windows.axes
    for axis in reversed(range(rank)):
        if len(axes) < count and axis not in axes:
            axes = sorted([axis, *axes])
    return [*(axis for axis in range(rank) if axis not in axes), *axes]


def _max_pool(call: Call, node: Node, windows: _Windows) -> Node:
    """Write `max_pool` over the axes that the windows extend along."""
    if not windows.axes:
        return node
    order = _window_axes_last(windows, call.rank(), len(windows.axes))
    extents, strides, dilation = (
        [values[axis] for axis in windows.axes] for values in (windows.extents, windows.strides, windows.dilation)
    )
    maxima = append_pool("max_pool", transpose_axes(node, order), extents, strides, [0] * len(extents), dilation)
    return transpose_axes(maxima, inverse_order(order))


@RULES("reduce_window_max")
def reduce_window_max(call: Call) -> Results:
    """`max_pool` over one to three axes, else `argmax` of one slice per tap. Of equal elements, the first counts."""
    return _extreme(call, greatest=True)


@RULES("reduce_window_min")
def reduce_window_min(call: Call) -> Results:
    """`max_pool` of the negative, or `argmin` of one slice per tap."""
    return _extreme(call, greatest=False)


@RULES("select_and_scatter_add")
def select_and_scatter_add(call: Call) -> Results:
    """`max_pool2d_back`, over up to two axes: JAX writes the gradient of a windowed maximum like this."""
    windows = _Windows.of(call)
    greatest = call.params["select_prim"].name == "ge"
    if len(windows.axes) > 2 or not call.is_float() or call.rank() < 2:
        raise Blocked(f"its windows span {len(windows.axes)} axes of {call.rank()}, but only two are supported")
    node, shape = _pad_operand(call, windows, 1, lowest(call.dtype()) if greatest else highest(call.dtype()))
    order = _window_axes_last(windows, call.rank(), 2)
    x = transpose_axes(node if greatest else node.neg(), order)
    padded_back = transpose_axes(call.node(0), order).max_pool2d_back(
        x, [windows.extents[axis] for axis in order[-2:]], stride=[windows.strides[axis] for axis in order[-2:]]
    )
    padded_gradient = transpose_axes(padded_back, inverse_order(order))
    stops = [n - a for n, a in zip(shape, windows.after, strict=True)]
    return (
        padded_gradient.slice(starts=windows.before, stops=stops)
        if any((*windows.before, *windows.after))
        else padded_gradient
    )
