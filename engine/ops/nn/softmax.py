"""Softmax. This file is a complete op: every part of the contract, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.codegen.kernels.program import Scalar
from engine.ir.attributes import Attr
from engine.ir.graph import Value
from engine.ir.op import Array, Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import FLOAT64, TensorType, normalise_axis
from engine.ops.common.numerics import accumulator, axis_first, axis_first_elements, upcast_operands
from engine.ops.common.support import RowIndicated
from engine.ops.reduce.sums import Rowwise


def _share(x: Scalar) -> Scalar:
    e = (x - x.row_max()).exp()
    return e / e.row_sum()


class Softmax(RowIndicated, Rowwise, Op):
    """y = exp(x) / Σ exp(x) along `axis`, of x's shape; stable: computed from x − max x. Integers give float64.

    A row that contains only −inf gives NaN, as 0 / 0.
    """

    name = "softmax"
    section = "softmax"
    aliases = {"SoftmaxOp": "born", "Softmax": "born, cjc"}
    operands = ("x",)
    attrs = {"axis": Attr("int", -1, "axis to normalise along")}
    gradient = "y · (g − Σ g·y), with the sum along the axis"
    rows = staticmethod(lambda x, count: _share(x))
    reduces = False
    samples = (
        Sample(Real(4)),
        Sample(Real(2, 3)),
        Sample(Real(2, 3, 2), axis=1),
        Sample(Real(0, 3), axis=0),
        Sample(Ints(2, 3, high=5)),
    )
    truths = (
        Truth(
            operands=[[0.0, 0.6931471805599453, 1.6094379124341003]],
            value=[1 / 8, 2 / 8, 5 / 8],
            cotangent=[1.0, 0.0, 0.0],
            gradients=[[7 / 64, -2 / 64, -5 / 64]],
            source="by hand: x = log(1, 2, 5), and ∂y₀/∂xⱼ = y₀ (δ₀ⱼ − yⱼ)",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Count the axis from the front. Raises BadAttribute."""
        return {"axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def infer(self, x: TensorType, *, axis: int) -> ResultTypes:
        """Return x's shape; float64 unless x is float."""
        return x if x.is_differentiable else x.with_dtype(FLOAT64)

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int) -> None:
        """Compute in place in `out`, along the first axis of the chunks that `axis_first` yields."""
        xp = run.xp
        if not x.size:
            return
        for rows, y in run.checked(axis_first(run, x, out, axis)):
            xp.subtract(rows, xp.max(rows, axis=0), out=y, dtype=y.dtype)
            xp.exp(y, out=y)
            xp.divide(y, xp.sum(y, axis=0, dtype=accumulator(y)), out=y)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int) -> Sequence[Value | None]:
        """Express the gradient with y, which exists already, rather than with x.

        A number that is subtracted from all g of a row does not change it, since Σ y = 1. Subtracting that of the
        largest y keeps the digits of the gradient where this y is close to 1.
        """
        y, _ = upcast_operands(self, y, (x,), {"axis": axis})
        if not x.type.size:
            return (g * y,)
        leads = x.equal(x.max(axes=(axis,), keepdims=True).stop_gradient())
        count = leads.where(y.full_like(1.0), 0.0).sum(axes=(axis,), keepdims=True)
        weighted = (g - leads.where(g, 0.0).sum(axes=(axis,), keepdims=True) / count) * y
        return (weighted - y * weighted.sum(axes=(axis,), keepdims=True),)

    def batch(self, mapped: Sequence[bool], x: Value, *, axis: int) -> Value:
        """Shift `axis` by one: the axis N comes first."""
        return x.softmax(axis=axis + 1)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 14 per element: maximum, difference, exponential (counted as ten), sum and quotient."""
        return 14 * types[0].size

    def workspace(self, out: Any, *types: TensorType, axis: int) -> int:
        """Return the bytes of the chunks or, if x is computed at once, of the maxima and then the sums."""
        (x,) = types
        sizes = x.dtype.itemsize, accumulator(out).itemsize
        return axis_first_elements(x, axis) * (x.dtype.itemsize + out.dtype.itemsize) or lines(x, axis) * max(sizes)


def lines(x: TensorType, axis: int) -> int:
    """Return the number of lines along `axis` of x."""
    return x.size // x.shape[axis] if x.size else 0
