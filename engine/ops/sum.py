"""Sums, means, products and variance, and the truth of any or of all elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array, KernelCall
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import DType, TensorType, to_add_up, to_average
from engine.oplib.accumulate import accumulator, count, over, sum_parts_bytes, total, wide_out_bytes
from engine.oplib.reduction import Reduction, broadcast_back
from engine.oplib.rows import adding_up
from engine.oplib.rowwise import Rowwise
from engine.rewrites.movement import sum_of_broadcast, sum_of_transpose
from engine.rewrites.products import sum_of_product


class Sum(Rowwise, Reduction):
    """y = Σ x over axes. Integers and bool add up in int64, float16 in float32."""

    name = "sum"
    section = "sum"
    aliases = {"SumDimOp": "born", "SumDim": "born", "Sum": "born, cjc", "Summation": "minima"}
    dtypes = DTYPES
    gradient = "g, broadcast back over the axes"
    rows = staticmethod(lambda x, count: x.row_sum())
    rewrites = (sum_of_broadcast, sum_of_transpose, sum_of_product)

    def divisor(self, extent: int) -> float | None:
        """None that changes anything."""
        return 1.0

    def result_dtype(self, dtype: DType) -> DType:
        """int64 for what is not float."""
        return to_add_up(dtype)

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, **_: Any) -> None:
        """The sum, rounded once."""
        found = total(run, x, out=out, axes=axes, keepdims=keepdims)
        if found is not out:
            out[...] = found

    def bind(self, run: RunContext, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]) -> KernelCall:
        """The sum itself, where it is not rounded afterwards."""
        if accumulator(out) == out.dtype:
            return adding_up(run, operands[0], out=out, axes=attrs["axes"], keepdims=attrs["keepdims"])
        return super().bind(run, operands, out, attrs)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Every element of x counts once."""
        return (broadcast_back(g, x, axes),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """The sums in float32 where the result is float16; the parts of a kernel's."""
        return max(wide_out_bytes(out), sum_parts_bytes(types[0].size))


class Mean(Rowwise, Reduction):
    """y = Σ x / n over axes, n the number of elements reduced; NaN where n = 0. Integers give float64."""

    name = "mean"
    section = "sum"
    aliases = {"MeanDimOp": "born", "MeanDim": "born", "Mean": "born, cjc"}
    dtypes = DTYPES
    gradient = "g / n, broadcast back over the axes"
    rows = staticmethod(lambda x, count: x.row_sum() / count)

    def divisor(self, extent: int) -> float | None:
        """Their number."""
        return float(extent)

    def result_dtype(self, dtype: DType) -> DType:
        """float64 for what is not float."""
        return to_average(dtype)

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, **_: Any) -> None:
        """The sum, divided while it is still in the accumulator's dtype."""
        run.xp.divide(total(run, x, out=out, axes=axes, keepdims=keepdims), count(x.shape, axes), out=out)

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """As the sum's, divided by n."""
        return (broadcast_back(over(g, max(count(x.shape, axes), 1)), x, axes),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """The sums in float32 where the result is float16; the parts of a kernel's."""
        return max(wide_out_bytes(out), sum_parts_bytes(types[0].size))
