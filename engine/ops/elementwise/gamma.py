"""Logarithms of the gamma and beta functions, their derivatives of every order, and the Hurwitz zeta function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from engine.codegen.kernels.array_functions import (
    Floats,
    block_workspace,
    broadcast_blocks,
    fill_polygamma,
    library,
    polynomial,
)
from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute
from engine.ir.graph import Value
from engine.ir.op import Array, Namespace
from engine.ir.run_context import DeviceMethod, RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import TensorType
from engine.ops.elementwise.base import FloatBinary, FloatUnary, LibraryFunction, in_float32

_POSITIVE = (Sample(Real(2, 3, low=0.3, high=4)), Sample(Real(low=2, high=40)), Sample(Real(0, 2)))
_SAMPLES = (*_POSITIVE, Sample(Real(3, low=-1.7, high=-1.3)), Sample(Ints(3, low=1, high=5)))

LARGEST_ORDER = 170  # 171! overflows float64

_trigamma = in_float32("trigamma")
#: smallest x for which log Γ is evaluated by Stirling's series
_STIRLING_FROM = 10.0
# Stirling's series, DLMF 5.11.1: x · (log Γ(x) − (x − ½) log x + x − ½ log 2π) in powers of x⁻², highest first.
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
#: smallest x for which the difference of two digammas is evaluated by its own series
_ASYMPTOTIC_FROM = 100.0
#: number of terms that are summed directly, before the Euler–Maclaurin formula
_TERMS: Final = 14
#: Bernoulli numbers B₂, B₄, …, which the formula divides by (2k)! (DLMF 25.11.28)
_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
_WEIGHTS: Final = tuple(b / math.factorial(2 * k) for k, b in enumerate(_BERNOULLI, 1))


class Lgamma(LibraryFunction):
    """y = log |Γ(x)|; ∞ at 0, −1, −2, …. Accurate to 4 ulp; near zeros below 0 (−2.457, −2.748, −3.144, …) to 1e-15.

    Near its positive zeros, 1 and 2, all digits are correct; SciPy has no correct digit within 1e-16 of them.
    """

    name = "lgamma"
    section = "lgamma"
    function = "lgamma"
    gradient = "g · digamma(x)"
    samples = _SAMPLES
    scalar = staticmethod(in_float32("lgamma"))
    partials = (lambda y, x: x.digamma(),)


class Digamma(LibraryFunction):
    """y = ψ(x) = Γ'(x) / Γ(x); −∞ at 0, NaN at −1, −2, …. Accurate to 10 ulp; near its zeros below −1 to 1e-15.

    Near its negative poles all digits are correct; SciPy loses one digit for each digit by which x is closer to a pole.
    """

    name = "digamma"
    section = "lgamma"
    function = "digamma"
    gradient = "g · polygamma(x, order=1)"
    samples = _SAMPLES
    partials = (lambda y, x: x.polygamma(order=1),)


class Polygamma(FloatUnary):
    """y = ψ⁽ⁿ⁾(x) for n = `order`, the n-th derivative of `digamma`; order 0 is `digamma` itself.

    ±∞ at 0, −1, −2, …, with the sign that y has to the right of 0. Accurate to 10 ulp. For even orders, near the zeros
    below 0, accurate to 10 ulp of the sum over the nearest poles. Values below 1e-307 · n! are inaccurate or 0.

    The largest order is 170, because 170! is the largest factorial that fits in a float64; `polygamma` of order 170 has
    no derivative.
    """

    name = "polygamma"
    section = "lgamma"
    is_captured = False
    attrs: ClassVar[Mapping[str, Attr]] = {
        "order": Attr("int", doc="order of the derivative of digamma, 0 to 170", minimum=0)
    }
    cost = 200
    gradient = "g · polygamma(x, order + 1)"
    samples = (
        *(Sample(Real(2, 3, low=0.8, high=4), order=n) for n in (0, 1, 2, 5)),
        *(Sample(Real(3, low=-1.7, high=-1.3), order=n) for n in (1, 2)),
        Sample(Real(low=2, high=40), order=1),
        Sample(Real(0, 2), order=1),
        Sample(Ints(3, low=1, high=5), order=1),
    )
    scalar = staticmethod(lambda x, order: _trigamma(x) if order == 1 else None)
    partials = (lambda y, x, order: x.polygamma(order=order + 1),)

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Raise BadAttribute if the order is too large."""
        order, expected = attrs["order"], f"a whole number of at most {LARGEST_ORDER}"
        if order > LARGEST_ORDER:
            raise BadAttribute(
                f"attribute order must be {expected}, but is {order}",
                attribute="order",
                expected=expected,
                got=str(order),
            )
        return attrs

    def compose(self, x: Value, *, order: int) -> Value | None:
        """Write `digamma` if the order is 0."""
        return None if order else x.digamma()

    def compute(self, run: RunContext, x: Array, *, out: Array, order: int) -> None:
        """Compute (−1)ⁿ⁺¹ n! ζ(n + 1, x) with the Hurwitz zeta function (DLMF 25.11.12)."""
        fill_polygamma(run, x, out, order)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """Count a few blocks."""
        return block_workspace(out.size)


