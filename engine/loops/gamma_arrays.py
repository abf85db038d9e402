"""log |Γ(x)| and its derivatives by SciPy, mended where that is wrong beyond a few units in the last place."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from engine.graph.op import Array, Namespace
from engine.graph.run_context import RunContext
from engine.loops.special import Floats, in_blocks, library, polynomial

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


def lgamma_blocks(x: Floats) -> Floats:
    """SciPy's, but by an interpolant around 1 and 2."""
    y: Floats = library(np).gammaln(x)
    near = np.flatnonzero((x > 0.5) & (x < 2.5))
    at = x[near]
    is_low = at < 1.25  # there it is log Γ(1 + x) − log x
    z = np.where(is_low, at - 1, at - 2)
    y[near] = z * polynomial(_AT_TWO, z) - np.log1p(np.where(is_low, z, 0))
    return y


def digamma_blocks(x: Floats) -> Floats:
    """SciPy's, but by reflection below −3/4: ψ(x) = ψ(1 − x) − π cot(πx) (DLMF 5.5.4)."""
    psi = library(np).psi
    y: Floats = psi(x)
    below = np.flatnonzero((x < -0.75) & (x != np.rint(x)))
    at = x[below]
    y[below] = psi(1 - at) - np.pi / np.tan(np.pi * (at - np.rint(at)))
    return y


def fill_polygamma(run: RunContext, x: Array, out: Array, order: int) -> None:
    """(−1)ⁿ⁺¹ n! ζ(n + 1, x), of the Hurwitz zeta function (DLMF 25.11.12), in float64."""
    in_blocks(run, partial(polygamma_blocks, run.xp, order), x, out)


def polygamma_blocks(xp: Namespace, order: int, x: Array) -> Array:
    """(−1)ⁿ⁺¹ n! ζ(n + 1, x), in x's memory in part.

    A negative x is kept from the library's zeta, which would take |x| steps, however many that is.
    """
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
