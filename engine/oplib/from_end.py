"""Indices that may be negative, and then count from the end: made whole before anything is read by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from engine.graph.attributes import Attr
from engine.graph.ir import Value
from engine.graph.op import Array, NoGradient, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import INT64, TensorType
from engine.oplib.indices import check_indices

#: of ops that read or write at indices
FROM_END: Final = Attr("bool", False, "whether a negative index counts from the end: −1 is the last", since=2)


class FromEnd(Op):
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

    def batch(self, mapped: Sequence[bool], index: Value, **attrs: Any) -> Value:
        """Itself: it is elementwise."""
        return index.builder.emit(self, (index,), attrs)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """As a choice."""
        (index,) = operands
        wide = index.cast(dtype=INT64)
        return ((wide < 0).where(wide.add(attrs["extent"]), wide) if attrs["negative"] else wide,)

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """What is added."""
        assert isinstance(out, TensorType)
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
