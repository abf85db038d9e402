"""Sums and means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.op import Array, Namespace
from engine.ops.rows import add_up
from engine.reduction import Reduction, spread
from engine.tensor_type import FLOAT64, INT64, DType, TensorType

if TYPE_CHECKING:
    from engine.ir import Value

FLOAT16, FLOAT32 = np.dtype("float16"), np.dtype("float32")


def accumulator(out: Array | TensorType) -> DType:
    """The dtype to add up in: float32 for float16 results, else the result's own."""
    return FLOAT32 if out.dtype == FLOAT16 else np.dtype(out.dtype)


def total(xp: Namespace, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Σ x over axes, in the accumulator's dtype: `out` itself where that is its dtype, else a new array."""
    # Given a narrower `out`, NumPy would round to it after every buffer of the sum.
    target = out if accumulator(out) == out.dtype else xp.empty(out.shape, accumulator(out))
    add_up(xp, x, out=target, axes=axes, keepdims=keepdims)
    return target


def count(shape: Sequence[int], axes: Sequence[int]) -> int:
    """How many elements of `shape` one result over `axes` takes in."""
    return math.prod(shape[a] for a in axes)


def over(g: Value, n: int) -> Value:
    """g / n; by way of float32 where g is float16, which ends at 65504."""
    return (g.cast(dtype=FLOAT32) / n).cast(dtype=FLOAT16) if g.dtype == FLOAT16 else g / n


class Sum(Reduction):
    """y = Σ x over axes. Integers and bool add up in int64, float16 in float32."""

    name = "sum"
    aliases = {"SumDimOp": "born", "SumDim": "born", "Sum": "born, cjc", "Summation": "minima"}
    gradient = "g, broadcast back over the axes"

    def result_dtype(self, dtype: DType) -> DType:
        """int64 for what is not float."""
        return dtype if dtype.kind == "f" else INT64

    def reduce(self, xp: Namespace, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, **_: Any) -> None:
        """The sum, rounded once."""
        found = total(xp, x, out=out, axes=axes, keepdims=keepdims)
        if found is not out:
            out[...] = found

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Every element of x counts once."""
        return (spread(g, x, axes),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """The sums in float32 where the result is float16."""
        return 4 * int(out.size) if out.dtype == FLOAT16 else 0


class Mean(Reduction):
    """y = Σ x / n over axes, n the number of elements reduced; NaN where n = 0. Integers give float64."""

    name = "mean"
    aliases = {"MeanDimOp": "born", "MeanDim": "born", "Mean": "born, cjc"}
    gradient = "g / n, broadcast back over the axes"

    def result_dtype(self, dtype: DType) -> DType:
        """float64 for what is not float."""
        return dtype if dtype.kind == "f" else FLOAT64

    def reduce(self, xp: Namespace, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, **_: Any) -> None:
        """The sum, divided while it is still in the accumulator's dtype."""
        xp.divide(total(xp, x, out=out, axes=axes, keepdims=keepdims), count(x.shape, axes), out=out)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """As the sum's, divided by n."""
        return (spread(over(g, max(count(x.shape, axes), 1)), x, axes),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """The sums in float32 where the result is float16."""
        return 4 * int(out.size) if out.dtype == FLOAT16 else 0
