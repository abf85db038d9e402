"""Regularised incomplete gamma and beta functions (distribution functions), and their derivatives."""

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

# Gamma distribution, in terms of other ops: its density, and the derivative of its distribution function P with respect
# to the shape.
#
# Formulas are rearranged so that large terms cancel symbolically: relative errors stay small for large shapes and in
# the tails.

#: smallest shape for which log Γ is evaluated by Stirling's series
LARGE_SHAPE: Final = 10.0
# Series in w = 1 / a², lowest power first (DLMF 5.11.1 and 5.11.2): a · (log Γ(a) − (a − ½) log a + a − ½ log 2π), and
# a² · (log a − ψ(a) − 1 / 2a).
_STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
#: series of (artanh(r) − r) / r³ in r² for |r| < 1/3, and of (exp(z) − 1 − z) / z² in z for |z| < 1/2
_ATANH: Final = tuple(1.0 / (2 * k + 3) for k in range(17))
_EXP: Final = tuple(1.0 / math.factorial(k + 2) for k in range(14))
#: number of terms of the series for x ≤ 2.5; number of points and range of the integral for larger x: both to 1e-13
_TERMS, _POINTS, _RANGE = 24, 96, (-3.7, 3.8)
_TRUTH_OPERANDS = ([0.5, 1.0, 3.5, 12.0], [0.25, 2.0, 2.0, 13.0])
#: P, Q, ∂P/∂a and ∂P/∂x at these operands
_P = [0.5204998778130465, 0.8646647167633873, 0.2202225915242841, 0.6468350671487296]
_Q = [0.4795001221869535, 0.1353352832366127, 0.7797774084757159, 0.3531649328512704]
_SLOPE_A = [-0.797947316783223, -0.2208254262118595, -0.1801009452864442, -0.1070770167187148]
_SLOPE_X = [0.8787825789354448, 0.1353352832366127, 0.2303614571229357, 0.1014829054600716]
_SOURCE = "their series and its derivative in 50 digits (DLMF 8.7.1); erf(1/2) and 1 − exp(−2)"
#: number of points of the beta integral, start of its variable, and an exponent whose exp(−45) is negligible next to 1
_BETA_POINTS: Final = 160
_START: Final = -3.7
_NEGLIGIBLE: Final = 45.0


def where_defined(y: Value, derivative: Value) -> Value:
    """Return the derivative of a function, but NaN where its value y is NaN, outside of its domain.

    There, a formula may be finite at single shapes: xᵃ⁻¹ of a negative x is 1 at a = 1.
    """
    return y.not_equal(y).where(y, derivative)


def gamma_density(a: Value, x: Value) -> Value:
    """Return xᵃ⁻¹ exp(−x) / Γ(a) for x ≥ 0 and a ≥ 0.

    For large a, compute it as √(a / 2π) exp(a (log(x/a) − x/a + 1) − …) / x. Each branch gets operands at which it is
    finite, so that no NaN of the unused branch reaches a derivative.
    """
    largest = float(np.finfo(x.dtype).max)
    a, x = a.clamp(max=largest), x.clamp(max=largest)
    is_large = (a >= LARGE_SHAPE).logical_and(x > 0.0)
    small, point = is_large.where(1.0, a), is_large.where(1.0, x)
    direct = ((small - 1.0).xlogy(point) - point - small.lgamma()).exp()
    large, point = is_large.where(a, LARGE_SHAPE), is_large.where(x, LARGE_SHAPE)
    exponent = large * (log_quotient(point, large) - (point - large) / large) - stirling_rest(large)
    return is_large.where((large * (0.5 / math.pi)).sqrt() / point * exponent.exp(), direct)


def stirling_rest(a: Value) -> Value:
    """Return log Γ(a) − (a − ½) log a + a − ½ log 2π for a ≥ 10."""
    return power_series(_STIRLING, a.reciprocal().square()) / a


def igamma_partial_a(a: Value, x: Value) -> Value:
    """Return the derivative of P(a, x) with respect to a. It is never positive, and 0 at x = 0 and at infinity."""
    is_small = x <= 2.5
    # The shape is clamped for the series: for x ≤ 2.5 and larger shapes the result is 0, but products would overflow.
    slope = is_small.where(
        _by_series(a.clamp(max=1e30), is_small.where(x, 1.0)), _by_integral(a, is_small.where(3.0, x))
    )
    return x.equal(0.0).where(0.0, slope)


