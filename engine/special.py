"""Elementwise functions that NumPy does not have, for NumPy and CuPy arrays, each filling `out`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.op import Array, Namespace

Floats = np.ndarray[Any, np.dtype[np.float64]]

#: elements at a time: what the polynomials work on stays in a core's own cache
_BLOCK = 16384

# Chebyshev interpolants, found in 60 digits and written out in powers, highest first.
# erf(x) / x − 1 in x², for |x| ≤ 13/16, where erfc passes 1/4. Off by 1e-17 at most, before rounding.
_NEAR_END = 0.8125
_NEAR = (
    -9.090575148795533e-10, 1.4281576867035674e-08, -1.631489689018809e-07, 1.6458948199486148e-06,
    -1.4925519679470792e-05, 0.00012055329372418332, -0.0008548326957696016, 0.0052239776246817814,
    -0.026866170645079318, 0.11283791670954943, -0.3761263890318375, 0.1283791670955126,
)  # fmt: skip
# log(x · erfc(x) · exp(x²)) + 9/16 in (x − 5/4) / (x + 5/4), for 13/16 ≤ x ≤ 28. Off by 2e-17 at most. The variable is
# that of M. Shepherd and J. Laframboise, Math. Comp. 36 (1981) 249; under the logarithm little is left to round.
_TAIL_END = 28.0
_TAIL = (
    3.6027988332464296e-05, -0.0005950301106525178, 0.0035688006656536763, -0.011798951376867388,
    0.025716610655927154, -0.041488855091020835, 0.05424044556153072, -0.06210752690848361,
    0.06708500910725018, -0.07177846387144284, 0.07678614565954082, -0.08333550829005684,
    0.09130831507489219, -0.09917888946820647, 0.11162261735009865, -0.12629428914175717,
    0.13891458534079257, -0.17013160833070262, 0.2065941773142332, -0.22483046182613406,
    0.35149525109290025, -0.6118733795404447, 0.5806901458269007, -0.21451011060791597,
)  # fmt: skip


def erf(xp: Namespace, x: Array, out: Array) -> None:
    """The error function 2/√π ∫₀ˣ exp(−t²) dt, within 2 units in the last place of a float64."""
    if xp is np:
        _in_blocks(_erf, x, out)
    else:
        from cupyx.scipy import special  # noqa: PLC0415 - optional

        special.erf(x, out=out)


def erfc(xp: Namespace, x: Array, out: Array) -> None:
    """1 − erf(x) without its cancellation, within 2 units in the last place of a float64."""
    if xp is np:
        _in_blocks(_erfc, x, out)
    else:
        from cupyx.scipy import special  # noqa: PLC0415 - optional

        special.erfc(x, out=out)


def erf_workspace(size: int) -> int:
    """Bytes that `erf` and `erfc` allocate for `size` elements: a dozen arrays of a block."""
    return 12 * 8 * min(size, _BLOCK)


def _in_blocks(function: Callable[[Floats], Floats], x: Array, out: Array) -> None:
    """`function` in float64, on one block of x after another; `out` holds x first."""
    np.copyto(out, x)
    flat = out.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        block[...] = function(block.astype(np.float64, copy=False))


def _erf(x: Floats) -> Floats:
    def near(x: Floats) -> Floats:
        return x + _excess(x)

    def far(x: Floats) -> Floats:
        return np.copysign(1 - _tail(np.abs(x)), x)

    return _piecewise(x, near, far)


def _erfc(x: Floats) -> Floats:
    def near(x: Floats) -> Floats:
        # 1 − erf(x) from one half to the other: less is rounded off.
        return 0.5 - ((x - 0.5) + _excess(x))

    def far(x: Floats) -> Floats:
        tail = _tail(np.abs(x))
        return np.where(x < 0, 2 - tail, tail)

    return _piecewise(x, near, far)


def _piecewise(x: Floats, near: Callable[[Floats], Floats], far: Callable[[Floats], Floats]) -> Floats:
    """`near` where |x| < 13/16, else `far` (which NaN goes to), each computed for its own elements only."""
    is_near = np.abs(x) < _NEAR_END
    y = np.empty_like(x)
    for mask, branch in ((is_near, near), (~is_near, far)):
        chosen = np.flatnonzero(mask)
        y[chosen] = branch(x[chosen])
    return y


def _excess(x: Floats) -> Floats:
    """erf(x) − x, for |x| ≤ 13/16."""
    return x * _polynomial(_NEAR, x * x)


def _tail(x: Floats) -> Floats:
    """erfc(x), for x ≥ 13/16: exp(s) / x, with the errors of both made good to first order."""
    x = np.minimum(x, _TAIL_END)
    # The square of a float32 is exact in float64; so −x² − 9/16 + log(…) = high + low, almost exactly.
    head = x.astype(np.float32).astype(np.float64)
    square = -head * head - 0.5625
    rest = (head - x) * (head + x) + _polynomial(_TAIL, (x - 1.25) / (x + 1.25))
    high = square + rest
    low = (square - high) + rest
    y = np.exp(high)
    quotient = y / x
    upper = _upper_half(quotient)
    remainder = (y - upper * head) - (upper * (x - head) + (quotient - upper) * x)
    return quotient + (remainder / x + quotient * low)


def _upper_half(x: Floats) -> Floats:
    """x to 26 bits, so that its products with a float32 are exact (Veltkamp's splitting)."""
    scaled = x * (2.0**27 + 1)
    return scaled - (scaled - x)


def _polynomial(coefficients: tuple[float, ...], x: Floats) -> Floats:
    """Horner's rule, in place."""
    y = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        y *= x
        y += coefficient
    return y
