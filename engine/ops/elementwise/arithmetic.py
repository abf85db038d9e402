"""Arithmetic: two operands, an operand and a constant, integer quotients, rounding, signs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from engine.ir.attributes import Attr
from engine.ir.graph import Value, conjugate
from engine.ir.op import Array, Namespace, NoGradient, Support
from engine.ir.run_context import DeviceMethod, RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import BOOL, DTYPES, DType, TensorType
from engine.ops.common.numerics import partial_sums_bytes, upcast, upcast_operands
from engine.ops.elementwise.base import Binary, Unary, WithConstants, unbroadcast
from engine.ops.rewrites import (
    ELEMENTWISE_RULES,
    factored_sign,
    involution,
    merged_scalars,
    mul_by_constant,
    negated_scalar,
    neutral_element,
    neutral_scalar,
    scalar_of_negated,
    sum_of_spans,
    sum_with_negated,
)

_INTEGERS = (
    Sample(Ints(2, 3, low=-9, high=9), Ints(3, low=1, high=5)),
    Sample(Ints(4, low=-9, high=9), Ints(low=-5, high=0)),
)
_FLOATS = (
    Sample(Real(2, 3, low=4.1, high=4.9), Real(3, low=1.8, high=2)),
    Sample(Real(2, low=-1.9, high=-1.1), Real(low=0.97, high=1)),
)


class Add(Binary):
    """y = a + b, elementwise, with NumPy broadcasting."""

    name = "add"
    is_linear = True
    section = "arithmetic"
    aliases = {"AddOp": "born", "Add": "born, cjc", "EWiseAdd": "minima"}
    dtypes = DTYPES
    ufunc = "add"
    commutative = True
    gradient = "da = g, db = g"
    partials = (lambda y, a, b: 1, lambda y, a, b: 1)
    rewrites = (neutral_element(0.0, either=True), sum_with_negated, sum_of_spans, *ELEMENTWISE_RULES)


class Sub(Binary):
    """y = a − b, elementwise, with NumPy broadcasting."""

    name = "sub"
    is_linear = True
    section = "arithmetic"
    aliases = {"SubOp": "born", "Sub": "born, cjc", "subtract": "sadl"}
    dtypes = DTYPES
    ufunc = "subtract"
    gradient = "da = g, db = −g"
    partials = (lambda y, a, b: 1, lambda y, a, b: -1)
    rewrites = (neutral_element(0.0, either=False), *ELEMENTWISE_RULES)


class Mul(Binary):
    """y = a · b, elementwise, with NumPy broadcasting."""

    name = "mul"
    section = "arithmetic"
    aliases = {"MulOp": "born", "Mul": "born, cjc", "EWiseMul": "minima", "multiply": "minima, sadl"}
    dtypes = DTYPES
    ufunc = "multiply"
    commutative = True
    gradient = "da = g · b, db = g · a"
    selects = True
    partials = (lambda y, a, b: b, lambda y, a, b: a)
    rewrites = (
        neutral_element(1.0, either=True),
        mul_by_constant,
        factored_sign(0),
        factored_sign(1),
        *ELEMENTWISE_RULES,
    )

    def leaves_out(self, nodes: Sequence[Any], operands: Sequence[int]) -> bool:
        """Return whether an operand is a bool, or a bool as numbers: a mask."""
        return any(_is_mask(nodes, i) for i in operands)

    def supported_vjp(
        self, gs: Sequence[Any], supports: Sequence[Support | None] | None, y: Any, *xs: Any, **attrs: Any
    ) -> tuple[Sequence[Any], Sequence[Support | None]]:
        """Leave out what a mask multiplies by zero."""
        gradients, kept = map(list, super().supported_vjp(gs, supports, y, *xs, **attrs))
        kept = kept or [None, None]
        for i, (x, other) in enumerate((xs, xs[::-1])):
            if x.shape == y.shape and gradients[i] is not None and _is_mask(y.builder.nodes, other.index):
                mask = other.not_equal(0).broadcast_to(shape=y.shape)
                gradients[i] = mask.where(gradients[i], 0.0)
                kept[i] = Support(partial(_narrowed, kept[i], mask))
        return gradients, kept


def _narrowed(support: Support | None, mask: Value) -> Value:
    """Return the part of a support, or of everything, where a mask is true."""
    return mask if support is None else support.value.logical_and(mask)


def _is_mask(nodes: Sequence[Any], index: int) -> bool:
    """Return whether a node is a bool, or one that was converted to numbers."""
    op, operands, _, types, _ = nodes[index]
    source = nodes[operands[0]].types[0] if op.name == "cast" else types[0]
    return bool(source.dtype == BOOL)


class Div(Binary):
    """y = a / b, elementwise, with NumPy broadcasting; integers give floats, x / 0 gives ±inf or NaN."""

    name = "div"
    section = "arithmetic"
    aliases = {"DivOp": "born", "Div": "born, cjc", "EWiseDiv": "minima", "divide": "minima, sadl"}
    dtypes = DTYPES
    ufunc = "divide"
    gradient = "da = g / b, db = −y · g / b"
    samples = tuple(Sample(a, Real(*b.shape, low=0.5, high=2)) for a, b in (s.operands for s in Binary.samples))
    rewrites = (neutral_element(1.0, either=False), *ELEMENTWISE_RULES)
    partials = NoGradient("written out in vjp")

    def vjp(self, g: Value, y: Value, a: Value, b: Value) -> Sequence[Value | None]:
        """Compute g / b, which both gradients need. It is finite even if 1 / b overflows."""
        y, a, b = upcast_operands(self, y, (a, b), {})
        quotient = upcast(g) / conjugate(b)
        return unbroadcast(quotient, a), unbroadcast(-(quotient * conjugate(y)), b)


def _mod_partial_b(y: Value, a: Value, b: Value) -> Value:
    """Return −⌊a / b⌋, computed from the exact remainder y: a / b itself may round up to an integer, as 1 / 0.1 does.

    If y is infinite, b is infinite and of the opposite sign to a, and −⌊a / b⌋ is 1.
    """
    return y.abs().equal(math.inf).where(1.0, ((y - a) / b).round())


class Mod(Binary):
    """y = a − b · ⌊a / b⌋: the remainder with the divisor's sign, as in Python's % and NumPy's mod.

    A float modulo 0 is NaN, an integer modulo 0 is 0.
    """

    name = "mod"
    section = "arithmetic"
    ufunc = "remainder"
    cost = 20
    gradient = "da = g, db = −g · ⌊a / b⌋"
    samples = (
        Sample(Real(2, 3, low=4.1, high=4.9), Real(3, low=1.8, high=2)),
        Sample(Real(2, low=-1.9, high=-1.1), Real(low=0.97, high=1)),
        Sample(Real(), Real(2, low=-9, high=-3)),
    )

    @DeviceMethod
    def compute(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """Call the ufunc."""
        super().compute(run, a, b, out=out)

    @compute.on("cuda")
    def _compute_on_cuda(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """Avoid CuPy's float remainder: it evaluates a − b · ⌊a / b⌋, and 1 mod 0.1 gives −5e-17 instead of 0.1."""
        if out.dtype.kind == "f":
            _float_mod(run.xp, a, b, out)
        else:
            super().compute(run, a, b, out=out)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """Count the per-block counters of a compiled kernel for quotients too large for it."""
        return partial_sums_bytes(out.size) if out.is_float else 0

    partials = (lambda y, a, b: 1, _mod_partial_b)


