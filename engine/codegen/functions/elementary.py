"""Elementary functions in IEEE primitives: exponentials, logarithms, sin, cos, and the angle of a point.

They are built from the bit fields of floats, powers of two, and polynomials. Rounding errors are recovered by fused
multiply-adds: the error of a product p = a · b is fma(a, b, −p), exactly.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.codegen.functions.generated.coefficients import ATAN, COS, EXP, HALF_PI, LN2, LOG, SIN
from engine.codegen.kernels.program import Scalar


class FloatFormat(NamedTuple):
    """Layout of a float: sign, exponent, then `mantissa` bits. The exponent of 1 is stored as `bias`."""

    width: int
    mantissa: int
    bias: int

    @property
    def rounder(self) -> float:
        """Constant whose addition rounds to an integer, which is then in the low bits of the sum."""
        return float(3 << (self.mantissa - 1))

    def bits_of(self, number: float) -> int:
        """Return the bits of a positive number after rounding it to this format."""
        packed = struct.pack("<f" if self.width == 32 else "<d", number)
        return int.from_bytes(packed, "little")

    @property
    def smallest_normal(self) -> float:
        """The smallest positive normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def half_ulp(self) -> float:
        """Half of the distance from 1 to the next number."""
        return 2.0 ** -(self.mantissa + 1)


FORMATS: Final = {"float32": FloatFormat(32, 23, 127), "float64": FloatFormat(64, 52, 1023)}

Coefficients = Mapping[str, Sequence[float]]  # by dtype, lowest power first


def format_of(x: Scalar) -> FloatFormat:
    """Return the format of the dtype that x is computed in."""
    return FORMATS[x.dtype]


def integer(x: Scalar, number: int) -> Scalar:
    """Return an integer constant as wide as x."""
    return x.builder.integer(number)


def series(coefficients: Coefficients, x: Scalar, singly: int = 0) -> Scalar:
    """Write a polynomial: by Horner's rule, or in float64, where that is a long chain, in pairs (G. Estrin).

    The first `singly` terms, which are the largest, are added one by one, which is more accurate.
    """
    terms = [x.builder.constant(c) for c in coefficients[x.dtype]]
    # In pairs, independent multiply-adds overlap, and the longest chain grows with the logarithm of the number of
    # terms.
    if x.dtype == "float64":
        terms = [*terms[:singly], _in_pairs(terms[singly:], x)]
    *others, result = terms
    for term in reversed(others):
        result = result.fma(x, term)
    return result


def _in_pairs(terms: Sequence[Scalar], x: Scalar) -> Scalar:
    if len(terms) == 1:
        return terms[0]
    pairs = [terms[i + 1].fma(x, terms[i]) for i in range(0, len(terms) - 1, 2)]
    return _in_pairs([*pairs, *terms[2 * len(pairs) :]], x * x)


def at_most(x: Scalar, limit: float) -> Scalar:
    """Write the smaller of x and `limit`; NaN stays NaN."""
    return (x > limit).where(limit, x)


def at_least(x: Scalar, limit: float) -> Scalar:
    """Write the larger of x and `limit`; NaN stays NaN."""
    return (x < limit).where(limit, x)


def except_near_zero(x: Scalar, limit: float, value: Scalar) -> Scalar:
    """Write `value`, but x itself where |x| < `limit`, so that −0 and subnormal numbers are preserved."""
    return (x.abs() < limit).where(x, value)


# exp, expm1 and tanh written in IEEE primitives: x = n ln 2 + r, exp(x) = 2ⁿ exp(r), and exp(r) is a polynomial.

#: arguments outside which exp is 0 or infinite
EXP_RANGE: Final = {"float32": (-104.0, 89.0), "float64": (-746.0, 710.0)}
#: argument below which expm1 rounds to −1; and from which 4 exp(−x) is subnormal
_FLAT: Final = {"float32": -18.0, "float64": -38.0}
_STEEP: Final = {"float32": 89.0, "float64": 710.0}


class PowerOfTwo(NamedTuple):
    """2ⁿ for an integer n. `bits` has n + 2 · bias in its low bits, as many as sign and exponent have."""

    n: Scalar
    bits: Scalar

    def times(self, factor: float) -> Scalar:
        """Write 2ⁿ times a power of two, where the result is a normal number."""
        bias = format_of(self.n).bias - int(math.log2(factor))
        return self._power(self.bits.isub(integer(self.n, bias)))

    def scale(self, x: Scalar) -> Scalar:
        """Write 2ⁿ x in two steps, so that 2ⁿ may be out of range and x is rounded only once."""
        half = self.bits.ashr(integer(self.n, 1))
        return x * self._power(half) * self._power(self.bits.isub(half))

    def _power(self, exponent: Scalar) -> Scalar:
        return exponent.shl(integer(self.n, format_of(self.n).mantissa)).from_bits()