def _by_series(a: Value, x: Value) -> Value:
    """Return xᵃ / Γ(a + 1) (L + Σ (−x)ⁿ / n! (a L + n / (a + n)) / (a + n)) for x ≤ 2.5, with L = log x − ψ(a + 1).

    This is the derivative of DLMF 8.7.1 with respect to a, rearranged so that nothing cancels for small a.
    """
    x = x.equal(0.0).where(1.0, x)
    log = x.log() - (a + 1.0).digamma()
    n = np.arange(1, _TERMS + 1)
    coefficients = np.array([(-1) ** k / math.factorial(k) for k in n.tolist()])
    shape, order = as_column(a), as_row(a, n)
    powers = (as_column(x.log()) * order).exp()
    reciprocals = (shape + order).reciprocal()
    terms = (as_column(a * log) + order * reciprocals) * reciprocals * powers * as_row(a, coefficients)
    return (a.xlogy(x) - (a + 1.0).lgamma()).exp() * (log + terms.sum(axes=(-1,)))


def _by_integral(a: Value, x: Value) -> Value:
    """Return ∫ (log t − ψ(a)) tᵃ⁻¹ exp(−t) dt / Γ(a) for x > 2.5, over [0, x] or, negated, over [x, ∞).

    Choose the interval on which log t − ψ(a) does not change its sign, and substitute t = x exp(± s). Integrate over s
    with the double exponential formula (H. Takahasi and M. Mori, Publ. RIMS 9 (1974) 721), its points scaled to the
    width of the integrand.
    """
    largest = float(np.finfo(x.dtype).max)
    a, x = a.clamp(max=largest), x.clamp(max=largest)
    is_large = a >= LARGE_SHAPE
    large = is_large.where(a, LARGE_SHAPE)
    inverse = large.reciprocal()
    # start is a · (log x − ψ(a)), the integrand's first factor at t = x: its sign selects the interval.
    stirling = large * (log_quotient(x, large) + inverse * (0.5 + inverse * power_series(_DIGAMMA, inverse.square())))
    small = is_large.where(1.0, a)
    start = is_large.where(stirling, small * (x.log() - (small + 1.0).digamma()) + 1.0)
    direction = (start < 0.0).where(x.full_like(-1.0), 1.0)
    width = x.sqrt().maximum((a - x).abs()).reciprocal().stop_gradient()
    points, weights = _double_exponential()
    z = as_column(direction * width) * as_row(x, points)
    decay = (as_column(a - x) * z - as_column(x) * _exp_rest(z)).exp()
    total = ((as_column(start) + as_column(a) * z) * decay * as_row(x, weights)).sum(axes=(-1,))
    density = gamma_density(a + 1.0, x)
    return density.equal(0.0).where(0.0, -direction * density * width * total)


def log_quotient(x: Value, a: Value) -> Value:
    """Return log(x / a), computed from the difference x − a if they are close."""
    relative = (x - a) / (x + a)
    is_close = relative.abs() < 1 / 3
    r = is_close.where(relative, 0.0)
    series = 2.0 * (r + r * r.square() * power_series(_ATANH, r.square()))
    return is_close.where(series, is_close.where(1.0, x / a).log())


def _exp_rest(z: Value) -> Value:
    """Return exp(z) − 1 − z, by series for small z."""
    is_small = z.abs() < 0.5
    small = is_small.where(z, 0.0)
    return is_small.where(small.square() * power_series(_EXP, small), z.expm1() - z)


@cache
def _double_exponential() -> tuple[HostArray, HostArray]:
    """Return points and weights of ∫₀^∞ ds for an integrand that decays as exp(−s): s = exp(t − exp(−t)), t uniform."""
    t, step = np.linspace(*_RANGE, _POINTS, retstep=True)
    points = np.exp(t - np.exp(-t))
    return points, points * (1 + np.exp(-t)) * step


def as_column(x: Value) -> Value:
    """Append an axis of extent 1 to x."""
    return x.reshape(shape=(*x.shape, 1))


def as_row(like: Value, numbers: HostArray) -> Value:
    """Return the numbers as a constant in the dtype of `like`, to broadcast along the last axis."""
    return like.builder.constant(numbers.astype(like.dtype))