def _float_mod(xp: Namespace, a: Array, b: Array, out: Array) -> None:
    """Compute C's fmod, which is exact and has a's sign, then add b if the sign should be b's."""
    xp.fmod(a, b, out=out)
    other_sign = (out != 0) & ((out < 0) != (b < 0))
    out += xp.where(other_sign, b, 0).astype(out.dtype, copy=False)


# Arithmetic with a constant. The scalar is weakly typed, as a Python float in NumPy 2: it does not widen a float dtype.


class WithScalar(WithConstants):
    """Base: y = f(x, scalar)."""

    section = "scalar"
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"scalar": Attr("float", doc="constant operand")}
    samples = (Sample(Real(2, 3), scalar=2.5), Sample(Real(), scalar=-0.5), Sample(Ints(3, high=9), scalar=4))
    #: name of the function of an element and the constant in numpy and cupy
    function: ClassVar[str]
    #: whether the op shifts a complex number along the real axis and leaves the imaginary part unchanged
    shifts: ClassVar[bool] = False

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, scalar: float, **attrs: Any) -> None:
        """Compute part by part: an imaginary part of 0 in the constant would change signed zeros and infinities."""
        (x,), function = xs, getattr(run.xp, self.function)
        function(x.real, scalar, out=out.real)
        if self.shifts:
            out.imag[...] = x.imag
        else:
            function(x.imag, scalar, out=out.imag)


