"""Writing at positions that tensors hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import highest, lowest, size
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.helpers import transposed
from gradserve_client.jax.families.indexing import clamped_starts
from gradserve_client.jax.families.positions import Number, Rows, Windows, as_node, mode_of, rows_of
from gradserve_client.jax.families.table import RULES

#: larger tables of pairs are not made
_MOST_PAIRS = 2**24


@dataclass(frozen=True)
class _Table:
    """A table of rows, the row that each update goes to, and the updates."""

    table: Node
    index: Number
    updates: Node
    rows: int
    count: int
    columns: int
    dtype: np.dtype[Any]

    @property
    def wide(self) -> Node:
        """The row of each element of an update."""
        index = as_node(self.index, self.table)
        return index.reshape(shape=[self.count, 1]).broadcast_to(shape=[self.count, self.columns])


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
    made = combine(call, _Table(table, _flat(index, count), updates, total + more, count, columns, _computed(call)))
    made = made.slice(stops=[total]) if more else made
    made = rows.untabled(made, shape)
    return made.cast("bool") if boolean else made


def _flat(index: Number, count: int) -> Number:
    return index.reshape(shape=[count]) if isinstance(index, Node) else index.reshape(count)


def _dropped(call: Call, rows: Rows, total: int) -> tuple[Number, int]:
    """The rows, and one more behind the table for what lies beyond it, where something may."""
    if rows.fits is None:
        return rows.index, 0
    shape = [*call.shape(1)[:-1], *[1] * len(rows.along)]
    if not isinstance(rows.fits, Node) and not isinstance(rows.index, Node):
        return np.where(rows.fits.reshape(shape), rows.index, total), 1
    fits = as_node(rows.fits, call).reshape(shape=shape)
    return fits.where(as_node(rows.index, call), call.constant(total, np.int64)), 1


def _added(_: Call, at: _Table) -> Node:
    return at.table.scatter_add(at.wide, at.updates, axis=0)


def _subtracted(_: Call, at: _Table) -> Node:
    return at.table.scatter_add(at.wide, at.updates.neg(), axis=0)


def _replaced(call: Call, at: _Table) -> Node:
    """The last update of each row in its place."""
    index, updates = at.index, at.updates
    if at.count > 1 and not call.params.get("unique_indices"):
        index, updates = _last_ones(at)
    count = at.count if isinstance(index, Node) else len(index)
    kept = _Table(at.table, index, updates, at.rows, count, at.columns, at.dtype)
    written = call.graph.full(shape=[at.rows, at.columns], dtype=at.dtype.name).scatter_add(kept.wide, updates, axis=0)
    if not isinstance(index, Node):
        marks = np.zeros((at.rows, 1), np.bool_)
        marks[index] = True
        return call.constant(marks).where(written, at.table)
    ones = call.graph.full(shape=[count, 1], fill=1.0, dtype="int32")
    empty = call.graph.full(shape=[at.rows, 1], dtype="int32")
    hit = empty.scatter_add(index.reshape(shape=[count, 1]), ones, axis=0).greater(call.constant(0, np.int32))
    return hit.where(written, at.table)


def _last_ones(at: _Table) -> tuple[Number, Node]:
    """The updates that no later one of their row replaces; in their order of rows, the others as zeros."""
    if not isinstance(at.index, Node):
        last = {int(row): place for place, row in enumerate(at.index)}
        places = sorted(last.values())
        if len(places) == at.count:
            return at.index, at.updates
        return at.index[places], at.updates.gather(axis=0, indices=places)
    graph = at.table.graph
    order = at.index.argsort(0)
    rows = at.index.embedding(order)
    before, behind = rows.slice(stops=[at.count - 1]), rows.slice(starts=[1])
    last_one = graph.cat(before.not_equal(behind), graph.constant(np.ones(1, np.bool_)), axis=0)
    updates = at.updates.embedding(order)
    nothing = graph.constant(np.zeros((), at.dtype))
    return rows, last_one.reshape(shape=[at.count, 1]).where(updates, nothing)


def _reduced(op: str, over: str, neutral: Any) -> Any:
    def combine(call: Call, at: _Table) -> Node:
        """Over the updates of each row: all pairs of both are compared."""
        if at.rows * at.count * at.columns > _MOST_PAIRS:
            raise Blocked(f"it compares {at.rows} rows with {at.count} updates, too many pairs")
        rows = call.constant(np.arange(at.rows).reshape(1, -1, 1), np.int64)
        hit = as_node(at.index, call).reshape(shape=[at.count, 1, 1]).equal(rows)
        nothing = call.constant(neutral(at.dtype), at.dtype)
        spread = hit.where(at.updates.reshape(shape=[at.count, 1, at.columns]), nothing)
        reduced = call.graph.op(over, spread, axes=[0]).cast(at.dtype.name)
        made: Node = call.graph.op(op, at.table, reduced)
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


RULES.put("scatter", _rule(_replaced, "The last update of each row in place of what was there; what lies beyond goes."))
RULES.put("scatter-add", _rule(_added, "`scatter_add` to the rows of a table; what lies beyond goes."))
RULES.put("scatter-sub", _rule(_subtracted, "`scatter_add` of the negative."))
RULES.put("scatter-mul", _rule(_reduced("mul", "prod", lambda dtype: 1), "`prod` over the updates of each row."))
RULES.put("scatter-max", _rule(_reduced("maximum", "max", lowest), "`max` over the updates of each row."))
RULES.put("scatter-min", _rule(_reduced("minimum", "min", highest), "`min` over the updates of each row."))


@RULES("dynamic_update_slice")
def dynamic_update_slice(call: Call) -> Said:
    """`update_slice` where the starts are known; else in place of what is at counted positions."""
    shape, extents = call.shape(), call.shape(1)
    starts = clamped_starts(call, 2, [n - extent for n, extent in zip(shape, extents, strict=True)])
    if not shape:
        return call.operands[1]
    known = [start for start in starts if not isinstance(start, Node)]
    if len(known) == len(starts):
        return call.node().update_slice(call.node(1), known)
    boolean = call.dtype().kind == "b"
    x, updates = (call.node(i).cast("uint8") if boolean else call.node(i) for i in (0, 1))
    index = call.constant(0, np.int64)
    for axis, start in enumerate(starts):
        assert isinstance(start, Node), "one that is not known makes nodes of all"
        stride = size(shape[axis + 1 :])
        along = [-1 if i == axis else 1 for i in range(len(shape))]
        at = start.add(call.constant(np.arange(extents[axis]).reshape(along), np.int64))
        index = index.add(at.mul(call.constant(stride, np.int64)))
    count, total = size(extents), size(shape)
    flat = index.broadcast_to(shape=[*extents]).reshape(shape=[count])
    empty = call.graph.full(shape=[total], dtype=_computed(call).name)
    written = empty.scatter_add(flat, updates.reshape(shape=[count]), axis=0)
    ones = call.graph.full(shape=[count], fill=1.0, dtype="int32")
    hit = (
        call.graph.full(shape=[total], dtype="int32")
        .scatter_add(flat, ones, axis=0)
        .greater(call.constant(0, np.int32))
    )
    made = hit.where(written, x.reshape(shape=[total])).reshape(shape=[*shape])
    return made.cast("bool") if boolean else made