class ShapeOnce(PassThrough):
    """A shape that a derivative has been taken by: what is handed on cannot be differentiated by it again."""

    name = "shape_once"
    internal = True

    def vjp(self, g: Value, y: Value, x: Value) -> Sequence[Value | None]:
        """Raises NotDifferentiable."""
        raise NotDifferentiable(
            "the incomplete gamma functions have no second derivative with respect to a",
            expected="one derivative with respect to a",
            got="two",
        )

    def written_out(self, x: Value) -> Sequence[Value]:
        """Write x itself."""
        return [x]


_ONCE = ShapeOnce()


def _partial_shape(a: Value, x: Value) -> Value:
    """Return the derivative of P with respect to a, itself differentiable with respect to x only."""
    return entrywise(igamma_partial_a, a.builder.emit(_ONCE, (a,), {}), x)


class IncompleteGamma(LibraryUfunc):
    """Base: a function of a shape a ≥ 0 and x ≥ 0; NaN elsewhere."""

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
    """y = P(a, x) = ∫₀ˣ tᵃ⁻¹ exp(−t) dt / Γ(a), with broadcasting.

    On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12. The derivative
    with respect to x is accurate to 1e-12 of its value. The derivative with respect to a is accurate to 1e-12 (JAX's
    has an absolute error of 1e-7; PyTorch has none). It cannot be differentiated again with respect to a. SciPy and
    PyTorch: `special.gammainc`. JAX: `igamma`.
    """

    name = "igamma"
    function = "gammainc"
    gradient = "da = g · ∂P/∂a, an integral; dx = g · xᵃ⁻¹ exp(−x) / Γ(a)"
    truths = (Truth(operands=_TRUTH_OPERANDS, value=_P, gradients=(_SLOPE_A, _SLOPE_X), source=_SOURCE),)
    partials = (
        lambda y, a, x: where_defined(y, _partial_shape(a, x)),
        lambda y, a, x: where_defined(y, gamma_density(a, x)),
    )


class Igammac(IncompleteGamma):
    """y = Q(a, x) = 1 − P(a, x), with broadcasting; accurate even where y is small.

    On NumPy, this is SciPy's function. Accurate to 512 ulp; below 1e-290, to a relative error of 1e-12. Derivatives are
    those of `igamma` with the opposite sign. SciPy and PyTorch: `special.gammaincc`. JAX: `igammac`.
    """

    name = "igammac"
    function = "gammaincc"
    gradient = "da = −g · ∂P/∂a, an integral; dx = −g · xᵃ⁻¹ exp(−x) / Γ(a)"
    truths = (
        Truth(
            operands=_TRUTH_OPERANDS,
            value=_Q,
            gradients=([-g for g in _SLOPE_A], [-g for g in _SLOPE_X]),
            source=_SOURCE,
        ),
    )
    partials = (
        lambda y, a, x: where_defined(y, -_partial_shape(a, x)),
        lambda y, a, x: where_defined(y, -gamma_density(a, x)),
    )


def beta_density(a: Value, b: Value, x: Value) -> Value:
    """Return xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b) for 0 ≤ x ≤ 1."""
    largest = float(np.finfo(x.dtype).max) / 4
    return _beta_terms(a.clamp(max=largest), b.clamp(max=largest), x, 1.0 - x, 1.0)


def betainc_partial_a(a: Value, b: Value, x: Value, complement: Value) -> Value:
    """Return the derivative of I(x; a, b) with respect to a, where `complement` is 1 − x; 0 at both ends.

    It is ∫ (log t − ψ(a) + ψ(a + b)) tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), over [0, x] or, negated, over [x, 1]. Choose the
    interval on which the first factor does not change its sign, and substitute t = x exp(−s), or
    1 − t = (1 − x) exp(−s). Integrate over s with the double exponential formula (H. Takahasi and M. Mori, Publ. RIMS 9
    (1974) 721). Its points range from the scale at which the integrand first changes to that at which it vanishes; they
    are constants for differentiation.
    """
    is_inside = (x > 0.0).logical_and(complement > 0.0)
    x, complement = is_inside.where(x, 0.5), is_inside.where(complement, 0.5)
    start = _stable_log(x, complement) - (a.digamma() - (a + b).digamma())
    is_lower = start < 0.0
    p, q = is_lower.where(a, b), is_lower.where(b, a)
    ratio = is_lower.where(x / complement, complement / x)
    width, step = _scales(p, q, ratio)
    t = as_column(step) * as_row(x, np.arange(_BETA_POINTS)) + _START
    inner = (-t).exp()
    s = as_column(width) * (t - inner).exp()
    log = (-as_column(ratio) * (-s).expm1()).log1p()
    decay = (as_column(q - 1.0) * log - as_column(p) * s).exp()
    factor = as_column(start) + as_column(is_lower).where(-s, log)
    total = (factor * decay * (s * (inner + 1.0))).sum(axes=(-1,)) * step
    slope = _beta_terms(a, b, x, complement, 0.0) * is_lower.where(complement.reciprocal(), -x.reciprocal()) * total
    return is_inside.where(slope, 0.0)


