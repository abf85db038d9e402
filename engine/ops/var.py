"""Variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.attributes import Attr
from engine.graph.ir import Value
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import DType, TensorType, to_average
from engine.loops.program import Scalar
from engine.oplib.accumulate import accumulator, count
from engine.oplib.reduction import AXES, KEEPDIMS, Reduction, broadcast_back
from engine.oplib.rowwise import Rowwise
from engine.oplib.widening import wide


def _mean_square(x: Scalar, count: int, ddof: int) -> Scalar:
    deviation = x - x.row_sum() / count
    return (deviation * deviation).row_sum() / max(count - ddof, 0)


class Var(Rowwise, Reduction):
    """y = Σ (x − mean x)² / (n − ddof) over axes, n the number of elements reduced. Integers give float64.

    Computed in two passes, the mean first, so that a large mean costs no digits. Where n ≤ ddof it divides by zero,
    as NumPy does: NaN, or infinity.
    """

    name = "var"
    section = "var"
    attrs = {
        "axes": AXES,
        "keepdims": KEEPDIMS,
        "ddof": Attr("int", 0, "what is taken off n: 1 for the unbiased estimate", minimum=0),
    }
    gradient = "g · 2 (x − mean x) / (n − ddof)"
    rows = staticmethod(_mean_square)
    joins_loops = False
    is_one_of_one = False
    samples = (
        *Reduction.samples,
        Sample(Real(5), ddof=1),
        Sample(Real(2, 3), axes=[0], ddof=1, keepdims=True),
        Sample(Real()),
        Sample(Ints(2, 3, high=9), axes=[1]),
    )

    def result_dtype(self, dtype: DType) -> DType:
        """float64 for what is not float."""
        return to_average(dtype)

    def reduce(
        self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool, ddof: int
    ) -> None:
        """The mean of the squared deviations."""
        xp = run.xp
        dtype, n = accumulator(out), count(x.shape, axes)
        mean = xp.sum(x, axis=axes, dtype=dtype, keepdims=True)
        mean /= n
        deviation = xp.subtract(x, mean, dtype=dtype)
        deviation *= deviation
        squares = xp.sum(deviation, axis=axes, keepdims=keepdims)
        xp.divide(squares, max(n - ddof, 0), out=out)

    def vjp(
        self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool, ddof: int
    ) -> Sequence[Value | None]:
        """The mean's own share cancels: the deviations add up to zero. Doubled last: 2g alone may overflow."""
        spread = wide(x)
        deviation = spread - spread.mean(axes=axes, keepdims=True)
        return (broadcast_back(wide(g) / max(count(x.shape, axes) - ddof, 0), x, axes) * deviation * 2,)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """The deviations, the means and the sums of squares."""
        return accumulator(out).itemsize * (types[0].size + 2 * int(out.size))
