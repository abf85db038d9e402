"""erf and erfc written in IEEE primitives: a polynomial near 0, and the exponential of one further out."""

from __future__ import annotations

from typing import Final

from engine.loops.coefficients import ERF, LN2, LOG_ERFC, TAIL
from engine.loops.exponentials import head, more_than_head, nearest_power, write_normal_exp
from engine.loops.float_parts import at_most, series
from engine.loops.program import Scalar

#: from which on erf rounds to 1
_ERF_END: Final = {"float32": 3.95, "float64": 6.0}
#: from which on erfc rounds to 0
_ERFC_END: Final = {"float32": 10.5, "float64": 28.0}


def write_erf(x: Scalar) -> Scalar:
    """erf(x)."""
    size = x.abs()
    near = x.fma(series(ERF, x * x), x)
    far = 1.0 - write_normal_exp(series(LOG_ERFC, at_most(size, _ERF_END[x.dtype]) - 1.0))
    return (size < 1.0).where(near, far.copysign(x))


def write_erfc(x: Scalar) -> Scalar:
    """1 − erf(x), with its tail."""
    size = x.abs()
    near = (-x).fma(series(ERF, x * x), 1.0 - x)
    tail = _tail(at_most(size, _ERFC_END[x.dtype]))
    return (size < 0.75).where(near, (x < 0.0).where(2.0 - tail, tail))


def _tail(x: Scalar) -> Scalar:
    """erfc(x) for x ≥ ¾, as exp(−x²) times a factor, each with what it is rounded by."""
    square = x * x
    power = nearest_power(-square)
    first = head(-square, power)
    more = more_than_head(first, power.n.fma(-LN2[x.dtype][1], (-x).fma(x, square)))
    factor, lacking = _factor(x)
    rest = factor.fma(more, lacking.fma(first, lacking))
    return power.scale(factor + factor.fma(first, rest))


def _factor(x: Scalar) -> tuple[Scalar, Scalar]:
    """exp(x²) erfc(x), and what that lacks: a polynomial of (x − 2) / (x + 2), over 2 x + 1.

    The variable is that of M. Shepherd and J. Laframboise, Math. Comp. 36 (1981) 249.
    """
    doubled, sum = x + x, x + 2.0
    divisor = doubled + 1.0
    lacking = (1.0 - divisor) + doubled
    both = 1.0 / (divisor * sum)
    inverse = both * sum
    error = (-inverse).fma(lacking, (-inverse).fma(divisor, 1.0))
    above = series(TAIL, (x - 2.0) * (both * divisor))
    factor = inverse.fma(above, inverse)
    return factor, factor.fma(error, inverse.fma(above, inverse - factor))
