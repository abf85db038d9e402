"""Index operands: integers within the axis, also counted from its end, and range checks."""

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

#: whoever runs a plan on a device sets it: then no check raises, and a kernel reads and writes somewhere in its arrays
INDEX_NOTES: Final[ContextVar[IndexNotes | None]] = ContextVar("INDEX_NOTES", default=None)
#: of ops that read or write at indices
FROM_END: Final = Attr("bool", False, "whether a negative index counts from the end: −1 is the last", since=2)

# Index checks that do not wait: on a device, that an index is outside is noted, and read when the run is over.


class IndexNotes(Protocol):
    """Place where it is noted."""

    def note(self, index: Array, extent: int, operand: int, least: int) -> None:
        """Note, on the device, whether an entry of `index`, that operand of the node, is not in [least, extent)."""


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
    """Position of what each entry of `index` picks along `axis`, axis by axis; they broadcast."""
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
        """int64."""
        return index.with_dtype(INT64)

    def forward(self, run: RunContext, index: Array, *, out: Array, extent: int, operand: int, negative: bool) -> None:
        """Without a branch, after the range check: of a negative number, all bits of its sign are 1."""
        check_indices(index, extent, operand=operand, least=-extent if negative else 0)
        out[...] = index
        if negative:
            added = out >> 63
            added &= extent
            out += added

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write it as a `where`."""
        (index,) = operands
        wide = index.cast(dtype=INT64)
        return ((wide < 0).where(wide.add(attrs["extent"]), wide) if attrs["negative"] else wide,)

    def workspace(self, out: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Count the bytes of the sum with the extent."""
        return out.nbytes if attrs["negative"] else 0


FROM_END_OP: Final = FromEnd()


def from_front(index: Value, extent: int, operand: int, from_end: bool) -> Value:
    """The index, which is this operand of a client's node, as one that is never negative where it is to be."""
    if not from_end or index.dtype.kind == "u":
        return index
    return within_extent(index, extent, operand, from_end)


def within_extent(index: Value, extent: int, operand: int, from_end: bool) -> Value:
    """The same as int64, and known to be in [0, extent) from here on."""
    negative = from_end and index.dtype.kind != "u"
    return index.builder.emit(FROM_END_OP, (index,), {"extent": extent, "operand": operand, "negative": negative})


def listed_from_front(indices: Sequence[int], extent: int) -> tuple[int, ...]:
    """The same of indices that are known; what is outside stays so."""
    return tuple(i + extent if -extent <= i < 0 else i for i in indices)