class Betaln(FloatBinary):
    """y = log |B(a, b)| = log |Γ(a) Γ(b) / Γ(a + b)|, with broadcasting. Accurate to 10 ulp of y, or of 1 if |y| < 1.

    One ulp is that of float64, on NumPy. If an operand is large, a sum of `lgamma` would have few correct digits, and
    SciPy's loses up to 9 of 16. For operands that are not positive, y equals SciPy's; at infinity it is −∞.

    The derivative with respect to a is as accurate, or, if b < a < 100, accurate to 1e-15 · a / b of its value. The
    same holds for b.
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
        """Evaluate log |B(a, b)| in float64."""
        xp = run.xp
        x, y = (xp.asarray(z, "float64") for z in (a, b))
        out[...] = _betaln_everywhere(xp, xp.minimum(x, y), xp.maximum(x, y))

    @compute.on("cpu")
    def _compute_in_blocks(self, run: RunContext, a: Array, b: Array, *, out: Array) -> None:
        broadcast_blocks(run, lambda x, y: _betaln(np.minimum(x, y), np.maximum(x, y)), [a, b], out)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """Count a few blocks."""
        return block_workspace(out.size)


def _betaln(a: Floats, b: Floats) -> Floats:
    """Call SciPy's betaln for a ≤ b, but use Stirling's series where b is large."""
    y: Floats = library(np).betaln(a, b)
    large = (a > 0) & (b >= _STIRLING_FROM) & (b < math.inf)
    for mask, branch in ((large & (a < _STIRLING_FROM), _one_large), (large & (a >= _STIRLING_FROM), _both_large)):
        selected = np.flatnonzero(mask)
        y[selected] = branch(np, a[selected], b[selected])
    y[(a > 0) & (b == math.inf)] = -math.inf
    return y


def _betaln_everywhere(xp: Namespace, a: Array, b: Array) -> Array:
    """Compute as `_betaln` with all branches for every element: selecting elements would make a GPU synchronise."""
    y = library(xp).betaln(a, b)
    large = (a > 0) & (b >= _STIRLING_FROM) & (b < math.inf)
    large_b = xp.where(large, b, _STIRLING_FROM)
    y = xp.where(large & (a < _STIRLING_FROM), _one_large(xp, xp.clip(a, 0, _STIRLING_FROM), large_b), y)
    y = xp.where(large & (a >= _STIRLING_FROM), _both_large(xp, xp.maximum(a, _STIRLING_FROM), large_b), y)
    return xp.where((a > 0) & (b == math.inf), -math.inf, y)


def _one_large(xp: Namespace, a: Floats, b: Floats) -> Floats:
    """Return log Γ(a) + log(Γ(b) / Γ(a + b)) for a < 10 ≤ b, the quotient by Stirling's series."""
    log_ratio = xp.log1p(a / b)
    quotient = a - (b - 0.5) * log_ratio - a * (xp.log(b) + log_ratio)
    y: Floats = library(xp).gammaln(a) + (quotient + (_stirling_rest(b) - _stirling_rest(a + b)))
    return y


