"""Logarithms of the gamma and beta functions with derivatives of every order, and the Hurwitz zeta function."""

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

LARGEST_ORDER = 170  # 171! is no float64

_trigamma = in_float32("trigamma")
#: from here on, Stirling's series
_LARGE = 10.0
# Stirling's series, DLMF 5.11.1: log Γ(x) less (x − ½) log x − x + ½ log 2π, times x, in powers of x⁻², highest first.
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
#: from here on, the difference of two digammas by its own series
_FAR = 100.0
#: terms that are added up one by one, before the formula of Euler and Maclaurin
_TERMS: Final = 14
#: Bernoulli's numbers B₂, B₄, …, over (2k)!, of that formula (DLMF 25.11.28)
_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
_WEIGHTS: Final = tuple(b / math.factorial(2 * k) for k, b in enumerate(_BERNOULLI, 1))


class Lgamma(LibraryFunction):
    """y = log |Γ(x)|: ∞ at 0, −1, −2, …. To 4 units; near its zeros below 0 (−2.457, −2.748, −3.144, …) to 1e-15.

    SciPy's has no correct digit left where x is within 1e-16 of 1 or 2, the zeros above 0; this one keeps all.
    """

    name = "lgamma"
    section = "lgamma"
    function = "lgamma"
    gradient = "g · digamma(x)"
    samples = _SAMPLES
    scalar = staticmethod(in_float32("lgamma"))
    partials = (lambda y, x: x.digamma(),)


class Digamma(LibraryFunction):
    """y = ψ(x) = Γ'(x) / Γ(x): −∞ at 0, NaN at −1, −2, …. To 10 units; near its zeros below −1 to 1e-15.

    SciPy's loses one digit with each digit by which x < 0 is closer to a pole; this one keeps all.
    """

    name = "digamma"
    section = "lgamma"
    function = "digamma"
    gradient = "g · polygamma(x, order=1)"
    samples = _SAMPLES
    partials = (lambda y, x: x.polygamma(order=1),)


class Polygamma(FloatUnary):
    """y = ψ⁽ⁿ⁾(x) for n = `order`, the n-th derivative of `digamma`; order 0 is `digamma` itself.

    ±∞ at 0, −1, −2, …, with the sign that it has to the right of 0. To 10 units; for even orders, near the zeros
    below 0, to 10 units of what the nearest poles add up to. Values of less than 1e-307 · n! are inaccurate or 0.

    Orders go to 170, whose factorial is the largest in a float64; `polygamma` of order 170 has no derivative.
    """

    name = "polygamma"
    section = "lgamma"
    is_captured = False
    attrs: ClassVar[Mapping[str, Attr]] = {"order": Attr("int", doc="which derivative of digamma: 0 to 170", minimum=0)}
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
        """The order is not too large."""
        order, wanted = attrs["order"], f"a whole number of at most {LARGEST_ORDER}"
        if order > LARGEST_ORDER:
            raise BadAttribute(f"attribute order must be {wanted}, but is {order}", expected=wanted, got=str(order))
        return attrs

    def compose(self, x: Value, *, order: int) -> Value | None:
        """`digamma`, where it is that."""
        return None if order else x.digamma()

    def compute(self, run: RunContext, x: Array, *, out: Array, order: int) -> None:
        """(−1)ⁿ⁺¹ n! ζ(n + 1, x), of the Hurwitz zeta function (DLMF 25.11.12)."""
        fill_polygamma(run, x, out, order)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        return block_workspace(out.size)


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

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        return block_workspace(out.size)


def _betaln(a: Floats, b: Floats) -> Floats:
    """SciPy's, for a ≤ b, but by Stirling's series where b is large."""
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


