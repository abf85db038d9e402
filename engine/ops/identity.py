"""Ops that hand their operand on as it is: for differentiation too, or cut off from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, NoGradient, ResultTypes, View
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import TensorType
from engine.rewrites.movement import unchanged


class PassThrough(View):
    """Base: the result is the operand."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    gradient: ClassVar[str] = "g"
    rewrites = (unchanged,)
    samples: ClassVar[tuple[Sample, ...]] = (Sample(Real(2, 3)), Sample(Ints(3, high=5)))
    reshapes = True

    def infer(self, *types: TensorType, **attrs: Any) -> ResultTypes:
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


class Identity(PassThrough):
    """y = x, as a node of its own."""

    name = "identity"
    section = "identity"


class CopyToDevice(PassThrough):
    """y = x.

    Where a graph runs is the server's choice, so there is nothing to move; the gradient passes through.
    """

    name = "copy_to_device"
    section = "identity"
    aliases: ClassVar[Mapping[str, str]] = {"copy_to_device": "sadl"}


class StopGradient(PassThrough):
    """y = x, and no derivative passes: for differentiation y is a constant."""

    name = "stop_gradient"
    section = "identity"
    gradient = "none: that is its purpose"
    vjp = NoGradient("that is the op's purpose")
