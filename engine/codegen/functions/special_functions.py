"""Special functions in IEEE primitives: error functions, the normal distribution, log Γ, and Bessel functions.

erf is a polynomial near 0, and beyond it 1 minus the exponential of one. erfc is exp(−x²) times a factor.
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

#: x from which erf rounds to 1
_ERF_END: Final = {"float32": 3.95, "float64": 6.0}
#: x beyond which erfc rounds to 0
_ERFC_END: Final = {"float32": 10.2, "float64": 27.3}


class TailFactor(NamedTuple):
    """exp(x²) erfc(x) = `inverse` · (1 + `above`), where inverse = 1 / (x + c).

    If the relative error of the inverse is `error`, that of the factor is `rise` times as large: 1 far out, 1.5 near 0.
    """

    inverse: Scalar
    above: Scalar
    error: Scalar
    rise: Scalar

    @property
    def value(self) -> Scalar:
        """The factor: (1 + `above`) · `inverse`."""
        return self.inverse.fma(self.above, self.inverse)

    @property
    def lacking(self) -> Scalar:
        """Rounding error of the value."""
        return self.inverse.fma(self.above, self.inverse - self.value)


def write_erf(x: Scalar) -> Scalar:
    """Write erf(x)."""
    size = x.abs()
    near = x.fma(series(ERF, x * x), x)
    far = 1.0 - write_normal_exp(series(LOG_ERFC, at_most(size, _ERF_END[x.dtype]) - 1.0))
    return (size < 1.0).where(near, far.copysign(x))


def write_erfc(x: Scalar) -> Scalar:
    """Write 1 − erf(x). Its tail is exp(−x²) times a factor, corrected for the rounding errors of both.

    The derivative of erfc has the same exponential of the same square, so a kernel with both computes it once.
    """
    square = x * x
    exp, factor = exp_parts(-square), tail_factor(x.abs())
    error = factor.error.fma(factor.rise, (-x).fma(x, square))
    if x.dtype == "float32":
        whole = factor.value.fma(exp.r.fma(exp.slope, error * exp.value), factor.value)
    else:  # with closer bounds
        correction = exp.r.fma(exp.slope, (error + exp.lacking) * exp.value)
        whole = factor.value + factor.value.fma(correction, factor.lacking)
    tail = (x.abs() > _ERFC_END[x.dtype]).where(0.0, exp.power.scale(whole))
    return (x < 0.0).where(2.0 - tail, tail)


def tail_factor(x: Scalar) -> TailFactor:
    """Write the factor for x ≥ 0: a polynomial of t = (x − c) / (x + c), over x + c.

    The form is that of M. Shepherd and J. Laframboise, Math. Comp. 36 (1981) 249. With a smaller c, the polynomial
    varies less, but needs more terms.
    """
    sum = x + TAIL_CENTRE
    inverse = 1.0 / sum
    t = inverse.fma(-2 * TAIL_CENTRE, 1.0)
    error = (-inverse).fma((TAIL_CENTRE - sum) + x, (-inverse).fma(sum, 1.0))
    return TailFactor(inverse, series(TAIL, t, singly=2), error, t.fma(-0.25, 1.25))


#: −log(1 − x²) from which the inverse error function is a polynomial of its root; and the centre of that polynomial
_TAIL_START: Final = 4.25
_TAIL_CENTRE: Final = 3.0
#: √½, in parts
_ROOT_HALF: Final = (0.70710677, 1.21014e-08)
#: x beyond which 1 − Φ(x) rounds to 0, and log Φ(−x) is −x²/2 plus a term whose rounding error does not matter
_NDTR_END: Final = 14.5


def write_erfinv(x: Scalar) -> Scalar:
    """Write y with erf y = x: ±∞ at ±1, NaN beyond.

    y / x is a polynomial of w = −log(1 − x²), or of its root: M. Giles, "Approximating the erfinv function", in GPU
    Computing Gems, Jade Edition (2012) 109.
    """
    size = x.abs()
    log, lacking_log = natural_parts(*exponent_and_fraction((-size).fma(size, 1.0)))
    # Near ±1, erfinv grows like √w, so that a polynomial of the root has few terms.
    w, root = -log, (-log).sqrt()
    at_zero, lacking_zero = HALF_ROOT_PI[x.dtype]
    near = w.fma(series(ERFINV, w), lacking_zero) + at_zero
    is_near = w < _TAIL_START
    factor = is_near.where(near, series(ERFINV_TAIL, root - _TAIL_CENTRE))
    # The polynomial of the root is off by nearly the root's rounding error.
    lacking = is_near.where(0.0, (root.fma(-root, w) - lacking_log) * (0.5 / root))
    end = size.eq(1.0).where(math.inf, math.nan).copysign(x)
    return (size < 1.0).where(x.fma(factor, x * lacking), end)


def write_log_ndtr(x: Scalar) -> Scalar:
    """Write log Φ(x) of the normal distribution: on the left −x²/2 and a logarithm, on the right by 1 − Φ(x)."""
    size, (high, low) = x.abs(), _ROOT_HALF
    is_over = size > _NDTR_END
    t = size * high
    factor = tail_factor(t)
    lost_in_t = size.fma(low, size.fma(high, -t))
    error = (-factor.inverse).fma(lost_in_t, factor.error)
    correction = is_over.where(0.0, error.fma(factor.rise, factor.lacking / factor.value))
    left = (x * -0.5).fma(x, natural(*exponent_and_fraction(factor.value * 0.5)) + correction)
    square = size * size
    exp = exp_parts(square * -0.5)
    exp_error = error.fma(factor.rise, size.fma(-size, square) * 0.5)
    relative_correction = exp.r.fma(exp.slope, (exp_error + exp.lacking) * exp.value)
    change = factor.value.fma(relative_correction, factor.lacking)
    whole = factor.value + change
    above = is_over.where(0.0, exp.power.scale(whole * 0.5))
    rounded = is_over.where(0.0, exp.power.scale(((factor.value - whole) + change) * 0.5))
    right = write_log1p(-above) - rounded / (1.0 - above)
    return (x < 0.0).where(left, right)


#: x between the zeros 1 and 2, where the polynomials around them meet
_BETWEEN: Final = 1.4
#: centre of LGAMMA_MIDDLE; and x from which Stirling's series is used
_MIDDLE: Final = 3.25
_STIRLING_START: Final = 4.0
#: x from which the second derivative is a series: two steps of the recurrence up from 0
_SERIES_START: Final = 2.0


def write_lgamma(x: Scalar) -> Scalar:
    """Write log Γ(x) for x > 0, and ∞ at 0.

    Around its zeros, 1 and 2, it is a polynomial times the distance. There is another polynomial between 5/2 and 4, and
    Stirling's series beyond.
    """
    log, lacking = natural_parts(*exponent_and_fraction(x))
    is_small = x < 0.5
    z, past = is_small.where(x, x - 1.0), x - 2.0
    at_one = z.fma(series(LGAMMA_AT_ONE, z), 0.0)  # + 0, so that it is 0 at 1, and not −0
    small = at_one - log - lacking
    near = (x < _BETWEEN).where(is_small.where(small, at_one), past * series(LGAMMA_AT_TWO, past))
    middle = (x < 2.5).where(near, series(LGAMMA_MIDDLE, x - _MIDDLE))
    value = (x < _STIRLING_START).where(middle, _stirling(x, log, lacking))
    return x.eq(0.0).where(math.inf, value)


def _stirling(x: Scalar, log: Scalar, lacking: Scalar) -> Scalar:
    """Write (x − 1/2) (log x − 1) + (log 2π − 1) / 2 + 1/12x − …, corrected for the product's rounding error."""
    factor, log_minus_one = x - 0.5, log - 1.0
    product = factor * log_minus_one
    rounded = factor.fma(log_minus_one, -product)
    inverse = 1.0 / x
    rest = inverse.fma(series(STIRLING, inverse * inverse), (math.log(2 * math.pi) - 1.0) / 2)
    # An infinite product has no correction, which would be NaN.
    return (product < math.inf).where(product + (factor.fma(lacking, rounded) + rest), product)


