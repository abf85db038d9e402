"""log Γ(x) and its second derivative for x > 0, written in IEEE primitives, in float32."""

from __future__ import annotations

import math
from typing import Final

from engine.functions.coefficients import LGAMMA_AT_ONE, LGAMMA_AT_TWO, LGAMMA_MIDDLE, STIRLING, TRIGAMMA
from engine.functions.float_parts import series
from engine.functions.logarithms import exponent_and_fraction, natural_parts
from engine.loops.program import Scalar

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
