"""Exponentials, logarithms, powers and roots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES, REALS
from engine.graph.ir import Value
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import TensorType
from engine.loops.program import Scalar
from engine.oplib.elementwise import FloatBinary, Unary
from engine.oplib.formula import Formula
from engine.ops.scalar import AddScalar

_POSITIVE = (Sample(Real(2, 3, low=0.5, high=2)), Sample(Real(low=0.5, high=2)), Sample(Real(0, 2)))


class Exp(Unary):
    """y = eˣ."""

    name = "exp"
    section = "exponential"
    aliases = {"ExpOp": "born, cjc, minima", "Exp": "born, cjc, minima"}
    dtypes = DTYPES
    ufunc = "exp"
    gradient = "g · y"
    partials = (lambda y, x: y,)


class Expm1(Unary):
    """y = eˣ − 1, accurate near 0."""

    name = "expm1"
    section = "exponential"
    ufunc = "expm1"
    gradient = "g · eˣ"
    # Not y + 1, which has lost eˣ where that is small.
    partials = (lambda y, x: x.exp(),)


class Log(Unary):
    """y = ln x: −∞ at 0, NaN for x < 0.

    Of a complex x ln |x| + i · angle x. The cut is the negative real axis: the sign of the imaginary zero says from
    which side it is seen (C99).
    """

    name = "log"
    section = "exponential"
    aliases = {"LogOp": "born", "Log": "born, minima", "Ln": "cjc"}
    dtypes = DTYPES
    ufunc = "log"
    samples = _POSITIVE
    gradient = "g / x"
    partials = (lambda y, x: x.reciprocal(),)


class Log1p(Unary):
    """y = ln(1 + x), accurate near 0."""

    name = "log1p"
    section = "exponential"
    ufunc = "log1p"
    samples = (Sample(Real(2, 3, low=-0.5, high=2)), Sample(Real(low=0, high=2)))
    gradient = "g / (1 + x)"
    partials = (lambda y, x: (1 + x).reciprocal(),)


class Log2(Unary):
    """y = log₂ x: −∞ at 0, NaN for x < 0."""

    name = "log2"
    section = "exponential"
    aliases = {"Log2": "cjc"}
    ufunc = "log2"
    samples = _POSITIVE
    gradient = "g / (x · ln 2)"
    partials = (lambda y, x: x.reciprocal() / math.log(2),)


class LogEps(Formula):
    """y = ln(x + eps): finite at 0."""

    name = "log_eps"
    section = "exponential"
    aliases = {"LogWithEpsilonOp": "born", "LogWithEpsilon": "born"}
    operands = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"eps": Attr("float", 1e-5, "what is added to x")}
    dtypes = REALS
    samples = (Sample(Real(2, 3, low=0.5, high=2)), Sample(Real(low=0, high=2), eps=0.5), Sample(Ints(3, high=5)))
    gradient = "g / (x + eps)"

    def infer(self, *types: TensorType, eps: float) -> Any:
        """As the sum with a constant."""
        return AddScalar().infer(*types, scalar=eps)

    def formula(self, x: Value, *, eps: float) -> Value:
        """The logarithm of the sum."""
        return (x + eps).log()


def _share(y: Value, a: Value, b: Value) -> Value:
    """eᵃ / (eᵃ + eᵇ), and 0 / 0 = 0: by the lead of a, which is 0 also where both are infinite.

    There alone: of finite ones that are equal, the lead goes with either, and so do derivatives of the share.
    """
    both_infinite = a.equal(b).logical_and(a.abs().equal(math.inf))
    lead = both_infinite.where(0.0, a - b)
    return y.equal(-math.inf).where(-math.inf, lead).sigmoid()


def _log_of_sum(a: Scalar, b: Scalar) -> Scalar:
    """The larger one, and ln(1 + e^−|a − b|), where the difference of equal infinities is 0."""
    apart = a.eq(b).where(0.0, a - b).abs()
    return a.maximum(b) + (-apart).exp().log1p()


class LogAddExp(FloatBinary):
    """y = ln(eᵃ + eᵇ), stable. Where both are −∞, y is −∞ and the gradients are 0; where both are ∞, a half each."""

    name = "logaddexp"
    section = "exponential"
    cost = 20
    gradient = "da = g · sigmoid(a − b), db = g · sigmoid(b − a)"
    scalar = staticmethod(_log_of_sum)
    partials = (_share, lambda y, a, b: _share(y, b, a))
