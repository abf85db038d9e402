"""Exponentials, logarithms, powers and roots."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.codegen.kernels.program import Scalar
from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, OperandCount
from engine.ir.graph import Value, conjugate
from engine.ir.op import NONE, Array, Namespace, NoGradient, Op
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, REALS, TensorType, is_complex
from engine.ops.common.numerics import upcast, upcast_operands
from engine.ops.elementwise.arithmetic import AddScalar
from engine.ops.elementwise.base import Binary, FloatBinary, FloatUnary, Formula, Unary, WithConstants

_POSITIVE = (Sample(Real(2, 3, low=0.5, high=2)), Sample(Real(low=0.5, high=2)), Sample(Real(0, 2)))
_POSITIVE_BASE = Real(2, 3, low=0.5, high=2)


class Exp(Unary):
    """y = eˣ."""

    name = "exp"
    section = "exponential"
    aliases = {"ExpOp": "born, cjc, minima", "Exp": "born, cjc, minima"}
    dtypes = DTYPES
    ufunc = "exp"
    gradient = "g · y"
    partials = (lambda y, x: y,)


class Expm1(Unary):
    """y = eˣ − 1, accurate near 0."""

    name = "expm1"
    section = "exponential"
    ufunc = "expm1"
    gradient = "g · eˣ"
    # Not y + 1, which has lost all digits of eˣ for very negative x.
    partials = (lambda y, x: x.exp(),)


class Log(Unary):
    """y = ln x: −∞ at 0, NaN for x < 0.

    For a complex x, y = ln |x| + i · angle x. The branch cut is the negative real axis; on it, the sign of the
    imaginary zero selects the side (C99).
    """

    name = "log"
    section = "exponential"
    aliases = {"LogOp": "born", "Log": "born, minima", "Ln": "cjc"}
    dtypes = DTYPES
    ufunc = "log"
    samples = _POSITIVE
    gradient = "g / x"
    partials = (lambda y, x: x.reciprocal(),)


class Log1p(Unary):
    """y = ln(1 + x), accurate near 0."""

    name = "log1p"
    section = "exponential"
    ufunc = "log1p"
    samples = (Sample(Real(2, 3, low=-0.5, high=2)), Sample(Real(low=0, high=2)))
    gradient = "g / (1 + x)"
    partials = (lambda y, x: (1 + x).reciprocal(),)


class Log2(Unary):
    """y = log₂ x: −∞ at 0, NaN for x < 0."""

    name = "log2"
    section = "exponential"
    aliases = {"Log2": "cjc"}
    ufunc = "log2"
    samples = _POSITIVE
    gradient = "g / (x · ln 2)"
    partials = (lambda y, x: x.reciprocal() / math.log(2),)


class LogEps(Formula):
    """y = ln(x + eps): finite at 0."""

    name = "log_eps"
    section = "exponential"
    aliases = {"LogWithEpsilonOp": "born", "LogWithEpsilon": "born"}
    operands = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"eps": Attr("float", 1e-5, "number added to x")}
    dtypes = REALS
    samples = (Sample(Real(2, 3, low=0.5, high=2)), Sample(Real(low=0, high=2), eps=0.5), Sample(Ints(3, high=5)))
    gradient = "g / (x + eps)"

    def infer(self, *types: TensorType, eps: float) -> Any:
        """Return the type of x + eps, as add_scalar infers it."""
        return AddScalar().infer(*types, scalar=eps)

    def formula(self, x: Value, *, eps: float) -> Value:
        """Write log(x + eps)."""
        return (x + eps).log()


def _softmax_share(y: Value, a: Value, b: Value) -> Value:
    """Return eᵃ / (eᵃ + eᵇ) = sigmoid(a − b), with 0 / 0 = 0, and a − b taken as 0 where both are infinite and equal.

    The difference of equal finite operands is not replaced, since second derivatives pass through it.
    """
    both_infinite = a.equal(b).logical_and(a.abs().equal(math.inf))
    difference = both_infinite.where(0.0, a - b)
    return y.equal(-math.inf).where(-math.inf, difference).sigmoid()


def _log_of_sum(a: Scalar, b: Scalar) -> Scalar:
    """Return max(a, b) + ln(1 + e^−|a − b|), with a − b = 0 for equal infinities."""
    distance = a.eq(b).where(0.0, a - b).abs()
    return a.maximum(b) + (-distance).exp().log1p()


class LogAddExp(FloatBinary):
    """y = ln(eᵃ + eᵇ), stable. If both are −∞, y is −∞ and the gradients are 0; if both are ∞, each gets half of g."""

    name = "logaddexp"
    section = "exponential"
    cost = 20
    gradient = "da = g · sigmoid(a − b), db = g · sigmoid(b − a)"
    scalar = staticmethod(_log_of_sum)
    partials = (_softmax_share, lambda y, a, b: _softmax_share(y, b, a))


def power_rule(x: Value, exponent: float) -> Value | float:
    """Return the derivative of x^exponent; a constant for exponents 0 and 1, since 0 · x⁻¹ is NaN at 0."""
    if exponent in (0, 1):
        return exponent
    return 2 * x if exponent == 2 else exponent * x ** (exponent - 1)


#: exponents whose power is a few products and roots; x + 0 turns −0 into 0, so that the root's reciprocal is +∞
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


def _inverse_root(xp: Namespace, x: Array, out: Array) -> None:
    xp.sqrt(x, out=out)
    xp.reciprocal(out, out=out)


#: exponents whose power is a few products and roots, for complex numbers
_COMPLEX_POWERS: Mapping[float, Callable[[Namespace, Array, Array], object]] = {
    -2: lambda xp, x, out: xp.square(xp.reciprocal(x, out=out), out=out),
    -1: lambda xp, x, out: xp.reciprocal(x, out=out),
    -0.5: _inverse_root,
    0: lambda xp, x, out: out.fill(1),
    0.5: lambda xp, x, out: xp.sqrt(x, out=out),
    1: lambda xp, x, out: xp.copyto(out, x),
    2: lambda xp, x, out: xp.square(x, out=out),
    3: lambda xp, x, out: xp.multiply(xp.square(x), x, out=out),
    4: lambda xp, x, out: xp.square(xp.square(x, out=out), out=out),
}


class PowScalar(WithConstants):
    """y = x^exponent for a real exponent. 0⁰ = 1; a negative x to a fractional power is NaN.

    For a complex x, y = exp(exponent · log x), with the branch cut of `log`.
    """

    name = "pow_scalar"
    section = "power"
    aliases = {"PowerScalar": "minima", "power_scalar": "minima"}
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {"exponent": Attr("float", doc="exponent")}
    cost = 20
    gradient = "g · exponent · x^(exponent − 1), and 0 for an exponent of 0"
    samples = (
        *(Sample(Real(2, 3), exponent=n) for n in (0, 1, 2, 3, 4)),
        *(Sample(_POSITIVE_BASE, exponent=p) for p in (-1, -2, 0.5, 2.5, -0.5)),
        Sample(Real(), exponent=3),
        Sample(Ints(3, high=5), exponent=3),
    )
    scalar = staticmethod(lambda x, exponent: _POWERS[exponent](x) if exponent in _POWERS else None)
    partials = (lambda y, x, exponent: power_rule(x, exponent),)

    def vjp(self, g: Value, y: Value, *xs: Value, exponent: float) -> Sequence[Value | None]:
        """Derive the power −1 as `reciprocal`."""
        if exponent == -1:
            return _pull_back_reciprocal(self, g, y, xs, exponent=exponent)
        return super().vjp(g, y, *xs, exponent=exponent)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """Count the square that a complex third power allocates; else as the base."""
        return out.nbytes * (attrs["exponent"] == 3) if out.is_complex else super().workspace(out, *types, **attrs)

    def compute(self, run: RunContext, x: Array, *, out: Array, exponent: float) -> None:
        """Compute the formula, or call NumPy's power if the exponent has none."""
        if exponent in _POWERS or is_complex(out.dtype):
            super().compute(run, x, out=out, exponent=exponent)
        else:
            run.xp.power(x, out.dtype.type(exponent), out=out)

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, exponent: float, **attrs: Any) -> None:
        """Compute by products and roots, or call NumPy's power: exp(exponent · log x), or products."""
        (x,), xp = xs, run.xp
        if exponent in _COMPLEX_POWERS:
            _COMPLEX_POWERS[exponent](xp, x, out)
        else:
            xp.power(x, out.dtype.type(exponent), out=out)


