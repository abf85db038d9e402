"""The logarithm of softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.ir import Value
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import TensorType
from engine.loops.program import Scalar
from engine.oplib.accumulate import accumulator
from engine.oplib.rows import axis_first, chunk_size
from engine.oplib.widening import wide, widened
from engine.ops.softmax import Softmax


def _logarithm(x: Scalar) -> Scalar:
    y = x - x.row_max()
    return y - y.exp().row_sum().log()


class LogSoftmax(Softmax):
    """y = x − log Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.

    A row that is −inf throughout gives NaN.
    """

    name = "log_softmax"
    section = "log_softmax"
    aliases = {"LogSoftmaxOp": "born, cjc"}
    gradient = "g − exp(y) · Σ g, the sum along the axis"
    rows = staticmethod(lambda x, count: _logarithm(x))

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int) -> None:
        """The shifted x, less the logarithm of its exponentials' sum."""
        xp = run.xp
        if not x.size:
            return
        for rows, y in run.through(axis_first(run, x, out, axis)):
            xp.subtract(rows, xp.max(rows, axis=0), out=y, dtype=y.dtype)
            total = xp.sum(xp.exp(y), axis=0, dtype=accumulator(y), keepdims=True)
            xp.subtract(y, xp.log(total, out=total), out=y)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int) -> Sequence[Value | None]:
        """g, less the share of each element in its row's sum."""
        y, _ = widened(self, y, (x,), {"axis": axis})
        g = wide(g)
        return (g - y.exp() * g.sum(axes=(axis,), keepdims=True),)

    def batch(self, mapped: Sequence[bool], x: Value, *, axis: int) -> Value:
        """The next axis."""
        return x.log_softmax(axis=axis + 1)

    def workspace(self, out: Any, *types: TensorType, axis: int) -> int:
        """As softmax, and the exponentials: of a chunk, or of all of x."""
        (x,) = types
        exponentials = chunk_size(x, axis) * out.dtype.itemsize or int(out.nbytes)
        return exponentials + super().workspace(out, x, axis=axis)
