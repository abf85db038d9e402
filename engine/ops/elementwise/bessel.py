"""Modified Bessel functions of the first kind, unscaled and scaled by exp(−|x|)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from engine.codegen.functions.generated.bessel_coefficients import BESSEL_SPLIT, DIFFERENCE_FAR
from engine.codegen.functions.special_functions import write_i0, write_i0e, write_i1, write_i1e
from engine.ir.graph import Value
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ops.elementwise.base import FloatUnary, power_series

#: |x| below which I₁(x) / x is evaluated by its series Σ (x / 2)²ᵏ / (2 · k! (k + 1)!); the error is below 1e-19
_SMALL = 1.0
_SERIES = tuple(0.5 / (4.0**k * math.factorial(k) * math.factorial(k + 1)) for k in range(11))

_X = [1.0, -2.5, 10.0]
_I0 = [1.2660658777520084, 3.289839144050123, 2815.7166284662545]
_I1 = [0.565159103992485, -2.5167162452886984, 2670.9883037012547]
_I0E = [0.46575960759364044, 0.27004644161220275, 0.1278333371634286]
_I1E = [0.20791041534970845, -0.20658464953126655, 0.12126268138445552]


def _truth(values: Sequence[float], slopes: Sequence[float]) -> tuple[Truth]:
    return (Truth(operands=(_X,), value=[*values], gradients=([*slopes],), source="mpmath.besseli in 40 digits"),)


def _over_x(y: Value, x: Value) -> Value:
    """Return I₁(x) / x for y = I₁(x), by series near 0, so that derivatives do not divide by x; 0 where y is infinite.

    Each branch gets operands at which it is finite, so that no NaN of the unused branch reaches a derivative.
    """
    is_small = x.abs() < _SMALL
    series = power_series(_SERIES, is_small.where(x, 0.0).square())
    return is_small.where(series, y.abs().equal(math.inf).where(0.0, y) / is_small.where(1.0, x))


def _scaled_over_x(y: Value, x: Value) -> Value:
    """Return exp(−|x|) I₁(x) / x for y = exp(−|x|) I₁(x)."""
    is_small = x.abs() < _SMALL
    small = is_small.where(x, 0.0)
    series = (-small.abs()).exp() * power_series(_SERIES, small.square())
    return is_small.where(series, y / is_small.where(1.0, x))


def _difference(x: Value) -> Value:
    """Return exp(−|x|) (I₀(x) − |I₁(x)|) for |x| ≥ 8, where the difference cancels: a polynomial in 16 / |x| − 1."""
    inverse = x.abs().clamp(min=BESSEL_SPLIT).reciprocal()
    return inverse * inverse.sqrt() * power_series(DIFFERENCE_FAR["float64"], 2 * BESSEL_SPLIT * inverse - 1.0)


def _i0e_derivative(y: Value, x: Value) -> Value:
    """Return the derivative of I₀ₑ: I₁ₑ(x) − sign(x) I₀ₑ(x)."""
    sign = x.sign()
    return (x.abs() < BESSEL_SPLIT).where(x.i1e() - sign * y, -sign * _difference(x))


def _i1e_derivative(y: Value, x: Value) -> Value:
    """Return the derivative of I₁ₑ: I₀ₑ(x) − sign(x) I₁ₑ(x) − I₁ₑ(x) / x."""
    return (x.abs() < BESSEL_SPLIT).where(x.i0e() - x.sign() * y, _difference(x)) - _scaled_over_x(y, x)


class Bessel(FloatUnary):
    """Base: a formula over arithmetic and exponentials."""

    section = "bessel"
    since: ClassVar[int] = 2
    cost = 100
    samples = (
        Sample(Real(2, 3, low=-3, high=3)),
        Sample(Real()),
        Sample(Real(4, low=7, high=12)),
        Sample(Real(3, low=-9, high=-7)),
        Sample(Real(0, 2)),
        Sample(Ints(3, low=-2, high=3)),
    )


class I0e(Bessel):
    """y = exp(−|x|) I₀(x). Accurate to 4 ulp.

    The derivative is accurate even for large x, where I₀ and I₁ agree in most digits. At 0, where |x| has a kink, it is
    0, as in PyTorch and JAX. SciPy and PyTorch: `special.i0e`. JAX: `bessel_i0e`.
    """

    name = "i0e"
    gradient = "g · (i1e(x) − sign(x) · y)"
    truths = _truth(_I0E, [-0.257849192243932, 0.06346179208093618, -0.006570655778973089])
    scalar = staticmethod(write_i0e)
    partials = (_i0e_derivative,)


class I1e(Bessel):
    """y = exp(−|x|) I₁(x). Accurate to 4 ulp. At 0, the derivative is 1/2.

    SciPy and PyTorch: `special.i1e`. JAX: `bessel_i1e`.
    """

    name = "i1e"
    gradient = "g · (i0e(x) − y · (sign(x) + 1 / x)), and g / 2 at 0"
    truths = _truth(_I1E, [0.04993877689422354, -0.019172067731570436, -0.005555612359472463])
    scalar = staticmethod(write_i1e)
    partials = (_i1e_derivative,)


class I0(Bessel):
    """y = I₀(x). Accurate to 5 ulp; infinite for |x| > 713.98.

    SciPy's is infinite from 709.78 on. NumPy: `i0`. PyTorch: `special.i0`. JAX: `scipy.special.i0`.
    """

    name = "i0"
    gradient = "g · i1(x)"
    truths = _truth(_I0, _I1)
    scalar = staticmethod(write_i0)
    partials = (lambda y, x: x.i1(),)


class I1(Bessel):
    """y = I₁(x). Accurate to 5 ulp. At 0, the derivative is 1/2.

    SciPy and PyTorch: `special.i1`. JAX: `scipy.special.i1`.
    """

    name = "i1"
    gradient = "g · (i0(x) − y / x), and g / 2 at 0"
    truths = _truth(_I1, [0.7009067737595233, 2.2831526459346437, 2548.617798096129])
    scalar = staticmethod(write_i1)
    partials = (lambda y, x: x.i0() - _over_x(y, x),)
