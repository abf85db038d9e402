"""The logistic function and its integral, stable in both tails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.graph.dtypes import DTYPES
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.loops.program import Scalar
from engine.oplib.elementwise import FloatUnary


def _logistic(x: Scalar) -> Scalar:
    """z / (1 + z) for z = eˣ, which must not overflow: from some x on, the result rounds to 1."""
    z = x.minimum(math.log(8 / np.finfo(x.dtype).eps)).exp()
    return z / (z + 1)


def _tail(x: Scalar) -> Scalar:
    """ln(1 + e^−|x|): what softplus x is more than x or 0."""
    return (-x.abs()).exp().log1p()


def _complex_logistic(z: Scalar) -> Scalar:
    """By e^∓z, whichever does not overflow."""
    left, one = z.real() < 0.0, z.builder.as_pair(1.0)
    power = left.where(z, -z).exp()
    return left.where(power, one) / (one + power)


class Sigmoid(FloatUnary):
    """y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number. Of a complex x, by the same formula."""

    name = "sigmoid"
    section = "sigmoid"
    aliases = {"SigmoidOp": "born", "Sigmoid": "born, cjc"}
    dtypes = DTYPES
    gradient = "g · y · (1 − y)"
    scalar = staticmethod(_logistic)
    complex_scalar = staticmethod(_complex_logistic)
    complex_temporaries, complex_masks = 2, 2
    partials = (lambda y, x: y * (1 - y),)

    def compute_complex(self, run: RunContext, *xs: Array, out: Array, **attrs: Any) -> None:
        """Of z = e^∓x, by the sign of Re x, which does not overflow: 1 / (1 + z) or z / (1 + z)."""
        (x,), xp = xs, run.xp
        left = x.real < 0
        z = xp.where(left, x, -x)
        xp.exp(z, out=z)
        total = 1 + z
        xp.copyto(z, 1, where=~left)
        xp.divide(z, total, out=out)


class LogSigmoid(FloatUnary):
    """y = ln sigmoid x = −softplus(−x)."""

    name = "log_sigmoid"
    section = "sigmoid"
    cost = 20
    gradient = "g · sigmoid(−x)"
    scalar = staticmethod(lambda x: x.minimum(0) - _tail(x))
    partials = (lambda y, x: (-x).sigmoid(),)


class Softplus(FloatUnary):
    """y = ln(1 + eˣ)."""

    name = "softplus"
    section = "sigmoid"
    cost = 20
    gradient = "g · sigmoid x"
    scalar = staticmethod(lambda x: x.maximum(0) + _tail(x))
    partials = (lambda y, x: x.sigmoid(),)
