"""Adding at indices, where repeated ones accumulate: whole rows, or single elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import INT64, HostArray, TensorType
from engine.oplib.flat_places import PICKED_CHUNK, chunk_bytes_of, chunks_of, element_steps
from engine.oplib.indices import grid


@DeviceFunction
def add_at(run: RunContext, target: Array, index: tuple[Array, ...], updates: Any) -> None:
    """target[index] += updates."""
    run.xp.add.at(target, index, updates)


@add_at.on("cuda")
def _add_at(run: RunContext, target: Array, index: tuple[Array, ...], updates: Any) -> None:
    """CUDA adds atomically to unsigned numbers of 64 bits only; the bits of the sum are the same."""
    if target.dtype == INT64:
        target, updates = target.view("uint64"), run.xp.asarray(updates, dtype="int64").view("uint64")
    run.xp.add.at(target, index, updates)


# SciPy's products of a sparse matrix, all its entries 1, with a dense one add into their result one by one, ten to
# thirty times as fast as `add.at` adds rows, and by a third faster than it adds elements. The public `@` does no more
# than call them, with a result of its own that is as large as the target.


@DeviceFunction
def add_rows(run: RunContext, target: Array, index: Array, rows: Array) -> None:
    """target[index[i], …] += rows[i, …], one after the other; `target` lies densely."""
    add_at(run, target, (index,), rows)


@add_rows.on("cpu")
def _add_rows(run: RunContext, target: HostArray, index: HostArray, rows: HostArray) -> None:
    if not rows.size:
        return
    from scipy.sparse import _sparsetools  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    count, width = len(rows), rows[0].size
    step = _rows_of_chunk(count, width, rows.dtype == target.dtype and rows.flags.c_contiguous)
    ends, ones, sums = np.arange(step + 1), np.ones(step, target.dtype), target.reshape(-1)

    def add(places: HostArray, chunk: HostArray) -> None:
        if width == 1:
            _add_one_by_one(_sparsetools, sums, places, chunk)
        else:
            _sparsetools.csc_matvecs(len(target), len(places), width, ends, places, ones, chunk, sums)

    for start in run.through(range(0, count, step)):
        part = slice(start, start + step)
        # no name for either: it would keep them while the next ones are made
        add(index[part].astype(INT64, copy=False), _dense(rows[part], target))


def add_rows_bytes(target: TensorType, rows: TensorType) -> int:
    """What `add_rows` allocates: a chunk of the matrix, and of the rows where these have to be converted."""
    count, width = rows.shape[0] if rows.size else 0, rows.size // max(1, rows.shape[0])
    ready = rows.is_dense and rows.dtype == target.dtype
    step = _rows_of_chunk(count, width, ready)
    return step * (2 * INT64.itemsize + target.dtype.itemsize * (1 if ready else 1 + width))


@DeviceFunction
def add_elements(run: RunContext, target: Array, index: Array, axis: int, updates: Array) -> None:
    """target[index[i, j, …], j, …] += updates[i, j, …] for axis 0, and alike for the others, one after the other.

    `target` lies densely; off the axis, the index may be smaller.
    """
    add_at(run, target, grid(run.xp, index, axis), updates)


@add_elements.on("cpu")
def _add_elements(run: RunContext, target: HostArray, index: HostArray, axis: int, updates: HostArray) -> None:
    if not updates.size:
        return
    from scipy.sparse import _sparsetools  # noqa: PLC0415 - see above

    sums = target.reshape(-1)
    for where, first, places in run.through(chunks_of(index, element_steps(target), axis)):
        _add_one_by_one(_sparsetools, sums[first:], places.reshape(-1), _dense(updates[where], target))


def add_elements_bytes(index: TensorType) -> int:
    """What `add_elements` allocates: positions, and a chunk of the updates where these have to be converted."""
    return chunk_bytes_of(index) + INT64.itemsize * min(PICKED_CHUNK, index.size)


def _rows_of_chunk(count: int, width: int, ready: bool) -> int:
    """How many rows are added at a time, of so many, each of so many elements."""
    return min(count, PICKED_CHUNK if ready else max(1, PICKED_CHUNK // max(1, width)))


def _dense(values: HostArray, target: HostArray) -> HostArray:
    """The values in the target's dtype, one after the other."""
    return values.astype(target.dtype, order="C", copy=False).reshape(-1)


def _add_one_by_one(sparsetools: Any, sums: HostArray, places: HostArray, values: HostArray) -> None:
    """sums[places[i]] += values[i]: a matrix of one column, all of it times 1."""
    column, one = np.array([0, len(places)], INT64), np.ones(1, sums.dtype)
    sparsetools.csc_matvec(len(sums), 1, column, places, values, one, sums)
