"""Several index tensors as one: places on the axes that they are of, counted as one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.errors import BadAttribute, OperandCount, ShapeMismatch, counted
from engine.graph.ir import Value
from engine.graph.tensor_type import Shape, TensorType, normalise_axes, show_shape
from engine.oplib.from_end import within_extent
from engine.oplib.indices import column_of, require_integer
from engine.oplib.permutation import permute, unpermute

INDEXED_AXES: Final = Attr("ints", None, "the axis that each index is of; absent: the first ones, in their order")


def axes_of(axes: Sequence[int] | None, count: int, x: TensorType) -> tuple[int, ...]:
    """The axis of each of `count` indices, counted from the front. Raises BadAttribute, OperandCount."""
    if axes is None:
        if count > x.ndim:
            got = counted(count, "index", "indices")
            wanted = f"at most {counted(x.ndim, 'index', 'indices')}, one an axis of x"
            raise OperandCount(f"takes {wanted}, but got {got}", expected=wanted, got=got)
        return tuple(range(count))
    if len(axes) != count:
        wanted, got = f"{counted(count, 'entry', 'entries')}, one an index", counted(len(axes), "entry", "entries")
        raise BadAttribute(f"attribute axes must have {wanted}, but has {got}", expected=wanted, got=got)
    return tuple(normalise_axes(axes, x.ndim))


def common_shape(indices: Sequence[TensorType]) -> Shape:
    """What the indices, which are operands from 1 on, broadcast to. Raises DtypeMismatch, ShapeMismatch."""
    shape: Shape = ()
    for i, index in enumerate(indices, 1):
        require_integer(index, i, "indices")
        try:
            shape = tuple(np.broadcast_shapes(shape, index.shape))
        except ValueError:
            wanted, got = f"a shape that broadcasts with {show_shape(shape)}", show_shape(index.shape)
            raise ShapeMismatch(
                f"operand {i} (indices) must have {wanted}, as those before it, but has {got}",
                operand=i,
                expected=wanted,
                got=got,
            ) from None
    return shape


@dataclass(frozen=True)
class IndexedAxes:
    """Places in x of indices of the shape `index`: axes in an order in which theirs lie side by side.

    As NumPy has it, they stay where they are if they lie side by side, in whatever order; else they come first.
    """

    shape: Shape
    axes: tuple[int, ...]
    index: Shape

    @property
    def order(self) -> tuple[int, ...]:
        """The axes of x, those that are indexed side by side, in the indices' order."""
        others = [i for i in range(len(self.shape)) if i not in self.axes]
        return (*others[: self.before], *self.axes, *others[self.before :])

    @property
    def before(self) -> int:
        """How many axes are in front of these."""
        first, last = min(self.axes), max(self.axes)
        return first if last - first + 1 == len(self.axes) else 0

    @property
    def places(self) -> int:
        """How many places the indices tell apart."""
        return math.prod(self.shape[a] for a in self.axes)

    @property
    def outer(self) -> tuple[Shape, Shape]:
        """The extents in front of the indexed axes, and behind them."""
        moved = [self.shape[i] for i in self.order]
        return tuple(moved[: self.before]), tuple(moved[self.before + len(self.axes) :])

    @property
    def result(self) -> Shape:
        """The shape of what is read."""
        before, behind = self.outer
        return (*before, *self.index, *behind)

    def joined(self, x: Value) -> Value:
        """x with its indexed axes as one, behind `before` others."""
        before, behind = self.outer
        return permute(x, self.order).reshape(shape=(*before, self.places, *behind))

    def parted(self, x: Value) -> Value:
        """What `joined` made x from."""
        moved = tuple(self.shape[i] for i in self.order)
        return unpermute(x.reshape(shape=moved), self.order)

    def flat(self, indices: Sequence[Value], from_end: bool) -> Value:
        """The place that each entry is of, int64 [entries]."""
        place: Value | None = None
        for i, (axis, index) in enumerate(zip(self.axes, indices, strict=True), 1):
            own = within_extent(index, self.shape[axis], i, from_end)
            wide = own if own.shape == self.index else own.broadcast_to(shape=self.index)
            if place is not None:
                wide = place.mul(self.shape[axis]) + wide
            place = wide
        assert place is not None
        return place.reshape(shape=(math.prod(self.index),))

    def entries(self, updates: Value) -> Value:
        """Updates, of the shape of what is read, with the axes of the indices as one."""
        before, behind = self.outer
        return updates.reshape(shape=(*before, math.prod(self.index), *behind))

    def spread(self, flat: Value) -> Value:
        """The places as an index of whole slices."""
        before, behind = self.outer
        shape = (*before, flat.shape[0], *behind)
        return flat.reshape(shape=column_of(len(shape), self.before, flat.shape[0])).broadcast_to(shape=shape)
