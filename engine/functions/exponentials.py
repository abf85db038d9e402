"""exp, expm1 and tanh written in IEEE primitives: x = n ln 2 + r, exp(x) = 2ⁿ exp(r), and exp(r) is a polynomial."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from engine.functions.coefficients import EXP, LN2
from engine.functions.float_parts import at_least, at_most, except_near_zero, format_of, integer, series
from engine.loops.program import Scalar

#: beyond them, exp is 0 or infinite
EXP_RANGE: Final = {"float32": (-104.0, 89.0), "float64": (-746.0, 710.0)}
#: below it, expm1 rounds to −1, and beyond twice its size, so does tanh to 1
_FLAT: Final = {"float32": -18.0, "float64": -38.0}


class PowerOfTwo(NamedTuple):
    """2ⁿ for a whole n; `bits` has n + 2 · bias in its lowest bits, as many as sign and exponent are."""

    n: Scalar
    bits: Scalar

    def times(self, factor: float) -> Scalar:
        """2ⁿ times a power of two, where that is a normal number."""
        bias = format_of(self.n).bias - int(math.log2(factor))
        return self._power(self.bits.isub(integer(self.n, bias)))

    def scale(self, x: Scalar) -> Scalar:
        """2ⁿ x, in two steps: so that n may be any for which x is scaled out of range, and x is rounded once."""
        half = self.bits.ashr(integer(self.n, 1))
        return x * self._power(half) * self._power(self.bits.isub(half))

    def _power(self, exponent: Scalar) -> Scalar:
        return exponent.shl(integer(self.n, format_of(self.n).mantissa)).from_bits()


def nearest_power(x: Scalar) -> PowerOfTwo:
    """The power of two for which x is nearest to n ln 2."""
    form = format_of(x)
    start = form.rounder + 2 * form.bias
    shifted = x.fma(1.0 / math.log(2.0), start)
    return PowerOfTwo(shifted - start, shifted.bits())


def head(x: Scalar, power: PowerOfTwo) -> Scalar:
    """x − n ln 2, but for what the second part of ln 2 takes off: exact, since the sum cancels before it is rounded."""
    return power.n.fma(-LN2[x.dtype][0], x)


def more_than_head(head: Scalar, rest: Scalar) -> Scalar:
    """exp(head + rest) − 1 − head, for a sum that is ≤ ln 2 / 2 in size, and a small rest."""
    r = head + rest
    return (r * r).fma(series(EXP, r), rest)


class ExpParts(NamedTuple):
    """exp(x) = 2ⁿ exp(r), r the `head` but for the second part of ln 2, and exp(r) = 1 + r · `slope`."""

    power: PowerOfTwo
    head: Scalar
    r: Scalar
    slope: Scalar

    @property
    def value(self) -> Scalar:
        """exp(r)."""
        return self.r.fma(self.slope, 1.0)

    @property
    def lacking(self) -> Scalar:
        """What r is rounded by."""
        return self.power.n.fma(-LN2[self.r.dtype][1], self.head - self.r)


def exp_parts(x: Scalar, beyond: float = 0.0) -> ExpParts:
    """What `write_exp` makes exp(x) of; right for results so much `beyond` the range, by their logarithm, too."""
    low, high = EXP_RANGE[x.dtype]
    return _parts(at_least(at_most(x, high + beyond), low))


def write_exp(x: Scalar) -> Scalar:
    """exp(x)."""
    parts = exp_parts(x)
    return parts.power.scale(parts.value)


def write_normal_exp(x: Scalar) -> Scalar:
    """exp(x), for x whose power is a normal number."""
    parts = _parts(x)
    return parts.value * parts.power.times(1.0)


def _parts(x: Scalar) -> ExpParts:
    power = nearest_power(x)
    first = head(x, power)
    r = power.n.fma(-LN2[x.dtype][1], first)
    return ExpParts(power, first, r, r.fma(series(EXP, r), 1.0))


def write_expm1(x: Scalar) -> Scalar:
    """exp(x) − 1, exact to the last places near 0 too."""
    half = _scaled_expm1(at_least(at_most(x, EXP_RANGE[x.dtype][1]), _FLAT[x.dtype]), 0.5)
    return except_near_zero(x, format_of(x).half_ulp, half + half)


def write_tanh(x: Scalar) -> Scalar:
    """tanh(x) = t / (t + 2) with t = exp(2|x|) − 1."""
    twice = x.abs() + x.abs()
    return _over_two_more(_scaled_expm1(at_most(twice, -_FLAT[x.dtype]), 1.0)).copysign(x)


def _scaled_expm1(x: Scalar, factor: float) -> Scalar:
    """`factor` · (exp(x) − 1), where `factor` · 2ⁿ is a normal number; `factor` is a power of two."""
    power = nearest_power(x)
    first = head(x, power)
    more = more_than_head(first, power.n * -LN2[x.dtype][1])
    scale = power.times(factor)
    return scale.fma(more, scale.fma(first, scale - factor))


def _over_two_more(t: Scalar) -> Scalar:
    """t / (t + 2), with what the sum is rounded by made good."""
    divisor = t + 2.0
    lacking = t - (divisor - 2.0)
    inverse = 1.0 / divisor
    quotient = t * inverse
    return (-quotient).fma(lacking, (-quotient).fma(divisor, t)).fma(inverse, quotient)
