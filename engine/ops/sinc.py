"""The normalised cardinal sine."""

from __future__ import annotations

import math

from engine.graph.ir import Value
from engine.graph.sample import Ints, Real, Sample
from engine.graph.truth import Truth
from engine.loops.program import Scalar
from engine.oplib.elementwise import FloatUnary
from engine.oplib.power_series import power_series

#: up to here, the derivative is its series
_NEAR = 0.5
#: sinc′(x) / x = Σ (−1)ᵏ 2k π²ᵏ x²ᵏ⁻² / (2k + 1)!, from k = 1 on, to less than 1e-19 for |x| ≤ 1/2
_SERIES = tuple((-1) ** k * 2 * k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, 13))


def _sinc(x: Scalar) -> Scalar:
    """sin(πx) / πx: 1 at 0, and 0 at infinity.

    The distance to the nearest whole number is exact, so that sin πx is as accurate as x, next to its zeros as well.
    """
    whole = x.rint()
    sign = 1.0 - 2.0 * (whole - 2.0 * (whole * 0.5).floor())
    y = sign * ((x - whole) * math.pi).sin() / (x * math.pi)
    return x.eq(0.0).where(1.0, x.abs().eq(math.inf).where(0.0, y))


def _cos(x: Value) -> Value:
    """cos πx, by the distance to the nearest whole number."""
    whole = x.round()
    sign = 1.0 - 2.0 * (whole - 2.0 * (whole * 0.5).floor())
    return sign * ((x - whole) * math.pi).cos()


def _slope(y: Value, x: Value) -> Value:
    """(cos πx − y) / x, but near 0, where that cancels, its series.

    Each side gets operands at which it is finite, so that no NaN of the other one reaches a derivative.
    """
    is_near, ends = x.abs() < _NEAR, x.abs().equal(math.inf)
    near, far = is_near.where(x, 0.0), is_near.logical_or(ends).where(1.0, x)
    return is_near.where(near * power_series(_SERIES, near.square()), ends.where(0.0, (_cos(far) - y) / far))


class Sinc(FloatUnary):
    """y = sin(πx) / πx, and 1 at 0: NumPy's, PyTorch's and JAX's. 0 at whole numbers, exactly, and at infinity.

    To 4 units, next to whole numbers as well, where the libraries' lose all digits; there the derivative is (−1)ˣ / x.
    """

    name = "sinc"
    section = "sinc"
    since = 2
    cost = 30
    gradient = "g · (cos πx − y) / x, and 0 at 0"
    samples = (
        Sample(Real(2, 3, low=-3, high=3)),
        Sample(Real()),
        Sample(Real(3, low=-0.4, high=0.4)),
        Sample(Real(0, 2)),
        Sample(Ints(3, low=-2, high=3)),
    )
    truths = (
        Truth(
            operands=([0.5, 1.0, -1.5, 0.0, 0.25],),
            value=[2 / math.pi, 0.0, -2 / (3 * math.pi), 1.0, 2 * math.sqrt(2) / math.pi],
            gradients=([-4 / math.pi, -1.0, -4 / (9 * math.pi), 0.0, 4 * math.sqrt(0.5) * (1 - 4 / math.pi)],),
            source="by hand, where sin πx and cos πx are 0, ±1 and √½",
        ),
    )
    scalar = staticmethod(_sinc)
    partials = (_slope,)