class AddScalar(WithScalar):
    """y = x + scalar."""

    name = "add_scalar"
    is_linear = True
    aliases = {"AddScalar": "born, minima"}
    function = "add"
    shifts = True
    gradient = "g"
    scalar = staticmethod(lambda x, scalar: x + scalar)
    rewrites = (neutral_scalar(0.0), *ELEMENTWISE_RULES)
    partials = (lambda y, x, scalar: 1,)


class SubScalar(WithScalar):
    """y = x − scalar."""

    name = "sub_scalar"
    is_linear = True
    aliases = {"SubScalar": "born"}
    function = "subtract"
    shifts = True
    gradient = "g"
    scalar = staticmethod(lambda x, scalar: x - scalar)
    rewrites = (neutral_scalar(0.0), *ELEMENTWISE_RULES)
    partials = (lambda y, x, scalar: 1,)


class MulScalar(WithScalar):
    """y = x · scalar."""

    name = "mul_scalar"
    is_linear = True
    aliases = {"MulScalar": "born, minima", "ScalarMul": "cjc"}
    function = "multiply"
    gradient = "g · scalar"
    scalar = staticmethod(lambda x, scalar: x * scalar)
    rewrites = (neutral_scalar(1.0), scalar_of_negated, merged_scalars, *ELEMENTWISE_RULES)
    partials = (lambda y, x, scalar: scalar,)


class DivScalar(WithScalar):
    """y = x / scalar. A scalar of 0 gives ±inf or NaN, as in `div`."""

    name = "div_scalar"
    is_linear = True
    aliases = {"DivScalar": "born, minima", "divide_scalar": "minima"}
    function = "divide"
    gradient = "g / scalar"
    rewrites = (neutral_scalar(1.0), *ELEMENTWISE_RULES)
    scalar = staticmethod(lambda x, scalar: x / scalar)
    partials = NoGradient("written out in vjp")

    def vjp(self, g: Value, y: Value, x: Value, *, scalar: float) -> Sequence[Value | None]:
        """Divide g by scalar: g · (1/scalar) may differ in the last bit, and 1/scalar fails for a scalar of 0."""
        return (g / scalar,)


class WholeQuotient(Binary):
    """Base: an integer quotient, piecewise constant."""

    section = "whole_division"
    since = 2
    cost = 20
    gradient: ClassVar[str] = "none: piecewise constant"
    partials = vjp = NoGradient("it is constant between its steps")
    samples: ClassVar[tuple[Sample, ...]] = (*_FLOATS, *_INTEGERS)


class FloorDiv(WholeQuotient):
    """y = ⌊a / b⌋, elementwise with broadcasting: Python's //; `mod` is the remainder. Integer division by 0 gives 0.

    PyTorch and NumPy: `floor_divide`. JAX: `jnp.floor_divide`, which gives −1 for integer division by 0.
    """

    name = "floor_div"
    ufunc = "floor_divide"
    truths = (
        Truth(operands=[[7, -7, 7, -7], [2, 2, -2, -2]], value=[3, -4, -4, 3], source="Python's //"),
        Truth(operands=[[7.5, -7.5], [2.0, 2.0]], value=[3.0, -4.0], source="Python's //"),
    )