def _scales(p: Value, q: Value, ratio: Value) -> tuple[Value, Value]:
    """Return the scale of s at which exp(−p s) (1 + ratio (1 − exp(−s)))^(q − 1) first changes, and the step size."""
    power = q - 1.0
    rate = (p - power * ratio).abs().maximum((power.abs() * ratio * (1.0 + ratio)).sqrt()).maximum(ratio)
    width = rate.reciprocal().stop_gradient()
    end = (_NEGLIGIBLE / (p * width)).log().maximum(3.8)
    return width, ((end - _START) / (_BETA_POINTS - 1)).stop_gradient()


def _beta_terms(a: Value, b: Value, x: Value, complement: Value, less: float) -> Value:
    """Return xᵃ⁻ˡ (1 − x)ᵇ⁻ˡ / B(a, b) with l = `less`, which is 0 or 1, and `complement` = 1 − x.

    If a and b are large, use Stirling's series relative to the maximum: √(ab / 2π(a + b)) (x / x₀)ᵃ (…)ᵇ with
    x₀ = a / (a + b). Each branch gets operands at which it is finite, so that no NaN of the unused branch reaches a
    derivative.
    """
    is_inside = (x > 0.0).logical_and(complement > 0.0)
    is_large = is_inside.logical_and(a >= LARGE_SHAPE).logical_and(b >= LARGE_SHAPE)
    p, q, u, v = is_large.where(1.0, a), is_large.where(1.0, b), is_large.where(0.5, x), is_large.where(0.5, complement)
    direct = (_times_log(p - less, u, v) + _times_log(q - less, v, u) - p.betaln(q)).exp()
    p, q = is_large.where(a, LARGE_SHAPE), is_large.where(b, LARGE_SHAPE)
    u, v = is_large.where(x, 0.5), is_large.where(complement, 0.5)
    sum = p + q
    exponent = p * log_quotient(u, p / sum) + q * log_quotient(v, q / sum)
    stirling = (exponent + (stirling_rest(sum) - stirling_rest(p) - stirling_rest(q))).exp()
    stirling = stirling * (p / sum * q * (0.5 / math.pi)).sqrt()
    return is_large.where(stirling / (u * v) if less else stirling, direct)


def _times_log(factor: Value, x: Value, complement: Value) -> Value:
    """Return factor · log x, where `complement` is 1 − x."""
    is_small = x < 0.5
    return is_small.where(factor.xlogy(is_small.where(x, 0.5)), factor.xlog1py(is_small.where(-0.5, -complement)))


def _stable_log(x: Value, complement: Value) -> Value:
    # Near 1, log1p(−complement) keeps the digits that x = 1 − complement has lost.
    is_small = x < 0.5
    return is_small.where(is_small.where(x, 0.5).log(), is_small.where(-0.5, -complement).log1p())


class Betainc(LibraryUfunc):
    """y = I(x; a, b) = ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt / B(a, b), with broadcasting, for 0 ≤ x ≤ 1 and a, b > 0.

    On NumPy, this is SciPy's function. Accurate to 256 ulp. Derivatives with respect to all operands exist to any
    order. They are accurate to 1e-12 of their value with respect to x, and to 1e-11 with respect to a and b, for which
    JAX has none. SciPy and JAX: `betainc`. PyTorch has no equivalent.
    """

    name = "betainc"
    section = "betainc"
    operands: ClassVar[tuple[str, ...]] = ("a", "b", "x")
    since = 2
    function = "betainc"
    cost = 300
    gradient = "da, db = g · ∂I/∂a, g · ∂I/∂b, integrals; dx = g · xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b)"
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
        lambda y, a, b, x: where_defined(y, entrywise(betainc_partial_a, a, b, x, 1.0 - x)),
        # I(x; a, b) = 1 − I(1 − x; b, a) (DLMF 8.17.4).
        lambda y, a, b, x: where_defined(y, -entrywise(betainc_partial_a, b, a, 1.0 - x, x)),
        lambda y, a, b, x: where_defined(y, beta_density(a, b, x)),
    )
