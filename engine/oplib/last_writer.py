"""The last entry that writes to a place: its number, so that the same one stands on every device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.by_device import DeviceFunction
from engine.graph.ir import Value
from engine.graph.op import Array, NoGradient, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import INT64, HostArray, TensorType
from engine.oplib.apart import apart
from engine.oplib.indices import check_indices
from engine.oplib.segments import reduce_segments


class LastWriter(Op):
    """y[p] = the last i with index[i] = p, or −1 where there is none: int64 [extent], of an index [n]."""

    name = "last_writer"
    internal = True
    operands = ("index",)
    attrs: ClassVar[Mapping[str, Attr]] = {"extent": Attr("int", doc="how many places there are", minimum=0)}
    gradient: ClassVar[str] = "none: indices have no derivative"
    vjp = NoGradient("indices have no derivative")

    def infer(self, index: TensorType, *, extent: int) -> ResultTypes:
        """A number for each place."""
        return TensorType((extent,), INT64)

    def forward(self, run: RunContext, index: Array, *, out: Array, extent: int) -> None:
        """After the range check."""
        check_indices(index, extent, operand=0)
        out[...] = -1
        _write_largest(run, index, out)

    def batch(self, mapped: Sequence[bool], index: Value, *, extent: int) -> Value:
        """Places of N examples, one behind the other, of which each counts its own entries."""
        n, count = index.shape
        flat = apart(index, extent, 0).reshape(shape=(n * count,))
        found = last_writer(flat, n * extent).reshape(shape=(n, extent))
        before = index.builder.arange(n).mul(count).reshape(shape=(n, 1))
        own = found - before
        return (found < 0).where(found, own)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """As the largest number of a segment."""
        (index,) = operands
        numbers = index.builder.arange(index.shape[0])
        return (numbers.segment_max(index, segments=attrs["extent"]).clamp(min=-1),)

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """The numbers of the entries."""
        return INT64.itemsize * types[0].size


_OP: Final = LastWriter()


def last_writer(index: Value, extent: int) -> Value:
    """Which entry of an index [n], whose entries lie in [0, extent), comes last at each place; −1 where none does."""
    return index.builder.emit(_OP, (index,), {"extent": extent})


@DeviceFunction
def _write_largest(run: RunContext, index: Array, out: Array) -> None:
    """By the largest number: which of several threads writes last is not said."""
    reduce_segments(run, "maximum", run.xp.arange(len(index)), index, out)


@_write_largest.on("cpu")
def _write_in_order(_: RunContext, index: HostArray, out: HostArray) -> None:
    """NumPy assigns one after the other."""
    out[index] = np.arange(len(index))
