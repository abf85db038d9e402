"""Index operands: integers within the axis, also counted from its end, and range checks."""

from __future__ import annotations

from engine.graph.dtypes import INTEGERS
from engine.graph.errors import IndexOutOfRange
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, wrong_dtype
from engine.graph.tensor_type import TensorType
from engine.oplib.index_notes import INDEX_NOTES
from engine.oplib.operands import with_extent


def require_integer(type: TensorType, operand: int, name: str) -> None:
    """Raise DtypeMismatch unless an index operand holds integers."""
    if type.dtype.name not in INTEGERS:
        raise wrong_dtype(name, operand, INTEGERS, type)


def check_indices(index: Array, extent: int, *, operand: int, least: int = 0) -> None:
    """Raise IndexOutOfRange unless all entries lie in [least, extent): NumPy and CuPy would wrap negative ones.

    Or have it noted, where whoever runs the plan would wait for the answer.
    """
    notes = INDEX_NOTES.get()
    if notes is not None and extent and index.size:
        notes.note(index, extent, operand, least)
    elif index.size and not (int(index.min()) >= least and int(index.max()) < extent):
        raise outside(extent, operand, least)


def grid(xp: Namespace, index: Array, axis: int) -> tuple[Array, ...]:
    """For each entry of `index` the position of what it picks along `axis`, axis by axis; they broadcast."""
    rank = index.ndim
    places = [xp.arange(n).reshape(column_of(rank, i)) for i, n in enumerate(index.shape)]
    places[axis] = index
    return tuple(places)


def column_of(rank: int, axis: int, extent: int = -1) -> list[int]:
    """The shape of a list along `axis`, for a reshape: of extent 1 elsewhere."""
    return [extent if i == axis else 1 for i in range(rank)]


def read_at(x: Value, places: Value, axis: int) -> Value:
    """The slices of x at `places` [n] of an axis."""
    count = places.shape[0]
    column = places.reshape(shape=column_of(x.ndim, axis, count))
    return x.gather(column.broadcast_to(shape=with_extent(x.shape, axis, count)), axis=axis)


def is_repeated(index: Array | TensorType, axis: int) -> bool:
    """Whether the index is one list along `axis`, broadcast off it."""
    layout = enumerate(zip(index.shape, index.strides, strict=True))
    return index.size > 0 and all(i == axis or n == 1 or not step for i, (n, step) in layout)


def picks_slices(x: Array | TensorType, index: Array | TensorType, axis: int) -> bool:
    """Whether the index takes whole slices of x."""
    return is_repeated(index, axis) and with_extent(x.shape, axis, 0) == with_extent(index.shape, axis, 0)


def outside(extent: int, operand: int, least: int = 0) -> IndexOutOfRange:
    """The error for an operand with an entry that is not in [least, extent)."""
    wanted = f"in [{least}, {extent})"
    return IndexOutOfRange(
        f"operand {operand} holds an index outside the axis: all must lie {wanted}",
        operand=operand,
        expected=wanted,
        got="an entry outside",
    )
