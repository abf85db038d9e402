"""Writing at positions: `scatter` and `dynamic_update_slice`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing.writing import size
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.helpers import transpose_axes
from gradserve_client.jax.families.indexing import starts_of
from gradserve_client.jax.families.positions import Integers, Rows, Windows, as_node, mode_of, rows_of
from gradserve_client.jax.families.table import RULES


@dataclass(frozen=True)
class _Table:
    """A table, updates of its rows, the row that each update goes to, the number of rows, and the dtype."""

    table: Node
    index: Node
    updates: Node
    rows: int
    dtype: np.dtype[Any]


def _windows(call: Call) -> tuple[Rows, list[int]]:
    """Return the rows that updates go to, and the order of the updates' axes: tuples, then windows as in the table."""
    numbers = call.params["dimension_numbers"]
    paired = [*zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)]
    collapsed = [int(axis) for axis in numbers.inserted_window_dims]
    batch = [(int(axis), int(tuple_axis)) for axis, tuple_axis in paired]
    window_dims = [int(axis) for axis in numbers.update_window_dims]
    window_axes = [
        axis
        for axis in range(call.rank())
        if axis not in collapsed and axis not in {operand_axis for operand_axis, _ in batch}
    ]
    extents = [1] * call.rank()
    for axis, dim in zip(window_axes, window_dims, strict=True):
        extents[axis] = call.shape(2)[dim]
    indexed = [int(axis) for axis in numbers.scatter_dims_to_operand_dims]
    rows = rows_of(call, Windows(indexed, batch, collapsed, extents, mode_of(call)))
    tuples = [axis for axis in range(call.rank(2)) if axis not in window_dims]
    table_axes = [*rows.along, *rows.order[rows.leading :]]
    return rows, [*tuples, *(window_dims[window_axes.index(axis)] for axis in table_axes)]


def _scatter(call: Call, combine: Any) -> Results:
    rows, order = _windows(call)
    shape = call.shape()
    count = size(call.shape(1)[:-1]) * size(
        [call.shape(2)[axis] for axis in order[call.rank(1) - 1 :]][: len(rows.along)]
    )
    columns = size([shape[axis] for axis in rows.order[rows.leading :]])
    total = size([shape[axis] for axis in rows.order[: rows.leading]])
    is_bool = call.dtype().kind == "b"
    x, updates = (call.node(i).cast("uint8") if is_bool else call.node(i) for i in (0, 2))
    table = rows.to_table(x, shape).reshape(shape=[total, columns])
    updates = transpose_axes(updates, order).reshape(shape=[count, columns])
    index, extra_rows = _redirect_out_of_range(call, rows, total)
    if extra_rows:
        table = table.pad([0, 1, 0, 0])
    result = combine(
        call, _Table(table, _flat_index(call, index, count), updates, total + extra_rows, _compute_dtype(call))
    )
    result = result.slice(stops=[total]) if extra_rows else result
    result = rows.from_table(result, shape)
    return result.cast("bool") if is_bool else result


def _flat_index(call: Call, index: Integers, count: int) -> Node:
    if isinstance(index, Node):
        return index.reshape(shape=[count])
    return call.constant(index.reshape(count), np.int64)


def _redirect_out_of_range(call: Call, rows: Rows, total: int) -> tuple[Integers, int]:
    """Return the row numbers and the number of rows to append: one, for updates out of range, if there can be any."""
    if rows.fits is None:
        return rows.index, 0
    shape = [*call.shape(1)[:-1], *[1] * len(rows.along)]
    if not isinstance(rows.fits, Node) and not isinstance(rows.index, Node):
        return np.where(rows.fits.reshape(shape), rows.index, total), 1
    fits = as_node(rows.fits, call).reshape(shape=shape)
    return fits.where(as_node(rows.index, call), call.constant(total, np.int64)), 1


def _add(call: Call, target: _Table) -> Node:
    return call.graph.index_add(target.table, target.index, target.updates)


def _subtract(call: Call, target: _Table) -> Node:
    return call.graph.index_add(target.table, target.index, target.updates.neg())


def _replace(call: Call, target: _Table) -> Node:
    return call.graph.index_set(target.table, target.index, target.updates)


def _segment_reduction(op: str, segment_op: str) -> Any:
    def combine(call: Call, target: _Table) -> Node:
        """Reduce the updates of each row, and combine the results with the rows."""
        reduced = call.graph.op(segment_op, target.updates, target.index, segments=target.rows)
        # segment_prod returns int64 for integers
        narrow = (
            reduced.cast(target.dtype.name) if target.dtype.kind in "iu" and segment_op == "segment_prod" else reduced
        )
        result: Node = call.graph.op(op, target.table, narrow)
        return result

    return combine


def _compute_dtype(call: Call) -> np.dtype[Any]:
    """Return the dtype to compute in: uint8 for bools."""
    return np.dtype(np.uint8) if call.dtype().kind == "b" else call.dtype()


def _rule(combine: Any, doc: str) -> Any:
    def rule(call: Call) -> Results:
        return _scatter(call, combine)

    rule.__doc__ = doc
    return rule


RULES.put(
    "scatter", _rule(_replace, "`index_set` of rows of a table: the last update wins; those out of range are dropped.")
)
RULES.put("scatter-add", _rule(_add, "`index_add` to the rows of a table; updates out of range are dropped."))
RULES.put("scatter-sub", _rule(_subtract, "`index_add` of the negative."))
RULES.put("scatter-mul", _rule(_segment_reduction("mul", "segment_prod"), "`segment_prod` of the updates, then `mul`."))
RULES.put(
    "scatter-max", _rule(_segment_reduction("maximum", "segment_max"), "`segment_max` of the updates, then `maximum`.")
)
RULES.put(
    "scatter-min", _rule(_segment_reduction("minimum", "segment_min"), "`segment_min` of the updates, then `minimum`.")
)


@RULES("dynamic_update_slice")
def dynamic_update_slice(call: Call) -> Results:
    """`update_slice` if the starts are constants, else `update_slice_at`."""
    shape, extents = call.shape(), call.shape(1)
    if not shape:
        return call.operands[1]
    starts = starts_of(call, 2, [n - extent for n, extent in zip(shape, extents, strict=True)])
    if isinstance(starts, Node):
        return call.node().update_slice_at(call.node(1), starts)
    return call.node().update_slice(call.node(1), starts)
