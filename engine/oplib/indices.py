"""Array code that kernels share, and the places where NumPy and CuPy differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.graph.errors import IndexOutOfRange
from engine.graph.op import Array, Namespace, wrong_dtype
from engine.graph.tensor_type import INT64, INTEGERS, TensorType
from engine.oplib.index_notes import INDEX_NOTES

#: elements that are added at a time
_PIECE = 1 << 14


def require_integer(type: TensorType, operand: int, name: str) -> None:
    """Raise DtypeMismatch unless an index operand holds integers."""
    if type.dtype.name not in INTEGERS:
        raise wrong_dtype(name, operand, INTEGERS, type)


def check_indices(index: Array, extent: int, *, operand: int) -> None:
    """Raise IndexOutOfRange unless all entries lie in [0, extent): NumPy and CuPy would wrap negative ones.

    Or have it noted, where whoever runs the plan would wait for the answer.
    """
    notes = INDEX_NOTES.get()
    if notes is not None and extent and index.size:
        notes.note(index, extent, operand)
    elif index.size and not (int(index.min()) >= 0 and int(index.max()) < extent):
        raise outside(extent, operand)


def outside(extent: int, operand: int) -> IndexOutOfRange:
    """The error for an operand with an entry that is not in [0, extent)."""
    wanted = f"in [0, {extent})"
    return IndexOutOfRange(
        f"operand {operand} holds an index outside the axis: all must lie {wanted}",
        operand=operand,
        expected=wanted,
        got="an entry outside",
    )


def add_at(xp: Namespace, target: Array, index: tuple[Array, ...], updates: Any) -> None:
    """target[index] += updates, where repeated indices accumulate."""
    if xp is not np and target.dtype == np.int64:
        # CUDA adds atomically to unsigned numbers of 64 bits only; the bits of the sum are the same.
        target, updates = target.view("uint64"), xp.asarray(updates, dtype="int64").view("uint64")
    xp.add.at(target, index, updates)


def add_rows(xp: Namespace, target: Array, index: Array, rows: Array) -> None:
    """target[index[i], …] += rows[i, …], one after the other; `target` lies densely."""
    if xp is not np or not rows.size:
        add_at(xp, target, (index,), rows)
        return
    # SciPy's product of a sparse matrix with a dense one adds row by row into its result, ten to thirty times as fast
    # as add.at. The public `@` does no more than call it, with a result of its own that is as large as the target.
    from scipy.sparse import _sparsetools  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    count, width = len(rows), rows[0].size
    step = min(count, _rows_of_piece(width))
    ends, ones, sums = np.arange(step + 1), np.ones(step, target.dtype), target.reshape(-1)
    for start in range(0, count, step):
        piece = rows[start : start + step].astype(target.dtype, order="C", copy=False)
        places, n = index[start : start + step].astype(INT64, copy=False), len(piece)
        _sparsetools.csc_matvecs(len(target), n, width, ends[: n + 1], places, ones[:n], piece.reshape(-1), sums)


def add_rows_bytes(target: TensorType, rows: TensorType) -> int:
    """What `add_rows` allocates: a piece of the matrix, and of the rows where these have to be converted."""
    count, width = rows.shape[0] if rows.size else 0, rows.size // max(1, rows.shape[0])
    step = min(count, _rows_of_piece(width))
    return step * (2 * INT64.itemsize + target.dtype.itemsize * (1 + width))


def _rows_of_piece(width: int) -> int:
    return max(1, _PIECE // max(1, width))


def add_elements(xp: Namespace, target: Array, places: tuple[Array, ...], updates: Array) -> None:
    """target[places] += updates, one after the other; `target` lies densely, and `places` broadcast like `updates`."""
    if xp is not np or not updates.size:
        add_at(xp, target, places, updates)
        return
    # By one index each, and one axis: NumPy is seven times as fast there.
    sums, steps = target.reshape(-1), [stride // target.itemsize for stride in target.strides]
    kinds = [INT64] * len(places) + [updates.dtype]
    pieces = np.nditer(
        (*places, updates),
        ("external_loop", "buffered"),
        op_dtypes=kinds,
        order="C",
        casting="same_kind",
        buffersize=_PIECE,
    )
    for *at, added in pieces:
        np.add.at(sums, sum(place * step for place, step in zip(at, steps, strict=True)), added)


def add_elements_bytes(updates: TensorType) -> int:
    """What `add_elements` allocates: buffers of a piece."""
    return min(_PIECE, updates.size) * (INT64.itemsize * (updates.ndim + 3) + updates.dtype.itemsize)
