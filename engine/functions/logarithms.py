"""log, log2 and log1p written in IEEE primitives: x = 2ᵏ (1 + f) with 1 + f from √½ to √2, log(1 + f) a polynomial."""

from __future__ import annotations

import math
from typing import NamedTuple

from engine.functions.coefficients import LN2, LOG
from engine.functions.float_parts import except_near_zero, format_of, integer, series
from engine.loops.program import Scalar


class BinaryExponent(NamedTuple):
    """The k of x = 2ᵏ (1 + f), for a normal x > 0; garbage for another x."""

    x_bits: Scalar
    k: Scalar
    shifted: Scalar  # k where a float has its exponent

    @classmethod
    def of(cls, x: Scalar) -> BinaryExponent:
        """Of x."""
        form = format_of(x)
        place, bits = integer(x, form.mantissa), x.bits()
        k = bits.isub(integer(x, form.bits_of(math.sqrt(0.5)))).ashr(place)
        return cls(bits, k, k.shl(place))

    @property
    def fraction(self) -> Scalar:
        """f."""
        return self.x_bits.isub(self.shifted).from_bits() - 1.0

    def less(self, shift: Scalar | float) -> Scalar:
        """k − `shift` as a float."""
        form = format_of(self.k)
        return self.k.iadd(integer(self.k, form.bits_of(form.rounder))).from_bits() - shift

    def negative_power(self, times: float) -> Scalar:
        """`times` · 2⁻ᵏ, where that is a normal number."""
        return integer(self.k, format_of(self.k).bits_of(times)).isub(self.shifted).from_bits()


def exponent_and_fraction(x: Scalar) -> tuple[Scalar, Scalar]:
    """k and f of x = 2ᵏ (1 + f), for x > 0, as floats."""
    form = format_of(x)
    up = form.mantissa + 1
    subnormal = x < form.smallest_normal
    exponent = BinaryExponent.of(subnormal.where(x * 2.0**up, x))
    return exponent.less(subnormal.where(form.rounder + up, form.rounder)), exponent.fraction


def log_near_one(f: Scalar, more: Scalar | float) -> Scalar:
    """log(1 + f) + `more`, for 1 + f from √½ to √2 and `more` smaller than what f is rounded by."""
    square = f * f
    if f.dtype == "float32":
        return f + square.fma(-0.5, (f * square).fma(series(LOG, f), more))
    # of half the inverse hyperbolic tangent: a shorter polynomial, for a division (K. Ng, FreeBSD's e_log.c)
    h = f / (f + 2.0)
    w = h * h
    half = square * 0.5
    return f - (half - h.fma(half + w * series(LOG, w), more))


def natural(k: Scalar, f: Scalar) -> Scalar:
    """k ln 2 + log(1 + f)."""
    high, low = LN2[k.dtype]
    return k.fma(high, log_near_one(f, k * low))


def natural_parts(k: Scalar, f: Scalar) -> tuple[Scalar, Scalar]:
    """The same, and what it is rounded by, almost exactly."""
    high, low = LN2[k.dtype]
    near_one = log_near_one(f, k * low)
    found = k.fma(high, near_one)
    return found, k.fma(high, -found) + near_one


def at_the_ends(x: Scalar, value: Scalar) -> Scalar:
    """`value`, the logarithm of x, where that is finite; else −∞ for 0, ∞ for ∞, and NaN."""
    outside = x.eq(0.0).where(-math.inf, math.nan)
    return x.eq(math.inf).where(x, (x > 0.0).where(value, outside))


def write_log(x: Scalar) -> Scalar:
    """log(x)."""
    return at_the_ends(x, natural(*exponent_and_fraction(x)))


def write_log2(x: Scalar) -> Scalar:
    """log(x) / log(2), exact for powers of two."""
    k, f = exponent_and_fraction(x)
    return at_the_ends(x, log_near_one(f, 0.0).fma(1.0 / math.log(2.0), k))


def write_log1p(x: Scalar) -> Scalar:
    """log(1 + x), exact to the last places near 0 too."""
    u = x + 1.0
    exponent = BinaryExponent.of(u)
    # f = 2⁻ᵏ x + (2⁻ᵏ − 1), rounded once; by way of a quarter of x, since 2⁻ᵏ may be subnormal
    power = exponent.negative_power(4.0)
    f = (x * 0.25).fma(power, power.fma(0.25, -1.0))
    value = natural(exponent.less(format_of(x).rounder), f)
    return except_near_zero(x, format_of(x).half_ulp, at_the_ends(u, value))
