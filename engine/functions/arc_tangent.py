"""The angle of a point written in IEEE primitives: an arc tangent below tan(π / 8), turned to its octant."""

from __future__ import annotations

import math
from typing import Final

from engine.functions.coefficients import ATAN, HALF_PI
from engine.functions.float_parts import series
from engine.loops.program import Scalar

#: sums of larger ones than the first may be infinite; the second brings them below
_LARGE: Final = {"float32": (2.0**126, 0.25), "float64": (2.0**1022, 0.25)}


def write_angle(y: Scalar, x: Scalar) -> Scalar:
    """atan2(y, x), in [−π, π], with the signs of zeros as C99 has them."""
    beside, above = x.abs(), y.abs()
    larger, smaller = beside.maximum(above), beside.minimum(above)
    most, less = _LARGE[x.dtype]
    scale = (larger > most).where(less, 1.0)
    angle = _of_quotient(smaller * scale, larger * scale)
    is_left, is_steep = x.builder.constant(1.0).copysign(x) < 0.0, above > beside
    half_turn, quarter_turn = (_parts(x, factor) for factor in (2.0, 1.0))
    high, low = (is_steep.where(q, is_left.where(h, 0.0)) for q, h in zip(quarter_turn, half_turn, strict=True))
    turned = is_steep.where(is_left.not_(), is_left).where(-angle, angle)
    found = (high + (turned + low)).copysign(y)
    return x.ne(x).or_(y.ne(y)).where(math.nan, found)


def _of_quotient(a: Scalar, b: Scalar) -> Scalar:
    """atan(a / b), for 0 ≤ a ≤ b: of more than tan(π / 8), as π / 4 and the arc tangent of (a − b) / (a + b)."""
    equal = a.eq(b)
    steep = equal.or_(a > b * math.tan(math.pi / 8))
    u = equal.where(0.0, steep.where(a - b, a) / steep.where(a + b, b))
    square = u * u
    bent = u * square * series(ATAN, square)
    high, low = _parts(u, 0.5)
    turned = steep.and_(b.ne(0.0))
    return turned.where(high, 0.0) + (u + (bent + turned.where(low, 0.0)))


def _parts(x: Scalar, factor: float) -> tuple[float, float]:
    """π / 2 times a power of two, in parts."""
    high, low, _ = HALF_PI[x.dtype]
    return high * factor, low * factor
