"""Order along an axis: sorts, and the largest entries. Stable as NumPy's, NaN last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.by_device import DeviceFunction
from engine.graph.ir import Value
from engine.graph.op import Array, NoGradient, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import INT64, TensorType, normalise_axis


class Ordering(Op):
    """Base: the axis, and batching over the next one."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": Attr("int", doc="the axis to sort along")}
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(5), axis=0),
        Sample(Real(3, 4), axis=0),
        Sample(Real(2, 4), axis=-1),
        Sample(Ints(3, 5, high=3), axis=1),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front. Raises BadAttribute."""
        return {"axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def batch(self, mapped: Sequence[bool], x: Value, *, axis: int) -> Value:
        """The next axis."""
        return x.builder.emit(self, (x,), {"axis": axis + 1})

    def flops(self, out: ResultTypes, x: TensorType, *, axis: int) -> int:
        """n log₂ n comparisons a line."""
        return x.size * max(x.shape[axis] - 1, 0).bit_length()


class Sort(Ordering):
    """y = x in ascending order along an axis; equal entries keep their order, NaN comes last."""

    name = "sort"
    section = "sort"
    is_captured = False
    gradient = "g, put back where the entries came from"

    def infer(self, x: TensorType, *, axis: int) -> ResultTypes:
        """x's type."""
        return x

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int) -> None:
        """Copy, then sort in place."""
        out[...] = x
        is_stable = _tells_equals_apart(run, out)
        out.sort(axis=axis, kind="stable" if is_stable else "quicksort")

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int) -> Sequence[Value | None]:
        """A permutation's adjoint is its inverse."""
        return (x.full_like(0.0).scatter_add(x.argsort(axis=axis), g, axis=axis),)

    def workspace(self, out: ResultTypes, x: TensorType, *, axis: int) -> int:
        """A line to sort in, unless the result's own are dense, and half of one for merging."""
        assert isinstance(out, TensorType)
        return _line_copy(out, axis) + _merging(x, axis)


@DeviceFunction
def _tells_equals_apart(_: RunContext, x: Array) -> bool:  # noqa: ARG001 - nothing is known
    """Whether equal entries may be told apart; as far as is known without waiting to hear it."""
    return True


@_tells_equals_apart.on("cpu")
def _tells_zeros_apart(_: RunContext, x: Array) -> bool:
    """Whether there is a −0 to be told from 0. As an integer, its bits are the least that there is.

    Else the order of equals does not show, and NumPy has sorts that are twenty times as fast as its stable one.
    """
    if x.dtype.kind != "f" or not x.size:
        return False
    bits = x.view(f"i{x.itemsize}")
    return bool(bits.min() == np.iinfo(bits.dtype).min)


class ArgSort(Ordering):
    """y = the int64 positions that put x in ascending order along an axis; equal entries keep theirs, NaN last."""

    name = "argsort"
    section = "sort"
    is_captured = False
    gradient = "none: positions are constant"
    vjp = NoGradient("positions are constant")

    def infer(self, x: TensorType, *, axis: int) -> ResultTypes:
        """x's shape in int64."""
        return x.with_dtype(INT64)

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int) -> None:
        """The stable sort of positions."""
        out[...] = run.xp.argsort(x, axis=axis, kind="stable")

    def workspace(self, out: ResultTypes, x: TensorType, *, axis: int) -> int:
        """The positions; lines of x and of these to sort in, unless they are dense; half a line for merging."""
        assert isinstance(out, TensorType)
        return out.nbytes + _line_copy(x, axis) + _line_copy(out, axis) + _merging(out, axis)


def _line_copy(x: TensorType, axis: int) -> int:
    """Bytes of a dense copy of one line, where NumPy makes it."""
    return 0 if x.strides[axis] == x.dtype.itemsize else x.shape[axis] * x.dtype.itemsize


def _merging(x: TensorType, axis: int) -> int:
    """At most, which is when a line's halves are sorted apart."""
    return x.shape[axis] // 2 * x.dtype.itemsize
