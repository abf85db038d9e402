"""Circular and hyperbolic functions, their inverses, and the cardinal sine. Angles are in radians."""

from __future__ import annotations

import math

from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.sample import Real, Sample
from engine.oplib.elementwise import Binary, Unary

_INSIDE = (Sample(Real(2, 3, low=-0.8, high=0.8)), Sample(Real(low=0, high=0.8)))


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
    partials = (lambda y, x: ((1 - x) * (1 + x)).rsqrt(),)


class Acos(Unary):
    """y = arccos x in [0, π], NaN for |x| > 1. At ±1 the derivative is infinite."""

    name = "acos"
    section = "trigonometry"
    ufunc = "arccos"
    gradient = "−g / √(1 − x²)"
    samples = _INSIDE
    partials = (lambda y, x: -((1 - x) * (1 + x)).rsqrt(),)


class Atan(Unary):
    """y = arctan x in [−π/2, π/2]."""

    name = "atan"
    section = "trigonometry"
    ufunc = "arctan"
    gradient = "g / (1 + x²)"
    partials = (lambda y, x: (1 + x.square()).reciprocal(),)


class Atan2(Binary):
    """y = the angle in [−π, π] of the point with abscissa b and ordinate a, broadcasting.

    At a = b = 0 the value is NumPy's (0 or ±π) and the derivatives are NaN: there are none. At infinity they are 0.
    """

    name = "atan2"
    section = "trigonometry"
    ufunc = "arctan2"
    cost = 20
    gradient = "da = g · b / (a² + b²), db = −g · a / (a² + b²)"
    samples = tuple(Sample(a, Real(*b.shape, low=0.5, high=2)) for a, b in (s.operands for s in Binary.samples))
    partials = (lambda y, a, b: _over_square(b, a, b), lambda y, a, b: -_over_square(a, a, b))


def _over_square(x: Value, a: Value, b: Value) -> Value:
    """x / (a² + b²), where the squares alone may leave the range; 0 at infinity.

    The scale cancels, so that the result does not depend on it, nor do derivatives.
    """
    scale = a.abs().maximum(b.abs()).stop_gradient()
    far = scale.equal(math.inf)
    x, a, b = (far.where(0.0, v) for v in (x, a, b))
    scale = far.where(1.0, scale)
    return x / scale / scale / (far.where(1.0, (a / scale).square() + (b / scale).square()))
