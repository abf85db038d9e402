"""The logistic function and its integral, stable in both tails."""

from __future__ import annotations

import math

import numpy as np

from engine.loops.program import Scalar
from engine.oplib.elementwise import FloatUnary


def _logistic(x: Scalar) -> Scalar:
    """z / (1 + z) for z = eˣ, which must not overflow: from some x on, the result rounds to 1."""
    z = x.minimum(math.log(8 / np.finfo(x.dtype).eps)).exp()
    return z / (z + 1)


def _tail(x: Scalar) -> Scalar:
    """ln(1 + e^−|x|): what softplus x is more than x or 0."""
    return (-x.abs()).exp().log1p()


class Sigmoid(FloatUnary):
    """y = 1 / (1 + e⁻ˣ), accurate in both tails, down to the smallest number."""

    name = "sigmoid"
    aliases = {"SigmoidOp": "born", "Sigmoid": "born, cjc"}
    gradient = "g · y · (1 − y)"
    scalar = staticmethod(_logistic)
    partials = (lambda y, x: y * (1 - y),)


class LogSigmoid(FloatUnary):
    """y = ln sigmoid x = −softplus(−x)."""

    name = "log_sigmoid"
    cost = 20
    gradient = "g · sigmoid(−x)"
    scalar = staticmethod(lambda x: x.minimum(0) - _tail(x))
    partials = (lambda y, x: (-x).sigmoid(),)


class Softplus(FloatUnary):
    """y = ln(1 + eˣ)."""

    name = "softplus"
    cost = 20
    gradient = "g · sigmoid x"
    scalar = staticmethod(lambda x: x.maximum(0) + _tail(x))
    partials = (lambda y, x: x.sigmoid(),)
