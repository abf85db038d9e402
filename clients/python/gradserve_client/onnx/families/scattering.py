"""Writes at positions held in tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.helpers import everywhere
from gradserve_client.onnx.families.indexing import tuples_of
from gradserve_client.onnx.families.table import RULES


@RULES("ScatterElements", "Scatter", since=9)
def scatter_elements(call: Call) -> RuleResult:
    """Write elements at positions along the axis."""
    return _written(call, everywhere(call, call.node(1), call.shape(1), call.axis(call.rank())))


@RULES("ScatterND", since=11)
def scatter_nd(call: Call) -> RuleResult:
    """Write slices at tuples of positions."""
    return _written(call, tuples_of(call, 1))


def _written(call: Call, indices: Sequence[Node]) -> Node:
    """Return the operand with the updates written, or combined with the elements there.

    ONNX leaves open which of several updates to one position wins.
    """
    reduction = call.attrs.get("reduction", b"none").decode()
    if call.dtype().kind == "b" and reduction != "none":
        raise Blocked(f"it reduces bools with {reduction!r}")
    if reduction not in ("none", "add"):
        return _reduced(call, indices, reduction)
    write = call.graph.index_set if reduction == "none" else call.graph.index_add
    return write(call.node(), *indices, call.node(2), from_end=True)


#: reductions: the op over the updates of each row, and the op that combines the result with the row
_REDUCED: Final = {"mul": ("segment_prod", "mul"), "max": ("segment_max", "maximum"), "min": ("segment_min", "minimum")}


def _reduced(call: Call, indices: Sequence[Node], reduction: str) -> Node:
    """Combine rows with the product or extreme of their updates, since positions may repeat."""
    indexed_extents, row_shape = call.shape()[: len(indices)], call.shape()[len(indices) :]
    flat = call.constant(0, np.int64)
    for i, (index, extent) in enumerate(zip(indices, indexed_extents, strict=True)):
        # the remainder by the extent makes negative positions count from the front
        position = index.cast("int64").mod(call.constant(extent, np.int64))
        flat = flat.add(position.mul(call.constant(size(indexed_extents[i + 1 :]), np.int64)))
    segment_op, op = _REDUCED[reduction]
    updates = call.node(2).reshape(shape=[-1, *row_shape])
    reduced = call.graph.op(segment_op, updates, flat.reshape(shape=[-1]), segments=size(indexed_extents))
    # products of integers are int64
    narrow = reduced.cast(call.dtype().name) if reduction == "mul" and call.dtype().kind in "iu" else reduced
    combined: Node = call.graph.op(op, call.node(), narrow.reshape(shape=list(call.shape())))
    return combined


@RULES("TensorScatter", since=24)
def tensor_scatter(call: Call) -> RuleResult:
    """Write updates along an axis from a position per batch entry. In circular mode, wrap around the end."""
    rank = call.rank()
    axis = call.axis(rank)
    extent, steps, batch = call.shape()[axis], call.shape(1)[axis], call.shape()[0]
    first = call.node(2) if call.has(2) else call.constant(np.zeros(batch), np.int64)
    along = [steps if i == axis else 1 for i in range(rank)]
    position = first.reshape(shape=[batch] + [1] * (rank - 1)).add(
        call.constant(np.arange(steps).reshape(along), np.int64)
    )
    if call.text("mode") == "circular":
        position = position.mod(call.constant(extent, np.int64))
    return call.graph.index_set(call.node(), *everywhere(call, position, call.shape(1), axis), call.node(1))
