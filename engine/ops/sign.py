"""The sign of a number, and what it is without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import NoGradient
from engine.graph.sample import Ints, Real, Sample
from engine.oplib.elementwise import Unary
from engine.oplib.units import unit_of
from engine.rewrites.arithmetic import negated_scalar, twice
from engine.rewrites.movement import MOVING


class Neg(Unary):
    """y = −x."""

    name = "neg"
    section = "sign"
    aliases = {"Neg": "cjc", "Negate": "minima", "negative": "sadl"}
    dtypes = DTYPES
    ufunc = "negative"
    cost = 1
    gradient = "−g"
    rewrites = (twice("neg"), negated_scalar, *MOVING)
    partials = (lambda y, x: -1,)


class Abs(Unary):
    """y = |x|, real where x is complex. At 0 the gradient is 0, in every order."""

    name = "abs"
    section = "sign"
    aliases = {"Abs": "cjc", "absolute": "sadl"}
    dtypes = DTYPES
    ufunc = "absolute"
    cost = 1
    gradient = "g · sign x; of a complex x, g · x / |x|"
    samples = (Sample(Real(2, 3, low=0.5, high=2)), Sample(Real(3, low=-2, high=-0.5)), Sample(Real()))
    partials = (lambda y, x: x.sign(),)

    def vjp(self, g: Value, y: Value, *xs: Any, **attrs: Any) -> Sequence[Value | None]:
        """Of a complex x, along its direction."""
        return (unit_of(xs[0], y) * g,) if xs[0].type.is_complex else super().vjp(g, y, *xs, **attrs)


class Sign(Unary):
    """y = −1, 0 or 1: the sign of x. NaN stays NaN."""

    name = "sign"
    section = "sign"
    ufunc = "sign"
    scalar = staticmethod(lambda x: (x > 0).where(1.0, (x < 0).where(-1.0, x.abs())))
    cost = 1
    gradient = "none: constant between its steps"
    samples = (Sample(Real(2, 3)), Sample(Ints(3, low=-2, high=2)))
    partials = vjp = NoGradient("it is constant between its steps")
