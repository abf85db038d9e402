"""Polynomials in nodes, by Horner's rule."""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.ir import Value


def power_series(coefficients: Sequence[float], x: Value) -> Value:
    """Σ coefficients[k] xᵏ, in x's dtype; the lowest power comes first, and there is one at least."""
    *others, last = coefficients
    found = x.full_like(last)
    for coefficient in reversed(others):
        found = found * x + coefficient
    return found
