"""The regularised incomplete gamma and beta functions: distribution functions, with their densities in nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Final

import numpy as np

from engine.autodiff.control_flow import entrywise
from engine.ir.errors import NotDifferentiable
from engine.ir.graph import Value
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import HostArray
from engine.ops.elementwise.base import LibraryUfunc, PassThrough, power_series

# The gamma distribution in nodes: its density, and how its distribution function changes with the shape.
#
# What is large cancels on paper, so that relative errors stay small where the shape is large, or the density is.

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
_AT = ([0.5, 1.0, 3.5, 12.0], [0.25, 2.0, 2.0, 13.0])
#: P, Q, ∂P/∂a, ∂P/∂x
_P = [0.5204998778130465, 0.8646647167633873, 0.2202225915242841, 0.6468350671487296]
_Q = [0.4795001221869535, 0.1353352832366127, 0.7797774084757159, 0.3531649328512704]
_BY_A = [-0.797947316783223, -0.2208254262118595, -0.1801009452864442, -0.1070770167187148]
_BY_X = [0.8787825789354448, 0.1353352832366127, 0.2303614571229357, 0.1014829054600716]
_SOURCE = "their series and its derivative in 50 digits (DLMF 8.7.1); erf(1/2) and 1 − exp(−2)"
#: points of the integral, and where its variable begins; exp(−45) is nothing beside 1
_BETA_POINTS: Final = 160
_START: Final = -3.7
_NOTHING: Final = 45.0


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
    """xᵃ / Γ(a + 1) (L + Σ (−x)ⁿ / n! (a L + n / (a + n)) / (a + n)) for x ≤ 2.5, with L = log x − ψ(a + 1).

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
    """∫ (log t − ψ(a)) tᵃ⁻¹ exp(−t) dt / Γ(a) for x > 2.5, from 0 to x or from x to ∞.

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


class ShapeOnce(PassThrough):
    """A shape that a derivative has been taken by: what is handed on cannot be differentiated by it again."""

    name = "shape_once"
    internal = True

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Raises NotDifferentiable."""
        raise NotDifferentiable(
            "the incomplete gamma functions have no second derivative by a", expected="one derivative by a", got="two"
        )

    def written_out(self, x: Value) -> Sequence[Value]:
        """x itself."""
        return [x]


_ONCE = ShapeOnce()


def _by_shape(a: Value, x: Value) -> Value:
    """The derivative of P by a, where x is constant or not."""
    return entrywise(slope_by_shape, a.builder.emit(_ONCE, (a,), {}), x)


class IncompleteGamma(LibraryUfunc):
    """Base: of a shape a ≥ 0 and x ≥ 0; NaN elsewhere."""

    section = "igamma"
    operands: ClassVar[tuple[str, ...]] = ("a", "x")
    since: ClassVar[int] = 2
    samples = (
        Sample(Real(2, 3, low=0.5, high=3), Real(2, 3, low=0.2, high=4)),
        Sample(Real(2, 3, low=0.5, high=20), Real(3, low=1.2, high=20)),
        Sample(Real(2, 1, low=11, high=15), Real(1, 3, low=8, high=18)),
        Sample(Real(low=0.5, high=3), Real(2, low=0.2, high=0.9)),
        Sample(Real(0, 3), Real(3)),
        Sample(Ints(3, low=1, high=5), Ints(3, low=1, high=20)),
    )


class Igamma(IncompleteGamma):
    """y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), broadcasting: `torch.special.gammainc`, JAX's `igamma`, SciPy's.

    To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives by x are to 1e-12 of their value,
    by a (of which PyTorch has none, and JAX's are to 1e-7 of 1) to 1e-12; there is no second derivative by a.
    """

    name = "igamma"
    function = "gammainc"
    gradient = "da = g · ∂P/∂a by an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a)"
    truths = (Truth(operands=_AT, value=_P, gradients=(_BY_A, _BY_X), source=_SOURCE),)
    partials = (lambda y, a, x: _by_shape(a, x), lambda y, a, x: gamma_density(a, x))


