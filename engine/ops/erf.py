"""The error function, its complement and its inverse, and the logarithm of the normal distribution function."""

from __future__ import annotations

import math

from engine.graph.ir import Value
from engine.oplib.elementwise import FloatUnary


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