class Zeta(FloatBinary):
    """y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, broadcasting, for s > 1: SciPy's, `torch.special.zeta`, JAX's `zeta`.

    ∞ at s = 1 and at q = 0, −1, −2, …; NaN for s < 1, and where q < 0 and s is no whole number. To 8 units where q > 0,
    SciPy's own on NumPy; below, as `polygamma`. Derivatives are of any order: those by q as accurate, those by s, of
    which PyTorch and JAX have none, to 1e-12 of the terms that they add up; by s and then by q, to a unit over s − 1.
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
    partials = (lambda y, s, q: _by_exponent(s, q), lambda y, s, q: _by_start(s, q))

    @DeviceMethod
    def compute(self, run: RunContext, s: Array, q: Array, *, out: Array) -> None:
        """The kernel."""
        xp = run.xp
        out[...] = _zeta_everywhere(xp, *(xp.asarray(z, "float64") for z in (s, q)))

    @compute.on("cpu")
    def _compute_in_blocks(self, run: RunContext, s: Array, q: Array, *, out: Array) -> None:
        broadcast_blocks(run, _zeta, [s, q], out)

    def workspace(self, out: TensorType, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        return block_workspace(out.size)


def _zeta(s: Floats, q: Floats) -> Floats:
    """SciPy's alone, where no q is negative."""
    y: Floats = library(np).zeta(s, q) if not (q < 0).any() else _zeta_everywhere(np, s, q)
    return y


def _zeta_everywhere(xp: Namespace, s: Array, q: Array) -> Array:
    """The library's for q ≥ 0, from which a negative q is kept: it would take |q| steps, however many that is.

    That is a sum over the poles to its right, and over those from it to 0: the distances to them are f, f + 1, … and
    1 − f, 2 − f, …, −q, for the fraction f of q.
    """
    zeta = library(xp).zeta
    is_below = q < 0
    r = q - xp.rint(q)
    up = r > 0
    right, left = xp.where(up, r, 1 + r), xp.where(up, 1 - r, -r)
    sign = 1 - 2 * (s - 2 * xp.floor(s / 2))
    below = zeta(s, xp.where(is_below, right, 1)) + sign * (
        zeta(s, xp.where(is_below, left, 1)) - zeta(s, xp.where(is_below, 1 - q, 1))
    )
    below = xp.where(r == 0, xp.where(s >= 1, math.inf, math.nan), xp.where(s == xp.rint(s), below, math.nan))
    return xp.where(is_below, below, zeta(s, xp.where(is_below, 1, q)))


def _by_start(s: Value, q: Value) -> Value:
    """−s ζ(s + 1, q); 0 where s is infinite and nothing is left of it."""
    s = s.clamp(max=float(np.finfo(s.dtype).max))
    return -s * (s + 1.0).zeta(q)


def _by_exponent(s: Value, q: Value) -> Value:
    """−Σ log(q + k) (q + k)⁻ˢ: some terms, and of the rest the derivative of what Euler and Maclaurin have for it.

    With w = q + n, that is w¹⁻ˢ / (s − 1) + w⁻ˢ / 2 + Σ B₂ₖ / (2k)! s (s + 1) … (s + 2k − 2) w¹⁻ˢ⁻²ᵏ. NaN where the
    function is, for s < 1: there the terms grow, and take from each other what the sum would be.
    """
    most = float(np.finfo(q.dtype).max)
    s, q = s.clamp(max=most), q.clamp(max=most)
    terms = q.builder.constant(np.arange(_TERMS).astype(q.dtype))
    logs = (q.reshape(shape=(*q.shape, 1)) + terms).log()
    head = (logs * (-s.reshape(shape=(*s.shape, 1)) * logs).exp()).sum(axes=(-1,))
    w = q + float(_TERMS)
    log, over = w.log(), (s - 1.0).reciprocal()
    integral = ((1.0 - s) * log).exp() * over * (log + over)
    power = (-s * log).exp()
    rest = power * (0.5 * log - _corrections(s, w, log))
    found = -(head + integral + power.equal(0.0).where(0.0, rest))
    return (s < 1.0).where(math.nan, found)


def _corrections(s: Value, w: Value, log: Value) -> Value:
    """Change by s of the terms with Bernoulli's numbers, over w⁻ˢ: products, and their own derivatives."""
    inverse = w.reciprocal()
    square = inverse.square()
    product, slope = s * inverse, inverse
    found = _WEIGHTS[0] * (slope - product * log)
    for k, weight in enumerate(_WEIGHTS[1:], 1):
        factor, change = (s + (2.0 * k - 1)) * (s + 2.0 * k) * square, (2.0 * s + (4.0 * k - 1)) * square
        product, slope = product * factor, slope * factor + product * change
        found = found + weight * (slope - product * log)
    return found
