"""The hyperbolic functions and their inverses."""

from __future__ import annotations

from engine.graph.dtypes import DTYPES
from engine.graph.sample import Real, Sample
from engine.oplib.elementwise import Unary


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


class Tanh(Unary):
    """y = tanh x."""

    name = "tanh"
    section = "hyperbolic"
    aliases = {"TanhOp": "born", "Tanh": "born", "TanhAct": "cjc"}
    dtypes = DTYPES
    ufunc = "tanh"
    gradient = "g · (1 − y²)"
    partials = (lambda y, x: 1 - y.square(),)


class Asinh(Unary):
    """y = arsinh x."""

    name = "asinh"
    section = "hyperbolic"
    ufunc = "arcsinh"
    gradient = "g / cosh y = g / √(x² + 1)"
    # By y: x² overflows where the derivative is still an ordinary number.
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
    partials = (lambda y, x: ((1 - x) * (1 + x)).reciprocal(),)
