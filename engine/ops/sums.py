"""Sums and means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.op import Array, Namespace
from engine.reduction import Reduction, spread
from engine.tensor_type import FLOAT64, INT64, DType

if TYPE_CHECKING:
    from engine.ir import Value


def accumulator(out: Array) -> DType:
    """The dtype to add up in: float32 for float16 results, else the result's own."""
    return np.dtype("float32") if out.dtype == np.float16 else out.dtype


class Sum(Reduction):
    """y = Σ x over axes. Integers and bool add up in int64, float16 in float32."""

    name = "sum"
    aliases = {"SumDimOp": "born", "SumDim": "born", "Sum": "born, cjc", "Summation": "minima"}
    gradient = "g, broadcast back over the axes"

    def result_dtype(self, dtype: DType) -> DType:
        """int64 for what is not float."""
        return dtype if dtype.kind == "f" else INT64

    def reduce(self, xp: Namespace, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, **_: Any) -> None:
        """NumPy's pairwise sum."""
        xp.sum(x, axis=axes, dtype=accumulator(out), keepdims=keepdims, out=out)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Every element of x counts once."""
        return (spread(g, x, axes),)


class Mean(Reduction):
    """y = Σ x / n over axes, n the number of elements reduced; NaN where n = 0. Integers give float64."""

    name = "mean"
    aliases = {"MeanDimOp": "born", "MeanDim": "born", "Mean": "born, cjc"}
    gradient = "g / n, broadcast back over the axes"

    def result_dtype(self, dtype: DType) -> DType:
        """float64 for what is not float."""
        return dtype if dtype.kind == "f" else FLOAT64

    def reduce(self, xp: Namespace, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, **_: Any) -> None:
        """The sum, divided."""
        xp.sum(x, axis=axes, dtype=accumulator(out), keepdims=keepdims, out=out)
        xp.divide(out, count(x.shape, axes), out=out)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """As the sum's, divided by n."""
        return (spread(g / max(count(x.shape, axes), 1), x, axes),)


def count(shape: Sequence[int], axes: Sequence[int]) -> int:
    """How many elements of `shape` one result over `axes` takes in."""
    return int(np.prod([shape[a] for a in axes], dtype=object))
