"""The remainder of a division, written in IEEE primitives: exact, where the quotient has few places."""

from __future__ import annotations

import math
from typing import Final

from engine.loops.program import Scalar

#: |a / b| below which the remainder is found in one step
QUOTIENT_LIMIT: Final = {"float32": 2.0**22, "float64": 2.0**51}


def write_mod(a: Scalar, b: Scalar) -> Scalar:
    """a − b ⌊a / b⌋ with the sign of b, for |a / b| < `QUOTIENT_LIMIT`; NaN where b is 0, or a infinite."""
    size, step = a.abs(), b.abs()
    # a quotient may have been rounded up to a whole number, one too many: what is left is exact in either case
    left = (-(size / step).floor()).fma(step, size)
    rest = (size < step).where(size, (left < 0.0).where(left + step, left)).copysign(a)
    is_across = (rest < 0.0).where(b > 0.0, (rest > 0.0).and_(b < 0.0))
    return rest.eq(0.0).where(rest.abs().copysign(b), is_across.where(rest + b, rest))


def has_long_quotient(a: Scalar, b: Scalar) -> Scalar:
    """Whether `write_mod` is not for these: |a / b| is too large, both being numbers and b not 0."""
    size, step = a.abs(), b.abs()
    is_number = (size < math.inf).and_(step > 0.0)
    return (size / step).ge(QUOTIENT_LIMIT[a.dtype]).and_(is_number)
