"""The Hurwitz zeta function."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

import numpy as np

from engine.graph.by_device import DeviceMethod
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import TensorType
from engine.graph.truth import Truth
from engine.loops.special import Floats, block_workspace, broadcast_blocks, library
from engine.oplib.elementwise import FloatBinary

#: terms that are added up one by one, before the formula of Euler and Maclaurin
_TERMS: Final = 14
#: Bernoulli's numbers B₂, B₄, …, over (2k)!, of that formula (DLMF 25.11.28)
_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
_WEIGHTS: Final = tuple(b / math.factorial(2 * k) for k, b in enumerate(_BERNOULLI, 1))


class Zeta(FloatBinary):
    """y = ζ(s, q) = Σ (q + k)⁻ˢ over k ≥ 0, broadcasting, for s > 1: SciPy's, `torch.special.zeta`, JAX's `zeta`.

    ∞ at s = 1 and at q = 0, −1, −2, …; NaN for s < 1, and where q < 0 and s is no whole number. To 8 units where q > 0,
    SciPy's own on NumPy; below, as `polygamma`. Derivatives are of any order: those by q as accurate, those by s, of
    which PyTorch and JAX have none, to 1e-12 of the terms that they add up; by s and then by q, to a unit over s − 1.
    """

    name = "zeta"
    section = "zeta"
    operands: ClassVar[tuple[str, ...]] = ("s", "q")
    since = 2
    cost = 200
    gradient = "ds = −g · Σ log(q + k) (q + k)⁻ˢ, dq = −g · s · zeta(s + 1, q)"
    samples = (
        Sample(Real(2, 3, low=1.5, high=4), Real(2, 3, low=0.5, high=3)),
        Sample(Real(2, 3, low=1.5, high=4), Real(3, low=0.5, high=30)),
        Sample(Real(2, 1, low=1.2, high=8), Real(1, 3, low=0.5, high=3)),
        Sample(Real(low=1.5, high=4), Real(2, low=0.5, high=3)),
        Sample(Real(0, 3, low=2, high=3), Real(3, low=1, high=2)),
        Sample(Ints(3, low=2, high=5), Ints(3, low=1, high=20)),
    )
    truths = (
        Truth(
            operands=([2.0, 2.0, 4.0], [1.0, 0.5, 2.0]),
            value=[math.pi**2 / 6, math.pi**2 / 2, math.pi**4 / 90 - 1],
            gradients=(
                [-0.9375482543158438, 1.7480808796238798, -0.06891126589612538],
                [-2.4041138063191886, -16.82879664423432, -0.1477110205734797],
            ),
            source="ζ(2) and ζ(4) by Euler, (2ˢ − 1) ζ(s); derivatives by mpmath.zeta in 40 digits",
        ),
    )
    partials = (lambda y, s, q: _by_exponent(s, q), lambda y, s, q: _by_start(s, q))

    @DeviceMethod
    def compute(self, run: RunContext, s: Array, q: Array, *, out: Array) -> None:
        """The kernel."""
        xp = run.xp
        out[...] = _everywhere(xp, *(xp.asarray(z, "float64") for z in (s, q)))

    @compute.on("cpu")
    def _compute_in_blocks(self, run: RunContext, s: Array, q: Array, *, out: Array) -> None:
        broadcast_blocks(run, _zeta, [s, q], out)

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """A few blocks."""
        return block_workspace(out.size) if isinstance(out, TensorType) else 0


def _zeta(s: Floats, q: Floats) -> Floats:
    """SciPy's alone, where no q is negative."""
    y: Floats = library(np).zeta(s, q) if not (q < 0).any() else _everywhere(np, s, q)
    return y


def _everywhere(xp: Namespace, s: Array, q: Array) -> Array:
    """The library's for q ≥ 0, from which a negative q is kept: it would take |q| steps, however many that is.

    That is a sum over the poles to its right, and over those from it to 0: the distances to them are f, f + 1, … and
    1 − f, 2 − f, …, −q, for the fraction f of q.
    """
    zeta = library(xp).zeta
    is_below = q < 0
    r = q - xp.rint(q)
    up = r > 0
    right, left = xp.where(up, r, 1 + r), xp.where(up, 1 - r, -r)
    sign = 1 - 2 * (s - 2 * xp.floor(s / 2))
    below = zeta(s, xp.where(is_below, right, 1)) + sign * (
        zeta(s, xp.where(is_below, left, 1)) - zeta(s, xp.where(is_below, 1 - q, 1))
    )
    below = xp.where(r == 0, xp.where(s >= 1, math.inf, math.nan), xp.where(s == xp.rint(s), below, math.nan))
    return xp.where(is_below, below, zeta(s, xp.where(is_below, 1, q)))


def _by_start(s: Value, q: Value) -> Value:
    """−s ζ(s + 1, q); 0 where s is infinite and nothing is left of it."""
    s = s.clamp(max=float(np.finfo(s.dtype).max))
    return -s * (s + 1.0).zeta(q)


def _by_exponent(s: Value, q: Value) -> Value:
    """−Σ log(q + k) (q + k)⁻ˢ: some terms, and of the rest the derivative of what Euler and Maclaurin have for it.

    With w = q + n, that is w¹⁻ˢ / (s − 1) + w⁻ˢ / 2 + Σ B₂ₖ / (2k)! s (s + 1) … (s + 2k − 2) w¹⁻ˢ⁻²ᵏ. NaN where the
    function is, for s < 1: there the terms grow, and take from each other what the sum would be.
    """
    most = float(np.finfo(q.dtype).max)
    s, q = s.clamp(max=most), q.clamp(max=most)
    terms = q.builder.constant(np.arange(_TERMS).astype(q.dtype))
    logs = (q.reshape(shape=(*q.shape, 1)) + terms).log()
    head = (logs * (-s.reshape(shape=(*s.shape, 1)) * logs).exp()).sum(axes=(-1,))
    w = q + float(_TERMS)
    log, over = w.log(), (s - 1.0).reciprocal()
    integral = ((1.0 - s) * log).exp() * over * (log + over)
    power = (-s * log).exp()
    rest = power * (0.5 * log - _corrections(s, w, log))
    found = -(head + integral + power.equal(0.0).where(0.0, rest))
    return (s < 1.0).where(math.nan, found)


def _corrections(s: Value, w: Value, log: Value) -> Value:
    """What the terms with Bernoulli's numbers change by s, over w⁻ˢ: products, and their own derivatives."""
    inverse = w.reciprocal()
    square = inverse.square()
    product, slope = s * inverse, inverse
    found = _WEIGHTS[0] * (slope - product * log)
    for k, weight in enumerate(_WEIGHTS[1:], 1):
        factor, change = (s + (2.0 * k - 1)) * (s + 2.0 * k) * square, (2.0 * s + (4.0 * k - 1)) * square
        product, slope = product * factor, slope * factor + product * change
        found = found + weight * (slope - product * log)
    return found