class Pow(Binary):
    """y = aᵇ with broadcasting; with one operand, y = a^exponent, as in `pow_scalar`. 0⁰ = 1.

    A negative a to a fractional power is NaN, and so is its derivative with respect to b. The derivative with respect
    to b is 0 where a = 0 and b ≥ 0, and where a = ∞ and b < 0. Powers of integers are integers and wrap around as in
    NumPy. With a negative exponent they are truncated towards zero (2⁻¹ → 0, as in CuPy and PyTorch; NumPy raises an
    error), and 0⁻¹ → 0.
    """

    name = "pow"
    section = "power"
    aliases = {"power": "sadl", "Pow": "cjc"}
    operands = ("a", "b?")
    attrs: ClassVar[Mapping[str, Attr]] = {"exponent": Attr("float", None, "exponent, if there is no operand b")}
    ufunc = "power"
    cost = 20
    gradient = "da = g · b · aᵇ⁻¹, db = g · y · log a"
    samples = (
        Sample(_POSITIVE_BASE, Real(2, 3)),
        Sample(_POSITIVE_BASE, Real(3)),
        Sample(Real(2, 1, low=0.5, high=2), Real(1, 3)),
        Sample(Real(low=0.5, high=2), Real(2)),
        Sample(Ints(2, 3, high=5, low=-4), Ints(3, high=3, low=-3)),
        Sample(Real(2, 3), exponent=3),
    )
    partials = (lambda y, a, b, exponent: _pow_partial_base(a, b), lambda y, a, b, exponent: y * _log_base(a, b))

    def infer(self, *types: TensorType, exponent: float | None) -> Any:
        """Infer as `power` or as `pow_scalar`. Raises unless the exponent is either an operand or an attribute."""
        if len(types) == 2 and exponent is not None:
            raise BadAttribute(
                "attribute exponent cannot be combined with operand b", attribute="exponent", expected="one operand"
            )
        if len(types) == 1 and exponent is None:
            expected = "2 operands (a, b), or one and the attribute exponent"
            raise OperandCount(
                f"takes {expected}, but got only one operand", operand=1, expected=expected, got="1 operand"
            )
        return super().infer(*types) if len(types) == 2 else PowScalar().infer(*types, exponent=exponent)

    def compose(self, a: Value, *b: Value, exponent: float | None) -> Value | None:
        """Write `pow_scalar` if there is only one operand."""
        return None if b else a.pow_scalar(exponent=exponent)

    def compute(self, run: RunContext, a: Array, b: Array, *, out: Array, **attrs: None) -> None:
        """Call NumPy's power; for integers, handle negative exponents as the class docstring says."""
        xp = run.xp
        if out.dtype.kind == "f":
            xp.power(a, b, out=out, dtype=out.dtype)
        else:
            # Clearing the sign bit of a negative b keeps its parity, which is all that matters for a = ±1. Other
            # bases to a negative power are fractions, and become 0 below.
            is_signed = b.dtype.kind == "i"
            exponent = b & np.iinfo(b.dtype).max if is_signed else b  # kept until the end, as `workspace` counts it
            _integer_power(run, a, exponent, out)
            if is_signed:
                xp.copyto(out, 0, where=(b < 0) & (xp.abs(a) != 1))

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """Count the exponents, |a| and three masks that find fractions, for signed integers."""
        a, b = types
        if b.dtype.kind != "i" or a.is_float:
            return 0
        return int(b.nbytes + b.size + a.size + max(a.nbytes, out.size))


