"""The error function and its complement."""

from __future__ import annotations

import math
from typing import Any

from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, ResultTypes
from engine.graph.tensor_type import TensorType
from engine.loops import special
from engine.oplib.elementwise import FloatUnary


def _slope(x: Value) -> Value:
    """The derivative of erf: 2/√π · exp(−x²)."""
    return (-x.square()).exp() * (2 / math.sqrt(math.pi))


class ErrorFunction(FloatUnary):
    """Base: kernels of our own, which work block by block."""

    cost = 60

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        return special.block_workspace(out.size) if isinstance(out, TensorType) else 0


class Erf(ErrorFunction):
    """y = erf x = 2/√π ∫₀ˣ exp(−t²) dt, to 2 units in the last place."""

    name = "erf"
    gradient = "g · 2/√π · exp(−x²)"
    partials = (lambda y, x: _slope(x),)

    def compute(self, xp: Namespace, x: Array, *, out: Array) -> None:
        """The kernel."""
        special.erf(xp, x, out)


class Erfc(ErrorFunction):
    """y = erfc x = 1 − erf x, to 2 units in the last place, also where it is small."""

    name = "erfc"
    gradient = "−g · 2/√π · exp(−x²)"
    partials = (lambda y, x: -_slope(x),)

    def compute(self, xp: Namespace, x: Array, *, out: Array) -> None:
        """The kernel."""
        special.erfc(xp, x, out)
