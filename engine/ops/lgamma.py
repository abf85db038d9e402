"""The logarithm of the gamma function, and its derivatives of every order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.errors import BadAttribute
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, ResultTypes
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import TensorType
from engine.loops.special import Floats, block_workspace, in_blocks, library, polynomial
from engine.oplib.elementwise import FloatUnary
from engine.oplib.library_function import LibraryFunction

_POSITIVE = (Sample(Real(2, 3, low=0.3, high=4)), Sample(Real(low=2, high=40)), Sample(Real(0, 2)))
_SAMPLES = (*_POSITIVE, Sample(Real(3, low=-1.7, high=-1.3)), Sample(Ints(3, low=1, high=5)))

# log Γ(2 + z) / z for −3/4 ≤ z ≤ 1/2: Chebyshev interpolant, found in 60 digits and written out in powers, highest
# first. Off by 1e-17 at most, before rounding.
_AT_TWO = (
    7.558472696788447e-08, 5.025731736555141e-08, 6.2426286817793866e-09, -1.9264000508094273e-07,
    2.0758927598859588e-07, -4.018330416059452e-07, 9.670254916827003e-07, -2.052482416724873e-06,
    4.370089307840295e-06, -9.43727020655551e-06, 2.0508175353649692e-05, -4.4926464931326535e-05,
    9.945740198894934e-05, -0.00022315474408602818, 0.0005096695320648715, -0.0011927539122376619,
    0.002890510330482064, -0.007385551028663193, 0.020580808427788703, -0.06735230105319819,
    0.3224670334241132, 0.42278433509846713,
)  # fmt: skip

LARGEST_ORDER = 170  # 171! is no float64


class Lgamma(LibraryFunction):
    """y = log |Γ(x)|: ∞ at 0, −1, −2, …. To 4 units; near its zeros below 0 (−2.457, −2.748, −3.144, …) to 1e-15.

    SciPy's has no correct digit left where x is within 1e-16 of 1 or 2, the zeros above 0; this one keeps all.
    """

    name = "lgamma"
    function = "gammaln"
    gradient = "g · digamma(x)"
    samples = _SAMPLES
    partials = (lambda y, x: x.digamma(),)

    def mended(self, x: Floats) -> Floats:
        """SciPy's, but by an interpolant around 1 and 2."""
        y = super().mended(x)
        near = np.flatnonzero((x > 0.5) & (x < 2.5))
        y[near] = _lgamma_near(x[near])
        return y


def _lgamma_near(x: Floats) -> Floats:
    """log Γ(x) for 1/2 < x < 5/2. Below 5/4 it is log Γ(1 + x) − log x."""
    one = x < 1.25
    z = np.where(one, x - 1, x - 2)
    return z * polynomial(_AT_TWO, z) - np.log1p(np.where(one, z, 0))


class Digamma(LibraryFunction):
    """y = ψ(x) = Γ'(x) / Γ(x): −∞ at 0, NaN at −1, −2, …. To 10 units; near its zeros below −1 to 1e-15.

    SciPy's loses one digit with each digit by which x < 0 is closer to a pole; this one keeps all.
    """

    name = "digamma"
    function = "psi"
    gradient = "g · polygamma(x, order=1)"
    samples = _SAMPLES
    partials = (lambda y, x: x.polygamma(order=1),)

    def mended(self, x: Floats) -> Floats:
        """SciPy's, but by reflection below −3/4: ψ(x) = ψ(1 − x) − π cot(πx) (DLMF 5.5.4)."""
        y = super().mended(x)
        below = np.flatnonzero((x < -0.75) & (x != np.rint(x)))
        at = x[below]
        y[below] = super().mended(1 - at) - np.pi / np.tan(np.pi * (at - np.rint(at)))
        return y


class Polygamma(FloatUnary):
    """y = ψ⁽ⁿ⁾(x) for n = `order`, the n-th derivative of `digamma`; order 0 is `digamma` itself.

    ±∞ at 0, −1, −2, …, with the sign that it has to the right of 0. To 10 units; for even orders, near the zeros
    below 0, to 10 units of what the nearest poles add up to. Values of less than 1e-307 · n! are inaccurate or 0.

    Orders go to 170, whose factorial is the largest in a float64; `polygamma` of order 170 has no derivative.
    """

    name = "polygamma"
    is_captured = False
    attrs: ClassVar[Mapping[str, Attr]] = {
        "order": Attr("int", doc="which derivative of digamma: 0 to 170", minimum=0),
    }
    cost = 200
    gradient = "g · polygamma(x, order + 1)"
    samples = (
        *(Sample(Real(2, 3, low=0.8, high=4), order=n) for n in (0, 1, 2, 5)),
        *(Sample(Real(3, low=-1.7, high=-1.3), order=n) for n in (1, 2)),
        Sample(Real(low=2, high=40), order=1),
        Sample(Real(0, 2), order=1),
        Sample(Ints(3, low=1, high=5), order=1),
    )
    partials = (lambda y, x, order: x.polygamma(order=order + 1),)

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The order is not too large."""
        order, wanted = attrs["order"], f"a whole number of at most {LARGEST_ORDER}"
        if order > LARGEST_ORDER:
            raise BadAttribute(f"attribute order must be {wanted}, but is {order}", expected=wanted, got=str(order))
        return attrs

    def decompose(self, x: Value, *, order: int) -> Value | None:
        """`digamma`, where it is that."""
        return None if order else x.digamma()

    def compute(self, xp: Namespace, x: Array, *, out: Array, order: int) -> None:
        """(−1)ⁿ⁺¹ n! ζ(n + 1, x), of the Hurwitz zeta function (DLMF 25.11.12)."""
        in_blocks(xp, partial(_polygamma, xp, order), x, out)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        return block_workspace(out.size) if isinstance(out, TensorType) else 0


def _polygamma(xp: Namespace, order: int, x: Array) -> Array:
    """The kernel. A negative x is kept from the library's zeta, which would take |x| steps, however many that is."""
    zeta, power = library(xp).zeta, order + 1.0
    below = xp.flatnonzero((x < 0) & (x != xp.rint(x)))
    at, x[below] = x[below], 1
    y = zeta(power, x)
    y[below] = _zeta_below(xp, zeta, power, at)
    factorial = float(math.factorial(order))  # CuPy takes no whole number beyond 64 bits
    return y * (factorial if order % 2 else -factorial)


def _zeta_below(xp: Namespace, zeta: Any, power: float, x: Array) -> Array:
    """Σ (x + k)⁻ᵖ over k ≥ 0 for a negative x: over the poles to its right, and over those from it to 0.

    The distances to them are f, f + 1, … and 1 − f, 2 − f, …, −x, for the fraction f of x.
    """
    r = x - xp.rint(x)
    up = r > 0
    right, left = xp.where(up, r, 1 + r), xp.where(up, 1 - r, -r)
    return zeta(power, right) + (-1) ** power * (zeta(power, left) - zeta(power, 1 - x))
