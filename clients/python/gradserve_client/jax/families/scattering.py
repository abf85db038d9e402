"""Writing at positions that tensors hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.helpers import transposed
from gradserve_client.jax.families.indexing import starts_of
from gradserve_client.jax.families.positions import Number, Rows, Windows, as_node, mode_of, rows_of
from gradserve_client.jax.families.table import RULES


@dataclass(frozen=True)
class _Table:
    """A table of rows, the row that each update goes to, and the updates."""

    table: Node
    index: Node
    updates: Node
    rows: int
    dtype: np.dtype[Any]


def _windows(call: Call) -> tuple[Rows, list[int]]:
    """Where updates go, and the axes of these: tuples, then windows in the order of the table."""
    numbers = call.params["dimension_numbers"]
    paired = [*zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)]
    inserted = [int(axis) for axis in numbers.inserted_window_dims]
    batch = [(int(one), int(other)) for one, other in paired]
    places = [int(axis) for axis in numbers.update_window_dims]
    kept = [axis for axis in range(call.rank()) if axis not in inserted and axis not in {one for one, _ in batch}]
    extents = [1] * call.rank()
    for axis, place in zip(kept, places, strict=True):
        extents[axis] = call.shape(2)[place]
    told = [int(axis) for axis in numbers.scatter_dims_to_operand_dims]
    rows = rows_of(call, Windows(told, batch, inserted, extents, mode_of(call)))
    tuples = [axis for axis in range(call.rank(2)) if axis not in places]
    wanted = [*rows.along, *rows.order[rows.leading :]]
    return rows, [*tuples, *(places[kept.index(axis)] for axis in wanted)]


def _scattered(call: Call, combine: Any) -> Said:
    rows, order = _windows(call)
    shape = call.shape()
    count = size(call.shape(1)[:-1]) * size(
        [call.shape(2)[axis] for axis in order[call.rank(1) - 1 :]][: len(rows.along)]
    )
    columns = size([shape[axis] for axis in rows.order[rows.leading :]])
    total = size([shape[axis] for axis in rows.order[: rows.leading]])
    boolean = call.dtype().kind == "b"
    x, updates = (call.node(i).cast("uint8") if boolean else call.node(i) for i in (0, 2))
    table = rows.table(x, shape).reshape(shape=[total, columns])
    updates = transposed(updates, order).reshape(shape=[count, columns])
    index, more = _dropped(call, rows, total)
    if more:
        table = table.pad([0, 1, 0, 0])
    made = combine(call, _Table(table, _flat(call, index, count), updates, total + more, _computed(call)))
    made = made.slice(stops=[total]) if more else made
    made = rows.untabled(made, shape)
    return made.cast("bool") if boolean else made


def _flat(call: Call, index: Number, count: int) -> Node:
    if isinstance(index, Node):
        return index.reshape(shape=[count])
    return call.constant(index.reshape(count), np.int64)


def _dropped(call: Call, rows: Rows, total: int) -> tuple[Number, int]:
    """The rows, and one more behind the table for what lies beyond it, where something may."""
    if rows.fits is None:
        return rows.index, 0
    shape = [*call.shape(1)[:-1], *[1] * len(rows.along)]
    if not isinstance(rows.fits, Node) and not isinstance(rows.index, Node):
        return np.where(rows.fits.reshape(shape), rows.index, total), 1
    fits = as_node(rows.fits, call).reshape(shape=shape)
    return fits.where(as_node(rows.index, call), call.constant(total, np.int64)), 1


def _added(call: Call, at: _Table) -> Node:
    return call.graph.index_add(at.table, at.index, at.updates)


def _subtracted(call: Call, at: _Table) -> Node:
    return call.graph.index_add(at.table, at.index, at.updates.neg())


def _replaced(call: Call, at: _Table) -> Node:
    return call.graph.index_set(at.table, at.index, at.updates)


def _reduced(op: str, over: str) -> Any:
    def combine(call: Call, at: _Table) -> Node:
        """What was there with what the updates of each row come to."""
        reduced = call.graph.op(over, at.updates, at.index, segments=at.rows)
        # products of whole numbers are int64
        narrow = reduced.cast(at.dtype.name) if at.dtype.kind in "iu" and over == "segment_prod" else reduced
        made: Node = call.graph.op(op, at.table, narrow)
        return made

    return combine


def _computed(call: Call) -> np.dtype[Any]:
    """The dtype that is computed in: bools as whole numbers."""
    return np.dtype(np.uint8) if call.dtype().kind == "b" else call.dtype()


def _rule(combine: Any, doc: str) -> Any:
    def say(call: Call) -> Said:
        return _scattered(call, combine)

    say.__doc__ = doc
    return say


RULES.put(
    "scatter", _rule(_replaced, "`index_set` of rows of a table: the last update of each; what lies beyond goes.")
)
RULES.put("scatter-add", _rule(_added, "`index_add` to the rows of a table; what lies beyond goes."))
RULES.put("scatter-sub", _rule(_subtracted, "`index_add` of the negative."))
RULES.put("scatter-mul", _rule(_reduced("mul", "segment_prod"), "`segment_prod` of the updates of each row, times it."))
RULES.put("scatter-max", _rule(_reduced("maximum", "segment_max"), "`segment_max` of the updates of each row, and it."))
RULES.put("scatter-min", _rule(_reduced("minimum", "segment_min"), "`segment_min` of the updates of each row, and it."))


@RULES("dynamic_update_slice")
def dynamic_update_slice(call: Call) -> Said:
    """`update_slice` where the starts are known, else `update_slice_at`."""
    shape, extents = call.shape(), call.shape(1)
    if not shape:
        return call.operands[1]
    starts = starts_of(call, 2, [n - extent for n, extent in zip(shape, extents, strict=True)])
    if isinstance(starts, Node):
        return call.node().update_slice_at(call.node(1), starts)
    return call.node().update_slice(call.node(1), starts)
