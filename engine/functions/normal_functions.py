"""The inverse error function, and the logarithm of the normal distribution, in IEEE primitives, in float32."""

from __future__ import annotations

import math
from typing import Final

from engine.functions.coefficients import ERFINV, ERFINV_TAIL, HALF_ROOT_PI
from engine.functions.error_functions import tail_factor
from engine.functions.exponentials import exp_parts
from engine.functions.float_parts import series
from engine.functions.logarithms import exponent_and_fraction, natural, natural_parts, write_log1p
from engine.loops.program import Scalar

#: −log(1 − x²) from where on the inverse error function is a polynomial of its root; what that is centred at
_TAIL_START: Final = 4.25
_TAIL_CENTRE: Final = 3.0
#: √½ in two parts
_ROOT_HALF: Final = (0.70710677, 1.21014e-08)
#: beyond, 1 − Φ(x) rounds to 0, and −x²/2 is all of log Φ(−x) but for what needs no care
_NDTR_END: Final = 14.5


def write_erfinv(x: Scalar) -> Scalar:
    """y with erf y = x: ±∞ at ±1, NaN beyond.

    y / x is a polynomial of w = −log(1 − x²), or of its root: M. Giles, "Approximating the erfinv function", in GPU
    Computing Gems, Jade Edition (2012) 109.
    """
    size = x.abs()
    log, lacking_log = natural_parts(*exponent_and_fraction((-size).fma(size, 1.0)))
    w, root = -log, (-log).sqrt()
    at_zero, lacking_zero = HALF_ROOT_PI[x.dtype]
    near = w.fma(series(ERFINV, w), lacking_zero) + at_zero
    is_near = w < _TAIL_START
    factor = is_near.where(near, series(ERFINV_TAIL, root - _TAIL_CENTRE))
    # by as much as the root is rounded, the polynomial of it is off
    lacking = is_near.where(0.0, (root.fma(-root, w) - lacking_log) * (0.5 / root))
    end = size.eq(1.0).where(math.inf, math.nan).copysign(x)
    return (size < 1.0).where(x.fma(factor, x * lacking), end)


def write_log_ndtr(x: Scalar) -> Scalar:
    """log Φ(x), Φ the standard normal distribution: on the left −x²/2 and a logarithm, on the right by 1 − Φ(x)."""
    size, (high, low) = x.abs(), _ROOT_HALF
    is_over = size > _NDTR_END
    t = size * high
    factor = tail_factor(t)
    lost_in_t = size.fma(low, size.fma(high, -t))
    error = (-factor.inverse).fma(lost_in_t, factor.error)
    made_good = is_over.where(0.0, error.fma(factor.rise, factor.lacking / factor.value))
    left = (x * -0.5).fma(x, natural(*exponent_and_fraction(factor.value * 0.5)) + made_good)
    square = size * size
    exp = exp_parts(square * -0.5)
    lost = error.fma(factor.rise, size.fma(-size, square) * 0.5)
    more = exp.r.fma(exp.slope, (lost + exp.lacking) * exp.value)
    change = factor.value.fma(more, factor.lacking)
    whole = factor.value + change
    above = is_over.where(0.0, exp.power.scale(whole * 0.5))
    rounded = is_over.where(0.0, exp.power.scale(((factor.value - whole) + change) * 0.5))
    right = write_log1p(-above) - rounded / (1.0 - above)
    return (x < 0.0).where(left, right)