def nearest_power(x: Scalar) -> PowerOfTwo:
    """Write the power of two whose n ln 2 is nearest to x."""
    form = format_of(x)
    start = form.rounder + 2 * form.bias
    shifted = x.fma(1.0 / math.log(2.0), start)
    return PowerOfTwo(shifted - start, shifted.bits())


def head(x: Scalar, power: PowerOfTwo) -> Scalar:
    """Write x − n ln 2 without the second part of ln 2: exact, since the terms cancel before rounding."""
    return power.n.fma(-LN2[x.dtype][0], x)


def more_than_head(head: Scalar, rest: Scalar) -> Scalar:
    """Write exp(head + rest) − 1 − head, for |head + rest| ≤ ln 2 / 2 and a small rest."""
    r = head + rest
    return (r * r).fma(series(EXP, r), rest)


class ExpParts(NamedTuple):
    """exp(x) = 2ⁿ exp(r), where r is `head` minus the second part of n ln 2, and exp(r) = 1 + r · `slope`."""

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
        """Rounding error of r."""
        return self.power.n.fma(-LN2[self.r.dtype][1], self.head - self.r)


def exp_parts(x: Scalar, beyond: float = 0.0) -> ExpParts:
    """Write the parts of exp(x). They are also valid if log of the result exceeds the range by up to `beyond`."""
    low, high = EXP_RANGE[x.dtype]
    return _parts(at_least(at_most(x, high + beyond), low))


def write_exp(x: Scalar) -> Scalar:
    """Write exp(x)."""
    parts = exp_parts(x)
    return parts.power.scale(parts.value)


def write_normal_exp(x: Scalar) -> Scalar:
    """Write exp(x), for x with a normal power of two."""
    parts = _parts(x)
    return parts.value * parts.power.times(1.0)


def _parts(x: Scalar) -> ExpParts:
    power = nearest_power(x)
    first = head(x, power)
    r = power.n.fma(-LN2[x.dtype][1], first)
    return ExpParts(power, first, r, r.fma(series(EXP, r), 1.0))


def write_expm1(x: Scalar) -> Scalar:
    """Write exp(x) − 1, accurate to the last places also near 0."""
    # Half the value is computed first, since 2ⁿ itself overflows for the largest results.
    half = _scaled_expm1(at_least(at_most(x, EXP_RANGE[x.dtype][1]), _FLAT[x.dtype]), 0.5)
    return except_near_zero(x, format_of(x).half_ulp, half + half)


def write_tanh(x: Scalar) -> Scalar:
    """Write tanh(x) = t / (t + 1) with t = (exp(2|x|) − 1) / 2."""
    return _over_one_more(_half_expm1_of_double(x)).copysign(x)


def write_sech2(x: Scalar) -> Scalar:
    """Write 1 / cosh²(x) = (1 + |tanh x|) / (t + 1), with all costly parts of tanh; 0 instead of subnormal numbers."""
    t = _half_expm1_of_double(x)
    slope = (_over_one_more(t) + 1.0) * (1.0 / (t + 1.0))
    return (x.abs() > 0.5 * _STEEP[x.dtype]).where(0.0, slope)


def _half_expm1_of_double(x: Scalar) -> Scalar:
    return _scaled_expm1(at_most(x.abs() + x.abs(), _STEEP[x.dtype]), 0.5)


def _scaled_expm1(x: Scalar, factor: float) -> Scalar:
    """Write `factor` · (exp(x) − 1), where `factor` · 2ⁿ is a normal number; `factor` is a power of two."""
    power = nearest_power(x)
    first = head(x, power)
    more = more_than_head(first, power.n * -LN2[x.dtype][1])
    scale = power.times(factor)
    return scale.fma(more, scale.fma(first, scale - factor))


def _over_one_more(t: Scalar) -> Scalar:
    """Write t / (t + 1), corrected for the rounding error of the sum."""
    divisor = t + 1.0
    lacking = t - (divisor - 1.0)
    inverse = 1.0 / divisor
    quotient = t * inverse
    return (-quotient).fma(lacking, (-quotient).fma(divisor, t)).fma(inverse, quotient)