@DeviceFunction
def _integer_power(run: RunContext, a: Array, exponent: Array, out: Array) -> None:
    """Write aᵉ of integers with e ≥ 0 into `out`, wrapping on overflow."""
    run.xp.power(a, exponent, out=out, dtype=out.dtype)


@_integer_power.on("cuda")
def _integer_power_on_cuda(run: RunContext, a: Array, exponent: Array, out: Array) -> None:
    """Compute in int64, since cupy.power is wrong for narrow dtypes: 2⁹ in int8 gives 1 (CuPy 14.2)."""
    out[...] = run.xp.power(a.astype("int64"), exponent.astype("int64"))


def _pow_partial_base(a: Value, b: Value) -> Value:
    """Return b · aᵇ⁻¹; 0 instead of 0 · 0⁻¹ where a = b = 0, also in its derivatives with respect to a and b.

    Return 0 also where b is infinite and the power is 0.
    """
    both_zero = a.equal(0.0).logical_and(b.equal(0.0))
    power = a.pow(both_zero.where(1.0, b - 1))
    vanishes = power.equal(0.0).logical_and(b.is_finite().logical_not())
    return both_zero.logical_or(vanishes).where(0.0, b) * power


def _log_base(a: Value, b: Value) -> Value:
    """Return log a; 0 where a = 0 and b ≥ 0, or a = ∞ and b < 0: there d aᵇ / db is defined as 0."""
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
        """Multiply g · x first: 2x alone may overflow, and 0 · ∞ is NaN if g is 0."""
        return (upcast(g) * conjugate(upcast(x)) * 2,)


