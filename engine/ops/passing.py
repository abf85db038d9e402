"""Ops that hand their operand on: unchanged, cut off from differentiation, or in another dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from engine.attrs import Attr
from engine.op import Array, Namespace, NoGradient, Op, Types, View
from engine.sample import Bools, Ints, Real, Sample
from engine.tensor_type import DType, TensorType

if TYPE_CHECKING:
    from engine.ir import Value


class Passing(View):
    """Base: the result is the operand."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    gradient: ClassVar[str] = "g"
    samples: ClassVar[tuple[Sample, ...]] = (Sample(Real(2, 3)), Sample(Ints(3, high=5)))
    reshapes = True

    def infer(self, *types: TensorType, **attrs: Any) -> Types:
        """The operand's type."""
        return types[0]

    def view(self, xp: Namespace, x: Array) -> Array:
        """The operand."""
        return x

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """The cotangent passes."""
        return (g,)

    def batch(self, mapped: Sequence[bool], x: Value) -> Value:
        """Itself."""
        return x.builder.emit(self, (x,), {})


class Identity(Passing):
    """y = x, as a node of its own."""

    name = "identity"


class CopyToDevice(Passing):
    """y = x.

    Where a graph runs is the server's choice, so there is nothing to move; the gradient passes through.
    """

    name = "copy_to_device"
    aliases: ClassVar[Mapping[str, str]] = {"copy_to_device": "sadl"}


class StopGradient(Passing):
    """y = x, and no derivative passes: for differentiation y is a constant."""

    name = "stop_gradient"
    gradient = "none: that is its purpose"
    vjp = NoGradient("that is the op's purpose")


class Cast(Op):
    """y = x in another dtype, as NumPy's astype: fractions are cut off towards zero, nonzero is true.

    float → float is differentiable; through integers and bool there is no path.
    """

    name = "cast"
    aliases: ClassVar[Mapping[str, str]] = {"Cast": "born", "astype": "sadl"}
    operands = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"dtype": Attr("dtype", doc="the result's dtype")}
    gradient = "g, cast back"
    samples = (
        Sample(Real(2, 3), dtype="float64"),
        Sample(Real(2, 3), dtype="int32"),
        Sample(Ints(3, high=5), dtype="float64"),
        Sample(Bools(3), dtype="float32"),
    )

    def infer(self, x: TensorType, *, dtype: DType) -> Types:
        """x's shape in `dtype`."""
        return x.with_dtype(dtype)

    def forward(self, xp: Namespace, x: Array, *, out: Array, dtype: DType) -> None:
        """Convert while copying."""
        out[...] = x

    def vjp(self, g: Value, y: Value, x: Value, *, dtype: DType) -> Sequence[Value | None]:
        """The cotangent; what accumulates it casts it back."""
        return (g,)

    def batch(self, mapped: Sequence[bool], x: Value, **attrs: Any) -> Value:
        """Itself."""
        return x.builder.emit(self, (x,), attrs)
