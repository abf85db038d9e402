"""NaN where something is chosen by its size: it wins, as in NumPy, and what was chosen takes the gradient."""

from __future__ import annotations

from typing import Literal

import numpy as np

from engine.graph.ir import Value
from engine.graph.op import Array, Namespace


def is_nan(x: Value) -> Value:
    """Where x is NaN, which alone differs from itself."""
    return x.not_equal(x)


def is_chosen(x: Value, y: Value) -> Value:
    """Where x may be what an extremum chose: it equals the result y, or is NaN, and so is y."""
    return x.equal(y).logical_or(is_nan(x))


def first_extreme(xp: Namespace, function: Literal["argmax", "argmin"], x: Array, axis: int) -> Array:
    """Where the extremum lies along an axis: the first of equal ones, the first NaN before all."""
    found = getattr(xp, function)(x, axis=axis)
    if xp is np or x.dtype.kind != "f":
        return found
    nan = xp.isnan(x)  # of several NaN, CuPy's may be any
    return xp.where(nan.any(axis=axis), nan.argmax(axis=axis), found)
