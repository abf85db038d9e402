"""Elementary functions in IEEE primitives: exponentials, logarithms, sin, cos, and the angle of a point.

They are made of the parts of floats, of powers of two, and of polynomials.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from engine.loops.program import Scalar


class FloatFormat(NamedTuple):
    """Layout of a float: sign, exponent, then `mantissa` bits; the exponent of 1 is stored as `bias`."""

    width: int
    mantissa: int
    bias: int

    @property
    def rounder(self) -> float:
        """Adding it rounds to a whole number, which the low bits of the sum then hold."""
        return float(3 << (self.mantissa - 1))

    def bits_of(self, number: float) -> int:
        """The bits of a positive number, once it is rounded to this format."""
        packed = struct.pack("<f" if self.width == 32 else "<d", number)
        return int.from_bytes(packed, "little")

    @property
    def smallest_normal(self) -> float:
        """The least positive number with all its bits."""
        return 2.0 ** (1 - self.bias)

    @property
    def half_ulp(self) -> float:
        """Half of what lies between 1 and the next number."""
        return 2.0 ** -(self.mantissa + 1)


FORMATS: Final = {"float32": FloatFormat(32, 23, 127), "float64": FloatFormat(64, 52, 1023)}

Coefficients = Mapping[str, Sequence[float]]  # by dtype, lowest power first


def format_of(x: Scalar) -> FloatFormat:
    """The format of the dtype that x is computed in."""
    return FORMATS[x.dtype]


def integer(x: Scalar, number: int) -> Scalar:
    """A whole number as wide as x."""
    return x.builder.integer(number)


def series(coefficients: Coefficients, x: Scalar, singly: int = 0) -> Scalar:
    """A polynomial: by Horner's rule, or in float64, where that is a long chain, in pairs (G. Estrin).

    The first terms, which say most, are added `singly`: that is more accurate.
    """
    terms = [x.builder.constant(c) for c in coefficients[x.dtype]]
    if x.dtype == "float64":
        terms = [*terms[:singly], _in_pairs(terms[singly:], x)]
    *others, found = terms
    for term in reversed(others):
        found = found.fma(x, term)
    return found


def _in_pairs(terms: Sequence[Scalar], x: Scalar) -> Scalar:
    if len(terms) == 1:
        return terms[0]
    pairs = [terms[i + 1].fma(x, terms[i]) for i in range(0, len(terms) - 1, 2)]
    return _in_pairs([*pairs, *terms[2 * len(pairs) :]], x * x)


def at_most(x: Scalar, limit: float) -> Scalar:
    """The smaller one; NaN stays."""
    return (x > limit).where(limit, x)


def at_least(x: Scalar, limit: float) -> Scalar:
    """The greater one; NaN stays."""
    return (x < limit).where(limit, x)


def except_near_zero(x: Scalar, limit: float, value: Scalar) -> Scalar:
    """`value`, but x itself where |x| < `limit`: so that −0 and subnormal numbers stay what they are."""
    return (x.abs() < limit).where(x, value)
