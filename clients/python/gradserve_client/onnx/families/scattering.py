"""Writing at positions that tensors hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import highest, lowest, size
from gradserve_client.onnx.call import Call, Said
from gradserve_client.onnx.families.helpers import wrapped_index
from gradserve_client.onnx.families.indexing import flat_positions
from gradserve_client.onnx.families.table import RULES


@dataclass(frozen=True)
class Rows:
    """Where something is written: rows of a table, the row that each update goes to, and the updates."""

    table: Node
    index: Node
    updates: Node
    rows: int
    count: int
    columns: int


@RULES("ScatterElements", "Scatter", since=9)
def scatter_elements(call: Call) -> Said:
    """Elements at positions along the axis: of the flattened tensor, whose other positions are known."""
    axis = call.axis(call.rank())
    index = wrapped_index(call, 1, call.shape()[axis])
    shape, strides = call.shape(), np.asarray([size(call.shape()[i + 1 :]) for i in range(call.rank())])
    others = np.indices(call.shape(1))
    offsets = sum((others[i] * strides[i] for i in range(len(shape)) if i != axis), np.zeros(call.shape(1), np.int64))
    flat = index.cast("int64").mul(call.constant(strides[axis], np.int64)).add(call.constant(offsets, np.int64))
    count = size(call.shape(1))
    rows = Rows(
        call.node().reshape(shape=[-1, 1]),
        flat.reshape(shape=[count]),
        call.node(2).reshape(shape=[count, 1]),
        size(shape),
        count,
        1,
    )
    return _written(call, rows)


@RULES("ScatterND", since=11)
def scatter_nd(call: Call) -> Said:
    """Slices at tuples of positions."""
    told = call.shape(1)[-1]
    rows, columns, count = size(call.shape()[:told]), size(call.shape()[told:]), size(call.shape(1)[:-1])
    index = flat_positions(call, 1, call.shape()[:told]).reshape(shape=[count])
    table, updates = call.node().reshape(shape=[rows, columns]), call.node(2).reshape(shape=[count, columns])
    return _written(call, Rows(table, index, updates, rows, count, columns))


def _written(call: Call, at: Rows) -> Node:
    """The operand with the updates in it, in place of what was there or reduced with it."""
    reduction = call.attrs.get("reduction", b"none").decode()
    if call.dtype().kind == "b" and reduction != "none":
        raise Blocked(f"it reduces bools by {reduction!r}")
    made = {"none": _replaced, "add": _added}.get(reduction, _reduced)(call, at)
    return made.reshape(shape=call.shape())


def _wide(at: Rows) -> Node:
    """The index of a row for each element of it."""
    return at.index.reshape(shape=[at.count, 1]).broadcast_to(shape=[at.count, at.columns])


def _added(_: Call, at: Rows) -> Node:
    return at.table.scatter_add(_wide(at), at.updates, axis=0)


def _replaced(call: Call, at: Rows) -> Node:
    """What is written, where something is: ONNX has no row be written twice."""
    boolean = call.dtype().kind == "b"
    dtype = "uint8" if boolean else call.dtype().name
    updates = at.updates.cast(dtype) if boolean else at.updates
    nothing = call.graph.full(shape=[at.rows, at.columns], dtype=dtype)
    written = nothing.scatter_add(_wide(at), updates, axis=0)
    ones = call.graph.full(shape=[at.count, 1], fill=1.0, dtype="int32")
    marks = call.graph.full(shape=[at.rows, 1], dtype="int32")
    hit = marks.scatter_add(at.index.reshape(shape=[at.count, 1]), ones, axis=0).greater(call.constant(0, np.int32))
    return hit.where(written.cast("bool") if boolean else written, at.table)


def _reduced(call: Call, at: Rows) -> Node:
    """By products or extremes over the updates of each row, which repeat: all pairs of both are compared."""
    reduction = call.attrs["reduction"].decode()
    op, over, neutral = {
        "mul": ("mul", "prod", 1),
        "max": ("maximum", "max", lowest(call.dtype())),
        "min": ("minimum", "min", highest(call.dtype())),
    }[reduction]
    rows = call.constant(np.arange(at.rows).reshape(1, -1, 1), np.int64)
    hit = at.index.reshape(shape=[at.count, 1, 1]).equal(rows)
    spread = hit.where(at.updates.reshape(shape=[at.count, 1, at.columns]), call.like(neutral))
    reduced = call.graph.op(over, spread, axes=[0]).cast(call.dtype().name)
    return call.graph.op(op, at.table, reduced)


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
    index = at.broadcast_to(shape=call.shape(1))
    nothing = call.graph.full(shape=call.shape(), dtype=call.dtype().name)
    written = nothing.scatter_add(index, call.node(1), axis=axis)
    ones = call.graph.full(shape=call.shape(1), fill=1.0, dtype="int32")
    marks = call.graph.full(shape=call.shape(), dtype="int32").scatter_add(index, ones, axis=axis)
    return marks.greater(call.constant(0, np.int32)).where(written, call.node())
