"""Special functions that NumPy lacks, on whole arrays: with NumPy block by block in float64, on GPUs by CuPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from engine.ir.op import Array, Namespace
from engine.ir.run_context import DeviceFunction, RunContext

Floats = np.ndarray[Any, np.dtype[np.float64]]

#: array module → its module of special functions
_LIBRARIES = {"numpy": "scipy.special", "cupy": "cupyx.scipy.special"}

#: elements of a block, so that a polynomial's temporaries stay in a core's own cache
BLOCK = 16384

# Chebyshev interpolants, found with 60 digits and converted to powers, highest first.
# Near 0: erf(x) / x − 1 in x² − 1/2, for |x| ≤ 13/16. Error at most 5e-18 before rounding.
_NEAR_END = 0.8125
_NEAR = (
    -9.090575148795533e-10, 9.281760535198131e-09, -1.0424062539629637e-07, 1.0536428883999113e-06,
    -9.614806778032117e-06, 7.829649559071487e-05, -0.0005611894221458429, 0.0034802744966581935,
    -0.01828388448915258, 0.07940998675593489, -0.2810721780454342, -0.03453126133013269,
)  # fmt: skip
# Beyond: L(t) = log(x · erfc(x) · exp(x²)) in t = (x − 1) / (x + 1), for x ≤ 28. It is computed as a difference from
# its value at x = ∞ (t = 1) or x = 1 (t = 0), so that rounding affects only a small number. With r = L(1) − L(0), L is
# L(0) + t · (r + (1 − t) · p(t)) = L(1) + (1 − t) · (t · p(t) − r).
# Error at most 4e-18. The variable is that of M. Shepherd and J. Laframboise, Math. Comp. 36 (1981) 249.
_FAR_END = 28.0
_FAR = (
    0.003215596087819419, -0.027095961607357284, 0.10363743756438032, -0.2393943091132407,
    0.37429764030499746, -0.4186614540700717, 0.3424226673354789, -0.20271176088418288,
    0.07834710666977525, -0.004949239487979961, -0.02528422458908109, 0.035808461402511926,
    -0.04024029295509227, 0.04256609975007531, -0.048649296017121924, 0.05201377706434212,
    -0.05700353771690237, 0.07095368335022699, -0.07084563477635225, 0.08998599734886227,
    -0.1263020973640589, 0.10584515357529455, -0.20553964938165417, 0.44482440452186933,
)  # fmt: skip
# L at x = 1 and at x = ∞, each as a number of 10 bits and the rest.
_AT_ONE = (-0.849609375, 3.865066751751424e-06)
_AT_INFINITY = (-0.572265625, -9.931792470008708e-05)
_RISE = 0.27724056700854816


@cache
def library(xp: Namespace) -> Any:
    """Load the special functions of SciPy, or CuPy's under the same names, on first use."""
    return import_module(_LIBRARIES[xp.__name__])


def block_workspace(size: int, arrays: int = 16) -> int:
    """Count the bytes that a function with `arrays` temporaries at once allocates for `size` elements `in_blocks`."""
    return arrays * 8 * min(size, BLOCK)


def in_blocks(run: RunContext, function: Callable[[Floats], Floats], x: Array, out: Array) -> None:
    """Apply `function` in float64 to x block by block; `out` first receives a copy of x."""
    run.xp.copyto(out, x)
    flat = out.reshape(-1)
    for start in run.checked(range(0, flat.size, BLOCK)):
        block = flat[start : start + BLOCK]
        block[...] = function(block.astype(np.float64, copy=False))


def broadcast_blocks(run: RunContext, function: Callable[..., Floats], arrays: Sequence[Array], out: Array) -> None:
    """Apply `function` in float64 block by block to NumPy arrays that broadcast to `out`."""
    flags: Any = ["external_loop", "buffered", "zerosize_ok"]
    roles: Any = [*[["readonly"]] * len(arrays), ["writeonly"]]
    dtypes = [np.float64] * len(roles)
    with np.nditer([*arrays, out], flags, roles, dtypes, casting="same_kind", buffersize=BLOCK) as blocks:
        for *xs, y in run.checked(blocks):
            y[...] = function(*xs)


def erf_blocks(x: Floats) -> Floats:
    """Compute the error function 2/√π ∫₀ˣ exp(−t²) dt, within 2 units in the last place."""

    def near(x: Floats) -> Floats:
        return x + _excess(x)

    def far(x: Floats) -> Floats:
        return np.copysign(1 - _tail(np.abs(x)), x)

    return _piecewise(x, near, far)


def erfc_blocks(x: Floats) -> Floats:
    """Compute 1 − erf(x) without its cancellation, within 2 units in the last place."""

    def near(x: Floats) -> Floats:
        return 1 - (x + _excess(x))

    def far(x: Floats) -> Floats:
        tail = _tail(np.abs(x))
        return np.where(x < 0, 2 - tail, tail)

    return _piecewise(x, near, far)


