"""Indices of several examples as those of one that holds them all, one behind the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from engine.graph.attributes import Attr
from engine.graph.ir import Value
from engine.graph.op import Array, NoGradient, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import INT64, TensorType
from engine.oplib.indices import check_indices, column_of


class ApartIndices(Op):
    """y[…, n, …] = index[…, n, …] + n · extent, n along `axis`: int64. Each index lies in [0, extent)."""

    name = "apart"
    internal = True
    operands = ("index",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "axis": Attr("int", doc="the axis of the examples"),
        "extent": Attr("int", doc="the extent that one example indexes", minimum=0),
        "operand": Attr("int", doc="which operand of the client's node it is, for messages", minimum=0),
    }
    gradient: ClassVar[str] = "none: indices have no derivative"
    vjp = NoGradient("indices have no derivative")

    def infer(self, index: TensorType, **attrs: Any) -> ResultTypes:
        """int64."""
        return index.with_dtype(INT64)

    def forward(self, run: RunContext, index: Array, *, out: Array, axis: int, extent: int, operand: int) -> None:
        """After the range check: what is outside would be of another example."""
        check_indices(index, extent, operand=operand)
        offsets = extent * run.xp.arange(index.shape[axis])
        run.xp.add(index, offsets.reshape(column_of(index.ndim, axis)), out=out)

    def batch(self, mapped: Sequence[bool], index: Value, *, axis: int, **attrs: Any) -> Value:
        """The next axis."""
        return index.builder.emit(self, (index,), {"axis": axis + 1, **attrs})

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """As a sum."""
        (index,), axis = operands, attrs["axis"]
        offsets = index.builder.arange(index.shape[axis]).mul(attrs["extent"])
        return (index.cast(dtype=INT64) + offsets.reshape(shape=column_of(index.ndim, axis)),)

    def workspace(self, out: ResultTypes, *types: TensorType, axis: int, **attrs: Any) -> int:
        """The numbers of the examples, and their offsets."""
        return 2 * INT64.itemsize * types[0].shape[axis]


_OP: Final = ApartIndices()


def apart(index: Value, extent: int, operand: int, axis: int = 0) -> Value:
    """The indices of examples along `axis`, which are this operand of a client's node, each with its own extent."""
    return index.builder.emit(_OP, (index,), {"axis": axis, "extent": extent, "operand": operand})
