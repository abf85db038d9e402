"""Sine, cosine and the hyperbolic tangent."""

from __future__ import annotations

from typing import ClassVar

from engine.elementwise import Elementwise
from engine.sample import Real, Sample


class Unary(Elementwise):
    """Base: one operand, by NumPy's ufunc."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    samples: ClassVar[tuple[Sample, ...]] = (Sample(Real(2, 3)),)
    cost = 10


class Sin(Unary):
    """y = sin x."""

    name = "sin"
    aliases = {"SinOp": "born", "Sin": "born, cjc"}
    ufunc = "sin"
    gradient = "g · cos x"
    partials = (lambda y, x: x.cos(),)


class Cos(Unary):
    """y = cos x."""

    name = "cos"
    aliases = {"CosOp": "born", "Cos": "born, cjc"}
    ufunc = "cos"
    gradient = "−g · sin x"
    partials = (lambda y, x: -x.sin(),)


class Tanh(Unary):
    """y = tanh x."""

    name = "tanh"
    aliases = {"TanhOp": "born", "Tanh": "born", "TanhAct": "cjc"}
    ufunc = "tanh"
    gradient = "g · (1 − y²)"
    partials = (lambda y, x: 1 - y.square(),)


class Square(Unary):
    """y = x²."""

    name = "square"
    aliases = {"square": "sadl"}
    ufunc = "square"
    cost = 1
    gradient = "g · 2x"
    partials = (lambda y, x: 2 * x,)


class Neg(Unary):
    """y = −x."""

    name = "neg"
    aliases = {"Neg": "cjc", "Negate": "minima", "negative": "sadl"}
    ufunc = "negative"
    cost = 1
    gradient = "−g"
    partials = (lambda y, x: -1,)


class Reciprocal(Unary):
    """y = 1 / x."""

    name = "reciprocal"
    ufunc = "reciprocal"
    cost = 1
    samples = (Sample(Real(2, 3, low=0.5, high=2)),)
    gradient = "−g · y²"
    partials = (lambda y, x: -y.square(),)
