"""Index operands: range checks, and negative indices, which count from the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, Final, Protocol

from engine.ir.attributes import Attr
from engine.ir.errors import IndexOutOfRange
from engine.ir.graph import Value
from engine.ir.op import Array, Namespace, NoGradient, ResultTypes, wrong_dtype
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import INT64, INTEGERS, TensorType
from engine.ops.common.batching import BatchedAsIs
from engine.ops.common.numerics import with_extent

#: set while a plan runs on a device: checks then record invalid indices instead of raising, and kernels access
#: arbitrary elements of their arrays
INDEX_ERRORS: Final[ContextVar[IndexErrors | None]] = ContextVar("INDEX_ERRORS", default=None)
#: attribute of ops that read or write at indices
FROM_END: Final = Attr("bool", False, "whether negative indices count from the end; −1 is the last", since=2)

# Asynchronous index checks: on a device, an invalid index is recorded in device memory, which is read after the run.
# Raising at once would make the host wait for every index tensor.


class IndexErrors(Protocol):
    """Recorder of invalid indices on a device."""

    def record(self, index: Array, extent: int, operand: int, lower: int) -> None:
        """Record on the device whether `index`, operand `operand` of the node, has an entry outside [lower, extent)."""


def require_integer(type: TensorType, operand: int, name: str) -> None:
    """Raise DtypeMismatch unless an index operand holds integers."""
    if type.dtype.name not in INTEGERS:
        raise wrong_dtype(name, operand, INTEGERS, type)


def check_indices(index: Array, extent: int, *, operand: int, lower: int = 0) -> None:
    """Raise IndexOutOfRange unless all entries are in [lower, extent): NumPy and CuPy would wrap negative ones.

    On a device, record the check in INDEX_ERRORS instead of waiting for its result.
    """
    notes = INDEX_ERRORS.get()
    if notes is not None and extent and index.size:
        notes.record(index, extent, operand, lower)
    elif index.size and not (int(index.min()) >= lower and int(index.max()) < extent):
        raise index_error(extent, operand, lower)


def coordinate_grid(xp: Namespace, index: Array, axis: int) -> tuple[Array, ...]:
    """Return the coordinates that the entries of `index` read along `axis`: one array per axis, which broadcast."""
    rank = index.ndim
    coordinates = [xp.arange(n).reshape(axis_shape(rank, i)) for i, n in enumerate(index.shape)]
    coordinates[axis] = index
    return tuple(coordinates)


def axis_shape(rank: int, axis: int, extent: int = -1) -> list[int]:
    """Return the shape of a 1-d tensor placed along `axis`: extent 1 on all other axes."""
    return [extent if i == axis else 1 for i in range(rank)]


def take_slices(x: Value, positions: Value, axis: int) -> Value:
    """Read the slices of x at `positions` [n] of an axis."""
    count = positions.shape[0]
    column = positions.reshape(shape=axis_shape(x.ndim, axis, count))
    return x.gather(column.broadcast_to(shape=with_extent(x.shape, axis, count)), axis=axis)


def is_broadcast_list(index: Array | TensorType, axis: int) -> bool:
    """Whether the index varies along `axis` only, and is broadcast along all other axes."""
    axes = enumerate(zip(index.shape, index.strides, strict=True))
    return index.size > 0 and all(i == axis or n == 1 or not step for i, (n, step) in axes)


def selects_slices(x: Array | TensorType, index: Array | TensorType, axis: int) -> bool:
    """Whether the index selects whole slices of x."""
    return is_broadcast_list(index, axis) and with_extent(x.shape, axis, 0) == with_extent(index.shape, axis, 0)


def index_error(extent: int, operand: int, lower: int = 0) -> IndexOutOfRange:
    """Return the error for an operand with an entry outside [lower, extent)."""
    expected = f"in [{lower}, {extent})"
    return IndexOutOfRange(
        f"operand {operand} holds an index outside the axis: all must lie {expected}",
        operand=operand,
        expected=expected,
        got="an entry outside",
    )


class FromEnd(BatchedAsIs):
    """y = index where that is at least 0, else index + extent: int64 in [0, extent).

    Where an index may not be `negative`, it is only checked.
    """

    name = "from_end"
    internal = True
    operands = ("index",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "extent": Attr("int", doc="the extent of the axis", minimum=0),
        "operand": Attr("int", doc="which operand of the client's node it is, for messages", minimum=0),
        "negative": Attr("bool", doc="whether it may be negative"),
    }
    gradient: ClassVar[str] = "none: indices have no derivative"
    vjp = NoGradient("indices have no derivative")

    def infer(self, index: TensorType, **attrs: Any) -> ResultTypes:
        """Return the index's shape with dtype int64."""
        return index.with_dtype(INT64)

    def forward(self, run: RunContext, index: Array, *, out: Array, extent: int, operand: int, negative: bool) -> None:
        """Check the range, then add the extent to negative entries without a branch: their shifted sign is all ones."""
        check_indices(index, extent, operand=operand, lower=-extent if negative else 0)
        out[...] = index
        if negative:
            offset = out >> 63
            offset &= extent
            out += offset

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write a `where`."""
        (index,) = operands
        index64 = index.cast(dtype=INT64)
        return ((index64 < 0).where(index64.add(attrs["extent"]), index64) if attrs["negative"] else index64,)

    def workspace(self, out: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Count the bytes of the term that is added."""
        return out.nbytes if attrs["negative"] else 0


FROM_END_OP: Final = FromEnd()


def make_non_negative(index: Value, extent: int, operand: int, from_end: bool) -> Value:
    """Make negative indices non-negative if `from_end`; the index is operand `operand` of a client's node."""
    if not from_end or index.dtype.kind == "u":
        return index
    return within_extent(index, extent, operand, from_end)


def within_extent(index: Value, extent: int, operand: int, from_end: bool) -> Value:
    """Convert the index to int64 in [0, extent), checking its range."""
    negative = from_end and index.dtype.kind != "u"
    return index.builder.emit(FROM_END_OP, (index,), {"extent": extent, "operand": operand, "negative": negative})


def list_from_front(indices: Sequence[int], extent: int) -> tuple[int, ...]:
    """Make a list of indices non-negative; invalid ones stay invalid."""
    return tuple(i + extent if -extent <= i < 0 else i for i in indices)
