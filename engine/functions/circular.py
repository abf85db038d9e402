"""sin and cos written in IEEE primitives: x = n π / 2 + r, and polynomials of r² for each quadrant."""

from __future__ import annotations

import math
from typing import Final

from engine.functions.coefficients import COS, HALF_PI, SIN
from engine.functions.float_parts import format_of, integer, series
from engine.loops.program import Scalar

#: |x| up to which sin and cos are right. Further out, the quotient by π / 2 has more places than a float.
CIRCULAR_LIMIT: Final = {"float32": 2.0**19, "float64": 2.0**49}


def write_sin(x: Scalar) -> Scalar:
    """sin(x), for |x| ≤ `CIRCULAR_LIMIT`."""
    quadrant, r = _reduced(x)
    return _in_quadrant(quadrant, r)


def write_cos(x: Scalar) -> Scalar:
    """cos(x), for |x| ≤ `CIRCULAR_LIMIT`."""
    quadrant, r = _reduced(x)
    return _in_quadrant(quadrant.iadd(integer(x, 1)), r)


def _reduced(x: Scalar) -> tuple[Scalar, Scalar]:
    """An int that has n mod 4 in its low bits, and r (W. Cody and W. Waite, each product rounded with its sum)."""
    form = format_of(x)
    shifted = x.fma(2.0 / math.pi, form.rounder)
    n = shifted - form.rounder
    r = x
    for part in HALF_PI[x.dtype]:
        r = n.fma(-part, r)
    return shifted.bits(), r


def _in_quadrant(quadrant: Scalar, r: Scalar) -> Scalar:
    """sin(r + quadrant · π / 2)."""
    one, square = integer(r, 1), r * r
    sin = r * square.fma(series(SIN, square), 1.0)
    cos = (square * square).fma(series(COS, square), square.fma(-0.5, 1.0))
    value = quadrant.iand(one).ieq(one).where(cos, sin)
    sign = quadrant.iand(integer(r, 2)).shl(integer(r, format_of(r).width - 2))
    return value.bits().ixor(sign).from_bits()
