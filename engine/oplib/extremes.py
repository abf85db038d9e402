"""NaN where something is chosen by its size: it wins, as in NumPy, and what was chosen takes the gradient."""

from __future__ import annotations

from engine.graph.ir import Value


def is_nan(x: Value) -> Value:
    """Where x is NaN, which alone differs from itself."""
    return x.not_equal(x)


def is_chosen(x: Value, y: Value) -> Value:
    """Where x may be what an extremum chose: it equals the result y, or is NaN, and so is y."""
    return x.equal(y).logical_or(is_nan(x))