# log, log2 and log1p written in IEEE primitives: x = 2ᵏ (1 + f) with 1 + f from √½ to √2, log(1 + f) a polynomial.


class BinaryExponent(NamedTuple):
    """The exponent k of x = 2ᵏ (1 + f) for a normal x > 0; meaningless for other x."""

    x_bits: Scalar
    k: Scalar
    shifted: Scalar  # k in the bits of a float's exponent

    @classmethod
    def of(cls, x: Scalar) -> BinaryExponent:
        """Extract the exponent of x."""
        form = format_of(x)
        place, bits = integer(x, form.mantissa), x.bits()
        # Subtracting the bits of √½ makes 1 + f lie between √½ and √2, so that f is small on both sides of 1.
        k = bits.isub(integer(x, form.bits_of(math.sqrt(0.5)))).ashr(place)
        return cls(bits, k, k.shl(place))

    @property
    def fraction(self) -> Scalar:
        """The fraction f."""
        return self.x_bits.isub(self.shifted).from_bits() - 1.0

    def less(self, shift: Scalar | float) -> Scalar:
        """Write k − `shift` as a float."""
        form = format_of(self.k)
        return self.k.iadd(integer(self.k, form.bits_of(form.rounder))).from_bits() - shift

    def negative_power(self, times: float) -> Scalar:
        """Write `times` · 2⁻ᵏ, where that is a normal number."""
        return integer(self.k, format_of(self.k).bits_of(times)).isub(self.shifted).from_bits()


def exponent_and_fraction(x: Scalar) -> tuple[Scalar, Scalar]:
    """Write k and f of x = 2ᵏ (1 + f) as floats, for x > 0."""
    form = format_of(x)
    up = form.mantissa + 1
    subnormal = x < form.smallest_normal
    exponent = BinaryExponent.of(subnormal.where(x * 2.0**up, x))
    return exponent.less(subnormal.where(form.rounder + up, form.rounder)), exponent.fraction


def log_near_one(f: Scalar, more: Scalar | float) -> Scalar:
    """Write log(1 + f) + `more`, for 1 + f from √½ to √2 and `more` smaller than the rounding error of f."""
    square = f * f
    if f.dtype == "float32":
        return f + square.fma(-0.5, (f * square).fma(series(LOG, f), more))
    # by the inverse hyperbolic tangent: a division makes the polynomial shorter (K. Ng, FreeBSD's e_log.c)
    h = f / (f + 2.0)
    w = h * h
    half = square * 0.5
    return f - (half - h.fma(half + w * series(LOG, w), more))


def natural(k: Scalar, f: Scalar) -> Scalar:
    """Write k ln 2 + log(1 + f)."""
    high, low = LN2[k.dtype]
    return k.fma(high, log_near_one(f, k * low))


def natural_parts(k: Scalar, f: Scalar) -> tuple[Scalar, Scalar]:
    """Write k ln 2 + log(1 + f) and its rounding error, almost exactly."""
    high, low = LN2[k.dtype]
    near_one = log_near_one(f, k * low)
    log = k.fma(high, near_one)
    return log, k.fma(high, -log) + near_one


def at_the_ends(x: Scalar, value: Scalar) -> Scalar:
    """Write `value`, the logarithm of x, where that is finite; else −∞ for 0, ∞ for ∞, and NaN."""
    outside = x.eq(0.0).where(-math.inf, math.nan)
    return x.eq(math.inf).where(x, (x > 0.0).where(value, outside))


def write_log(x: Scalar) -> Scalar:
    """Write log(x)."""
    return at_the_ends(x, natural(*exponent_and_fraction(x)))


def write_log2(x: Scalar) -> Scalar:
    """Write log(x) / log(2), exact for powers of two."""
    k, f = exponent_and_fraction(x)
    return at_the_ends(x, log_near_one(f, 0.0).fma(1.0 / math.log(2.0), k))


def write_log1p(x: Scalar) -> Scalar:
    """Write log(1 + x), accurate to the last places also near 0."""
    u = x + 1.0
    exponent = BinaryExponent.of(u)
    # f = 2⁻ᵏ x + (2⁻ᵏ − 1), rounded once; as 4 · 2⁻ᵏ times x / 4, since 2⁻ᵏ may be subnormal
    power = exponent.negative_power(4.0)
    f = (x * 0.25).fma(power, power.fma(0.25, -1.0))
    value = natural(exponent.less(format_of(x).rounder), f)
    return except_near_zero(x, format_of(x).half_ulp, at_the_ends(u, value))


