"""Error function, its complement and inverse, and the logarithm of the normal distribution function."""

from __future__ import annotations

import math

from engine.ir.graph import Value
from engine.ir.sample import Ints, Real, Sample
from engine.ops.elementwise.base import FloatUnary, LibraryFunction, in_float32

#: x below which the derivative of log_ndtr is a continued fraction, and the depth of the fraction
_LEFT_TAIL, _LEVELS = -5.0, 12


def _erf_derivative(x: Value) -> Value:
    """Return the derivative of erf: 2/√π · exp(−x²)."""
    return (-x.square()).exp() * (2 / math.sqrt(math.pi))


class Erf(FloatUnary):
    """y = erf x = 2/√π ∫₀ˣ exp(−t²) dt. Accurate to 2 units in the last place (ulp)."""

    name = "erf"
    section = "erf"
    cost = 60
    gradient = "g · 2/√π · exp(−x²)"
    scalar = staticmethod(lambda x: x.erf())
    partials = (lambda y, x: _erf_derivative(x),)


class Erfc(FloatUnary):
    """y = erfc x = 1 − erf x. Accurate to 2 units in the last place (ulp), even where y is small."""

    name = "erfc"
    section = "erf"
    cost = 60
    gradient = "−g · 2/√π · exp(−x²)"
    scalar = staticmethod(lambda x: x.erfc())
    partials = (lambda y, x: -_erf_derivative(x),)


class Erfinv(LibraryFunction):
    """y such that erf y = x: ±∞ at ±1, NaN beyond. Accurate to 2 ulp."""

    name = "erfinv"
    section = "erfinv"
    function = "erfinv"
    gradient = "g · √π/2 · exp(y²)"
    samples = (
        Sample(Real(2, 3, low=-0.9, high=0.9)),
        Sample(Real(low=-0.9, high=0.9)),
        Sample(Ints(2, low=-1, high=2)),
    )
    scalar = staticmethod(in_float32("erfinv"))
    partials = (lambda y, x: y.square().exp() * (math.sqrt(math.pi) / 2),)


def _log_ndtr_derivative(y: Value, x: Value) -> Value:
    """Return φ(x) / Φ(x) = exp(−x²/2 − y) / √2π; in the left tail, where this cancels, use a continued fraction.

    Each branch gets operands at which it is finite, so that no NaN of the unused branch reaches a derivative.
    """
    clamped, log_distribution = x.clamp(min=2 * _LEFT_TAIL, max=40.0), y.clamp(min=-52.0)
    ratio = (clamped.square() * -0.5 - log_distribution).exp() / math.sqrt(2 * math.pi)
    return (x < _LEFT_TAIL).where(_inverse_mills_ratio((-x).clamp(min=-_LEFT_TAIL)), ratio)


def _inverse_mills_ratio(z: Value) -> Value:
    """Return φ(z) / (1 − Φ(z)) for z ≥ 5: the even part of z + 1/(z + 2/(z + 3/(z + …))) (DLMF 7.9.2, 1.12.20).

    No terms cancel, so the derivatives are as accurate.
    """
    square = z.square()
    t = square + (4.0 * _LEVELS + 1)
    for k in range(_LEVELS - 1, 0, -1):
        t = (square + (4.0 * k + 1)) - (2.0 * k + 1) * (2 * k + 2) / t
    return z + (1 - 2 / t) / z


class LogNdtr(LibraryFunction):
    """y = log Φ(x), with Φ the standard normal distribution function. Accurate to 4 ulp in both tails.

    The derivative φ(x) / Φ(x) and its own derivatives keep their relative accuracy where Φ(x) underflows. For x > 0,
    the derivative is as accurate as exp(−x²/2): to x²/2 ulp.
    """

    name = "log_ndtr"
    section = "erfinv"
    function = "log_ndtr"
    gradient = "g · φ(x) / Φ(x), with φ the density"
    samples = (
        Sample(Real(2, 3, low=-3, high=3)),
        Sample(Real(low=-3, high=3)),
        Sample(Real(4, low=-40, high=-5.5)),
        Sample(Real(4, low=2, high=6)),
        Sample(Ints(3, low=-3, high=3)),
    )
    scalar = staticmethod(in_float32("log_ndtr"))
    partials = (_log_ndtr_derivative,)
