"""Powers and roots. Derivatives lower the exponent, and stay finite at 0 where they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.by_device import DeviceFunction
from engine.graph.dtypes import DTYPES, is_complex
from engine.graph.errors import BadAttribute, OperandCount
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, NoGradient, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import TensorType
from engine.loops.program import Scalar
from engine.oplib.conjugates import conjugate
from engine.oplib.elementwise import Binary, FloatUnary, Unary, WithConstants
from engine.oplib.widening import wide

_POSITIVE = Real(2, 3, low=0.5, high=2)


def power_rule(x: Value, exponent: float) -> Value | float:
    """The derivative of x^exponent. Down to a constant: never 0 · x⁻¹, which is NaN at 0."""
    if exponent in (0, 1):
        return exponent
    return 2 * x if exponent == 2 else exponent * x ** (exponent - 1)


#: exponents of which a power is a few products and roots; −0 is brought to 0 where the sign would be that of ∞
_POWERS: Mapping[float, Callable[[Scalar], Scalar]] = {
    -2: lambda x: 1 / x * (1 / x),
    -1: lambda x: 1 / x,
    -0.5: lambda x: 1 / (x + 0).sqrt(),
    0: lambda x: x.builder.constant(1),
    0.5: lambda x: x.sqrt(),
    1: lambda x: x,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    4: lambda x: x * x * (x * x),
}


def _inverse_square(xp: Namespace, x: Array, out: Array) -> None:
    xp.reciprocal(x, out=out)
    xp.square(out, out=out)


def _inverse_root(xp: Namespace, x: Array, out: Array) -> None:
    xp.sqrt(x, out=out)
    xp.reciprocal(out, out=out)


def _one(_: Namespace, x: Array, out: Array) -> None:  # noqa: ARG001 - whatever it is
    out[...] = 1


def _fourth(xp: Namespace, x: Array, out: Array) -> None:
    xp.square(x, out=out)
    xp.square(out, out=out)


#: the same for complex numbers
_COMPLEX_POWERS: Mapping[float, Callable[[Namespace, Array, Array], object]] = {
    -2: _inverse_square,
    -1: lambda xp, x, out: xp.reciprocal(x, out=out),
    -0.5: _inverse_root,
    0: _one,
    0.5: lambda xp, x, out: xp.sqrt(x, out=out),
    1: lambda xp, x, out: xp.copyto(out, x),
    2: lambda xp, x, out: xp.square(x, out=out),
    3: lambda xp, x, out: xp.multiply(xp.square(x), x, out=out),
    4: _fourth,
}


class PowScalar(WithConstants):
    """y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.

    Of a complex x, exp(exponent · log x), with the cut of `log`.
    """

    name = "pow_scalar"
    section = "power"
    aliases = {"PowerScalar": "minima", "power_scalar": "minima"}
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"exponent": Attr("float", doc="the exponent")}
    cost = 20
    gradient = "g · exponent · x^(exponent − 1), and 0 for an exponent of 0"
    samples = (
        *(Sample(Real(2, 3), exponent=n) for n in (0, 1, 2, 3, 4)),
        *(Sample(_POSITIVE, exponent=p) for p in (-1, -2, 0.5, 2.5, -0.5)),
        Sample(Real(), exponent=3),
        Sample(Ints(3, high=5), exponent=3),
    )
    scalar = staticmethod(lambda x, exponent: _POWERS[exponent](x) if exponent in _POWERS else None)
    partials = (lambda y, x, exponent: power_rule(x, exponent),)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """The square, of which a third power is made of complex numbers."""
        assert isinstance(out, TensorType)
        return out.nbytes * (attrs["exponent"] == 3) if out.is_complex else super().workspace(out, *types, **attrs)

    def compute(self, run: RunContext, x: Array, *, out: Array, exponent: float) -> None:
        """As the formula, or by NumPy's power where there is none."""
        if exponent in _POWERS or is_complex(out.dtype):
            super().compute(run, x, out=out, exponent=exponent)
        else:
            run.xp.power(x, out.dtype.type(exponent), out=out)

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, exponent: float, **attrs: Any) -> None:
        """By the same few products and roots, or by NumPy's power: exp(exponent · log x), or products."""
        (x,), xp = xs, run.xp
        if exponent in _COMPLEX_POWERS:
            _COMPLEX_POWERS[exponent](xp, x, out)
        else:
            xp.power(x, out.dtype.type(exponent), out=out)