class Reciprocal(WithConstants):
    """y = 1 / x; integers give floats, as in `div`."""

    name = "reciprocal"
    section = "power"
    dtypes = DTYPES
    samples = (Sample(_POSITIVE_BASE), Sample(Real(low=-2, high=-0.5)), Sample(Ints(3, low=1, high=5)))
    gradient = "−g · y²"
    scalar = staticmethod(lambda x: 1 / x)

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """Call NumPy's ufunc."""
        run.xp.reciprocal(*xs, out=out)

    partials = NoGradient("written out in vjp")

    def vjp(self, g: Value, y: Value, *xs: Value) -> Sequence[Value | None]:
        """Multiply g by y twice."""
        return _pull_back_reciprocal(self, g, y, xs)


def _pull_back_reciprocal(op: Op, g: Value, y: Value, xs: Sequence[Value], **attrs: Any) -> Sequence[Value]:
    """Return −g · y², multiplied in this order: y² may overflow where the product does not."""
    y, *_ = upcast_operands(op, y, xs, attrs)
    y = conjugate(y)
    return (-(upcast(g) * y * y),)


class Sqrt(Unary):
    """y = √x; NaN for x < 0. At 0 the derivative is infinite.

    For a complex x, y is the root with Re y ≥ 0. The branch cut is the negative real axis; on it, the sign of the
    imaginary zero selects the side for value and gradient, as in PyTorch. JAX uses the derivative of one side for both.
    """

    name = "sqrt"
    section = "power"
    aliases = {"SqrtOp": "born", "Sqrt": "born, cjc"}
    dtypes = DTYPES
    ufunc = "sqrt"
    cost = 4
    samples = (Sample(_POSITIVE_BASE), Sample(Real(low=0.5, high=2)))
    gradient = "g / 2y"
    partials = (lambda y, x: 0.5 / y,)


class Rsqrt(FloatUnary):
    """y = 1 / √x; NaN for x < 0."""

    name = "rsqrt"
    section = "power"
    aliases = {"RsqrtOp": "born", "Rsqrt": "born, cjc"}
    dtypes = DTYPES
    cost = 5
    samples = (Sample(_POSITIVE_BASE), Sample(Real(low=0.5, high=2)))
    gradient = "−g · y³ / 2"
    scalar = staticmethod(lambda x: 1 / x.sqrt())

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """Call NumPy's ufuncs."""
        _inverse_root(run.xp, xs[0], out)

    partials = (lambda y, x: -0.5 * y * y.square(),)


def _times_log(x: Scalar, y: Scalar, log: Scalar) -> Scalar:
    """Return x · log; 0 where x is 0, unless y is NaN."""
    return x.eq(0.0).and_(y.eq(y)).where(0.0, x * log)


