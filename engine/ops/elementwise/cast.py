"""Casts, and ops that hand their operand on as it is: for differentiation too, or cut off from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.ir.attributes import Attr
from engine.ir.dtypes import DTYPES, is_complex, real_dtype
from engine.ir.errors import DtypeMismatch
from engine.ir.graph import Value
from engine.ir.op import Array, KernelCall, Namespace, NoGradient, ResultTypes, View
from engine.ir.run_context import RunContext
from engine.ir.sample import Bools, Ints, Real, Sample
from engine.ir.tensor_type import DType, TensorType
from engine.ops.common.batching import BatchedAsIs
from engine.ops.rewrites import unchanged


class Cast(BatchedAsIs):
    """y = x in another dtype, as NumPy's astype: fractions are cut off towards zero, nonzero is true.

    float → float is differentiable; through integers and bool there is no path. A real x becomes complex; a complex one
    never real, of which `real` says what is meant.
    """

    name = "cast"
    section = "cast"
    aliases: ClassVar[Mapping[str, str]] = {"Cast": "born", "astype": "sadl"}
    operands = ("x",)
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"dtype": Attr("dtype", doc="the result's dtype")}
    gradient = "g, cast back"
    may_disconnect = ("x",)
    rewrites = (unchanged,)
    samples = (
        Sample(Real(2, 3), dtype="float64"),
        Sample(Real(2, 3), dtype="int32"),
        Sample(Ints(3, high=5), dtype="float64"),
        Sample(Bools(3), dtype="float32"),
    )

    def infer(self, x: TensorType, *, dtype: DType) -> ResultTypes:
        """x's shape in `dtype`. Raises DtypeMismatch for a complex x in a real one."""
        if x.is_complex and not is_complex(dtype):
            wanted, got = "a complex dtype", dtype.name
            raise DtypeMismatch(
                f"operand 0 (x) is {x.dtype.name}, which cast does not make {got}: use real, imag or abs",
                operand=0,
                expected=wanted,
                got=got,
            )
        return x.with_dtype(dtype)

    def forward(self, run: RunContext, x: Array, *, out: Array, dtype: DType) -> None:
        """Convert while copying."""
        out[...] = x

    def in_elements(self, x: Value, *, dtype: DType) -> Value | None:
        """Of a real x of the same width as a complex number's parts: with an imaginary part of 0."""
        return x.make_complex(0.0) if is_complex(dtype) and real_dtype(dtype) == x.dtype else None

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """The assignment itself."""
        return out.__setitem__, (..., *operands)

    def vjp(self, g: Value, y: Value, x: Value, *, dtype: DType) -> Sequence[Value | None]:
        """The cotangent; what accumulates it casts it back."""
        return (g,)


class PassThrough(BatchedAsIs, View):
    """Base: the result is the operand."""

    section = "identity"
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


class Identity(PassThrough):
    """y = x, as a node of its own."""

    name = "identity"


class CopyToDevice(PassThrough):
    """y = x.

    Where a graph runs is the server's choice, so there is nothing to move; the gradient passes through.
    """

    name = "copy_to_device"
    aliases: ClassVar[Mapping[str, str]] = {"copy_to_device": "sadl"}


class StopGradient(PassThrough):
    """y = x, and no derivative passes: for differentiation y is a constant."""

    name = "stop_gradient"
    gradient = "none: that is its purpose"
    vjp = NoGradient("that is the op's purpose")
