"""Arithmetic with a constant. The scalar is weak, as a Python float in NumPy 2: it does not widen a float dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array, NoGradient
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.oplib.elementwise import WithConstants
from engine.rewrites.arithmetic import scalar_of_negated, scalars_together, without_scalar
from engine.rewrites.movement import MOVING


class WithScalar(WithConstants):
    """Base: y = f(x, scalar)."""

    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"scalar": Attr("float", doc="the constant")}
    samples = (Sample(Real(2, 3), scalar=2.5), Sample(Real(), scalar=-0.5), Sample(Ints(3, high=9), scalar=4))
    #: the function of an element and the constant, in numpy and cupy
    function: ClassVar[str]
    #: whether it moves a complex number along the real axis, so that the imaginary part stays as it is
    shifts: ClassVar[bool] = False

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, scalar: float, **attrs: Any) -> None:
        """Part by part: the constant has no imaginary one, which zeros and infinities would tell."""
        (x,), function = xs, getattr(run.xp, self.function)
        function(x.real, scalar, out=out.real)
        if self.shifts:
            out.imag[...] = x.imag
        else:
            function(x.imag, scalar, out=out.imag)


class AddScalar(WithScalar):
    """y = x + scalar."""

    name = "add_scalar"
    section = "scalar"
    aliases = {"AddScalar": "born, minima"}
    function = "add"
    shifts = True
    gradient = "g"
    scalar = staticmethod(lambda x, scalar: x + scalar)
    rewrites = (without_scalar(0.0), *MOVING)
    partials = (lambda y, x, scalar: 1,)


class SubScalar(WithScalar):
    """y = x − scalar."""

    name = "sub_scalar"
    section = "scalar"
    aliases = {"SubScalar": "born"}
    function = "subtract"
    shifts = True
    gradient = "g"
    scalar = staticmethod(lambda x, scalar: x - scalar)
    rewrites = (without_scalar(0.0), *MOVING)
    partials = (lambda y, x, scalar: 1,)


class MulScalar(WithScalar):
    """y = x · scalar."""

    name = "mul_scalar"
    section = "scalar"
    aliases = {"MulScalar": "born, minima", "ScalarMul": "cjc"}
    function = "multiply"
    gradient = "g · scalar"
    scalar = staticmethod(lambda x, scalar: x * scalar)
    rewrites = (without_scalar(1.0), scalar_of_negated, scalars_together, *MOVING)
    partials = (lambda y, x, scalar: scalar,)


class DivScalar(WithScalar):
    """y = x / scalar. A scalar of 0 gives ±inf or NaN, as `div`."""

    name = "div_scalar"
    section = "scalar"
    aliases = {"DivScalar": "born, minima", "divide_scalar": "minima"}
    function = "divide"
    gradient = "g / scalar"
    rewrites = (without_scalar(1.0), *MOVING)
    scalar = staticmethod(lambda x, scalar: x / scalar)
    partials = NoGradient("written out in vjp")

    def vjp(self, g: Value, y: Value, x: Value, *, scalar: float) -> Sequence[Value | None]:
        """g / scalar, which is not g · (1/scalar) to the last bit, and exists for a scalar of 0 as well."""
        return (g / scalar,)
