"""Directions of complex numbers: x / |x|, and what is done at 0, where there is none."""

from __future__ import annotations

from engine.graph.ir import Value


def without_zeros(size: Value) -> Value:
    """|x|, and 1 where that is 0: to divide by."""
    return size.equal(0.0).where(1.0, size)


def unit_of(x: Value, size: Value) -> Value:
    """x / |x|, and 0 where x is: there in every order of derivatives."""
    return size.equal(0.0).where(0.0, x / without_zeros(size))