def _piecewise(x: Floats, near: Callable[[Floats], Floats], far: Callable[[Floats], Floats]) -> Floats:
    """Compute `near` where |x| < 13/16, else `far` (also for NaN), each on its own elements only."""
    is_near = np.abs(x) < _NEAR_END
    y = np.empty_like(x)
    for mask, branch in ((is_near, near), (~is_near, far)):
        chosen = np.flatnonzero(mask)
        y[chosen] = branch(x[chosen])
    return y


def _excess(x: Floats) -> Floats:
    """Compute erf(x) − x, for |x| ≤ 13/16."""
    return x * polynomial(_NEAR, x * x - 0.5)


def _tail(x: Floats) -> Floats:
    """Compute erfc(x) = exp(−x² + L) / x for x ≥ 13/16, corrected for rounding of the exponent and the quotient."""
    x = np.minimum(x, _FAR_END)
    start, correction = _correction(x)
    # `head` is x rounded to float32, so that its square is exact in float64. So −x² + L = high + low, almost exactly.
    head = x.astype(np.float32).astype(np.float64)
    square = start - head * head
    rest = correction + (head - x) * (head + x)
    high = square + rest
    low = (square - high) + rest
    y = np.exp(high)
    quotient = y / x
    # Split the quotient: its upper 26 bits have exact products with a float32 (Veltkamp's splitting).
    scaled = quotient * (2.0**27 + 1)
    upper = scaled - (scaled - quotient)
    remainder = (y - upper * head) - (upper * (x - head) + (quotient - upper) * x)
    return quotient + (remainder / x + quotient * low)


def _correction(x: Floats) -> tuple[Floats, Floats]:
    """Compute log(x · erfc(x) · exp(x²)) as a number of few bits and the rest."""
    t, s = (x - 1) / (x + 1), 2 / (x + 1)
    p = polynomial(_FAR, t)
    is_near_one = x < 1.25
    start = np.where(is_near_one, _AT_ONE[0], _AT_INFINITY[0])
    from_one = t * (_RISE + s * p) + _AT_ONE[1]
    from_infinity = s * (t * p - _RISE) + _AT_INFINITY[1]
    return start, np.where(is_near_one, from_one, from_infinity)


def polynomial(coefficients: tuple[float, ...], x: Floats) -> Floats:
    """Evaluate a polynomial, highest power first, by Horner's rule in place."""
    y = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        y *= x
        y += coefficient
    return y


# log Γ(2 + z) / z for −3/4 ≤ z ≤ 1/2: Chebyshev interpolant, computed with 60 digits and converted to powers, highest
# first. Error at most 1e-17 before rounding.
_AT_TWO = (
    7.558472696788447e-08, 5.025731736555141e-08, 6.2426286817793866e-09, -1.9264000508094273e-07,
    2.0758927598859588e-07, -4.018330416059452e-07, 9.670254916827003e-07, -2.052482416724873e-06,
    4.370089307840295e-06, -9.43727020655551e-06, 2.0508175353649692e-05, -4.4926464931326535e-05,
    9.945740198894934e-05, -0.00022315474408602818, 0.0005096695320648715, -0.0011927539122376619,
    0.002890510330482064, -0.007385551028663193, 0.020580808427788703, -0.06735230105319819,
    0.3224670334241132, 0.42278433509846713,
)  # fmt: skip


def lgamma_blocks(x: Floats) -> Floats:
    """Compute log |Γ(x)| by SciPy, except by an interpolant around its zeros 1 and 2."""
    y: Floats = library(np).gammaln(x)
    near = np.flatnonzero((x > 0.5) & (x < 2.5))
    arguments = x[near]
    is_low = arguments < 1.25  # log Γ(x) = log Γ(1 + x) − log x
    z = np.where(is_low, arguments - 1, arguments - 2)
    y[near] = z * polynomial(_AT_TWO, z) - np.log1p(np.where(is_low, z, 0))
    return y


def digamma_blocks(x: Floats) -> Floats:
    """Compute ψ(x) by SciPy; below −3/4 by reflection, ψ(x) = ψ(1 − x) − π cot(πx) (DLMF 5.5.4)."""
    psi = library(np).psi
    y: Floats = psi(x)
    below = np.flatnonzero((x < -0.75) & (x != np.rint(x)))
    arguments = x[below]
    # cot has the period π, so its argument may be reduced exactly before it is multiplied by π.
    y[below] = psi(1 - arguments) - np.pi / np.tan(np.pi * (arguments - np.rint(arguments)))
    return y