class TruncDiv(WholeQuotient):
    """y = a / b rounded towards 0, elementwise with broadcasting: C's /. Integer division by 0 gives 0.

    `rem` is the remainder. PyTorch: `div` with rounding_mode trunc. JAX: `lax.div` of integers, which gives −1 for
    division by 0.
    """

    name = "trunc_div"
    ufunc = "floor_divide"
    truths = (
        Truth(operands=[[7, -7, 7, -7], [2, 2, -2, -2]], value=[3, -3, -3, 3], source="C's /"),
        Truth(operands=[[7.5, -7.5], [2.0, 2.0]], value=[3.0, -3.0], source="by hand"),
    )

    def compute(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """Divide and truncate; for integers, subtract the remainder first, so that the division is exact."""
        xp = run.xp
        if out.dtype.kind == "f":
            xp.divide(a, b, out=out)
            xp.trunc(out, out=out)
        else:
            xp.fmod(a, b, out=out)
            xp.subtract(a, out, out=out)
            xp.floor_divide(out, b, out=out)


class Rem(Binary):
    """y = a − b · (a / b rounded towards 0): C's % and fmod, with the sign of a. `mod` has the sign of b.

    If b is 0, y is NaN for floats and 0 for integers. PyTorch: `fmod`. JAX: `lax.rem`, which gives a for integers.
    """

    name = "rem"
    section = "whole_division"
    ufunc = "fmod"
    since = 2
    cost = 20
    gradient = "da = g, db = −g · (a / b rounded towards 0)"
    samples = (*_FLOATS, *_INTEGERS)
    partials = (lambda y, a, b: 1, lambda y, a, b: ((y - a) / b).round())
    truths = (
        Truth(operands=[[7, -7, 7, -7], [2, 2, -2, -2]], value=[1, -1, 1, -1], source="C's %"),
        Truth(
            operands=[[7.5, -7.5], [2.0, 2.0]], value=[1.5, -1.5], gradients=[[1.0, 1.0], [-3.0, 3.0]], source="by hand"
        ),
    )


class Rounding(Unary):
    """Base: a rounding ufunc, applied to floats only."""

    section = "rounding"
    cost = 1
    gradient = "none: piecewise constant"
    samples = (Sample(Real(2, 3)), Sample(Real()), Sample(Ints(3, high=5)))
    partials = vjp = NoGradient("it is constant between its steps")

    def result_dtype(self, *dtypes: DType, **attrs: Any) -> DType:
        """Return x's own dtype."""
        return dtypes[0]

    def compute(self, run: RunContext, x: Array, *, out: Array) -> None:
        """Call the ufunc if x is float; else copy."""
        xp = run.xp
        if x.dtype.kind == "f":
            getattr(xp, self.ufunc)(x, out=out)
        else:
            xp.copyto(out, x)


class Floor(Rounding):
    """y = ⌊x⌋: x rounded down to a whole number."""

    name = "floor"
    ufunc = "floor"


class Ceil(Rounding):
    """y = ⌈x⌉: x rounded up to a whole number."""

    name = "ceil"
    ufunc = "ceil"


class Round(Rounding):
    """y = x rounded to the nearest whole number, ties to even: 0.5 → 0, 1.5 → 2."""

    name = "round"
    ufunc = "rint"


def nonzero_size(size: Value) -> Value:
    """Replace 0 by 1 in |x|, to divide by."""
    return size.equal(0.0).where(1.0, size)


def unit(x: Value, size: Value) -> Value:
    """Return x / |x|, and 0 where x is 0, with derivatives of every order."""
    return size.equal(0.0).where(0.0, x / nonzero_size(size))


class Neg(Unary):
    """y = −x."""

    name = "neg"
    is_linear = True
    section = "sign"
    aliases = {"Neg": "cjc", "Negate": "minima", "negative": "sadl"}
    dtypes = DTYPES
    ufunc = "negative"
    cost = 1
    gradient = "−g"
    rewrites = (involution("neg"), negated_scalar, *ELEMENTWISE_RULES)
    partials = (lambda y, x: -1,)


class Abs(Unary):
    """y = |x|; real for a complex x. At 0 the gradient is 0, in every order."""

    name = "abs"
    section = "sign"
    aliases = {"Abs": "cjc", "absolute": "sadl"}
    dtypes = DTYPES
    ufunc = "absolute"
    cost = 1
    gradient = "g · sign x; for a complex x, g · x / |x|"
    samples = (Sample(Real(2, 3, low=0.5, high=2)), Sample(Real(3, low=-2, high=-0.5)), Sample(Real()))
    partials = (lambda y, x: x.sign(),)

    def vjp(self, g: Value, y: Value, *xs: Any, **attrs: Any) -> Sequence[Value | None]:
        """Multiply g by x / |x| if x is complex."""
        return (unit(xs[0], y) * g,) if xs[0].type.is_complex else super().vjp(g, y, *xs, **attrs)


class Sign(Unary):
    """y = −1, 0 or 1: the sign of x. NaN stays NaN."""

    name = "sign"
    section = "sign"
    ufunc = "sign"
    scalar = staticmethod(lambda x: (x > 0).where(1.0, (x < 0).where(-1.0, x.abs())))
    cost = 1
    gradient = "none: piecewise constant"
    samples = (Sample(Real(2, 3)), Sample(Ints(3, low=-2, high=2)))
    partials = vjp = NoGradient("it is constant between its steps")
