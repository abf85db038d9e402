"""Sums over the rows of each segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import TensorType, to_add_up
from engine.oplib.accumulate import accumulator, wide_out, wide_out_bytes
from engine.oplib.adding_at import add_rows, add_rows_bytes
from engine.oplib.indices import check_indices, require_integer
from engine.oplib.operands import require_axes, require_shape


class SegmentSum(Op):
    """y[s, …] = Σ x[i, …] over the rows i with segment_ids[i] = s; 0 where there is none.

    x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool add up in int64,
    float16 in float32.
    """

    name = "segment_sum"
    section = "segment_sum"
    operands = ("x", "segment_ids")
    dtypes = DTYPES
    attrs = {"segments": Attr("int", doc="how many segments there are", minimum=0)}
    gradient = "dx[i, …] = g[segment_ids[i], …]; none for segment_ids"
    samples = (
        Sample(Real(5, 2), Ints(5, high=3), segments=3),
        Sample(Real(4), Ints(4, high=2), segments=4),
        Sample(Real(3, 2, 2), Ints(3, high=2), segments=2),
    )

    def infer(self, x: TensorType, segment_ids: TensorType, *, segments: int) -> ResultTypes:
        """[segments, …]; int64 for what is not float. Raises DtypeMismatch, ShapeMismatch."""
        require_integer(segment_ids, 1, "segment_ids")
        require_axes(x, 1, "to add up over")
        require_shape(segment_ids, x.shape[:1], 1, "segment_ids", "one for each entry of x's first axis")
        return TensorType((segments, *x.shape[1:]), to_add_up(x.dtype))

    def forward(self, run: RunContext, x: Array, segment_ids: Array, *, out: Array, segments: int) -> None:
        """Add row by row, after the range check."""
        xp = run.xp
        check_indices(segment_ids, segments, operand=1)
        total = wide_out(xp, out)
        total[...] = 0
        add_rows(run, total, segment_ids, x)
        if total is not out:
            out[...] = total

    def vjp(self, g: Value, y: Value, x: Value, segment_ids: Value, *, segments: int) -> Sequence[Value | None]:
        """Each row counts once, in its segment."""
        return g.embedding(segment_ids), None

    def batch(self, mapped: Sequence[bool], x: Value, segment_ids: Value, *, segments: int) -> Value:
        """N behind the rows, where all have the same segments; else added at indices, each example by itself."""
        if not mapped[1]:
            moved = x.transpose(axes=(1, 0, *range(2, x.ndim)))
            y = moved.segment_sum(segment_ids, segments=segments)
            return y.transpose(axes=(1, 0, *range(2, y.ndim)))
        n, count = segment_ids.shape
        rows = x if mapped[0] else x.broadcast_to(shape=(n, *x.shape))
        index = segment_ids.reshape(shape=(n, count, *[1] * (rows.ndim - 2))).broadcast_to(shape=rows.shape)
        zeros = x.builder.full((n, segments, *rows.shape[2:]), 0.0, to_add_up(x.dtype))
        return zeros.scatter_add(index, rows, axis=1)

    def flops(self, out: ResultTypes, x: TensorType, *types: TensorType, **attrs: Any) -> int:
        """An addition for each element of x."""
        return x.size

    def workspace(self, out: ResultTypes, x: TensorType, segment_ids: TensorType, **attrs: Any) -> int:
        """Sums in a wider dtype, and what adding them up takes."""
        assert isinstance(out, TensorType)
        return wide_out_bytes(out) + add_rows_bytes(out.with_dtype(accumulator(out)), x)
