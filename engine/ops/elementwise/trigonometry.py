"""Circular and hyperbolic functions, their inverses, and the cardinal sine. Angles are in radians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from engine.codegen.kernels.program import Scalar
from engine.ir.graph import Value
from engine.ir.op import NONE
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import DTYPES
from engine.ops.elementwise.base import Binary, FloatUnary, Unary, power_series

_INSIDE = (Sample(Real(2, 3, low=-0.8, high=0.8)), Sample(Real(low=0, high=0.8)))
#: |x| below which the derivative of sinc is evaluated by its series
_SMALL = 0.5
#: coefficients of sinc′(x) / x = Σ (−1)ᵏ 2k π²ᵏ x²ᵏ⁻² / (2k + 1)!, k ≥ 1; the error is below 1e-19 for |x| ≤ 1/2
_SERIES = tuple((-1) ** k * 2 * k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, 13))


class _OneMinusSquare(FloatUnary):
    """y = (1 − x)(1 + x) = 1 − x², accurate next to ±1.

    An op of its own, since the derivatives of the two factors would cancel next to 0.
    """

    name = "one_minus_square"
    internal = True
    gradient = "−2 g · x"
    cost = 3
    scalar = staticmethod(lambda x: (1.0 - x) * (1.0 + x))
    partials = (lambda y, x: -2 * x,)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the product."""
        (x,) = operands
        return [(1 - x) * (1 + x)]


_ONE_MINUS_SQUARE: Final = _OneMinusSquare()


def _one_minus_square(x: Value) -> Value:
    return x.builder.emit(_ONE_MINUS_SQUARE, (x,), NONE)


class Sin(Unary):
    """y = sin x."""

    name = "sin"
    section = "trigonometry"
    aliases = {"SinOp": "born", "Sin": "born, cjc"}
    dtypes = DTYPES
    ufunc = "sin"
    gradient = "g · cos x"
    partials = (lambda y, x: x.cos(),)


class Cos(Unary):
    """y = cos x."""

    name = "cos"
    section = "trigonometry"
    aliases = {"CosOp": "born", "Cos": "born, cjc"}
    dtypes = DTYPES
    ufunc = "cos"
    gradient = "−g · sin x"
    partials = (lambda y, x: -x.sin(),)


class Tan(Unary):
    """y = tan x."""

    name = "tan"
    section = "trigonometry"
    ufunc = "tan"
    gradient = "g · (1 + y²)"
    samples = (Sample(Real(2, 3, low=-1, high=1)), Sample(Real(low=-1, high=1)))
    partials = (lambda y, x: 1 + y.square(),)


class Asin(Unary):
    """y = arcsin x in [−π/2, π/2], NaN for |x| > 1. At ±1 the derivative is infinite."""

    name = "asin"
    section = "trigonometry"
    ufunc = "arcsin"
    gradient = "g / √(1 − x²)"
    samples = _INSIDE
    partials = (lambda y, x: _one_minus_square(x).rsqrt(),)


class Acos(Unary):
    """y = arccos x in [0, π], NaN for |x| > 1. At ±1 the derivative is infinite."""

    name = "acos"
    section = "trigonometry"
    ufunc = "arccos"
    gradient = "−g / √(1 − x²)"
    samples = _INSIDE
    partials = (lambda y, x: -_one_minus_square(x).rsqrt(),)


class Atan(Unary):
    """y = arctan x in [−π/2, π/2]."""

    name = "atan"
    section = "trigonometry"
    ufunc = "arctan"
    gradient = "g / (1 + x²)"
    partials = (lambda y, x: (1 + x.square()).reciprocal(),)


class Atan2(Binary):
    """y = the angle in [−π, π] of the point with abscissa b and ordinate a, with broadcasting.

    At a = b = 0 the value is NumPy's (0 or ±π), and the derivatives, which do not exist there, are NaN. At infinity the
    derivatives are 0.
    """

    name = "atan2"
    section = "trigonometry"
    ufunc = "arctan2"
    cost = 20
    gradient = "da = g · b / (a² + b²), db = −g · a / (a² + b²)"
    samples = tuple(Sample(a, Real(*b.shape, low=0.5, high=2)) for a, b in (s.operands for s in Binary.samples))
    partials = (lambda y, a, b: _over_square(b, a, b), lambda y, a, b: -_over_square(a, a, b))


def _over_square(x: Value, a: Value, b: Value) -> Value:
    """Return x / (a² + b²) without overflow of the squares; 0 at infinity.

    The scale cancels, so the result and its derivatives do not depend on it.
    """
    scale = a.abs().maximum(b.abs()).stop_gradient()
    is_infinite = scale.equal(math.inf)
    x, a, b = (is_infinite.where(0.0, v) for v in (x, a, b))
    scale = is_infinite.where(1.0, scale)
    return x / scale / scale / (is_infinite.where(1.0, (a / scale).square() + (b / scale).square()))


class Sinh(Unary):
    """y = sinh x."""

    name = "sinh"
    section = "hyperbolic"
    dtypes = DTYPES
    ufunc = "sinh"
    gradient = "g · cosh x"
    partials = (lambda y, x: x.cosh(),)


class Cosh(Unary):
    """y = cosh x."""

    name = "cosh"
    section = "hyperbolic"
    dtypes = DTYPES
    ufunc = "cosh"
    gradient = "g · sinh x"
    partials = (lambda y, x: x.sinh(),)


