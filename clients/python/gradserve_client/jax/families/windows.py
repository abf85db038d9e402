"""Sums and extremes of windows, and the way back from these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.pooling import pooled
from gradserve_client.importing.writing import bordered, highest, lowest, size
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.helpers import inverse, spread, spread_extents, transposed
from gradserve_client.jax.families.table import RULES


@dataclass(frozen=True)
class _Windows:
    """For each axis of the operand: extents of windows, their distance, that of their taps, and what is around."""

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
        """The axes that more than one element of is read along, or that are not read everywhere."""
        return [
            i
            for i, (extent, stride) in enumerate(zip(self.extents, self.strides, strict=True))
            if extent > 1 or stride > 1
        ]


def _around(call: Call, at: _Windows, i: int, fill: float) -> tuple[Node, list[int]]:
    """Operand i with what is around it and between its elements, and the shape of that."""
    node, shape = call.node(i), [*call.shape(i)]
    if any(at.interior):
        inside = spread(call.constant(np.ones(shape)), shape, at.interior).greater(call.constant(0.0))
        node = inside.where(spread(node, shape, at.interior), call.like(fill, i))
        shape = spread_extents(shape, at.interior)
    node = bordered(node, shape, at.before, at.after, fill)
    return node, [n + b + a for n, b, a in zip(shape, at.before, at.after, strict=True)]


def _taps(call: Call, node: Node, at: _Windows, counts: Sequence[int]) -> Node:
    """[taps, result…]: what each tap of the windows reads."""
    read = []
    for tap in np.ndindex(*at.extents):
        first = [i * d for i, d in zip(tap, at.dilation, strict=True)]
        last = [f + (n - 1) * s + 1 for f, n, s in zip(first, counts, at.strides, strict=True)]
        read.append(node.slice(starts=first, stops=last, steps=at.strides))
    return call.graph.stack(*read, axis=0)


@RULES("reduce_window_sum")
def reduce_window_sum(call: Call) -> Said:
    """A convolution with ones over the axes that windows extend along, or a sum of what each tap reads."""
    at = _Windows.of(call)
    if not call.is_float() or not 1 <= len(at.axes) <= 3:
        node, _ = _around(call, at, 0, 0)
        return call.cast(_taps(call, node, at, call.results[0].shape).sum(axes=[0]), _summed(call))
    node, shape = _around(call, at, 0, 0)
    rest = [axis for axis in range(call.rank()) if axis not in at.axes]
    order = [*rest, *at.axes]
    extents = [shape[axis] for axis in at.axes]
    planes = transposed(node, order).reshape(shape=[size([shape[axis] for axis in rest]), 1, *extents])
    ones = call.constant(np.ones((1, 1, *(at.extents[axis] for axis in at.axes))), call.dtype())
    summed = call.graph.op(
        f"conv{len(at.axes)}d",
        planes,
        ones,
        stride=[at.strides[axis] for axis in at.axes],
        dilation=[at.dilation[axis] for axis in at.axes],
    )
    result = call.results[0].shape
    return transposed(summed.reshape(shape=[result[axis] for axis in order]), inverse(order))


def _summed(call: Call) -> object:
    return call.dtype() if call.is_float() else np.dtype(np.int64)


def _extreme(call: Call, greatest: bool) -> Said:
    at = _Windows.of(call)
    nothing = lowest(call.dtype()) if greatest else highest(call.dtype())
    node, _ = _around(call, at, 0, nothing)
    if call.is_float() and len(at.axes) <= 3:
        return _pooled(call, node, at) if greatest else _pooled(call, node.neg(), at).neg()
    taps = _taps(call, node, at, call.results[0].shape)
    first = taps.argmax(0, keepdims=True) if greatest else taps.argmin(0, keepdims=True)
    return taps.take_along(first, axis=0).squeeze(axes=[0])


def _last(at: _Windows, rank: int, count: int) -> list[int]:
    """An order in which the axes of the windows are among the last, of so many."""
    axes = at.axes
    for axis in reversed(range(rank)):
        if len(axes) < count and axis not in axes:
            axes = sorted([axis, *axes])
    return [*(axis for axis in range(rank) if axis not in axes), *axes]


def _pooled(call: Call, node: Node, at: _Windows) -> Node:
    """By the op over as many axes as windows extend along."""
    if not at.axes:
        return node
    order = _last(at, call.rank(), len(at.axes))
    extents, strides, dilation = ([of[axis] for axis in at.axes] for of in (at.extents, at.strides, at.dilation))
    made = pooled("max_pool", transposed(node, order), extents, strides, [0] * len(extents), dilation)
    return transposed(made, inverse(order))


@RULES("reduce_window_max")
def reduce_window_max(call: Call) -> Said:
    """`max_pool` over one to three axes; over more, by `argmax` of what taps read: the first of equal ones."""
    return _extreme(call, greatest=True)


@RULES("reduce_window_min")
def reduce_window_min(call: Call) -> Said:
    """`max_pool` of the negative, or `argmin` of what each tap reads."""
    return _extreme(call, greatest=False)


@RULES("select_and_scatter_add")
def select_and_scatter_add(call: Call) -> Said:
    """`max_pool2d_back`, over two axes at most: what the gradient of a maximum within the function is."""
    at = _Windows.of(call)
    greatest = call.params["select_prim"].name == "ge"
    if len(at.axes) > 2 or not call.is_float() or call.rank() < 2:
        raise Blocked(f"its windows are over {len(at.axes)} axes of {call.rank()}, where two are possible")
    node, shape = _around(call, at, 1, lowest(call.dtype()) if greatest else highest(call.dtype()))
    order = _last(at, call.rank(), 2)
    x = transposed(node if greatest else node.neg(), order)
    back = transposed(call.node(0), order).max_pool2d_back(
        x, [at.extents[axis] for axis in order[-2:]], stride=[at.strides[axis] for axis in order[-2:]]
    )
    whole = transposed(back, inverse(order))
    stops = [n - a for n, a in zip(shape, at.after, strict=True)]
    return whole.slice(starts=at.before, stops=stops) if any((*at.before, *at.after)) else whole
