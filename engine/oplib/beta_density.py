"""The beta distribution in nodes: its density, and how its distribution function changes with a shape."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from engine.graph.ir import Value
from engine.oplib.gamma_density import LARGE_SHAPE, as_column, as_row, log_quotient, stirling_rest

#: points of the integral, and where its variable begins; exp(−45) is nothing beside 1
_POINTS: Final = 160
_START: Final = -3.7
_NOTHING: Final = 45.0


def beta_density(a: Value, b: Value, x: Value) -> Value:
    """xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b), for 0 ≤ x ≤ 1."""
    most = float(np.finfo(x.dtype).max) / 4
    return _terms(a.clamp(max=most), b.clamp(max=most), x, 1.0 - x, 1.0)


def slope_by_first(a: Value, b: Value, x: Value, rest: Value) -> Value:
    """The derivative of the distribution function at x by a, where `rest` is 1 − x; 0 at both ends.

    ∫ (log t − ψ(a) + ψ(a + b)) tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), from 0 to x or from x to 1: of both, the one where the
    first factor does not change its sign. As t = x exp(−s), or 1 − t = (1 − x) exp(−s), with the double exponential
    formula for s (H. Takahasi and M. Mori, Publ. RIMS 9 (1974) 721). Its points begin where the integrand changes
    first, and go on to where it ends; they are constant for derivatives.
    """
    is_inside = (x > 0.0).logical_and(rest > 0.0)
    x, rest = is_inside.where(x, 0.5), is_inside.where(rest, 0.5)
    start = _log(x, rest) - (a.digamma() - (a + b).digamma())
    is_lower = start < 0.0
    p, q = is_lower.where(a, b), is_lower.where(b, a)
    ratio = is_lower.where(x / rest, rest / x)
    width, step = _scales(p, q, ratio)
    at = as_column(step) * as_row(x, np.arange(_POINTS)) + _START
    inner = (-at).exp()
    s = as_column(width) * (at - inner).exp()
    log = (-as_column(ratio) * (-s).expm1()).log1p()
    decay = (as_column(q - 1.0) * log - as_column(p) * s).exp()
    factor = as_column(start) + as_column(is_lower).where(-s, log)
    total = (factor * decay * (s * (inner + 1.0))).sum(axes=(-1,)) * step
    found = _terms(a, b, x, rest, 0.0) * is_lower.where(rest.reciprocal(), -x.reciprocal()) * total
    return is_inside.where(found, 0.0)


def _scales(p: Value, q: Value, ratio: Value) -> tuple[Value, Value]:
    """Where exp(−p s) (1 + ratio (1 − exp(−s)))^(q − 1) changes first, and the step from there to where it ends."""
    less = q - 1.0
    narrow = (p - less * ratio).abs().maximum((less.abs() * ratio * (1.0 + ratio)).sqrt()).maximum(ratio)
    width = narrow.reciprocal().stop_gradient()
    end = (_NOTHING / (p * width)).log().maximum(3.8)
    return width, ((end - _START) / (_POINTS - 1)).stop_gradient()


def _terms(a: Value, b: Value, x: Value, rest: Value, less: float) -> Value:
    """xᵃ (1 − x)ᵇ / B(a, b), of a and b that are so much less.

    Where both are large, by Stirling's series, relative to the greatest: √(ab / 2π(a + b)) (x / x₀)ᵃ (…)ᵇ with
    x₀ = a / (a + b). Each side gets operands at which it is finite, so that no NaN of the other reaches a derivative.
    """
    is_inside = (x > 0.0).logical_and(rest > 0.0)
    is_large = is_inside.logical_and(a >= LARGE_SHAPE).logical_and(b >= LARGE_SHAPE)
    p, q, at, beside = is_large.where(1.0, a), is_large.where(1.0, b), is_large.where(0.5, x), is_large.where(0.5, rest)
    few = (_times_log(p - less, at, beside) + _times_log(q - less, beside, at) - p.betaln(q)).exp()
    p, q = is_large.where(a, LARGE_SHAPE), is_large.where(b, LARGE_SHAPE)
    at, beside = is_large.where(x, 0.5), is_large.where(rest, 0.5)
    sum = p + q
    exponent = p * log_quotient(at, p / sum) + q * log_quotient(beside, q / sum)
    many = (exponent + (stirling_rest(sum) - stirling_rest(p) - stirling_rest(q))).exp()
    many = many * (p / sum * q * (0.5 / math.pi)).sqrt()
    return is_large.where(many / (at * beside) if less else many, few)


def _times_log(factor: Value, x: Value, rest: Value) -> Value:
    """factor · log x, where `rest` is 1 − x."""
    is_near = x < 0.5
    return is_near.where(factor.xlogy(is_near.where(x, 0.5)), factor.xlog1py(is_near.where(-0.5, -rest)))


def _log(x: Value, rest: Value) -> Value:
    is_near = x < 0.5
    return is_near.where(is_near.where(x, 0.5).log(), is_near.where(-0.5, -rest).log1p())