# sin and cos written in IEEE primitives: x = n π / 2 + r, and polynomials of r² for each quadrant.

#: largest |x| for which sin and cos are accurate. Beyond, the quotient by π / 2 has more digits than a float.
CIRCULAR_LIMIT: Final = {"float32": 2.0**19, "float64": 2.0**49}


def write_sin(x: Scalar) -> Scalar:
    """Write sin(x), for |x| ≤ `CIRCULAR_LIMIT`."""
    quadrant, r = _reduced(x)
    return _in_quadrant(quadrant, r)


def write_cos(x: Scalar) -> Scalar:
    """Write cos(x), for |x| ≤ `CIRCULAR_LIMIT`."""
    quadrant, r = _reduced(x)
    return _in_quadrant(quadrant.iadd(integer(x, 1)), r)


def _reduced(x: Scalar) -> tuple[Scalar, Scalar]:
    """Write r, and an int with n mod 4 in its low bits (W. Cody and W. Waite, each product rounded with its sum)."""
    form = format_of(x)
    shifted = x.fma(2.0 / math.pi, form.rounder)
    n = shifted - form.rounder
    r = x
    for part in HALF_PI[x.dtype]:
        r = n.fma(-part, r)
    return shifted.bits(), r


def _in_quadrant(quadrant: Scalar, r: Scalar) -> Scalar:
    """Write sin(r + quadrant · π / 2)."""
    one, square = integer(r, 1), r * r
    sin = r * square.fma(series(SIN, square), 1.0)
    cos = (square * square).fma(series(COS, square), square.fma(-0.5, 1.0))
    # Odd quadrants take the cosine. The quadrant's second bit, moved to the sign bit, negates the value.
    value = quadrant.iand(one).ieq(one).where(cos, sin)
    sign = quadrant.iand(integer(r, 2)).shl(integer(r, format_of(r).width - 2))
    return value.bits().ixor(sign).from_bits()


# The angle of a point written in IEEE primitives: an arc tangent of at most tan(π / 8), moved to the point's octant.

#: size above which a sum of two may overflow; and the factor that scales larger numbers
_LARGE: Final = {"float32": (2.0**126, 0.25), "float64": (2.0**1022, 0.25)}


def write_angle(y: Scalar, x: Scalar) -> Scalar:
    """Write atan2(y, x), in [−π, π], with the signs of zeros of C99."""
    beside, above = x.abs(), y.abs()
    larger, smaller = beside.maximum(above), beside.minimum(above)
    limit, shrink = _LARGE[x.dtype]
    scale = (larger > limit).where(shrink, 1.0)
    angle = _of_quotient(smaller * scale, larger * scale)
    is_left, is_steep = x.builder.constant(1.0).copysign(x) < 0.0, above > beside
    # Reflections moved the point to the first octant. They are undone by adding multiples of π / 2, in two parts.
    half_turn, quarter_turn = (_half_pi_parts(x, factor) for factor in (2.0, 1.0))
    high, low = (is_steep.where(q, is_left.where(h, 0.0)) for q, h in zip(quarter_turn, half_turn, strict=True))
    turned = is_steep.where(is_left.not_(), is_left).where(-angle, angle)
    result = (high + (turned + low)).copysign(y)
    return x.ne(x).or_(y.ne(y)).where(math.nan, result)


def _of_quotient(a: Scalar, b: Scalar) -> Scalar:
    """Write atan(a / b) for 0 ≤ a ≤ b; beyond tan(π / 8), as π / 4 plus the arc tangent of (a − b) / (a + b)."""
    equal = a.eq(b)
    steep = equal.or_(a > b * math.tan(math.pi / 8))
    u = equal.where(0.0, steep.where(a - b, a) / steep.where(a + b, b))
    square = u * u
    bent = u * square * series(ATAN, square)
    high, low = _half_pi_parts(u, 0.5)
    turned = steep.and_(b.ne(0.0))
    return turned.where(high, 0.0) + (u + (bent + turned.where(low, 0.0)))


def _half_pi_parts(x: Scalar, factor: float) -> tuple[float, float]:
    """Return π / 2 times a power of two, in parts."""
    high, low, _ = HALF_PI[x.dtype]
    return high * factor, low * factor
