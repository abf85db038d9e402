"""Modified Bessel functions of the first kind, in arithmetic and exponentials that every printer has.

Polynomials of x² up to 8, whose terms are all positive, and of 16 / x − 1 beyond. It is the split that S. Moshier's
Cephes has, whose Chebyshev series are of x on both sides.
"""

from __future__ import annotations

from typing import Final

from engine.functions.bessel_coefficients import BESSEL_SPLIT, I0_FAR, I0_NEAR, I1_FAR, I1_NEAR
from engine.functions.float_parts import Coefficients, at_most
from engine.loops.program import Scalar

#: beyond, exp(x / 2)² is infinite, and so are the functions
_ENDLESS: Final = {"float32": 360.0, "float64": 2840.0}


def write_i0e(x: Scalar) -> Scalar:
    """exp(−|x|) I₀(x)."""
    size = x.abs()
    return (size < BESSEL_SPLIT).where((-size).exp() * _horner(I0_NEAR, x * x), _scaled(I0_FAR, size))


def write_i1e(x: Scalar) -> Scalar:
    """exp(−|x|) I₁(x): as odd as I₁, with the sign of a zero."""
    size = x.abs()
    near = (-size).exp() * (size * _horner(I1_NEAR, x * x))
    return (size < BESSEL_SPLIT).where(near, _scaled(I1_FAR, size)).copysign(x)


def write_i0(x: Scalar) -> Scalar:
    """I₀(x)."""
    size = x.abs()
    return (size < BESSEL_SPLIT).where(_horner(I0_NEAR, x * x), _grown(I0_FAR, size))


def write_i1(x: Scalar) -> Scalar:
    """I₁(x), with the sign of a zero."""
    size = x.abs()
    return (size < BESSEL_SPLIT).where(size * _horner(I1_NEAR, x * x), _grown(I1_FAR, size)).copysign(x)


def _scaled(coefficients: Coefficients, size: Scalar) -> Scalar:
    """√x exp(−x) Iₙ(x), of 16 / x − 1, over √x."""
    return _horner(coefficients, 2 * BESSEL_SPLIT / size - 1.0) / size.sqrt()


def _grown(coefficients: Coefficients, size: Scalar) -> Scalar:
    """The same, times exp(x) in two steps: it overflows before its product with the rest does."""
    bounded = at_most(size, _ENDLESS[size.dtype])
    root = (bounded * 0.5).exp()
    return root * _scaled(coefficients, bounded) * root


def _horner(coefficients: Coefficients, x: Scalar) -> Scalar:
    """A polynomial without fused multiply-adds, which NumPy does not have."""
    *others, found = [x.builder.constant(c) for c in coefficients[x.dtype]]
    for term in reversed(others):
        found = found * x + term
    return found
