"""The same bits as another dtype: what loops read and write, whose operands are floats, and what lies in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.copying import copying
from engine.graph.ir import Value
from engine.graph.op import Array, KernelCall, Namespace, NoGradient, ResultTypes, View
from engine.graph.run_context import RunContext
from engine.graph.sample import Sample
from engine.graph.tensor_type import DType, TensorType


def bitcast(x: Value, dtype: DType) -> Value:
    """The bits of x as elements of a dtype.

    Of a narrower one, there is one more axis behind the others, the lowest bits first; of a wider one, the last axis is
    one element of it. An output of a graph may not be a feed that is seen so.
    """
    return x.builder.emit(_BITCAST, (x,), {"dtype": dtype})


class Bitcast(View):
    """x's bits as elements of another dtype, on machines whose lowest byte comes first."""

    name = "bitcast"
    internal = True
    reshapes = True
    samples: ClassVar[tuple[Sample, ...]] = ()
    operands: ClassVar[tuple[str, ...]] = ("x",)
    gradient: ClassVar[str] = "none: bits are constant"
    vjp = NoGradient("bits are constant")
    attrs: ClassVar[Mapping[str, Attr]] = {"dtype": Attr("dtype", doc="of the result")}

    def infer(self, x: TensorType, *, dtype: DType) -> ResultTypes:
        """x's shape, with one more axis, or one less, where the widths differ."""
        if dtype.itemsize > x.dtype.itemsize:
            return TensorType(x.shape[:-1], dtype)
        each = x.dtype.itemsize // dtype.itemsize
        return TensorType(x.shape if each == 1 else (*x.shape, each), dtype)

    def view(self, xp: Namespace, x: Array, *, dtype: DType) -> Array:
        """Of a dense array."""
        if dtype.itemsize == x.itemsize:
            return x.view(dtype)
        if dtype.itemsize > x.itemsize:
            return x.view(dtype).reshape(x.shape[:-1])
        return x.reshape(*x.shape, 1).view(dtype)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """The copy, of what is not dense."""
        ((place, x),) = self.as_copies(run.xp, operands, out, attrs)
        return copying(run, x, place)

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Any, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]]:
        """One, of the bits as they are."""
        (x,) = operands
        return [(self.view(xp, out, dtype=x.dtype), x)]

    def batch(self, mapped: Sequence[bool], x: Value, **attrs: Any) -> Value:
        """Itself."""
        return x.builder.emit(self, (x,), attrs)


_BITCAST = Bitcast()