class Pow(Binary):
    """y = aᵇ, broadcasting; with one operand y = a^exponent, which is `pow_scalar`. 0⁰ = 1.

    A negative a to a fractional power is NaN, and so is its derivative by b. By b, the derivative is 0 where a = 0
    and b ≥ 0, or where a = ∞ and b < 0. Powers of integers are integers: they wrap around as NumPy's, and to a negative
    exponent they are cut off towards zero (2⁻¹ → 0, as CuPy and PyTorch have it, where NumPy refuses) with 0⁻¹ → 0.
    """

    name = "pow"
    section = "power"
    aliases = {"power": "sadl", "Pow": "cjc"}
    operands = ("a", "b?")
    attrs: ClassVar[Mapping[str, Attr]] = {"exponent": Attr("float", None, "the exponent, where there is no operand b")}
    ufunc = "power"
    cost = 20
    gradient = "da = g · b · aᵇ⁻¹, db = g · y · log a"
    samples = (
        Sample(_POSITIVE, Real(2, 3)),
        Sample(_POSITIVE, Real(3)),
        Sample(Real(2, 1, low=0.5, high=2), Real(1, 3)),
        Sample(Real(low=0.5, high=2), Real(2)),
        Sample(Ints(2, 3, high=5, low=-4), Ints(3, high=3, low=-3)),
        Sample(Real(2, 3), exponent=3),
    )
    partials = (
        lambda y, a, b, exponent: _lowered(a, b),
        lambda y, a, b, exponent: y * _finite_log(a, b),
    )

    def infer(self, *types: TensorType, exponent: float | None) -> Any:
        """The exponent is either an operand or an attribute."""
        if len(types) == 2 and exponent is not None:
            raise BadAttribute("attribute exponent is for one operand, but there are 2", expected="one operand")
        if len(types) == 1 and exponent is None:
            wanted = "2 operands (a, b), or one and the attribute exponent"
            raise OperandCount(
                f"takes {wanted}, but got one operand alone", operand=1, expected=wanted, got="1 operand"
            )
        return super().infer(*types) if len(types) == 2 else PowScalar().infer(*types, exponent=exponent)

    def compose(self, a: Value, *b: Value, exponent: float | None) -> Value | None:
        """`pow_scalar`, where there is one operand."""
        return None if b else a.pow_scalar(exponent=exponent)

    def compute(self, run: RunContext, a: Array, b: Array, *, out: Array, exponent: None) -> None:
        """NumPy's power; integers as the docstring says."""
        xp = run.xp
        if out.dtype.kind == "f":
            xp.power(a, b, out=out, dtype=out.dtype)
        else:
            # The power by |b|, or an exponent as odd as it; 0 in place of a fraction.
            signed = b.dtype.kind == "i"
            _whole_power(run, a, b & np.iinfo(b.dtype).max if signed else b, out)
            if signed:
                xp.copyto(out, 0, where=(b < 0) & (xp.abs(a) != 1))

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Of signed integers: the exponents; |a|; and where there is a fraction, which takes three masks to tell."""
        a, b = types
        if b.dtype.kind != "i" or a.is_float:
            return 0
        assert isinstance(out, TensorType)
        return int(b.nbytes + b.size + a.size + max(a.nbytes, out.size))


@DeviceFunction
def _whole_power(run: RunContext, a: Array, exponent: Array, out: Array) -> None:
    """out = aᵉ of integers, e ≥ 0; what does not fit wraps."""
    run.xp.power(a, exponent, out=out, dtype=out.dtype)


@_whole_power.on("cuda")
def _wide_power(run: RunContext, a: Array, exponent: Array, out: Array) -> None:
    """By way of int64, since cupy.power with a narrow dtype is wrong: 2⁹ in int8 gives 1 (CuPy 14.2)."""
    out[...] = run.xp.power(a.astype("int64"), exponent.astype("int64"))


def _lowered(a: Value, b: Value) -> Value:
    """b · aᵇ⁻¹; but 0 where a = b = 0, and not 0 · 0⁻¹. So are its derivatives there, by b, too: the order is free.

    It is 0 as well where an infinite b leaves nothing of the power.
    """
    ends = a.equal(0.0).logical_and(b.equal(0.0))
    power = a.pow(ends.where(1.0, b - 1))
    none = power.equal(0.0).logical_and(b.is_finite().logical_not())
    return ends.logical_or(none).where(0.0, b) * power


def _finite_log(a: Value, b: Value) -> Value:
    """log a; but 0 where a = 0 and b ≥ 0, where aᵇ is constant in b, or takes its last step; and likewise at ∞."""
    at_zero = a.equal(0.0).logical_and(b >= 0)
    at_infinity = (a > 0).logical_and(a.is_finite().logical_not()).logical_and(b < 0)
    return at_zero.logical_or(at_infinity).where(1.0, a).log()


class Square(Unary):
    """y = x²."""

    name = "square"
    section = "power"
    aliases = {"square": "sadl"}
    dtypes = DTYPES
    ufunc = "square"
    cost = 1
    gradient = "g · 2x"
    scalar = staticmethod(lambda x: x * x)
    partials = NoGradient("written out in vjp")

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """g · x first: 2x alone may overflow, where g is 0 beside it."""
        return (wide(g) * conjugate(wide(x)) * 2,)


class Reciprocal(WithConstants):
    """y = 1 / x; integers give floats, as `div`."""

    name = "reciprocal"
    section = "power"
    dtypes = DTYPES
    samples = (Sample(_POSITIVE), Sample(Real(low=-2, high=-0.5)), Sample(Ints(3, low=1, high=5)))
    gradient = "−g · y²"
    scalar = staticmethod(lambda x: 1 / x)

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """By NumPy's ufunc."""
        run.xp.reciprocal(*xs, out=out)

    partials = (lambda y, x: -y.square(),)