class TanhSlope(FloatUnary):
    """y = 1 / cosh² x: the derivative of tanh, which keeps its digits where tanh rounds to 1.

    An op of its own, since 1 − tanh² x loses them.
    """

    name = "tanh_slope"
    internal = True
    gradient = "−2 g · y · tanh x"
    scalar = staticmethod(lambda x: x.builder.apply("sech2", x))
    partials = (lambda y, x: -2 * (y * x.tanh()),)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the product of two sigmoids."""
        (x,) = operands
        return [4 * ((2 * x).sigmoid() * (-2 * x).sigmoid())]


_TANH_SLOPE: Final = TanhSlope()


def tanh_slope(x: Value) -> Value:
    """Append the derivative of tanh at x."""
    return x.builder.emit(_TANH_SLOPE, (x,), NONE)


class Tanh(Unary):
    """y = tanh x."""

    name = "tanh"
    section = "hyperbolic"
    aliases = {"TanhOp": "born", "Tanh": "born", "TanhAct": "cjc"}
    dtypes = DTYPES
    ufunc = "tanh"
    gradient = "g · (1 − y²)"
    partials = (lambda y, x: 1 - y.square() if x.type.is_complex else tanh_slope(x),)


class Asinh(Unary):
    """y = arsinh x."""

    name = "asinh"
    section = "hyperbolic"
    ufunc = "arcsinh"
    gradient = "g / cosh y = g / √(x² + 1)"
    # In terms of y: x² overflows while the derivative is still a normal number.
    partials = (lambda y, x: y.cosh().reciprocal(),)


class Acosh(Unary):
    """y = arcosh x, NaN for x < 1. At 1 the derivative is infinite."""

    name = "acosh"
    section = "hyperbolic"
    ufunc = "arccosh"
    gradient = "g / sinh y = g / √(x² − 1)"
    samples = (Sample(Real(2, 3, low=1.5, high=3)), Sample(Real(low=1.5, high=3)))
    partials = (lambda y, x: y.sinh().reciprocal(),)


class Atanh(Unary):
    """y = artanh x: ±∞ at ±1, NaN beyond."""

    name = "atanh"
    section = "hyperbolic"
    ufunc = "arctanh"
    gradient = "g / (1 − x²)"
    samples = (Sample(Real(2, 3, low=-0.8, high=0.8)), Sample(Real(low=0, high=0.8)))
    partials = (lambda y, x: _one_minus_square(x).reciprocal(),)


def _sinc(x: Scalar) -> Scalar:
    """Return sin(πx) / πx: 1 at 0, and 0 at infinity.

    The distance to the nearest integer is exact, so sin πx keeps its relative accuracy next to its zeros.
    """
    nearest = x.rint()
    sign = 1.0 - 2.0 * (nearest - 2.0 * (nearest * 0.5).floor())
    y = sign * ((x - nearest) * math.pi).sin() / (x * math.pi)
    return x.eq(0.0).where(1.0, x.abs().eq(math.inf).where(0.0, y))


def _cos_pi(x: Value) -> Value:
    """Return cos πx, computed from the distance to the nearest integer."""
    nearest = x.round()
    sign = 1.0 - 2.0 * (nearest - 2.0 * (nearest * 0.5).floor())
    return sign * ((x - nearest) * math.pi).cos()


def _sinc_derivative(y: Value, x: Value) -> Value:
    """Return (cos πx − y) / x; near 0, where the difference cancels, use its series.

    Each branch gets operands at which it is finite, so that no NaN of the unused branch reaches a derivative.
    """
    is_small, is_infinite = x.abs() < _SMALL, x.abs().equal(math.inf)
    small, large = is_small.where(x, 0.0), is_small.logical_or(is_infinite).where(1.0, x)
    return is_small.where(
        small * power_series(_SERIES, small.square()), is_infinite.where(0.0, (_cos_pi(large) - y) / large)
    )


class Sinc(FloatUnary):
    """y = sin(πx) / πx, and 1 at 0. Exactly 0 at all other whole numbers and at infinity.

    Accurate to 4 ulp even next to whole numbers, where other libraries lose all digits. At whole numbers other than 0,
    the derivative is (−1)ˣ / x. NumPy, PyTorch and JAX: `sinc`.
    """

    name = "sinc"
    section = "sinc"
    since = 2
    cost = 30
    gradient = "g · (cos πx − y) / x, and 0 at 0"
    samples = (
        Sample(Real(2, 3, low=-3, high=3)),
        Sample(Real()),
        Sample(Real(3, low=-0.4, high=0.4)),
        Sample(Real(0, 2)),
        Sample(Ints(3, low=-2, high=3)),
    )
    truths = (
        Truth(
            operands=([0.5, 1.0, -1.5, 0.0, 0.25],),
            value=[2 / math.pi, 0.0, -2 / (3 * math.pi), 1.0, 2 * math.sqrt(2) / math.pi],
            gradients=([-4 / math.pi, -1.0, -4 / (9 * math.pi), 0.0, 4 * math.sqrt(0.5) * (1 - 4 / math.pi)],),
            source="by hand, where sin πx and cos πx are 0, ±1 and √½",
        ),
    )
    scalar = staticmethod(_sinc)
    partials = (_sinc_derivative,)
