"""Segment reductions: sum, mean, product and extrema of the rows of each segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.graph import Value
from engine.ir.op import Array, Composite, NoGradient, Op, ResultTypes
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, FLOAT16, INT64, DType, HostArray, TensorType, mean_dtype, sum_dtype
from engine.ops.common.batching import expand
from engine.ops.common.numerics import (
    accumulation_buffer,
    accumulation_buffer_bytes,
    accumulator,
    extremum_identity,
    is_chosen,
    require_axes,
    require_shape,
    upcast,
)
from engine.ops.common.support import Selecting
from engine.ops.index.gather import add_rows, add_rows_bytes
from engine.ops.index.indices import axis_shape, check_indices, require_integer
from engine.ops.reduce.cumulative import recurrence, recurrence_back, shifted

_SEGMENTS: Mapping[str, Attr] = {"segments": Attr("int", doc="number of segments", minimum=0)}
_SAMPLES = (
    Sample(Real(7, 2), Ints(7, high=2), segments=2),
    Sample(Real(9), Ints(9, high=2), segments=2),
    Sample(Real(3, 2, 2), Ints(3, high=1), segments=1),
)


class OffsetIndices(Op):
    """y[…, n, …] = index[…, n, …] + n · extent, n along `axis`: int64. Each index lies in [0, extent)."""

    name = "offset_indices"
    internal = True
    operands = ("index",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "axis": Attr("int", doc="the axis of the examples"),
        "extent": Attr("int", doc="the extent that one example indexes", minimum=0),
        "operand": Attr("int", doc="which operand of the client's node it is, for messages", minimum=0),
    }
    gradient: ClassVar[str] = "none: indices have no derivative"
    vjp = NoGradient("indices have no derivative")

    def infer(self, index: TensorType, **attrs: Any) -> ResultTypes:
        """Return the index's shape with dtype int64."""
        return index.with_dtype(INT64)

    def forward(self, run: RunContext, index: Array, *, out: Array, axis: int, extent: int, operand: int) -> None:
        """Check the range, since an index outside would refer to another example; then add the offsets."""
        check_indices(index, extent, operand=operand)
        offsets = extent * run.xp.arange(index.shape[axis])
        run.xp.add(index, offsets.reshape(axis_shape(index.ndim, axis)), out=out)

    def batch(self, mapped: Sequence[bool], index: Value, *, axis: int, **attrs: Any) -> Value:
        """Offset along the next axis."""
        return index.builder.emit(self, (index,), {"axis": axis + 1, **attrs})

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write a sum."""
        (index,), axis = operands, attrs["axis"]
        offsets = index.builder.arange(index.shape[axis]).mul(attrs["extent"])
        return (index.cast(dtype=INT64) + offsets.reshape(shape=axis_shape(index.ndim, axis)),)

    def workspace(self, out: ResultTypes, *types: TensorType, axis: int, **attrs: Any) -> int:
        """Count the bytes of the examples' numbers and offsets."""
        return 2 * INT64.itemsize * types[0].shape[axis]


_OFFSET_INDICES: Final = OffsetIndices()


def offset_indices(index: Value, extent: int, operand: int, axis: int = 0) -> Value:
    """Offset the indices of examples along `axis`, so that each example has its own range of `extent` positions.

    The index is operand `operand` of a client's node.
    """
    return index.builder.emit(_OFFSET_INDICES, (index,), {"axis": axis, "extent": extent, "operand": operand})


@DeviceFunction
def reduce_segments(run: RunContext, ufunc: str, x: Array, segment_ids: Array, out: Array) -> None:
    """Write the reduction of x[i, …] over the rows i with segment_ids[i] = s to out[s, …]; skip empty segments.

    Rows are sorted by segment and reduced by a segmented scan: log₂ n rounds, each doubling the reach. The last row of
    a segment then has its result.
    """
    xp, n, distance = run.xp, len(segment_ids), 1
    if not x.size:
        return
    order = xp.argsort(segment_ids, kind="stable")
    ids, rows = segment_ids[order], x[order].astype(out.dtype)
    while distance < n:
        same_segment = (ids[distance:] == ids[:-distance]).reshape(-1, *[1] * (x.ndim - 1))
        reduced = getattr(xp, ufunc)(rows[distance:], rows[:-distance])
        rows[distance:] = xp.where(same_segment, reduced, rows[distance:])
        distance *= 2
    lasts = xp.flatnonzero(xp.append(ids[1:] != ids[:-1], True))
    out[ids[lasts]] = rows[lasts]


@reduce_segments.on("cpu")
def _reduce_ranges(_: RunContext, ufunc: str, x: HostArray, segment_ids: HostArray, out: HostArray) -> None:
    """Sort rows by segment, and call NumPy's `reduceat` on the ranges."""
    if not x.size:
        return
    order = np.argsort(segment_ids, kind="stable")
    starts, run_ids = _runs(segment_ids[order])
    rows = x[order].astype(out.dtype, copy=False)
    del order  # freed before reducing, as `segment_bytes` assumes
    out[run_ids] = getattr(np, ufunc).reduceat(rows, starts, axis=0)


