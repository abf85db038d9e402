"""NaN where something is chosen by its size: it wins, as in NumPy, and what was chosen takes the gradient."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.dtypes import has_infinities
from engine.graph.ir import Value
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import DType
from engine.oplib.source import whole_limits


def is_nan(x: Value) -> Value:
    """Where x is NaN, which alone differs from itself."""
    return x.not_equal(x)


def is_chosen(x: Value, y: Value) -> Value:
    """Where x may be what an extremum chose: it equals the result y, or is NaN, and so is y."""
    return x.equal(y).logical_or(is_nan(x))


@DeviceFunction
def first_extreme(run: RunContext, function: Literal["argmax", "argmin"], x: Array, axis: int) -> Array:
    """Where the extremum lies along an axis: the first of equal ones, the first NaN before all."""
    return getattr(run.xp, function)(x, axis=axis)


@first_extreme.on("cuda")
def _first_extreme(run: RunContext, function: Literal["argmax", "argmin"], x: Array, axis: int) -> Array:
    """The first NaN is looked for, since CuPy's may be any of several."""
    found = getattr(run.xp, function)(x, axis=axis)
    if not has_infinities(x.dtype):
        return found
    nan = run.xp.isnan(x)
    return run.xp.where(nan.any(axis=axis), nan.argmax(axis=axis), found)


def identity_of(ufunc: str, dtype: DType) -> Any:
    """What `maximum` or `minimum` over nothing is: an infinity, or the end of the range of a dtype that has none."""
    least, greatest = (-np.inf, np.inf) if has_infinities(dtype) else whole_limits(dtype)
    return least if ufunc == "maximum" else greatest
