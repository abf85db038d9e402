"""The error function, its complement and its inverse, and the logarithm of the normal distribution function."""

from __future__ import annotations

import math

from engine.ir.graph import Value
from engine.ir.sample import Ints, Real, Sample
from engine.ops.elementwise.base import FloatUnary, LibraryFunction, in_float32

#: further left, the derivative of log_ndtr is a continued fraction of so many levels
_LEFT, _LEVELS = -5.0, 12


def _slope(x: Value) -> Value:
    """The derivative of erf: 2/√π · exp(−x²)."""
    return (-x.square()).exp() * (2 / math.sqrt(math.pi))


class Erf(FloatUnary):
    """y = erf x = 2/√π ∫₀ˣ exp(−t²) dt, to 2 units in the last place."""

    name = "erf"
    section = "erf"
    cost = 60
    gradient = "g · 2/√π · exp(−x²)"
    scalar = staticmethod(lambda x: x.erf())
    partials = (lambda y, x: _slope(x),)


class Erfc(FloatUnary):
    """y = erfc x = 1 − erf x, to 2 units in the last place, also where it is small."""

    name = "erfc"
    section = "erf"
    cost = 60
    gradient = "−g · 2/√π · exp(−x²)"
    scalar = staticmethod(lambda x: x.erfc())
    partials = (lambda y, x: -_slope(x),)


class Erfinv(LibraryFunction):
    """y with erf y = x: ±∞ at ±1, NaN beyond. To 2 units."""

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


def _density_by_distribution(y: Value, x: Value) -> Value:
    """φ(x) / Φ(x): exp(−x²/2 − y) / √2π; but far left, where that cancels, by a continued fraction in −x.

    Each side gets operands at which it is finite, so that no NaN of the other one reaches a derivative.
    """
    near, log = x.clamp(min=2 * _LEFT, max=40.0), y.clamp(min=-52.0)
    ratio = (near.square() * -0.5 - log).exp() / math.sqrt(2 * math.pi)
    return (x < _LEFT).where(_inverse_mills_ratio((-x).clamp(min=-_LEFT)), ratio)


def _inverse_mills_ratio(z: Value) -> Value:
    """φ(z) / (1 − Φ(z)) for z ≥ 5: z + 1/(z + 2/(z + 3/(z + …))), of which this is the even part (DLMF 7.9.2, 1.12.20).

    No two terms are close, so that its derivatives are as accurate.
    """
    square = z.square()
    t = square + (4.0 * _LEVELS + 1)
    for k in range(_LEVELS - 1, 0, -1):
        t = (square + (4.0 * k + 1)) - (2.0 * k + 1) * (2 * k + 2) / t
    return z + (1 - 2 / t) / z


class LogNdtr(LibraryFunction):
    """y = log Φ(x), of the standard normal distribution function Φ, in both tails. To 4 units.

    Its derivative φ(x) / Φ(x) keeps its relative accuracy where Φ(x) is too small for a number, and so do the
    derivatives of that. Where x > 0, it is as accurate as exp(−x²/2): to x²/2 units.
    """

    name = "log_ndtr"
    section = "erfinv"
    function = "log_ndtr"
    gradient = "g · φ(x) / Φ(x), φ the density"
    samples = (
        Sample(Real(2, 3, low=-3, high=3)),
        Sample(Real(low=-3, high=3)),
        Sample(Real(4, low=-40, high=-5.5)),
        Sample(Real(4, low=2, high=6)),
        Sample(Ints(3, low=-3, high=3)),
    )
    scalar = staticmethod(in_float32("log_ndtr"))
    partials = (_density_by_distribution,)
