"""Writing at positions that tensors hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.onnx.call import Call, Said
from gradserve_client.onnx.families.helpers import everywhere
from gradserve_client.onnx.families.indexing import tuples_of
from gradserve_client.onnx.families.table import RULES


@RULES("ScatterElements", "Scatter", since=9)
def scatter_elements(call: Call) -> Said:
    """Elements at positions along the axis."""
    return _written(call, everywhere(call, call.node(1), call.shape(1), call.axis(call.rank())))


@RULES("ScatterND", since=11)
def scatter_nd(call: Call) -> Said:
    """Slices at tuples of positions."""
    return _written(call, tuples_of(call, 1))


def _written(call: Call, indices: Sequence[Node]) -> Node:
    """The operand with the updates in it, in place of what was there or reduced with it.

    ONNX does not say which of several updates stands.
    """
    reduction = call.attrs.get("reduction", b"none").decode()
    if call.dtype().kind == "b" and reduction != "none":
        raise Blocked(f"it reduces bools by {reduction!r}")
    if reduction not in ("none", "add"):
        return _reduced(call, indices, reduction)
    write = call.graph.index_set if reduction == "none" else call.graph.index_add
    return write(call.node(), *indices, call.node(2), from_end=True)


#: what is done over the updates of a row, and with that and the row
_REDUCED: Final = {"mul": ("segment_prod", "mul"), "max": ("segment_max", "maximum"), "min": ("segment_min", "minimum")}


def _reduced(call: Call, indices: Sequence[Node], reduction: str) -> Node:
    """By products or extremes over the updates of each row, which repeat."""
    told, rest = call.shape()[: len(indices)], call.shape()[len(indices) :]
    flat = call.constant(0, np.int64)
    for i, (index, extent) in enumerate(zip(indices, told, strict=True)):
        # what counts from the end counts from the front as the remainder by the extent
        place = index.cast("int64").mod(call.constant(extent, np.int64))
        flat = flat.add(place.mul(call.constant(size(told[i + 1 :]), np.int64)))
    over, op = _REDUCED[reduction]
    updates = call.node(2).reshape(shape=[-1, *rest])
    reduced = call.graph.op(over, updates, flat.reshape(shape=[-1]), segments=size(told))
    # products of whole numbers are int64
    narrow = reduced.cast(call.dtype().name) if reduction == "mul" and call.dtype().kind in "iu" else reduced
    made: Node = call.graph.op(op, call.node(), narrow.reshape(shape=list(call.shape())))
    return made


@RULES("TensorScatter", since=24)
def tensor_scatter(call: Call) -> Said:
    """Updates along an axis, from a position on for each entry of the batch; around the end, where the mode says so."""
    rank = call.rank()
    axis = call.axis(rank)
    extent, steps, batch = call.shape()[axis], call.shape(1)[axis], call.shape()[0]
    first = call.node(2) if call.has(2) else call.constant(np.zeros(batch), np.int64)
    along = [steps if i == axis else 1 for i in range(rank)]
    at = first.reshape(shape=[batch] + [1] * (rank - 1)).add(call.constant(np.arange(steps).reshape(along), np.int64))
    if call.text("mode") == "circular":
        at = at.mod(call.constant(extent, np.int64))
    return call.graph.index_set(call.node(), *everywhere(call, at, call.shape(1), axis), call.node(1))