class Sqrt(Unary):
    """y = √x, NaN for x < 0. At 0 the derivative is infinite.

    Of a complex x the root with Re y ≥ 0. The cut is the negative real axis: the sign of the imaginary zero says from
    which side value and gradient are taken, as in PyTorch. JAX takes the derivative of one side for both.
    """

    name = "sqrt"
    section = "power"
    aliases = {"SqrtOp": "born", "Sqrt": "born, cjc"}
    dtypes = DTYPES
    ufunc = "sqrt"
    cost = 4
    samples = (Sample(_POSITIVE), Sample(Real(low=0.5, high=2)))
    gradient = "g / 2y"
    partials = (lambda y, x: 0.5 / y,)


class Rsqrt(FloatUnary):
    """y = 1 / √x, NaN for x < 0."""

    name = "rsqrt"
    section = "power"
    aliases = {"RsqrtOp": "born", "Rsqrt": "born, cjc"}
    dtypes = DTYPES
    cost = 5
    samples = (Sample(_POSITIVE), Sample(Real(low=0.5, high=2)))
    gradient = "−g · y³ / 2"
    scalar = staticmethod(lambda x: 1 / x.sqrt())

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """By NumPy's ufuncs."""
        _inverse_root(run.xp, xs[0], out)

    partials = (lambda y, x: -0.5 * y * y.square(),)
