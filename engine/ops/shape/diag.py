"""Triangles and diagonals of the last two axes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final

from engine.ir.attributes import Attr
from engine.ir.graph import Value
from engine.ir.op import Array, Composite, Namespace, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Real, Sample
from engine.ir.tensor_type import DTYPES, TensorType
from engine.ops.common.batching import BatchedAsIs
from engine.ops.common.numerics import require_axes
from engine.ops.common.support import Selecting
from engine.ops.index.slice import dilate

#: rows of a block, within which a mask is applied
_ROWS: Final = 128
#: most rows for which a triangle is written as one copy per row
_COPIED_ROWS: Final = 64
OFFSET = Attr("int", 0, "diagonal: 0 is the main one, positive above it, negative below it")


class Triangle(Selecting, BatchedAsIs):
    """Base: a triangle of the matrices in the last two axes, zero elsewhere."""

    section = "diag"
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"offset": OFFSET}
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(3, 3)),
        Sample(Real(2, 2, 4), offset=1),
        Sample(Real(4, 3), offset=-2),
        Sample(Real(2, 3), offset=9),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Clamp the offset to the corners of the matrix. Raises ShapeMismatch."""
        require_axes(types[0], 2, "that hold matrices")
        rows, columns = types[0].shape[-2:]
        return {"offset": max(-rows, min(attrs["offset"], columns))}

    def infer(self, x: TensorType, *, offset: int) -> ResultTypes:
        """Return x's type."""
        return x

    def vjp(self, g: Value, y: Value, x: Value, *, offset: int) -> Sequence[Value | None]:
        """Apply the same mask to g."""
        return (g.builder.emit(self, (g,), {"offset": offset}),)

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]] | None:
        """Return zeros and one copy per row; None if there are many rows."""
        (x,), (rows, columns) = operands, out.shape[-2:]
        if rows > _COPIED_ROWS:
            return None
        zeros = xp.broadcast_to(xp.zeros((), out.dtype), out.shape)
        slices = [(..., i, self.row_slice(i, columns, attrs["offset"])) for i in range(rows)]
        return [(out, zeros), *((out[where], x[where]) for where in slices)]

    @abstractmethod
    def row_slice(self, row: int, columns: int, offset: int) -> slice:
        """Return the columns of a row that belong to the triangle."""

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """Count the mask of a block that the diagonal crosses, and the row and column numbers that make it."""
        rows, columns = (min(extent, _ROWS) for extent in x.shape[-2:])
        return rows * columns + 8 * (rows + columns)


class Tril(Triangle):
    """y = x on and below a diagonal of the last two axes, 0 above: y[…, i, j] = x[…, i, j] where j − i ≤ offset."""

    name = "tril"
    gradient = "tril(g)"

    def forward(self, run: RunContext, x: Array, *, out: Array, offset: int) -> None:
        """Copy the elements up to the diagonal."""
        _copy_triangle(run, x, out, offset + 1, keeps_front=True)

    def row_slice(self, row: int, columns: int, offset: int) -> slice:
        """Return the columns up to the diagonal."""
        return slice(0, max(0, min(row + offset + 1, columns)))


class Triu(Triangle):
    """y = x on and above a diagonal of the last two axes, 0 below: y[…, i, j] = x[…, i, j] where j − i ≥ offset."""

    name = "triu"
    gradient = "triu(g)"

    def forward(self, run: RunContext, x: Array, *, out: Array, offset: int) -> None:
        """Copy the elements from the diagonal on."""
        _copy_triangle(run, x, out, offset, keeps_front=False)

    def row_slice(self, row: int, columns: int, offset: int) -> slice:
        """Return the columns from the diagonal on."""
        return slice(max(0, min(row + offset, columns)), columns)


def _copy_triangle(run: RunContext, x: Array, out: Array, first: int, *, keeps_front: bool) -> None:
    """Copy row i of x before column i + `first`, or from there on, and write 0 elsewhere.

    Work in blocks of rows. Columns entirely before or after the diagonal of a block are slices; only the columns that
    it crosses need a mask. The mask selects rather than multiplies, since elements cut off may be infinite.
    """
    rows, columns = x.shape[-2:]
    mask_shape: tuple[int, int, int] | None = None
    for start in run.checked(range(0, rows, _ROWS)):
        stop = min(start + _ROWS, rows)
        low, high = (max(0, min(i + first, columns)) for i in (start, stop - 1))
        front, middle, back = ((..., slice(start, stop), slice(*ends)) for ends in pairwise((0, low, high, columns)))
        copied, cleared = (front, back) if keeps_front else (back, front)
        out[copied], out[cleared], out[middle] = x[copied], 0, x[middle]
        crossing = stop - start, high - low, start + first - low
        # Blocks between the first and the last usually have the same mask.
        if crossing != mask_shape:
            mask_shape, before = crossing, run.xp.tri(crossing[0], crossing[1], crossing[2] - 1, dtype=bool)
            mask = ~before if keeps_front else before
        run.xp.copyto(out[middle], out.dtype.type(0), where=mask)


class Diag(Composite):
    """The diagonal of the last two axes: y[…, i] = x[…, i, i + offset]; for a vector, the matrix with that diagonal.

    x [n] → [n + |offset|, n + |offset|], zero off the diagonal. x [batch…, rows, columns] → [batch…, m]. A negative
    offset counts downwards: y[…, i] = x[…, i − offset, i].
    """

    name = "diag"
    section = "diag"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {"offset": OFFSET}
    gradient = "diag(g) for a vector; for matrices, g on the diagonal and 0 elsewhere"
    samples = (
        Sample(Real(3)),
        Sample(Real(2), offset=1),
        Sample(Real(2), offset=-2),
        Sample(Real(3, 3)),
        Sample(Real(2, 4, 3), offset=-1),
        Sample(Real(2, 4), offset=1),
        Sample(Real(2, 3), offset=-5),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Raise ShapeMismatch for a 0-d operand."""
        require_axes(types[0], 1, "to have a diagonal or to be one")
        return attrs

    def infer(self, x: TensorType, *, offset: int) -> ResultTypes:
        """Return a matrix type for a vector; else x's batch axes and the length of the diagonal."""
        if x.ndim == 1:
            return x.with_shape((x.size + abs(offset),) * 2)
        *batch, rows, columns = x.shape
        return x.with_shape((*batch, _diagonal_length(rows, columns, offset)))

    def compose(self, x: Value, *, offset: int) -> Value:
        """Slice the flattened matrix: neighbours on a diagonal are columns + 1 elements apart in row-major order."""
        if x.ndim == 1:
            return _diagonal_matrix(x, offset)
        *batch, rows, columns = x.shape
        flat = x.reshape(shape=(*batch, rows * columns))
        start, step, length = _diagonal_start(columns, offset), columns + 1, _diagonal_length(rows, columns, offset)
        stops = (*batch, start + length * step)
        return flat.slice(starts=(*[0] * len(batch), start), stops=stops, steps=(*[1] * len(batch), step))


def _diagonal_length(rows: int, columns: int, offset: int) -> int:
    return max(0, min(rows + min(offset, 0), columns - max(offset, 0)))


def _diagonal_start(columns: int, offset: int) -> int:
    """Return the position of a diagonal's first element in row-major order."""
    return max(offset, -offset * columns)


def _diagonal_matrix(x: Value, offset: int) -> Value:
    (count,) = x.shape
    extent = count + abs(offset)
    start, size = _diagonal_start(extent, offset), extent * extent
    dilated = dilate(x, 0, extent + 1)
    padded = dilated.pad(pad_width=(start, size - start - dilated.type.size))
    return padded.reshape(shape=(extent, extent))