def write_trigamma(x: Scalar) -> Scalar:
    """Write ψ′(x), the second derivative of log Γ, for x > 0: 1/x + 1/2x² + 1/6x³ − …, for small x after two steps.

    The steps are those of ψ′(x) = 1/x² + ψ′(x + 1).
    """
    is_small = x < _SERIES_START
    z = is_small.where(x + 2.0, x)
    inverse = 1.0 / z
    square = inverse * inverse
    asymptotic = square.fma(inverse.fma(series(TRIGAMMA, square), 0.5), inverse)
    next = x + 1.0
    first, second = 1.0 / x, 1.0 / next
    # Rounding errors of sums and quotients: added only for small x, where they matter and nothing is infinite.
    off_first = first.fma(-x, 1.0) * (first + first)
    off_second = (second.fma(-next, 1.0) - second * (x - (next - 1.0))) * (second + second)
    correction = off_first.fma(first, off_second.fma(second, (z - 2.0 - x) * square))
    total = second.fma(second, asymptotic)
    total = (x < 0.5).where(total, total + correction)
    return is_small.where(first.fma(first, total), asymptotic)


# Modified Bessel functions of the first kind, written in arithmetic and exponentials that every printer has.
#
# They are polynomials of x² up to 8, with positive terms only, and of 16 / x − 1 beyond. S. Moshier's Cephes splits at
# the same point, with Chebyshev series.

