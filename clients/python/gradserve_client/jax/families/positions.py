"""Where windows of an operand begin, as rows of a table: what reading and writing at positions have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.jax.call import Call
from gradserve_client.jax.families.helpers import inverse, transposed
from gradserve_client.tensors import Array

#: a number that the function decides, or a node
Number = Array | Node


@dataclass(frozen=True)
class Windows:
    """Windows of an operand, each where a tuple of positions says.

    `told` are the axes that a tuple has positions of, in its order; `batch` those of the operand and of the tuples that
    go together; `inserted` those of extent 1 that windows lack; `extents` of windows, on all axes of the operand.
    """

    told: list[int]
    batch: list[tuple[int, int]]
    inserted: list[int]
    extents: list[int]
    mode: str

    def whole(self, shape: Sequence[int]) -> bool:
        """Whether windows have all of the axes that tuples have no positions of, and no axes go together."""
        rest = (axis for axis in range(len(self.extents)) if axis not in self.told)
        return not self.batch and all(self.extents[axis] == shape[axis] for axis in rest)


@dataclass(frozen=True)
class Rows:
    """The operand as a table, and for each row of windows its row there.

    `order` are the operand's axes, of which the first `leading` tell a row. `index` is [tuples…, windows…] over the
    axes `along` of these; `fits` says for each tuple whether its window lies within the operand, None where all do.
    """

    order: list[int]
    leading: int
    along: list[int]
    index: Number
    fits: Number | None

    def table(self, node: Node, shape: Sequence[int]) -> Node:
        """The operand's rows."""
        leading = [shape[axis] for axis in self.order[: self.leading]]
        rest = [shape[axis] for axis in self.order[self.leading :]]
        rows = transposed(node, self.order)
        return rows if self.leading == 1 else rows.reshape(shape=[size(leading), *rest])

    def untabled(self, table: Node, shape: Sequence[int]) -> Node:
        """The operand of its rows."""
        return transposed(table.reshape(shape=[shape[axis] for axis in self.order]), inverse(self.order))


def rows_of(call: Call, at: Windows) -> Rows:
    """Operand 0 as a table, and the rows that the tuples of operand 1 tell."""
    shape, tuples = call.operands[0].node_shape, [*call.shape(1)[:-1]]
    paired = dict(at.batch)
    partial = [axis for axis in range(call.rank()) if at.extents[axis] < shape[axis]]
    leading = sorted({*at.told, *paired, *partial})
    rest = [axis for axis in range(len(shape)) if axis not in leading]
    along = [axis for axis in leading if axis not in at.inserted and axis not in paired]
    strides = {axis: size([shape[other] for other in leading if other > axis]) for axis in leading}
    starts = [start_of(call, at, i) for i in range(len(at.told))]
    fits = [fit for _, fit in starts if fit is not None]
    terms: list[Number] = []
    for axis in leading:
        if axis in at.told:
            start = starts[at.told.index(axis)][0]
            terms.append(_times(_reshaped(start, [*tuples, *[1] * len(along)]), strides[axis]))
        if axis in paired:
            terms.append(_counted(tuples, paired[axis], len(along)) * strides[axis])
        if axis in along and at.extents[axis] > 1:
            spread = [at.extents[axis] if other == axis else 1 for other in along]
            terms.append(np.arange(at.extents[axis]).reshape([1] * len(tuples) + spread) * strides[axis])
    whole = [*tuples, *(at.extents[axis] for axis in along)]
    nothing: Number = np.zeros([1] * len(whole), np.int64)
    index = _shaped(reduce(_plus, terms, nothing), whole)
    return Rows([*leading, *rest], len(leading), along, index, reduce(both, fits) if fits else None)


def start_of(call: Call, at: Windows, i: int) -> tuple[Number, Number | None]:
    """Position i of each tuple, within the operand where the mode says so, and whether it is, where that is asked."""
    axis = at.told[i]
    limit = call.operands[0].node_shape[axis] - at.extents[axis]
    asks, clips = at.mode == "fill", at.mode in {"fill", "clip"}
    if call.is_constant(1):
        found = call.known(1)[..., i].astype(np.int64)
        fits = (found >= 0) & (found <= limit)
        return np.clip(found, 0, limit) if clips else found, fits if asks and not fits.all() else None
    node = call.node(1).select(i, axis=call.rank(1) - 1).cast("int64")
    if not clips:
        return node, None
    zero, last = call.constant(0, np.int64), call.constant(limit, np.int64)
    fits_node = node.greater_equal(zero).logical_and(node.less_equal(last)) if asks else None
    return node.maximum(zero).minimum(last), fits_node


def _counted(tuples: Sequence[int], place: int, more: int) -> Array:
    """0, 1, … along one axis of the tuples."""
    shape = [extent if i == place else 1 for i, extent in enumerate(tuples)]
    return np.arange(tuples[place]).reshape(shape + [1] * more)


def _reshaped(number: Number, shape: list[int]) -> Number:
    return number.reshape(shape=shape) if isinstance(number, Node) else number.reshape(shape)


def _shaped(number: Number, shape: list[int]) -> Number:
    return number.broadcast_to(shape=shape) if isinstance(number, Node) else np.broadcast_to(number, shape)


def _times(number: Number, factor: int) -> Number:
    if isinstance(number, Node):
        return number if factor == 1 else number.mul(number.graph.constant(np.asarray(factor, np.int64)))
    return number * factor


def _plus(one: Number, other: Number) -> Number:
    if not isinstance(one, Node) and not isinstance(other, Node):
        return one + other
    if not isinstance(one, Node) and not one.any():
        return other
    if not isinstance(other, Node) and not other.any():
        return one
    return as_node(one, other).add(as_node(other, one))


def both(one: Number, other: Number) -> Number:
    """Whether both hold."""
    if not isinstance(one, Node) and not isinstance(other, Node):
        return one & other
    return as_node(one, other).logical_and(as_node(other, one))


def as_node(number: Number, beside: Any) -> Node:
    """A number as a node of the graph that another is of."""
    return number if isinstance(number, Node) else beside.graph.constant(np.array(number, order="C"))


def mode_of(call: Call) -> str:
    """What becomes of positions beyond the operand: "clip", "fill", or "promise", that there are none."""
    name = str(getattr(call.params["mode"], "name", call.params["mode"])).lower()
    return "fill" if "fill" in name else "clip" if "clip" in name else "promise"
