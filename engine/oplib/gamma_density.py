"""The gamma distribution in nodes: its density, and how its distribution function changes with the shape.

What is large cancels on paper, so that relative errors stay small where the shape is large, or the density is.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

import numpy as np

from engine.graph.ir import Value
from engine.graph.tensor_type import HostArray
from engine.oplib.power_series import power_series

#: from here on, Stirling's series
LARGE_SHAPE: Final = 10.0
# Lowest power first, DLMF 5.11.1 and 5.11.2: of w = 1 / a², what log Γ(a) is more than (a − ½) log a − a + ½ log 2π,
# times a; and what log a − ψ(a) is more than 1 / 2a, times a².
_STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
#: of r² for |r| < 1/3: (artanh(r) − r) / r³; and of z for |z| < 1/2: (exp(z) − 1 − z) / z²
_ATANH: Final = tuple(1.0 / (2 * k + 3) for k in range(17))
_EXP: Final = tuple(1.0 / math.factorial(k + 2) for k in range(14))
#: terms of the series up to x = 2.5, and points of the integral beyond: to 1e-13
_TERMS, _POINTS, _ENDS = 24, 96, (-3.7, 3.8)


def gamma_density(a: Value, x: Value) -> Value:
    """xᵃ⁻¹ exp(−x) / Γ(a), for x ≥ 0 and a ≥ 0.

    For large a it is √(a / 2π) exp(a (log(x/a) − x/a + 1) − …) / x. Each side gets operands at which it is finite, so
    that no NaN of the other one reaches a derivative.
    """
    most = float(np.finfo(x.dtype).max)
    a, x = a.clamp(max=most), x.clamp(max=most)
    is_large = (a >= LARGE_SHAPE).logical_and(x > 0.0)
    small, at = is_large.where(1.0, a), is_large.where(1.0, x)
    few = ((small - 1.0).xlogy(at) - at - small.lgamma()).exp()
    large, at = is_large.where(a, LARGE_SHAPE), is_large.where(x, LARGE_SHAPE)
    exponent = large * (log_quotient(at, large) - (at - large) / large) - stirling_rest(large)
    return is_large.where((large * (0.5 / math.pi)).sqrt() / at * exponent.exp(), few)


def stirling_rest(a: Value) -> Value:
    """log Γ(a) − (a − ½) log a + a − ½ log 2π, for a ≥ 10."""
    return power_series(_STIRLING, a.reciprocal().square()) / a


def slope_by_shape(a: Value, x: Value) -> Value:
    """The derivative of P(a, x) by a, which is never positive; 0 at x = 0 and at infinity."""
    is_near = x <= 2.5
    # beyond, with x ≤ 2.5, nothing is left of it, and products would overflow
    found = is_near.where(_by_series(a.clamp(max=1e30), is_near.where(x, 1.0)), _by_integral(a, is_near.where(3.0, x)))
    return x.equal(0.0).where(0.0, found)


def _by_series(a: Value, x: Value) -> Value:
    """For x ≤ 2.5: xᵃ / Γ(a + 1) (L + Σ (−x)ⁿ / n! (a L + n / (a + n)) / (a + n)), with L = log x − ψ(a + 1).

    It is the derivative of DLMF 8.7.1, with what cancels for small a taken out.
    """
    x = x.equal(0.0).where(1.0, x)
    log = x.log() - (a + 1.0).digamma()
    n = np.arange(1, _TERMS + 1)
    signs = np.array([(-1) ** k / math.factorial(k) for k in n.tolist()])
    shape, order = as_column(a), as_row(a, n)
    powers = (as_column(x.log()) * order).exp()
    below = (shape + order).reciprocal()
    terms = (as_column(a * log) + order * below) * below * powers * as_row(a, signs)
    return (a.xlogy(x) - (a + 1.0).lgamma()).exp() * (log + terms.sum(axes=(-1,)))


def _by_integral(a: Value, x: Value) -> Value:
    """For x > 2.5: ∫ (log t − ψ(a)) tᵃ⁻¹ exp(−t) dt / Γ(a), from 0 to x or from x to ∞.

    Of both, the one where log t − ψ(a) does not change its sign; as t = x exp(± s), with the double exponential formula
    for s (H. Takahasi and M. Mori, Publ. RIMS 9 (1974) 721), whose points are as close as the integrand is narrow.
    """
    most = float(np.finfo(x.dtype).max)
    a, x = a.clamp(max=most), x.clamp(max=most)
    is_large = a >= LARGE_SHAPE
    large = is_large.where(a, LARGE_SHAPE)
    inverse = large.reciprocal()
    far = large * (log_quotient(x, large) + inverse * (0.5 + inverse * power_series(_DIGAMMA, inverse.square())))
    small = is_large.where(1.0, a)
    start = is_large.where(far, small * (x.log() - (small + 1.0).digamma()) + 1.0)
    way = (start < 0.0).where(x.full_like(-1.0), 1.0)
    width = x.sqrt().maximum((a - x).abs()).reciprocal().stop_gradient()
    points, weights = _double_exponential()
    z = as_column(way * width) * as_row(x, points)
    decay = (as_column(a - x) * z - as_column(x) * _exp_rest(z)).exp()
    total = ((as_column(start) + as_column(a) * z) * decay * as_row(x, weights)).sum(axes=(-1,))
    before = gamma_density(a + 1.0, x)
    return before.equal(0.0).where(0.0, -way * before * width * total)


def log_quotient(x: Value, a: Value) -> Value:
    """log(x / a), by their difference where they are close."""
    part = (x - a) / (x + a)
    is_near = part.abs() < 1 / 3
    r = is_near.where(part, 0.0)
    near = 2.0 * (r + r * r.square() * power_series(_ATANH, r.square()))
    return is_near.where(near, is_near.where(1.0, x / a).log())


def _exp_rest(z: Value) -> Value:
    """exp(z) − 1 − z."""
    is_near = z.abs() < 0.5
    near = is_near.where(z, 0.0)
    return is_near.where(near.square() * power_series(_EXP, near), z.expm1() - z)


@cache
def _double_exponential() -> tuple[HostArray, HostArray]:
    """Points and weights of ∫₀^∞ for what decays as exp(−s): s = exp(t − exp(−t)), t in equal steps."""
    t, step = np.linspace(*_ENDS, _POINTS, retstep=True)
    points = np.exp(t - np.exp(-t))
    return points, points * (1 + np.exp(-t)) * step


def as_column(x: Value) -> Value:
    """x with one more axis, of extent 1, behind its own."""
    return x.reshape(shape=(*x.shape, 1))


def as_row(like: Value, numbers: HostArray) -> Value:
    """Numbers in the dtype of a value, along a last axis."""
    return like.builder.constant(numbers.astype(like.dtype))
