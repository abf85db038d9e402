"""Special functions in IEEE primitives: error functions, the normal distribution, log Γ, and Bessel functions.

erf and erfc are a polynomial near 0, and the exponential of one further out.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.functions.coefficients import ERF, LOG_ERFC, TAIL, TAIL_CENTRE
from engine.functions.exponentials import exp_parts, write_normal_exp
from engine.functions.float_parts import at_most, series
from engine.loops.program import Scalar

#: from which on erf rounds to 1
_ERF_END: Final = {"float32": 3.95, "float64": 6.0}
#: beyond, erfc rounds to 0
_ERFC_END: Final = {"float32": 10.2, "float64": 27.3}


class TailFactor(NamedTuple):
    """exp(x²) erfc(x) = `inverse` (1 + `above`), inverse = 1 / (x + c).

    Where the inverse is off by `error` of itself, the factor is by `rise` times as much: 1 far out, 1.5 near 0.
    """

    inverse: Scalar
    above: Scalar
    error: Scalar
    rise: Scalar

    @property
    def value(self) -> Scalar:
        """The factor: 1 + `above` times `inverse`."""
        return self.inverse.fma(self.above, self.inverse)

    @property
    def lacking(self) -> Scalar:
        """What the value is rounded by."""
        return self.inverse.fma(self.above, self.inverse - self.value)


def write_erf(x: Scalar) -> Scalar:
    """erf(x)."""
    size = x.abs()
    near = x.fma(series(ERF, x * x), x)
    far = 1.0 - write_normal_exp(series(LOG_ERFC, at_most(size, _ERF_END[x.dtype]) - 1.0))
    return (size < 1.0).where(near, far.copysign(x))


def write_erfc(x: Scalar) -> Scalar:
    """1 − erf(x), with its tail: exp(−x²) times a factor, and what both were rounded by on the way.

    The derivative has the same exponential of the same square: a kernel of both computes what they share once.
    """
    square = x * x
    exp, factor = exp_parts(-square), tail_factor(x.abs())
    lost = factor.error.fma(factor.rise, (-x).fma(x, square))
    if x.dtype == "float32":
        whole = factor.value.fma(exp.r.fma(exp.slope, lost * exp.value), factor.value)
    else:  # bounds are closer
        more = exp.r.fma(exp.slope, (lost + exp.lacking) * exp.value)
        whole = factor.value + factor.value.fma(more, factor.lacking)
    tail = (x.abs() > _ERFC_END[x.dtype]).where(0.0, exp.power.scale(whole))
    return (x < 0.0).where(2.0 - tail, tail)


def tail_factor(x: Scalar) -> TailFactor:
    """For x ≥ 0: a polynomial of t = (x − c) / (x + c), over x + c.

    As M. Shepherd and J. Laframboise, Math. Comp. 36 (1981) 249. The smaller c is, the less the factor varies beside
    1 / (x + c), and the more terms there are.
    """
    sum = x + TAIL_CENTRE
    inverse = 1.0 / sum
    t = inverse.fma(-2 * TAIL_CENTRE, 1.0)
    error = (-inverse).fma((TAIL_CENTRE - sum) + x, (-inverse).fma(sum, 1.0))
    return TailFactor(inverse, series(TAIL, t, singly=2), error, t.fma(-0.25, 1.25))