class Igammac(IncompleteGamma):
    """y = Q(a, x) = 1 − P(a, x), accurate where it is small: `torch.special.gammaincc`, JAX's `igammac`, SciPy's.

    To 512 units, SciPy's own on NumPy; below 1e-290 to a part of 1e-12. Derivatives as those of `igamma`, with the
    other sign.
    """

    name = "igammac"
    function = "gammaincc"
    gradient = "da = −g · ∂P/∂a by an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a)"
    truths = (Truth(operands=_AT, value=_Q, gradients=([-g for g in _BY_A], [-g for g in _BY_X]), source=_SOURCE),)
    partials = (lambda y, a, x: -_by_shape(a, x), lambda y, a, x: -gamma_density(a, x))


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
    at = as_column(step) * as_row(x, np.arange(_BETA_POINTS)) + _START
    inner = (-at).exp()
    s = as_column(width) * (at - inner).exp()
    log = (-as_column(ratio) * (-s).expm1()).log1p()
    decay = (as_column(q - 1.0) * log - as_column(p) * s).exp()
    factor = as_column(start) + as_column(is_lower).where(-s, log)
    total = (factor * decay * (s * (inner + 1.0))).sum(axes=(-1,)) * step
    found = _terms(a, b, x, rest, 0.0) * is_lower.where(rest.reciprocal(), -x.reciprocal()) * total
    return is_inside.where(found, 0.0)


def _scales(p: Value, q: Value, ratio: Value) -> tuple[Value, Value]:
    """Scale at which exp(−p s) (1 + ratio (1 − exp(−s)))^(q − 1) first changes, and the step from there to its end."""
    less = q - 1.0
    narrow = (p - less * ratio).abs().maximum((less.abs() * ratio * (1.0 + ratio)).sqrt()).maximum(ratio)
    width = narrow.reciprocal().stop_gradient()
    end = (_NOTHING / (p * width)).log().maximum(3.8)
    return width, ((end - _START) / (_BETA_POINTS - 1)).stop_gradient()


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


class Betainc(LibraryUfunc):
    """y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), broadcasting, for 0 ≤ x ≤ 1, and a, b > 0: SciPy's, JAX's.

    To 256 units, SciPy's own on NumPy. Derivatives by all operands, of any order: by x to 1e-12 of their value, by a
    and b, of which JAX has none, to 1e-11. PyTorch has no such function.
    """

    name = "betainc"
    section = "betainc"
    operands: ClassVar[tuple[str, ...]] = ("a", "b", "x")
    since = 2
    function = "betainc"
    cost = 300
    gradient = "da, db = g · ∂I/∂a, g · ∂I/∂b by an integral; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b)"
    samples = (
        Sample(Real(2, 3, low=0.5, high=3), Real(2, 3, low=0.5, high=3), Real(2, 3, low=0.1, high=0.9)),
        Sample(Real(2, 3, low=0.5, high=8), Real(3, low=0.5, high=8), Real(2, 1, low=0.2, high=0.8)),
        Sample(Real(low=11, high=15), Real(2, low=11, high=15), Real(2, low=0.3, high=0.7)),
        Sample(Real(0, 3), Real(3), Real()),
        Sample(Ints(3, low=1, high=5), Ints(3, low=1, high=5), Ints(3, high=2)),
    )
    truths = (
        Truth(
            operands=([2.0, 1.0, 0.5], [1.0, 3.0, 0.5], [0.25, 0.5, 0.5]),
            value=[0.0625, 0.875, 0.5],
            gradients=(
                [-0.08664339756999316, -0.16900378298995215, -0.5831218080616376],
                [0.08220194292354462, 0.08664339756999316, 0.5831218080616376],
                [0.5, 0.75, 0.6366197723675814],
            ),
            source="by hand: x², 1 − (1 − x)³ and 2/π arcsin √x; by a and b, mpmath.betainc's differences in 60 digits",
        ),
    )
    partials = (
        lambda y, a, b, x: entrywise(slope_by_first, a, b, x, 1.0 - x),
        # The function is 1 less itself, with both shapes exchanged, at 1 − x (DLMF 8.17.4).
        lambda y, a, b, x: -entrywise(slope_by_first, b, a, 1.0 - x, x),
        lambda y, a, b, x: beta_density(a, b, x),
    )