def fill_polygamma(run: RunContext, x: Array, out: Array, order: int) -> None:
    """Compute (−1)ⁿ⁺¹ n! ζ(n + 1, x), with the Hurwitz zeta function (DLMF 25.11.12), in float64."""
    in_blocks(run, partial(polygamma_blocks, run.xp, order), x, out)


def polygamma_blocks(xp: Namespace, order: int, x: Array) -> Array:
    """Compute (−1)ⁿ⁺¹ n! ζ(n + 1, x), overwriting x in part.

    Negative x are not passed to the library's zeta, which takes |x| steps, however many those are.
    """
    zeta, power = library(xp).zeta, order + 1.0
    below = xp.flatnonzero((x < 0) & (x != xp.rint(x)))
    negative, x[below] = x[below], 1
    y = zeta(power, x)
    y[below] = _zeta_below(xp, zeta, power, negative)
    factorial = float(math.factorial(order))  # CuPy takes no integers of more than 64 bits
    return y * (factorial if order % 2 else -factorial)


def _zeta_below(xp: Namespace, zeta: Any, power: float, x: Array) -> Array:
    """Compute Σ (x + k)⁻ᵖ over k ≥ 0 for a negative x.

    The positive x + k are f, f + 1, …, where f is the fraction of x: a zeta function. The negative ones are x, …, −(2 −
    f), −(1 − f): a difference of two zeta functions.
    """
    r = x - xp.rint(x)
    up = r > 0
    right, left = xp.where(up, r, 1 + r), xp.where(up, 1 - r, -r)
    return zeta(power, right) + (-1) ** power * (zeta(power, left) - zeta(power, 1 - x))


# 1/√2 as a float64; its upper 26 bits, whose products with a float32 are exact; and the rounding error of the float64.
_ROOT_HALF, _UPPER, _LACKING = 0.7071067811865476, 0.7071067839860916, -4.833646656726457e-17


def erfinv_blocks(x: Floats) -> Floats:
    """Compute the inverse error function by SciPy, and restore the sign of zeros, which SciPy loses."""
    y: Floats = library(np).erfinv(x)
    return np.copysign(y, x, out=y)


def log_ndtr_blocks(x: Floats) -> Floats:
    """Compute log Φ(x) by SciPy; for x > 1 by the complement, since SciPy is off by hundreds of units there."""
    y: Floats = library(np).log_ndtr(x)
    right = np.flatnonzero(x > 1)
    y[right] = np.log1p(-_complement(x[right]))
    return y


def _complement(x: Floats) -> Floats:
    """Compute 1 − Φ(x) = erfc(x/√2) / 2 for x > 1, corrected for the rounding error of x/√2.

    The correction uses the slope of log erfc t, roughly −(t + √(t² + 3/2)).
    """
    x = np.minimum(x, 40)
    t = x * _ROOT_HALF
    head = x.astype(np.float32).astype(np.float64)
    error = (head * _UPPER - t) + (head * (_ROOT_HALF - _UPPER) + (x - head) * _ROOT_HALF + x * _LACKING)
    return erfc_blocks(t) * (0.5 - 0.5 * error * (t + np.sqrt(t * t + 1.5)))


class ArrayFunction(NamedTuple):
    """A function of a NumPy block, the number of `arrays` of its size that it has at once, and its version for GPUs."""

    blocks: Callable[[Floats], Floats]
    on_device: Callable[[RunContext, Array, Array], None]
    arrays: int = 16


def _by_library(name: str, run: RunContext, x: Array, out: Array) -> None:
    getattr(library(run.xp), name)(x, out=out)


ARRAY_FUNCTIONS: Final[Mapping[str, ArrayFunction]] = MappingProxyType(
    {
        "erf": ArrayFunction(erf_blocks, partial(_by_library, "erf")),
        "erfc": ArrayFunction(erfc_blocks, partial(_by_library, "erfc")),
        "lgamma": ArrayFunction(lgamma_blocks, partial(_by_library, "gammaln")),
        "digamma": ArrayFunction(digamma_blocks, partial(_by_library, "psi")),
        "trigamma": ArrayFunction(partial(polygamma_blocks, np, 1), partial(fill_polygamma, order=1)),
        "erfinv": ArrayFunction(erfinv_blocks, partial(_by_library, "erfinv")),
        "log_ndtr": ArrayFunction(log_ndtr_blocks, partial(_by_library, "log_ndtr"), 26),
    }
)


@DeviceFunction
def fill_function(run: RunContext, name: str, x: Array, out: Array) -> None:
    """Fill `out` with the named function of an array of any layout."""
    ARRAY_FUNCTIONS[name].on_device(run, x, out)


@fill_function.on("cpu")
def _fill_in_blocks(run: RunContext, name: str, x: Array, out: Array) -> None:
    in_blocks(run, ARRAY_FUNCTIONS[name].blocks, x, out)