def _both_large(xp: Namespace, a: Floats, b: Floats) -> Floats:
    """Sum three Stirling series for a, b ≥ 10, ordered so that all large terms are negative and none cancel."""
    h = a / b
    large: Floats = (a - 0.5) * xp.log(h / (1 + h)) - b * xp.log1p(h) - 0.5 * xp.log(b)
    return large + (0.5 * math.log(2 * math.pi) + _stirling_rest(a) + _stirling_rest(b) - _stirling_rest(a + b))


def _stirling_rest(x: Floats) -> Floats:
    """Return the part of Stirling's series of log Γ(x) that tends to 0 for large x."""
    return polynomial(_STIRLING, 1 / (x * x)) / x


def _digamma_difference(a: Value, b: Value) -> Value:
    """Return ψ(a) − ψ(a + b). For large a the two nearly cancel: use −log(1 + b/a) and smaller terms.

    Each branch gets operands at which it is finite, so that no NaN of the unused branch reaches a derivative.
    """
    is_large = (a > _ASYMPTOTIC_FROM).logical_and(b >= 0.0)
    series = _asymptotic_difference(a.clamp(min=_ASYMPTOTIC_FROM), b.clamp(min=0.0))
    return is_large.where(series, a.digamma() - (a + b).digamma())


def _asymptotic_difference(a: Value, b: Value) -> Value:
    """Return ψ(a) − ψ(a + b) with ψ(x) = log x − 1/2x − 1/12x² + 1/120x⁴ − 1/252x⁶ (DLMF 5.11.2), factored."""
    r, s = a.reciprocal(), (a + b).reciprocal()
    p, q = r.square(), s.square()
    series = 1 / 12 - (p + q) / 120 + (p.square() + p * q + q.square()) / 252
    # If a + b overflows, s is 0 and the terms after the logarithm vanish; b · s would be ∞ · 0.
    return -((b * r).log1p() + s.equal(0.0).where(0.0, b) * r * s * (0.5 + (r + s) * series))


class Zeta(FloatBinary):
    """y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, with broadcasting, for s > 1: the Hurwitz zeta function.

    ∞ at s = 1 and at q = 0, −1, −2, …; NaN for s < 1, and for q < 0 if s is not a whole number. For q > 0 accurate to 8
    ulp (on NumPy, it is SciPy's function); for q < 0 as accurate as `polygamma`. Derivatives exist to any order. With
    respect to q, they are as accurate as y. With respect to s, for which PyTorch and JAX have none, they are accurate
    to 1e-12 of the terms that they sum. With respect to s and then q, they are accurate to 1 ulp / (s − 1). SciPy and
    PyTorch: `special.zeta`. JAX: `zeta`.
    """

    name = "zeta"
    section = "zeta"
    operands: ClassVar[tuple[str, ...]] = ("s", "q")
    since = 2
    cost = 200
    gradient = "ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q)"
    samples = (
        Sample(Real(2, 3, low=1.5, high=4), Real(2, 3, low=0.5, high=3)),
        Sample(Real(2, 3, low=1.5, high=4), Real(3, low=0.5, high=30)),
        Sample(Real(2, 1, low=1.2, high=8), Real(1, 3, low=0.5, high=3)),
        Sample(Real(low=1.5, high=4), Real(2, low=0.5, high=3)),
        Sample(Real(0, 3, low=2, high=3), Real(3, low=1, high=2)),
        Sample(Ints(3, low=2, high=5), Ints(3, low=1, high=20)),
    )
    truths = (
        Truth(
            operands=([2.0, 2.0, 4.0], [1.0, 0.5, 2.0]),
            value=[math.pi**2 / 6, math.pi**2 / 2, math.pi**4 / 90 - 1],
            gradients=(
                [-0.9375482543158438, 1.7480808796238798, -0.06891126589612538],
                [-2.4041138063191886, -16.82879664423432, -0.1477110205734797],
            ),
            source="ζ(2) and ζ(4) by Euler, (2ˢ − 1) ζ(s); derivatives by mpmath.zeta in 40 digits",
        ),
    )
    partials = (lambda y, s, q: _partial_s(s, q), lambda y, s, q: _partial_q(s, q))

    @DeviceMethod
    def compute(self, run: RunContext, s: Array, q: Array, *, out: Array) -> None:
        """Evaluate ζ(s, q) in float64."""
        xp = run.xp
        out[...] = _zeta_everywhere(xp, *(xp.asarray(z, "float64") for z in (s, q)))

    @compute.on("cpu")
    def _compute_in_blocks(self, run: RunContext, s: Array, q: Array, *, out: Array) -> None:
        broadcast_blocks(run, _zeta, [s, q], out)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """Count a few blocks."""
        return block_workspace(out.size)