#: x beyond which exp(x / 2)², and so the functions, are infinite
_ENDLESS: Final = {"float32": 360.0, "float64": 2840.0}


def write_i0e(x: Scalar) -> Scalar:
    """Write exp(−|x|) I₀(x)."""
    size = x.abs()
    return (size < BESSEL_SPLIT).where((-size).exp() * _horner(I0_NEAR, x * x), _scaled(I0_FAR, size))


def write_i1e(x: Scalar) -> Scalar:
    """Write exp(−|x|) I₁(x), which is odd, also in the sign of a zero."""
    size = x.abs()
    near = (-size).exp() * (size * _horner(I1_NEAR, x * x))
    return (size < BESSEL_SPLIT).where(near, _scaled(I1_FAR, size)).copysign(x)


def write_i0(x: Scalar) -> Scalar:
    """Write I₀(x)."""
    size = x.abs()
    return (size < BESSEL_SPLIT).where(_horner(I0_NEAR, x * x), _grown(I0_FAR, size))


def write_i1(x: Scalar) -> Scalar:
    """Write I₁(x), with the sign of a zero."""
    size = x.abs()
    return (size < BESSEL_SPLIT).where(size * _horner(I1_NEAR, x * x), _grown(I1_FAR, size)).copysign(x)


def _scaled(coefficients: Coefficients, size: Scalar) -> Scalar:
    """Write exp(−x) Iₙ(x): a polynomial of 16 / x − 1, divided by √x."""
    return _horner(coefficients, 2 * BESSEL_SPLIT / size - 1.0) / size.sqrt()


def _grown(coefficients: Coefficients, size: Scalar) -> Scalar:
    """Write Iₙ(x): the scaled function times exp(x / 2) twice, since exp(x) overflows before the product does."""
    bounded = at_most(size, _ENDLESS[size.dtype])
    root = (bounded * 0.5).exp()
    return root * _scaled(coefficients, bounded) * root


def _horner(coefficients: Coefficients, x: Scalar) -> Scalar:
    """Write a polynomial without fused multiply-adds, which NumPy lacks."""
    *lower_terms, result = [x.builder.constant(c) for c in coefficients[x.dtype]]
    for term in reversed(lower_terms):
        result = result * x + term
    return result