class _ZeroQuotient(FloatBinary):
    """z = x / y, and 0 where both are 0: the derivative of x · log y with respect to y, which is 0 for all y if x is 0.

    An op of its own, since its derivative with respect to x is 1 / y even there.
    """

    name = "zero_quotient"
    internal = True
    gradient = "dx = g / y, dy = −g · z / y"
    scalar = staticmethod(lambda x, y: x.eq(0.0).and_(y.eq(0.0)).where(0.0, x / y))
    partials = (lambda z, x, y: y.reciprocal(), lambda z, x, y: -_zero_quotient(z, y))

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the quotient with a choice."""
        x, y = operands
        return [x.equal(0.0).logical_and(y.equal(0.0)).where(0.0, x / y)]


_ZERO_QUOTIENT: Final = _ZeroQuotient()


def _zero_quotient(x: Value, y: Value) -> Value:
    return x.builder.emit(_ZERO_QUOTIENT, (x, y), NONE)


class TimesLogarithm(FloatBinary):
    """Base: x times a logarithm of y."""

    section = "xlogy"
    operands: ClassVar[tuple[str, ...]] = ("x", "y")
    since: ClassVar[int] = 2
    cost = 20


class Xlogy(TimesLogarithm):
    """y = x · log y, with broadcasting; 0 where x = 0, unless y is NaN.

    Same as in SciPy and PyTorch; JAX gives 0 for NaN, too. The derivative with respect to x is log y: −∞ where y = 0,
    so that of xlogy(x, x) at 0 is, too. Where x = 0 and y < 0 it is NaN, as in JAX (in PyTorch it is 0). The derivative
    with respect to y is x / y, and 0 where both are 0.
    """

    name = "xlogy"
    gradient = "dx = g · log y; dy = g · x / y, and 0 where x = y = 0"
    samples = (
        Sample(Real(2, 3), Real(2, 3, low=0.5, high=2)),
        Sample(Real(2, 3), Real(3, low=0.5, high=2)),
        Sample(Real(2, 1), Real(1, 3, low=0.5, high=2)),
        Sample(Real(), Real(2, low=0.5, high=2)),
        Sample(Real(0, 3), Real(3, low=0.5, high=2)),
        Sample(Ints(3, high=4), Ints(3, low=1, high=4)),
    )
    truths = (
        Truth(
            operands=([2.0, -0.5, 0.0], [3.0, 0.25, 0.0]),
            value=[2.1972245773362196, 0.6931471805599453, 0.0],
            gradients=([1.0986122886681098, -1.3862943611198906, -math.inf], [0.6666666666666666, -2.0, 0.0]),
            source="log 3, log 4 of a table; 2 / 3 and −0.5 / 0.25 by hand",
        ),
    )
    scalar = staticmethod(lambda x, y: _times_log(x, y, y.log()))
    partials = (lambda z, x, y: y.log(), lambda z, x, y: _zero_quotient(x, y))


class Xlog1py(TimesLogarithm):
    """y = x · log(1 + y), with broadcasting, accurate for small y; 0 where x = 0, unless y is NaN.

    Same as in SciPy and PyTorch (`special.xlog1py`); JAX gives 0 for NaN, too. The derivative with respect to x is
    log(1 + y): −∞ where y = −1, and NaN where y < −1. The derivative with respect to y is x / (1 + y), and 0 where
    x = 0 and y = −1.
    """

    name = "xlog1py"
    gradient = "dx = g · log(1 + y); dy = g · x / (1 + y), and 0 where x = 0 and y = −1"
    samples = (
        Sample(Real(2, 3), Real(2, 3, low=-0.5, high=2)),
        Sample(Real(2, 3), Real(3, low=-0.5, high=2)),
        Sample(Real(2, 1), Real(1, 3, low=-0.5, high=2)),
        Sample(Real(), Real(2, low=-0.5, high=2)),
        Sample(Real(0, 3), Real(3, low=-0.5, high=2)),
        Sample(Ints(3, high=4), Ints(3, high=4)),
    )
    truths = (
        Truth(
            operands=([2.0, -0.5, 3.0], [2.0, -0.75, 1e-20]),
            value=[2.1972245773362196, 0.6931471805599453, 3e-20],
            gradients=([1.0986122886681098, -1.3862943611198906, 1e-20], [0.6666666666666666, -2.0, 3.0]),
            source="log 3, log 4 of a table; log(1 + y) = y − y²/2 + …; the rest by hand",
        ),
    )
    scalar = staticmethod(lambda x, y: _times_log(x, y, y.log1p()))
    partials = (lambda z, x, y: y.log1p(), lambda z, x, y: _zero_quotient(x, 1 + y))
