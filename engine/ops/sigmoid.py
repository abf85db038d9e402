"""The logistic function and its integral, stable in both tails."""

from __future__ import annotations

import math

from engine.graph.op import Array, Namespace
from engine.oplib.elementwise import FloatUnary


class Sigmoid(FloatUnary):
    """y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number."""

    name = "sigmoid"
    aliases = {"SigmoidOp": "born", "Sigmoid": "born, cjc"}
    gradient = "g · y · (1 − y)"
    temporaries = 1
    partials = (lambda y, x: y * (1 - y),)

    def compute(self, xp: Namespace, x: Array, *, out: Array) -> None:
        """z / (1 + z) for z = eˣ, which must not overflow: from some x on, the result rounds to 1."""
        saturated = math.log(8 / xp.finfo(out.dtype).eps)
        xp.minimum(x, out.dtype.type(saturated), out=out)
        xp.exp(out, out=out)
        xp.divide(out, out + out.dtype.type(1), out=out)


class LogSigmoid(FloatUnary):
    """y = ln sigmoid x = −softplus(−x)."""

    name = "log_sigmoid"
    cost = 20
    gradient = "g · sigmoid(−x)"
    partials = (lambda y, x: (-x).sigmoid(),)

    def compute(self, xp: Namespace, x: Array, *, out: Array) -> None:
        """−ln(e⁻ˣ + e⁰)."""
        xp.negative(x, out=out, dtype=out.dtype)
        xp.logaddexp(out, out.dtype.type(0), out=out)
        xp.negative(out, out=out)


class Softplus(FloatUnary):
    """y = ln(1 + eˣ)."""

    name = "softplus"
    cost = 20
    gradient = "g · sigmoid x"
    partials = (lambda y, x: x.sigmoid(),)

    def compute(self, xp: Namespace, x: Array, *, out: Array) -> None:
        """ln(eˣ + e⁰), which is stable."""
        xp.logaddexp(x, out.dtype.type(0), out=out)
