"""Arithmetic with a constant. The scalar is weak, as a Python float in NumPy 2: it does not widen a float dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.ir import Value
from engine.graph.op import Array, KernelCall, Namespace, NoGradient
from engine.graph.sample import Ints, Real, Sample
from engine.oplib.elementwise import WithConstants


class WithScalar(WithConstants):
    """Base: y = f(x, scalar) by a ufunc of two operands."""

    attrs: ClassVar[Mapping[str, Attr]] = {"scalar": Attr("float", doc="the constant")}
    samples = (Sample(Real(2, 3), scalar=2.5), Sample(Real(), scalar=-0.5), Sample(Ints(3, high=9), scalar=4))

    def compute(self, xp: Namespace, x: Array, *, out: Array, scalar: float) -> None:
        """The ufunc, with the scalar in the result's dtype."""
        getattr(xp, self.ufunc)(x, out.dtype.type(scalar), out=out)

    def bind(self, xp: Namespace, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """The ufunc itself, with the scalar as a 0-d array, which it need not convert."""
        return getattr(xp, self.ufunc), (*operands, xp.asarray(attrs["scalar"], out.dtype), out)


class AddScalar(WithScalar):
    """y = x + scalar."""

    name = "add_scalar"
    aliases = {"AddScalar": "born, minima"}
    ufunc = "add"
    gradient = "g"
    partials = (lambda y, x, scalar: 1,)


class SubScalar(WithScalar):
    """y = x − scalar."""

    name = "sub_scalar"
    aliases = {"SubScalar": "born"}
    ufunc = "subtract"
    gradient = "g"
    partials = (lambda y, x, scalar: 1,)


class MulScalar(WithScalar):
    """y = x · scalar."""

    name = "mul_scalar"
    aliases = {"MulScalar": "born, minima", "ScalarMul": "cjc"}
    ufunc = "multiply"
    gradient = "g · scalar"
    partials = (lambda y, x, scalar: scalar,)


class DivScalar(WithScalar):
    """y = x / scalar. A scalar of 0 gives ±inf or NaN, as `div`."""

    name = "div_scalar"
    aliases = {"DivScalar": "born, minima", "divide_scalar": "minima"}
    ufunc = "divide"
    gradient = "g / scalar"
    partials = NoGradient("written out in vjp")

    def vjp(self, g: Value, y: Value, x: Value, *, scalar: float) -> Sequence[Value | None]:
        """g / scalar, which is not g · (1/scalar) to the last bit, and exists for a scalar of 0 as well."""
        return (g / scalar,)
