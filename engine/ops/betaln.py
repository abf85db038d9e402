"""The logarithm of the beta function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.graph.by_device import DeviceMethod
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import TensorType
from engine.loops.special import Floats, block_workspace, broadcast_blocks, library, polynomial
from engine.oplib.elementwise import FloatBinary

#: from here on, Stirling's series
_LARGE = 10.0
# Stirling's series, DLMF 5.11.1: log Γ(x) less (x − ½) log x − x + ½ log 2π, times x, in powers of x⁻², highest first.
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)

#: from here on, the difference of two digammas by its own series
_FAR = 100.0


class Betaln(FloatBinary):
    """y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, broadcasting. To 10 units of y, or of 1 where |y| is less.

    Units are those in the last place of a float64, on NumPy. Where an operand is large, `lgamma` would leave few digits
    of y, and SciPy's own loses up to 9 of 16. Where an operand is not positive, y is SciPy's; at infinity it is −∞.

    The derivative by a is as accurate, or, where b < a < 100, to 1e-15 · a / b of its value; and likewise by b.
    """

    name = "betaln"
    section = "betaln"
    cost = 120
    gradient = "da = g · (digamma(a) − digamma(a + b)), db = g · (digamma(b) − digamma(a + b))"
    samples = (
        Sample(Real(2, 3, low=0.5, high=3), Real(2, 3, low=0.5, high=3)),
        Sample(Real(2, 3, low=0.5, high=30), Real(3, low=0.5, high=30)),
        Sample(Real(2, 1, low=101, high=400), Real(1, 3, low=0.5, high=3)),
        Sample(Real(3, low=101, high=200), Real(3, low=101, high=200)),
        Sample(Real(low=0.5, high=3), Real(2, low=20, high=99)),
        Sample(Real(0, 3), Real(3)),
        Sample(Ints(3, low=1, high=5), Ints(3, low=1, high=20)),
    )
    partials = (lambda y, a, b: _digamma_difference(a, b), lambda y, a, b: _digamma_difference(b, a))

    @DeviceMethod
    def compute(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        """The kernel."""
        xp = run.xp
        x, y = (xp.asarray(z, "float64") for z in (a, b))
        out[...] = _everywhere(xp, xp.minimum(x, y), xp.maximum(x, y))

    @compute.on("cpu")
    def _compute_in_blocks(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        broadcast_blocks(run, lambda x, y: _betaln(np.minimum(x, y), np.maximum(x, y)), [a, b], out)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        return block_workspace(out.size) if isinstance(out, TensorType) else 0


def _betaln(a: Floats, b: Floats) -> Floats:
    """For a ≤ b: SciPy's, but by Stirling's series where b is large."""
    y: Floats = library(np).betaln(a, b)
    large = (a > 0) & (b >= _LARGE) & (b < math.inf)
    for mask, branch in ((large & (a < _LARGE), _one_large), (large & (a >= _LARGE), _both_large)):
        chosen = np.flatnonzero(mask)
        y[chosen] = branch(np, a[chosen], b[chosen])
    y[(a > 0) & (b == math.inf)] = -math.inf
    return y


def _everywhere(xp: Namespace, a: Array, b: Array) -> Array:
    """The same for each element: a card would have to wait to know which of them are large."""
    y = library(xp).betaln(a, b)
    large = (a > 0) & (b >= _LARGE) & (b < math.inf)
    far = xp.where(large, b, _LARGE)
    y = xp.where(large & (a < _LARGE), _one_large(xp, xp.clip(a, 0, _LARGE), far), y)
    y = xp.where(large & (a >= _LARGE), _both_large(xp, xp.maximum(a, _LARGE), far), y)
    return xp.where((a > 0) & (b == math.inf), -math.inf, y)


def _one_large(xp: Namespace, a: Floats, b: Floats) -> Floats:
    """log Γ(a) + log(Γ(b) / Γ(a + b))."""
    grown = xp.log1p(a / b)
    quotient = a - (b - 0.5) * grown - a * (xp.log(b) + grown)
    y: Floats = library(xp).gammaln(a) + (quotient + (_correction(b) - _correction(a + b)))
    return y


def _both_large(xp: Namespace, a: Floats, b: Floats) -> Floats:
    """The sum of the three series, ordered so that all large terms are negative."""
    h = a / b
    large: Floats = (a - 0.5) * xp.log(h / (1 + h)) - b * xp.log1p(h) - 0.5 * xp.log(b)
    return large + (0.5 * math.log(2 * math.pi) + _correction(a) + _correction(b) - _correction(a + b))


def _correction(x: Floats) -> Floats:
    """The part of log Γ(x) that tends to 0, for large x."""
    return polynomial(_STIRLING, 1 / (x * x)) / x


def _digamma_difference(a: Value, b: Value) -> Value:
    """ψ(a) − ψ(a + b). For large a it is −log(1 + b/a), and smaller terms: ψ(a) and ψ(a + b) may be all but equal.

    Each side gets operands at which it is finite, so that no NaN of the other one reaches a derivative.
    """
    is_far = (a > _FAR).logical_and(b >= 0.0)
    far = _far_difference(a.clamp(min=_FAR), b.clamp(min=0.0))
    return is_far.where(far, a.digamma() - (a + b).digamma())


def _far_difference(a: Value, b: Value) -> Value:
    """ψ(x) = log x − 1/2x − 1/12x² + 1/120x⁴ − 1/252x⁶ (DLMF 5.11.2) at a less that at a + b, factored."""
    r, s = a.reciprocal(), (a + b).reciprocal()
    p, q = r.square(), s.square()
    series = 1 / 12 - (p + q) / 120 + (p.square() + p * q + q.square()) / 252
    # Where the sum overflows, the terms after the logarithm vanish.
    return -((b * r).log1p() + s.equal(0.0).where(0.0, b) * r * s * (0.5 + (r + s) * series))
