"""Complex numbers and their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from engine.ir.graph import Value, conjugate
from engine.ir.op import Array, NoGradient
from engine.ir.run_context import RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import COMPLEX64, DTYPES, DType, float_dtype, promote, real_dtype
from engine.ops.elementwise.arithmetic import nonzero_size, unit
from engine.ops.elementwise.base import Binary, Unary, unbroadcast
from engine.ops.rewrites import ELEMENTWISE_RULES, involution

_IN_VJP = NoGradient("written out in vjp")


class MakeComplex(Binary):
    """y = re + i · im, elementwise with broadcasting; complex64 for float32 and narrower floats, else complex128.

    Infinities, NaN and the signs of zeros in both parts are preserved, unlike in the expression re + im · i. PyTorch:
    `complex`. JAX: `lax.complex`.
    """

    name = "make_complex"
    is_linear = True
    section = "complex_parts"
    since = 2
    operands = ("re", "im")
    scalar = staticmethod(lambda re, im: re.pair(im))
    gradient = "d re = Re g, d im = Im g"
    partials = _IN_VJP
    truths = (
        Truth(
            operands=[[1.0, -2.0], [3.0, 0.5]],
            value=[1 + 3j, -2 + 0.5j],
            cotangent=[2 - 1j, 3 + 4j],
            gradients=[[2.0, 3.0], [-1.0, 4.0]],
            source="by hand",
        ),
    )

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return the complex dtype that holds both parts."""
        return promote(float_dtype(*dtypes), COMPLEX64)

    def compute(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """Write part by part."""
        out.real, out.imag = xs

    def vjp(self, g: Value, y: Value, *xs: Value, **attrs: Any) -> Sequence[Value | None]:
        """Return the parts of g."""
        re, im = xs
        return unbroadcast(g.real(), re), unbroadcast(g.imag(), im)


class ComplexPart(Unary):
    """Base of ops that compose differently for a real operand, and compute with NumPy for a complex one."""

    section = "complex_parts"
    since = 2
    dtypes = DTYPES
    cost = 1
    samples: ClassVar[tuple[Sample, ...]] = (Sample(Real(2, 3)), Sample(Real()), Sample(Ints(3, high=5)))
    partials = _IN_VJP

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return the dtype of the parts."""
        return real_dtype(dtypes[0])


class RealPart(ComplexPart):
    """y = Re x; a real x is returned unchanged. PyTorch, JAX and NumPy: `real`."""

    name = "real"
    is_linear = True
    complex_scalar = staticmethod(lambda x: x.real())
    gradient = "g, with the imaginary part 0"
    truths = (
        Truth(
            operands=[[1 + 3j, -2 - 0.5j]],
            value=[1.0, -2.0],
            cotangent=[2.0, 3.0],
            gradients=[[2 + 0j, 3 + 0j]],
            source="by hand",
        ),
    )

    def compose(self, x: Value) -> Value | None:
        """Return x if it is real."""
        return None if x.type.is_complex else x.identity()

    def compute(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """Copy NumPy's view."""
        out[...] = xs[0].real

    def vjp(self, g: Value, y: Value, *xs: Value, **attrs: Any) -> Sequence[Value | None]:
        """Return g, which is widened to complex where it is added."""
        return (g,)


class ImaginaryPart(ComplexPart):
    """y = Im x; 0 for a real x. JAX and NumPy: `imag`. PyTorch's `imag` rejects a real x."""

    name = "imag"
    is_linear = True
    complex_scalar = staticmethod(lambda x: x.imag())
    gradient = "i · g"
    truths = (
        Truth(
            operands=[[1 + 3j, -2 - 0.5j]],
            value=[3.0, -0.5],
            cotangent=[2.0, 3.0],
            gradients=[[2j, 3j]],
            source="by hand",
        ),
    )

    def compose(self, x: Value) -> Value | None:
        """Return 0 if x is real."""
        return None if x.type.is_complex else x.full_like(0.0)

    def compute(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """Copy NumPy's view."""
        out[...] = xs[0].imag

    def vjp(self, g: Value, y: Value, *xs: Value, **attrs: Any) -> Sequence[Value | None]:
        """Return g as the imaginary part."""
        return (g.full_like(0.0).make_complex(g),)


class Conj(Unary):
    """y = conj x: the imaginary part is negated; a real x is returned unchanged. PyTorch, JAX and NumPy: `conj`."""

    name = "conj"
    is_linear = True
    section = "complex_parts"
    since = 2
    dtypes = DTYPES
    ufunc = "conjugate"
    cost = 1
    gradient = "conj g"
    samples = ComplexPart.samples
    rewrites = (involution("conj"), *ELEMENTWISE_RULES)
    partials = _IN_VJP
    truths = (
        Truth(
            operands=[[1 + 3j, -2 - 0.5j]],
            value=[1 - 3j, -2 + 0.5j],
            cotangent=[2 - 1j, 3 + 4j],
            gradients=[[2 + 1j, 3 - 4j]],
            source="by hand",
        ),
    )

    def compose(self, x: Value) -> Value | None:
        """Return x if it is real."""
        return None if x.type.is_complex else x.identity()

    def vjp(self, g: Value, y: Value, *xs: Value, **attrs: Any) -> Sequence[Value | None]:
        """Return conj g: conjugation is self-adjoint under Re⟨a, b⟩."""
        return (conjugate(g),)


class Angle(Unary):
    """y = the angle of x in [−π, π]: atan2(Im x, Re x); 0 or π for a real x. NaN if a part is NaN.

    The branch cut is the negative real axis; on it, the sign of the imaginary zero selects the side (as in C99's carg).
    At 0 the gradient is 0, as in PyTorch; in JAX it is NaN.
    """

    name = "angle"
    section = "complex_parts"
    complex_scalar = staticmethod(lambda x: x.angle())
    since = 2
    dtypes = DTYPES
    cost = 20
    gradient = "i · g · x / |x|², 0 at 0; none for a real x"
    samples = (Sample(Real(2, 3)), Sample(Real()), Sample(Ints(3, low=1, high=5)))
    partials = _IN_VJP
    truths = (
        Truth(
            operands=[[3 + 4j, -2j]],
            value=[0.9272952180016122, -1.5707963267948966],
            cotangent=[2.0, 3.0],
            gradients=[[-0.32 + 0.24j, 1.5 + 0j]],
            source="by hand: atan 4/3 and −π/2; i · 2 · (3 + 4i) / 25, i · 3 · (−2i) / 4",
        ),
    )

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return the dtype of the parts; for integers, that of NumPy's exp."""
        return real_dtype(float_dtype(*dtypes))

    def compose(self, x: Value) -> Value | None:
        """Return 0 or π if x is real, without a gradient."""
        if x.type.is_complex:
            return None
        fixed = x.cast(dtype=float_dtype(x.dtype)).stop_gradient()
        return fixed.full_like(0.0).atan2(fixed)

    def compute(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """Call NumPy's arctan2 on the parts."""
        run.xp.arctan2(xs[0].imag, xs[0].real, out=out)

    def vjp(self, g: Value, y: Value, *xs: Value, **attrs: Any) -> Sequence[Value | None]:
        """Turn the direction of x by 90°, and divide by |x|."""
        (x,) = xs
        size = x.abs()
        direction = unit(x, size)
        tangent = (-direction.imag()).make_complex(direction.real())
        return (tangent * (g / nonzero_size(size)),)