def _zeta(s: Floats, q: Floats) -> Floats:
    """Call SciPy's zeta if no q is negative."""
    y: Floats = library(np).zeta(s, q) if not (q < 0).any() else _zeta_everywhere(np, s, q)
    return y


def _zeta_everywhere(xp: Namespace, s: Array, q: Array) -> Array:
    """Call the library's zeta for q ≥ 0 only: for negative q it takes |q| steps, however many.

    For q < 0 with fractional part f, the terms q + k are negative first: q, …, −(2 − f), −(1 − f), and then positive:
    f, f + 1, …. The sum over the positive ones is a zeta function, that over the negative ones a difference of two.
    """
    zeta = library(xp).zeta
    is_negative = q < 0
    remainder = q - xp.rint(q)
    is_positive = remainder > 0
    positive, negative = (
        xp.where(is_positive, remainder, 1 + remainder),
        xp.where(is_positive, 1 - remainder, -remainder),
    )
    sign = 1 - 2 * (s - 2 * xp.floor(s / 2))
    result = zeta(s, xp.where(is_negative, positive, 1)) + sign * (
        zeta(s, xp.where(is_negative, negative, 1)) - zeta(s, xp.where(is_negative, 1 - q, 1))
    )
    result = xp.where(remainder == 0, xp.where(s >= 1, math.inf, math.nan), xp.where(s == xp.rint(s), result, math.nan))
    return xp.where(is_negative, result, zeta(s, xp.where(is_negative, 1, q)))


def _partial_q(s: Value, q: Value) -> Value:
    """Return −s ζ(s + 1, q), the derivative with respect to q; s is clamped, so that it is 0 where s is infinite."""
    s = s.clamp(max=float(np.finfo(s.dtype).max))
    return -s * (s + 1.0).zeta(q)


def _partial_s(s: Value, q: Value) -> Value:
    """Return −Σ log(q + k) (q + k)⁻ˢ: the first n terms, and the derivative of the Euler–Maclaurin remainder.

    With w = q + n, the remainder is w¹⁻ˢ / (s − 1) + w⁻ˢ / 2 + Σ B₂ₖ / (2k)! s (s + 1) … (s + 2k − 2) w¹⁻ˢ⁻²ᵏ.
    NaN for s < 1, as the function itself: there the terms grow and cancel.
    """
    largest = float(np.finfo(q.dtype).max)
    s, q = s.clamp(max=largest), q.clamp(max=largest)
    terms = q.builder.constant(np.arange(_TERMS).astype(q.dtype))
    logs = (q.reshape(shape=(*q.shape, 1)) + terms).log()
    head = (logs * (-s.reshape(shape=(*s.shape, 1)) * logs).exp()).sum(axes=(-1,))
    w = q + float(_TERMS)
    log, over = w.log(), (s - 1.0).reciprocal()
    integral = ((1.0 - s) * log).exp() * over * (log + over)
    power = (-s * log).exp()
    remainder = power * (0.5 * log - _bernoulli_terms(s, w, log))
    result = -(head + integral + power.equal(0.0).where(0.0, remainder))
    return (s < 1.0).where(math.nan, result)


def _bernoulli_terms(s: Value, w: Value, log: Value) -> Value:
    """Differentiate the terms with Bernoulli numbers with respect to s, divided by w⁻ˢ.

    Each term is a product; carry the product and its derivative along.
    """
    inverse = w.reciprocal()
    square = inverse.square()
    product, slope = s * inverse, inverse
    total = _WEIGHTS[0] * (slope - product * log)
    for k, weight in enumerate(_WEIGHTS[1:], 1):
        factor, factor_slope = (s + (2.0 * k - 1)) * (s + 2.0 * k) * square, (2.0 * s + (4.0 * k - 1)) * square
        product, slope = product * factor, slope * factor + product * factor_slope
        total = total + weight * (slope - product * log)
    return total
