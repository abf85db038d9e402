"""Windows of an operand at positions, as rows of a table: the common part of `gather` and `scatter`.

XLA's `gather` reads windows (slices of any shape) that start at positions given by index tuples. The ops `embedding`,
`index_add` and `index_set` read and write whole rows. So the axes of positions and of partial windows are moved to the
front and flattened to the rows of a table, and each window becomes a set of row numbers:

    operand [4, 5, 6], positions on axes 0 and 1, windows [1, 2, 6]
    table [20, 6], rows 5 i + j and 5 i + j + 1 for each tuple (i, j)

Row numbers are computed by NumPy if the positions are constants, and else by nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.jax.call import Call
from gradserve_client.jax.families.helpers import inverse_order, transpose_axes
from gradserve_client.tensors import Array

#: integers that are constants, or computed by a node
Integers = Array | Node


@dataclass(frozen=True)
class Windows:
    """Windows of an operand that start at tuples of positions.

    `indexed` are the operand's axes that the entries of a tuple are positions on. `batch` pairs axes of the operand
    with axes of the tuples. `collapsed` are axes of extent 1 that windows lack. `extents` are those of a window, on all
    axes of the operand. `mode` is that of `mode_of`.
    """

    indexed: list[int]
    batch: list[tuple[int, int]]
    collapsed: list[int]
    extents: list[int]
    mode: str

    def covers_rest(self, shape: Sequence[int]) -> bool:
        """Return whether windows extend over all axes without positions, and there are no batch axes."""
        rest = (axis for axis in range(len(self.extents)) if axis not in self.indexed)
        return not self.batch and all(self.extents[axis] == shape[axis] for axis in rest)


@dataclass(frozen=True)
class Rows:
    """The operand as a table, and the rows of the table that windows consist of.

    `order` are the operand's axes, with the `leading` ones that identify a row first. `index` has the row numbers,
    [tuples..., extents of the window on the axes `along`...]. `fits` is whether the window of each tuple lies within
    the operand, or None if all do.
    """

    order: list[int]
    leading: int
    along: list[int]
    index: Integers
    fits: Integers | None

    def to_table(self, node: Node, shape: Sequence[int]) -> Node:
        """Convert a node of the operand's shape to the table."""
        leading = [shape[axis] for axis in self.order[: self.leading]]
        rest = [shape[axis] for axis in self.order[self.leading :]]
        rows = transpose_axes(node, self.order)
        return rows if self.leading == 1 else rows.reshape(shape=[size(leading), *rest])

    def from_table(self, table: Node, shape: Sequence[int]) -> Node:
        """Convert the table back to the operand's shape."""
        return transpose_axes(table.reshape(shape=[shape[axis] for axis in self.order]), inverse_order(self.order))


def rows_of(call: Call, windows: Windows) -> Rows:
    """Compute the table of operand 0, and the rows for the windows at the tuples of operand 1."""
    shape, tuples = call.operands[0].node_shape, [*call.shape(1)[:-1]]
    paired = dict(windows.batch)
    partial = [axis for axis in range(call.rank()) if windows.extents[axis] < shape[axis]]
    leading = sorted({*windows.indexed, *paired, *partial})
    rest = [axis for axis in range(len(shape)) if axis not in leading]
    along = [axis for axis in leading if axis not in windows.collapsed and axis not in paired]
    # a row number is the sum over leading axes of position · stride, as in row-major order
    strides = {axis: size([shape[other] for other in leading if other > axis]) for axis in leading}
    starts = [start_of(call, windows, i) for i in range(len(windows.indexed))]
    fits = [fit for _, fit in starts if fit is not None]
    terms: list[Integers] = []
    for axis in leading:
        if axis in windows.indexed:
            start = starts[windows.indexed.index(axis)][0]
            terms.append(_scale(_reshape(start, [*tuples, *[1] * len(along)]), strides[axis]))
        if axis in paired:
            terms.append(_arange_along(tuples, paired[axis], len(along)) * strides[axis])
        if axis in along and windows.extents[axis] > 1:
            along_shape = [windows.extents[axis] if other == axis else 1 for other in along]
            terms.append(np.arange(windows.extents[axis]).reshape([1] * len(tuples) + along_shape) * strides[axis])
    index_shape = [*tuples, *(windows.extents[axis] for axis in along)]
    zero: Integers = np.zeros([1] * len(index_shape), np.int64)
    index = _broadcast(reduce(_add, terms, zero), index_shape)
    return Rows([*leading, *rest], len(leading), along, index, reduce(both, fits) if fits else None)


def start_of(call: Call, windows: Windows, i: int) -> tuple[Integers, Integers | None]:
    """Return entry i of each tuple, clipped to the operand unless the mode is "promise", and whether it was in range.

    The second result is None if all are in range, or the mode is not "fill".
    """
    axis = windows.indexed[i]
    limit = call.operands[0].node_shape[axis] - windows.extents[axis]
    fills, clips = windows.mode == "fill", windows.mode in {"fill", "clip"}
    if call.is_constant(1):
        starts = call.constant_value(1)[..., i].astype(np.int64)
        fits = (starts >= 0) & (starts <= limit)
        return np.clip(starts, 0, limit) if clips else starts, fits if fills and not fits.all() else None
    node = call.node(1).select(i, axis=call.rank(1) - 1).cast("int64")
    if not clips:
        return node, None
    first, last = call.constant(0, np.int64), call.constant(limit, np.int64)
    fits_node = node.greater_equal(first).logical_and(node.less_equal(last)) if fills else None
    return node.maximum(first).minimum(last), fits_node


def _arange_along(tuples: Sequence[int], axis: int, more: int) -> Array:
    """Return 0, 1, ... along one axis of the tuples, with `more` axes behind."""
    shape = [extent if i == axis else 1 for i, extent in enumerate(tuples)]
    return np.arange(tuples[axis]).reshape(shape + [1] * more)


def _reshape(number: Integers, shape: list[int]) -> Integers:
    return number.reshape(shape=shape) if isinstance(number, Node) else number.reshape(shape)


def _broadcast(number: Integers, shape: list[int]) -> Integers:
    return number.broadcast_to(shape=shape) if isinstance(number, Node) else np.broadcast_to(number, shape)


def _scale(number: Integers, factor: int) -> Integers:
    if isinstance(number, Node):
        return number if factor == 1 else number.mul(number.graph.constant(np.asarray(factor, np.int64)))
    return number * factor


def _add(left: Integers, right: Integers) -> Integers:
    if not isinstance(left, Node) and not isinstance(right, Node):
        return left + right
    if not isinstance(left, Node) and not left.any():
        return right
    if not isinstance(right, Node) and not right.any():
        return left
    return as_node(left, right).add(as_node(right, left))


def both(left: Integers, right: Integers) -> Integers:
    """Return whether both are true."""
    if not isinstance(left, Node) and not isinstance(right, Node):
        return left & right
    return as_node(left, right).logical_and(as_node(right, left))


def as_node(number: Integers, beside: Any) -> Node:
    """Convert to a node of the graph of `beside`."""
    return number if isinstance(number, Node) else beside.graph.constant(np.array(number, order="C"))


def mode_of(call: Call) -> str:
    """Return how positions out of range are treated: "clip", "fill", or "promise" if there are none."""
    name = str(getattr(call.params["mode"], "name", call.params["mode"])).lower()
    return "fill" if "fill" in name else "clip" if "clip" in name else "promise"
