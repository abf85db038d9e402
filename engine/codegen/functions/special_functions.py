"""Special functions in IEEE primitives: error functions, the normal distribution, log Γ, and Bessel functions.

erf and erfc are a polynomial near 0, and the exponential of one further out.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from engine.codegen.functions.elementary import (
    Coefficients,
    at_most,
    exp_parts,
    exponent_and_fraction,
    natural,
    natural_parts,
    series,
    write_log1p,
    write_normal_exp,
)
from engine.codegen.functions.generated.bessel_coefficients import BESSEL_SPLIT, I0_FAR, I0_NEAR, I1_FAR, I1_NEAR
from engine.codegen.functions.generated.coefficients import (
    ERF,
    ERFINV,
    ERFINV_TAIL,
    HALF_ROOT_PI,
    LGAMMA_AT_ONE,
    LGAMMA_AT_TWO,
    LGAMMA_MIDDLE,
    LOG_ERFC,
    STIRLING,
    TAIL,
    TAIL_CENTRE,
    TRIGAMMA,
)
from engine.codegen.kernels.program import Scalar

#: from which on erf rounds to 1
_ERF_END: Final = {"float32": 3.95, "float64": 6.0}
#: beyond, erfc rounds to 0
_ERFC_END: Final = {"float32": 10.2, "float64": 27.3}


class TailFactor(NamedTuple):
    """exp(x²) erfc(x) = `inverse` (1 + `above`), inverse = 1 / (x + c).

    Where the inverse is off by `error` of itself, the factor is by `rise` times as much: 1 far out, 1.5 near 0.
    """

    inverse: Scalar
    above: Scalar
    error: Scalar
    rise: Scalar

    @property
    def value(self) -> Scalar:
        """The factor: 1 + `above` times `inverse`."""
        return self.inverse.fma(self.above, self.inverse)

    @property
    def lacking(self) -> Scalar:
        """Rounding error of the value."""
        return self.inverse.fma(self.above, self.inverse - self.value)


def write_erf(x: Scalar) -> Scalar:
    """erf(x)."""
    size = x.abs()
    near = x.fma(series(ERF, x * x), x)
    far = 1.0 - write_normal_exp(series(LOG_ERFC, at_most(size, _ERF_END[x.dtype]) - 1.0))
    return (size < 1.0).where(near, far.copysign(x))


def write_erfc(x: Scalar) -> Scalar:
    """1 − erf(x), with its tail: exp(−x²) times a factor, and what both were rounded by on the way.

    The derivative has the same exponential of the same square: a kernel of both computes what they share once.
    """
    square = x * x
    exp, factor = exp_parts(-square), tail_factor(x.abs())
    lost = factor.error.fma(factor.rise, (-x).fma(x, square))
    if x.dtype == "float32":
        whole = factor.value.fma(exp.r.fma(exp.slope, lost * exp.value), factor.value)
    else:  # bounds are closer
        more = exp.r.fma(exp.slope, (lost + exp.lacking) * exp.value)
        whole = factor.value + factor.value.fma(more, factor.lacking)
    tail = (x.abs() > _ERFC_END[x.dtype]).where(0.0, exp.power.scale(whole))
    return (x < 0.0).where(2.0 - tail, tail)


def tail_factor(x: Scalar) -> TailFactor:
    """For x ≥ 0: a polynomial of t = (x − c) / (x + c), over x + c.

    As M. Shepherd and J. Laframboise, Math. Comp. 36 (1981) 249. The smaller c is, the less the factor varies beside
    1 / (x + c), and the more terms there are.
    """
    sum = x + TAIL_CENTRE
    inverse = 1.0 / sum
    t = inverse.fma(-2 * TAIL_CENTRE, 1.0)
    error = (-inverse).fma((TAIL_CENTRE - sum) + x, (-inverse).fma(sum, 1.0))
    return TailFactor(inverse, series(TAIL, t, singly=2), error, t.fma(-0.25, 1.25))


#: −log(1 − x²) from where on the inverse error function is a polynomial of its root; what that is centred at
_TAIL_START: Final = 4.25
_TAIL_CENTRE: Final = 3.0
#: √½ in two parts
_ROOT_HALF: Final = (0.70710677, 1.21014e-08)
#: beyond, 1 − Φ(x) rounds to 0, and −x²/2 is all of log Φ(−x) but for what needs no care
_NDTR_END: Final = 14.5


def write_erfinv(x: Scalar) -> Scalar:
    """y with erf y = x: ±∞ at ±1, NaN beyond.

    y / x is a polynomial of w = −log(1 − x²), or of its root: M. Giles, "Approximating the erfinv function", in GPU
    Computing Gems, Jade Edition (2012) 109.
    """
    size = x.abs()
    log, lacking_log = natural_parts(*exponent_and_fraction((-size).fma(size, 1.0)))
    w, root = -log, (-log).sqrt()
    at_zero, lacking_zero = HALF_ROOT_PI[x.dtype]
    near = w.fma(series(ERFINV, w), lacking_zero) + at_zero
    is_near = w < _TAIL_START
    factor = is_near.where(near, series(ERFINV_TAIL, root - _TAIL_CENTRE))
    # by as much as the root is rounded, the polynomial of it is off
    lacking = is_near.where(0.0, (root.fma(-root, w) - lacking_log) * (0.5 / root))
    end = size.eq(1.0).where(math.inf, math.nan).copysign(x)
    return (size < 1.0).where(x.fma(factor, x * lacking), end)


def write_log_ndtr(x: Scalar) -> Scalar:
    """log Φ(x), Φ the standard normal distribution: on the left −x²/2 and a logarithm, on the right by 1 − Φ(x)."""
    size, (high, low) = x.abs(), _ROOT_HALF
    is_over = size > _NDTR_END
    t = size * high
    factor = tail_factor(t)
    lost_in_t = size.fma(low, size.fma(high, -t))
    error = (-factor.inverse).fma(lost_in_t, factor.error)
    made_good = is_over.where(0.0, error.fma(factor.rise, factor.lacking / factor.value))
    left = (x * -0.5).fma(x, natural(*exponent_and_fraction(factor.value * 0.5)) + made_good)
    square = size * size
    exp = exp_parts(square * -0.5)
    lost = error.fma(factor.rise, size.fma(-size, square) * 0.5)
    more = exp.r.fma(exp.slope, (lost + exp.lacking) * exp.value)
    change = factor.value.fma(more, factor.lacking)
    whole = factor.value + change
    above = is_over.where(0.0, exp.power.scale(whole * 0.5))
    rounded = is_over.where(0.0, exp.power.scale(((factor.value - whole) + change) * 0.5))
    right = write_log1p(-above) - rounded / (1.0 - above)
    return (x < 0.0).where(left, right)


#: between the zeros, where the polynomials around them take turns
_BETWEEN: Final = 1.4
#: what LGAMMA_MIDDLE is centred at; from where on Stirling's series is used
_MIDDLE: Final = 3.25
_STIRLING_START: Final = 4.0
#: from where on the second derivative is a series: two steps up from 0
_SERIES_START: Final = 2.0


def write_lgamma(x: Scalar) -> Scalar:
    """log Γ(x), for x > 0: ∞ at 0.

    Polynomials around its zeros, 1 and 2, times the distance; one more between 5/2 and 4; then Stirling's series.
    """
    log, lacking = natural_parts(*exponent_and_fraction(x))
    is_small = x < 0.5
    z, past = is_small.where(x, x - 1.0), x - 2.0
    at_one = z.fma(series(LGAMMA_AT_ONE, z), 0.0)  # so that it is 0 at 1, and not −0
    small = at_one - log - lacking
    near = (x < _BETWEEN).where(is_small.where(small, at_one), past * series(LGAMMA_AT_TWO, past))
    middle = (x < 2.5).where(near, series(LGAMMA_MIDDLE, x - _MIDDLE))
    found = (x < _STIRLING_START).where(middle, _stirling(x, log, lacking))
    return x.eq(0.0).where(math.inf, found)


def _stirling(x: Scalar, log: Scalar, lacking: Scalar) -> Scalar:
    """(x − 1/2) (log x − 1) + (log 2π − 1) / 2 + 1/12x − …, with what the product is rounded by made good."""
    factor, less = x - 0.5, log - 1.0
    product = factor * less
    rounded = factor.fma(less, -product)
    inverse = 1.0 / x
    rest = inverse.fma(series(STIRLING, inverse * inverse), (math.log(2 * math.pi) - 1.0) / 2)
    # beside an infinite product there is nothing to make good
    return (product < math.inf).where(product + (factor.fma(lacking, rounded) + rest), product)


def write_trigamma(x: Scalar) -> Scalar:
    """ψ′(x), the second derivative of log Γ, for x > 0: 1/x + 1/2x² + 1/6x³ − …, and below 2 Σ 1 / (x + k)² first."""
    is_small = x < _SERIES_START
    z = is_small.where(x + 2.0, x)
    inverse = 1.0 / z
    square = inverse * inverse
    found = square.fma(inverse.fma(series(TRIGAMMA, square), 0.5), inverse)
    next = x + 1.0
    first, second = 1.0 / x, 1.0 / next
    # what sums and quotients are rounded by, where that shows beside the rest, and nothing is infinite
    off_first = first.fma(-x, 1.0) * (first + first)
    off_second = (second.fma(-next, 1.0) - second * (x - (next - 1.0))) * (second + second)
    made_good = off_first.fma(first, off_second.fma(second, (z - 2.0 - x) * square))
    total = second.fma(second, found)
    total = (x < 0.5).where(total, total + made_good)
    return is_small.where(first.fma(first, total), found)


# Modified Bessel functions of the first kind, in arithmetic and exponentials that every printer has.
#
# Polynomials of x² up to 8, whose terms are all positive, and of 16 / x − 1 beyond. It is the split that S. Moshier's
# Cephes has, whose Chebyshev series are of x on both sides.

#: beyond, exp(x / 2)² is infinite, and so are the functions
_ENDLESS: Final = {"float32": 360.0, "float64": 2840.0}


def write_i0e(x: Scalar) -> Scalar:
    """exp(−|x|) I₀(x)."""
    size = x.abs()
    return (size < BESSEL_SPLIT).where((-size).exp() * _horner(I0_NEAR, x * x), _scaled(I0_FAR, size))


def write_i1e(x: Scalar) -> Scalar:
    """exp(−|x|) I₁(x): as odd as I₁, with the sign of a zero."""
    size = x.abs()
    near = (-size).exp() * (size * _horner(I1_NEAR, x * x))
    return (size < BESSEL_SPLIT).where(near, _scaled(I1_FAR, size)).copysign(x)


def write_i0(x: Scalar) -> Scalar:
    """I₀(x)."""
    size = x.abs()
    return (size < BESSEL_SPLIT).where(_horner(I0_NEAR, x * x), _grown(I0_FAR, size))


def write_i1(x: Scalar) -> Scalar:
    """I₁(x), with the sign of a zero."""
    size = x.abs()
    return (size < BESSEL_SPLIT).where(size * _horner(I1_NEAR, x * x), _grown(I1_FAR, size)).copysign(x)


def _scaled(coefficients: Coefficients, size: Scalar) -> Scalar:
    """√x exp(−x) Iₙ(x), of 16 / x − 1, over √x."""
    return _horner(coefficients, 2 * BESSEL_SPLIT / size - 1.0) / size.sqrt()


def _grown(coefficients: Coefficients, size: Scalar) -> Scalar:
    """The same, times exp(x) in two steps: it overflows before its product with the rest does."""
    bounded = at_most(size, _ENDLESS[size.dtype])
    root = (bounded * 0.5).exp()
    return root * _scaled(coefficients, bounded) * root


def _horner(coefficients: Coefficients, x: Scalar) -> Scalar:
    """A polynomial without fused multiply-adds, which NumPy does not have."""
    *others, found = [x.builder.constant(c) for c in coefficients[x.dtype]]
    for term in reversed(others):
        found = found * x + term
    return found