def _runs(ids: HostArray) -> tuple[HostArray, HostArray]:
    """Return the starts of runs of equal ids, and the ids."""
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    return starts, ids[starts]


def segment_bytes(out: TensorType, dtype: DType, x: TensorType, segment_ids: TensorType) -> int:
    """Count the peak bytes of `reduce_segments`: while it finds runs, sorts the rows, or reduces."""
    count = x.shape[0]
    if not x.size:
        return 0
    runs, width = min(count, out.shape[0]), x.size // count
    order, ids = INT64.itemsize * count, segment_ids.dtype.itemsize
    run_bytes = runs * (INT64.itemsize + ids)
    finding = order + (ids + 2) * count + run_bytes
    casting = x.size * x.dtype.itemsize if x.dtype != dtype else 0
    rows = x.size * dtype.itemsize
    return max(finding, order + run_bytes + casting + rows, run_bytes + rows + runs * width * dtype.itemsize)


def _result_type(x: TensorType, segment_ids: TensorType, segments: int, dtype: DType) -> TensorType:
    """Return the type [segments, …] with `dtype`. Raises DtypeMismatch, ShapeMismatch."""
    require_integer(segment_ids, 1, "segment_ids")
    require_axes(x, 1, "to reduce over")
    require_shape(segment_ids, x.shape[:1], 1, "segment_ids", "one for each entry of x's first axis")
    return TensorType((segments, *x.shape[1:]), dtype)


def _as_column(x: Value, like: Value) -> Value:
    """Append axes of extent 1 to x [rows], so that it broadcasts with `like` [rows, …]."""
    return x.reshape(shape=(x.shape[0], *[1] * (like.ndim - 1)))


class SegmentReduction(Op):
    """Base: a reduction by a ufunc. `empty` is the result of a segment without rows."""

    section = "segments"
    operands: ClassVar[tuple[str, ...]] = ("x", "segment_ids")
    attrs = _SEGMENTS
    since = 2
    ufunc: ClassVar[str]

    def result_dtype(self, dtype: DType) -> DType:
        """Return x's dtype."""
        return dtype

    def empty(self, dtype: DType) -> Any:
        """Return the result over no rows."""
        return extremum_identity(self.ufunc, dtype)

    def infer(self, x: TensorType, segment_ids: TensorType, *, segments: int) -> ResultTypes:
        """Return the type [segments, …]. Raises DtypeMismatch, ShapeMismatch."""
        return _result_type(x, segment_ids, segments, self.result_dtype(x.dtype))

    def forward(self, run: RunContext, x: Array, segment_ids: Array, *, out: Array, segments: int) -> None:
        """Check the range, then reduce."""
        check_indices(segment_ids, segments, operand=1)
        destination = accumulation_buffer(run.xp, out)
        destination[...] = self.empty(destination.dtype)
        reduce_segments(run, self.ufunc, x, segment_ids, destination)
        if destination is not out:
            out[...] = destination

    def batch(self, mapped: Sequence[bool], x: Value, segment_ids: Value, *, segments: int) -> Value:
        """Move N after the rows if segment ids are not mapped; else give each example its own range of segments."""
        if not mapped[1]:
            order = (1, 0, *range(2, x.ndim))
            y = x.builder.emit(self, (x.transpose(axes=order), segment_ids), {"segments": segments})
            return y.transpose(axes=order)
        rows, segment_ids = expand(mapped, (x, segment_ids))
        n, count = segment_ids.shape
        ids = offset_indices(segment_ids, segments, 1).reshape(shape=(n * count,))
        flat = rows.reshape(shape=(n * count, *rows.shape[2:]))
        y = x.builder.emit(self, (flat, ids), {"segments": n * segments})
        return y.reshape(shape=(n, segments, *rows.shape[2:]))

    def flops(self, out: ResultTypes, x: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Count one operation per element of x, and log₂ n comparisons per row for sorting."""
        return x.size + x.shape[0] * max(x.shape[0] - 1, 0).bit_length()

    def workspace(self, out: TensorType, x: TensorType, segment_ids: TensorType, **attrs: Any) -> int:
        """Count results in a wider dtype, and what `reduce_segments` allocates."""
        return accumulation_buffer_bytes(out) + segment_bytes(out, accumulator(out), x, segment_ids)


class SegmentExtremum(Selecting, SegmentReduction):
    """Base: the maximum or minimum of each segment."""

    gradient: ClassVar[str] = "g / k to each of the k rows equal to y (if y is NaN, to each NaN); 0 to the others"
    samples = (*_SAMPLES, Sample(Ints(3, 2, high=4), Ints(3, high=1), segments=1))

    def vjp(self, g: Value, y: Value, x: Value, segment_ids: Value, *, segments: int) -> Sequence[Value | None]:
        """Split g equally among ties; which rows tie is a constant, as for `max`."""
        tied = is_chosen(x, y.embedding(segment_ids))
        share = g / tied.segment_sum(segment_ids, segments=segments).maximum(1)
        return tied.where(share.cast(dtype=g.dtype).embedding(segment_ids), 0.0), None


class SegmentMax(SegmentExtremum):
    """y[s, …] = the largest x[i, …] of the rows i with segment_ids[i] = s; NaN if one of them is NaN.

    x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient equally. An
    empty segment gives −∞, or the smallest number of an integer dtype. JAX: `ops.segment_max`. PyTorch:
    `scatter_reduce` with amax, whose ties also share the gradient, and in which empty segments keep their old values.
    """

    name = "segment_max"
    ufunc = "maximum"
    truths = (
        Truth(
            operands=[[1.0, 5.0, 5.0, 2.0], [1, 0, 0, 1]],
            attrs={"segments": 2},
            value=[5.0, 2.0],
            cotangent=[4.0, 8.0],
            gradients=[[0.0, 2.0, 2.0, 8.0], None],
            source="by hand",
        ),
    )


class SegmentMin(SegmentExtremum):
    """y[s, …] = the smallest x[i, …] of the rows i with segment_ids[i] = s; NaN if one of them is NaN.

    x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Ties share the gradient equally. An
    empty segment gives ∞, or the largest number of an integer dtype. JAX: `ops.segment_min`. PyTorch: `scatter_reduce`
    with amin, whose ties also share the gradient, and in which empty segments keep their old values.
    """

    name = "segment_min"
    ufunc = "minimum"
    truths = (
        Truth(
            operands=[[1.0, 5.0, 5.0, 2.0], [1, 0, 0, 1]],
            attrs={"segments": 2},
            value=[5.0, 1.0],
            cotangent=[4.0, 8.0],
            gradients=[[8.0, 2.0, 2.0, 0.0], None],
            source="by hand",
        ),
    )


class SegmentProd(SegmentReduction):
    """y[s, …] = Π x[i, …] over the rows i with segment_ids[i] = s; 1 for an empty segment.

    x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool are multiplied in
    int64, float16 in float32. The gradient is exact for any number of zeros, and so are higher derivatives. JAX:
    `ops.segment_prod`, which has no gradient. PyTorch: `scatter_reduce` with prod.
    """

    name = "segment_prod"
    ufunc = "multiply"
    gradient = "g[segment_ids[i], …] · (product of the other rows of the segment); none for segment_ids"
    samples = (*_SAMPLES, Sample(Ints(3, 2, high=4), Ints(3, high=1), segments=1))
    truths = (
        Truth(
            operands=[[2.0, 0.0, 3.0, 5.0], [1, 0, 1, 0]],
            attrs={"segments": 2},
            value=[0.0, 6.0],
            gradients=[[3.0, 5.0, 2.0, 0.0], None],
            source="by hand",
        ),
    )
    result_dtype = staticmethod(sum_dtype)

    def empty(self, dtype: DType) -> Any:
        """Return 1."""
        return 1

    def vjp(self, g: Value, y: Value, x: Value, segment_ids: Value, *, segments: int) -> Sequence[Value | None]:
        """Multiply g by the product of all other rows of the segment: of those before times those after.

        Rows are sorted by segment. Linear recurrences that restart at each segment give both products.
        """
        if not x.type.size:
            return x.full_like(0.0), None
        order = segment_ids.argsort(axis=0)
        ids, rows = segment_ids.embedding(order), upcast(x).embedding(order)
        starts = _as_column(shifted(ids, 0).not_equal(ids).logical_or(ids.builder.arange(x.shape[0]).equal(0)), x)
        first = starts.where(rows.full_like(1.0), 0.0)
        before = recurrence(starts.where(0.0, shifted(rows, 0)), first, 0)
        ends = shifted(starts, 0, -1, fill=1.0)
        after = recurrence_back(starts.where(0.0, rows), ends.where(rows.full_like(1.0), 0.0), 0)
        others = (before * after).embedding(order.argsort(axis=0))
        return others * upcast(g).embedding(segment_ids), None


class SegmentMean(Composite):
    """y[s, …] = the mean of x[i, …] over the rows i with segment_ids[i] = s; NaN for an empty segment.

    x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers give float64; float16 is
    summed in float32. PyTorch: `scatter_reduce` with mean. JAX has no equivalent.
    """

    name = "segment_mean"
    section = "segments"
    operands = ("x", "segment_ids")
    attrs = _SEGMENTS
    since = 2
    gradient = "dx[i, …] = g[segment_ids[i], …] / (number of rows in the segment); none for segment_ids"
    samples = (
        Sample(Real(5, 2), Ints(5, high=1), segments=1),
        Sample(Real(4), Ints(4, high=1), segments=1),
        Sample(Ints(3, 2, high=4), Ints(3, high=1), segments=1),
    )
    truths = (
        Truth(
            operands=[[1.0, 5.0, 3.0, 2.0], [1, 0, 1, 1]],
            attrs={"segments": 2},
            value=[5.0, 2.0],
            cotangent=[4.0, 6.0],
            gradients=[[2.0, 4.0, 2.0, 2.0], None],
            source="by hand",
        ),
    )

    def infer(self, x: TensorType, segment_ids: TensorType, *, segments: int) -> ResultTypes:
        """Return the type [segments, …], float64 for integers. Raises DtypeMismatch, ShapeMismatch."""
        return _result_type(x, segment_ids, segments, mean_dtype(x.dtype))

    def compose(self, x: Value, segment_ids: Value, *, segments: int) -> Value:
        """Divide segment sums by segment counts."""
        dtype = mean_dtype(x.dtype)
        rows = upcast(x.cast(dtype=dtype) if x.dtype != dtype else x)
        ones = x.builder.full((x.shape[0],), 1, INT64)
        count = ones.segment_sum(segment_ids, segments=segments).cast(dtype=rows.dtype)
        y = rows.segment_sum(segment_ids, segments=segments) / _as_column(count, rows)
        return y.cast(dtype=FLOAT16) if dtype == FLOAT16 else y


class SegmentSum(Selecting, Op):
    """y[s, …] = Σ x[i, …] over the rows i with segment_ids[i] = s; 0 for an empty segment.

    x [n, …]; segment_ids [n], in any order, each in [0, segments); y [segments, …]. Integers and bool are summed in
    int64, float16 in float32.
    """

    name = "segment_sum"
    section = "segment_sum"
    operands = ("x", "segment_ids")
    dtypes = DTYPES
    attrs = {"segments": Attr("int", doc="number of segments", minimum=0)}
    gradient = "dx[i, …] = g[segment_ids[i], …]; none for segment_ids"
    samples = (
        Sample(Real(5, 2), Ints(5, high=3), segments=3),
        Sample(Real(4), Ints(4, high=2), segments=4),
        Sample(Real(3, 2, 2), Ints(3, high=2), segments=2),
    )

    def infer(self, x: TensorType, segment_ids: TensorType, *, segments: int) -> ResultTypes:
        """Return the type [segments, …], int64 for integers and bool. Raises DtypeMismatch, ShapeMismatch."""
        require_integer(segment_ids, 1, "segment_ids")
        require_axes(x, 1, "to add up over")
        require_shape(segment_ids, x.shape[:1], 1, "segment_ids", "one for each entry of x's first axis")
        return TensorType((segments, *x.shape[1:]), sum_dtype(x.dtype))

    def forward(self, run: RunContext, x: Array, segment_ids: Array, *, out: Array, segments: int) -> None:
        """Check the range, then add row by row."""
        xp = run.xp
        check_indices(segment_ids, segments, operand=1)
        total = accumulation_buffer(xp, out)
        total[...] = 0
        add_rows(run, total, segment_ids, x)
        if total is not out:
            out[...] = total

    def vjp(self, g: Value, y: Value, x: Value, segment_ids: Value, *, segments: int) -> Sequence[Value | None]:
        """Read g at each row's segment."""
        return g.embedding(segment_ids), None

    def batch(self, mapped: Sequence[bool], x: Value, segment_ids: Value, *, segments: int) -> Value:
        """Move N after the rows if segment ids are not mapped; else scatter-add along axis 1."""
        if not mapped[1]:
            rows_first = x.transpose(axes=(1, 0, *range(2, x.ndim)))
            y = rows_first.segment_sum(segment_ids, segments=segments)
            return y.transpose(axes=(1, 0, *range(2, y.ndim)))
        n, count = segment_ids.shape
        rows = x if mapped[0] else x.broadcast_to(shape=(n, *x.shape))
        index = segment_ids.reshape(shape=(n, count, *[1] * (rows.ndim - 2))).broadcast_to(shape=rows.shape)
        zeros = x.builder.full((n, segments, *rows.shape[2:]), 0.0, sum_dtype(x.dtype))
        return zeros.scatter_add(index, rows, axis=1)

    def flops(self, out: ResultTypes, x: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Count one addition per element of x."""
        return x.size

    def workspace(self, out: TensorType, x: TensorType, segment_ids: TensorType, **attrs: Any) -> int:
        """Count sums in a wider dtype, and what `add_rows` allocates."""
        return accumulation_buffer_bytes(out) + add_rows_bytes(out.with_dtype(accumulator(out)), x)
