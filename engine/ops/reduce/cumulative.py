"""Cumulative sums, products, extrema and log-sum-exps, and linear recurrences. Gradients run in reverse."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.graph import Value, conjugate
from engine.ir.op import Array, Op, ResultTypes
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import (
    COMPLEX,
    DTYPES,
    FLOAT16,
    FLOATS,
    INT64,
    DType,
    HostArray,
    TensorType,
    mean_dtype,
    normalise_axis,
    sum_dtype,
)
from engine.ops.common import batching
from engine.ops.common.numerics import (
    accumulation_buffer,
    accumulation_buffer_bytes,
    accumulator,
    is_nan,
    upcast,
    upcast_operands,
)
from engine.ops.common.support import Indicated, RowIndicated, Selecting
from engine.ops.index.indices import axis_shape
from engine.ops.index.slice import along, slice_axis

#: smallest slice across the axis for which one NumPy call per step is faster than Python floats
_SMALLEST_SLICE: Final = 24
#: elements of a row that are converted to Python floats at a time
_ROW_CHUNK: Final = 1 << 13
#: bytes of a Python float and its list entry
_FLOAT_BYTES: Final = 32
#: length of the runs that are summed by a product with a triangular matrix of ones
_WIDTH: Final = 32
#: shortest row for which the product is faster, and elements of the rows that are processed at a time
SHORTEST_ROW: Final = 4 * _WIDTH
_CHUNK: Final = 1 << 16
#: smallest slice across the axis for which one vector addition per step is faster
SMALLEST_SLICE: Final = 256


class Running(Op):
    """Base: an op that accumulates along one axis, from either end."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "axis": Attr("int", doc="axis to accumulate along"),
        "reverse": Attr("bool", False, "whether to accumulate from the end to the front", since=2),
    }
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(4), axis=0),
        Sample(Real(2, 3), axis=-1),
        Sample(Real(2, 3, 2), axis=1, reverse=True),
        Sample(Real(0, 2), axis=0),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis to count from the front. Raises BadAttribute."""
        return {**attrs, "axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def compose(self, x: Value, *, axis: int, reverse: bool) -> Value | None:
        """Write `reverse` as a run over flipped x, and flip the result."""
        if not reverse:
            return None
        flipped = x.builder.emit(self, (x.flip(axes=(axis,)),), {"axis": axis, "reverse": False})
        return flipped.flip(axes=(axis,))

    def batch(self, mapped: Sequence[bool], x: Value, *, axis: int, reverse: bool) -> Value:
        """Run along the next axis."""
        return x.builder.emit(self, (x,), {"axis": axis + 1, "reverse": reverse})


def shifted(x: Value, axis: int, by: int = 1, fill: float = 0.0) -> Value:
    """Shift x towards the end of `axis` by `by` positions (towards the front if negative), filling the gap."""
    gap = min(abs(by), x.shape[axis])
    start = 0 if by > 0 else gap
    widths = [0] * (2 * x.ndim)
    widths[2 * axis + (by < 0)] = gap
    return slice_axis(x, axis, start, start + x.shape[axis] - gap).pad(pad_width=tuple(widths), fill=fill)


class LinearRecurrence(Op):
    """h[0] = b[0] and h[i] = a[i] · h[i − 1] + b[i] along `axis`; a[0] is not read. One after the other.

    a and b have one shape and one dtype, float or complex, and so has h.
    """

    name = "linear_recurrence"
    internal = True
    operands = ("a", "b")
    dtypes = (*FLOATS, *COMPLEX)
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": Attr("int", doc="axis to accumulate along")}
    gradient: ClassVar[str] = "db[i] = g[i] + conj a[i + 1] · db[i + 1], da[i] = db[i] · conj h[i − 1]"

    def infer(self, a: TensorType, b: TensorType, *, axis: int) -> ResultTypes:
        """Return b's type."""
        return b

    def forward(self, run: RunContext, a: Array, b: Array, *, out: Array, axis: int) -> None:
        """Compute one element, or slice, after the other."""
        if out.size:
            _recur(run, a, b, out, axis)

    def vjp(self, g: Value, y: Value, a: Value, b: Value, *, axis: int) -> Sequence[Value | None]:
        """Run the same recurrence in reverse over g."""
        db = recurrence_back(conjugate(a), g, axis)
        return db * conjugate(shifted(y, axis)), db

    def batch(self, mapped: Sequence[bool], *operands: Value, axis: int) -> Value:
        """Run along the next axis, with N on both operands."""
        a, b = batching.expand(mapped, operands)
        return recurrence(a, b, axis + 1)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write log₂ n rounds of a parallel scan, each doubling the number of terms; a[0] is set to 0."""
        (a, h), axis = operands, attrs["axis"]
        n, distance = h.shape[axis], 1
        # Shifting back and forth replaces a[0] by 0, so that no term from before the start is added.
        a = shifted(shifted(a, axis, -1), axis)
        while distance < n:
            h = h + a * shifted(h, axis, distance)
            a = a * shifted(a, axis, distance)
            distance *= 2
        return (h,)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Count a multiplication and an addition per element."""
        return 2 * types[1].size

    def workspace(self, out: ResultTypes, *types: TensorType, axis: int) -> int:
        """Count a slice of products; or three chunks of a row as Python floats, and one as an array."""
        b = types[1]
        extent, across = b.shape[axis], b.size // max(1, b.shape[axis])
        if across >= _SMALLEST_SLICE:
            return across * b.dtype.itemsize
        return min(extent, _ROW_CHUNK) * (3 * _FLOAT_BYTES + 8)


_LINEAR_RECURRENCE: Final = LinearRecurrence()


def recurrence(a: Value, b: Value, axis: int) -> Value:
    """Append a node for h[0] = b[0] and h[i] = a[i] · h[i − 1] + b[i]."""
    return b.builder.emit(_LINEAR_RECURRENCE, (a, b), {"axis": axis})


def recurrence_back(a: Value, b: Value, axis: int) -> Value:
    """Write the reverse recurrence: h[n − 1] = b[n − 1] and h[i] = b[i] + a[i + 1] · h[i + 1]."""
    flipped = recurrence(shifted(a, axis, -1).flip(axes=(axis,)), b.flip(axes=(axis,)), axis)
    return flipped.flip(axes=(axis,))


@DeviceFunction
def _recur(run: RunContext, a: Array, b: Array, out: Array, axis: int) -> None:
    """Compute slice by slice along the axis."""
    xp = run.xp
    a, b, out = (xp.moveaxis(x, axis, 0) for x in (a, b, out))
    out[0] = b[0]
    for i in run.checked(range(1, len(out))):
        current = out[i : i + 1]  # a slice stays a view if the rest has no axes; out[i] would be a scalar
        xp.multiply(a[i : i + 1], out[i - 1 : i], out=current)
        current += b[i : i + 1]


@_recur.on("cpu")
def _recur_on_cpu(run: RunContext, a: HostArray, b: HostArray, out: HostArray, axis: int) -> None:
    """Compute short slices with Python floats, which are float64: a NumPy call per step would take longer."""
    if out.size >= _SMALLEST_SLICE * out.shape[axis]:
        _recur.general(run, a, b, out, axis)
        return
    a, b, out = (np.moveaxis(x, axis, -1) for x in (a, b, out))
    for where in np.ndindex(out.shape[:-1]):
        last: complex | None = None
        for start in run.checked(range(0, out.shape[-1], _ROW_CHUNK)):
            chunk = (*where, slice(start, start + _ROW_CHUNK))
            results = list(_continue_row(a[chunk].tolist(), b[chunk].tolist(), last))
            last = results[-1]
            out[chunk] = results


def _continue_row(a: list[complex], b: list[complex], last: complex | None) -> Iterator[complex]:
    """Yield the recurrence's next values, starting from the `last` value of the previous part, if any."""
    for factor, term in zip(a, b, strict=True):
        last = term if last is None else factor * last + term
        yield last


class RunningFloats(RowIndicated, Running):
    """Base: accumulation with a ufunc in the accumulator's dtype."""

    section = "cumulative"
    ufunc: ClassVar[str]
    since = 2
    result_dtype = staticmethod(mean_dtype)

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """Return x's shape with the dtype of `result_dtype`."""
        return x.with_dtype(self.result_dtype(x.dtype))

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int, **attrs: Any) -> None:
        """Accumulate, and round once."""
        destination = accumulation_buffer(run.xp, out)
        _accumulate(run, self.ufunc, x, destination, axis)
        if destination is not out:
            out[...] = destination

    def workspace(self, out: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Count x cast to the accumulator's dtype, and float32 results if the result is float16."""
        dtype, (x,) = accumulator(out), types
        return (x.dtype != dtype) * dtype.itemsize * x.size + accumulation_buffer_bytes(out)


@DeviceFunction
def _accumulate(run: RunContext, ufunc: str, x: Array, out: Array, axis: int) -> None:
    """Accumulate along the axis in the dtype of `out`, by a parallel scan: log₂ n rounds, each doubling the reach."""
    xp, distance, n = run.xp, 1, out.shape[axis]
    out[...] = x
    while distance < n:
        later, earlier = along(axis, distance, n), along(axis, 0, n - distance)
        out[later] = getattr(xp, ufunc)(out[later], out[earlier])
        distance *= 2


@_accumulate.on("cpu")
def _accumulate_in_order(_: RunContext, ufunc: str, x: Array, out: Array, axis: int) -> None:
    """Call NumPy's sequential `accumulate`."""
    getattr(np, ufunc).accumulate(x, axis=axis, dtype=out.dtype, out=out)


class CumProd(RunningFloats):
    """y[i] = x[0] · … · x[i] along `axis`; with `reverse`, x[i] · … · x[n − 1].

    Integers and bool are multiplied in int64, float16 in float32. The gradient is exact for any number of zeros, and so
    are higher derivatives. PyTorch and NumPy: `cumprod`. JAX: `lax.cumprod`, which also has `reverse`.
    """

    name = "cumprod"
    dtypes = DTYPES
    ufunc = "multiply"
    gradient = "(product of the entries before i) · Σ g[k] · (product of the entries after i, up to k), over k ≥ i"
    samples = (*Running.samples, Sample(Ints(2, 3, high=4), axis=0))
    truths = (
        Truth(
            operands=[[2.0, 0.0, 3.0, 5.0]],
            attrs={"axis": 0},
            value=[2.0, 0.0, 0.0, 0.0],
            gradients=[[1.0, 38.0, 0.0, 0.0]],
            source="by hand: 2 + 2 · 3 + 2 · 3 · 5 for the one that is 0",
        ),
        Truth(
            operands=[[2.0, 3.0, 5.0]],
            attrs={"axis": 0, "reverse": True},
            value=[30.0, 15.0, 5.0],
            gradients=[[15.0, 15.0, 10.0]],
            source="by hand",
        ),
    )
    result_dtype = staticmethod(sum_dtype)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """Multiply the product before x[i] by a reverse recurrence over later factors; y / x is 0 / 0 at a zero."""
        y, x = upcast_operands(self, y, (x,), {"axis": axis, **attrs})
        return (conjugate(shifted(y, axis, fill=1.0)) * recurrence_back(conjugate(x), upcast(g), axis),)


class CumLogSumExp(RunningFloats):
    """y[i] = log(exp x[0] + … + exp x[i]) along `axis`, stable; with `reverse`, of x[i], …, x[n − 1].

    As in logsumexp: if all elements so far are −inf, y is −inf and the gradient is 0; elements that are inf share the
    gradient. If an element so far is NaN, y and the gradient are NaN. Integers give float64. PyTorch: `logcumsumexp`.
    JAX: `lax.cumlogsumexp`, which also has `reverse`.
    """

    name = "cumlogsumexp"
    ufunc = "logaddexp"
    gradient = "Σ g[k] · exp(x[i] − y[k]) over k ≥ i"
    samples = (*Running.samples, Sample(Ints(2, 3, high=4), axis=0))
    truths = (
        Truth(
            operands=[[math.log(1), math.log(2), math.log(5)]],
            attrs={"axis": 0},
            value=[0.0, math.log(3), math.log(8)],
            gradients=[[1 + 1 / 3 + 1 / 8, 2 / 3 + 2 / 8, 5 / 8]],
            source="by hand: sums of 1, 2 and 5",
        ),
        Truth(
            operands=[[math.log(1), math.log(2), math.log(5)]],
            attrs={"axis": 0, "reverse": True},
            value=[math.log(8), math.log(7), math.log(5)],
            gradients=[[1 / 8, 2 / 8 + 2 / 7, 5 / 8 + 5 / 7 + 1]],
            source="by hand: sums of 1, 2 and 5",
        ),
    )

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """Run in reverse, splitting the cotangent of y[i] in shares of at most 1 between x[i] and y[i − 1]."""
        y, x = upcast_operands(self, y, (x,), {"axis": axis, **attrs})
        current, previous = _shares(y, x, axis)
        return (current * recurrence_back(previous, upcast(g), axis),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Count a difference, an exponential, a logarithm and two sums per element."""
        return 5 * types[0].size


def _shares(y: Value, x: Value, axis: int) -> tuple[Value, Value]:
    """Return the shares of x[i] and y[i − 1] in y[i]: exp(x[i] − y[i]) and exp(y[i − 1] − y[i]).

    Both are 0 where y is −inf. Where y is inf, the infinite x so far share equally.
    """
    is_top, is_infinite = y.equal(math.inf), y.abs().equal(math.inf)
    level = is_infinite.where(0.0, y)
    current, previous = ((is_infinite.where(-math.inf, term) - level).exp() for term in (x, shifted(y, axis)))
    x_is_top = x.equal(math.inf)
    share = x_is_top.cast(dtype=y.dtype) / x_is_top.cast(dtype=y.dtype).cumsum(axis=axis).clamp(min=1.0)
    return is_top.where(share, current), is_top.where(1.0 - share, previous)


class RunningExtremum(Selecting, Running):
    """Base: the cumulative maximum or minimum. NaN propagates."""

    section = "cumulative"
    since = 2
    ufunc: ClassVar[str]
    gradient: ClassVar[str] = (
        "g to the entry that is y: the first in a tie, in the direction of accumulation; the first NaN"
    )
    samples: ClassVar[tuple[Sample, ...]] = (*Running.samples, Sample(Ints(3, 2, high=4), axis=0))

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """Return x's type."""
        return x

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int, **attrs: Any) -> None:
        """Accumulate in x's dtype."""
        _accumulate(run, self.ufunc, x, out, axis)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """Scatter g to the entry that y[i] was first seen at: the last entry so far that exceeded the y before it."""
        if not x.type.size:
            return (g,)
        positions = x.builder.arange(x.shape[axis]).reshape(shape=axis_shape(x.ndim, axis))
        previous = shifted(y, axis)
        is_better = x > previous if self.ufunc == "maximum" else x < previous
        is_new = is_better.logical_or(is_nan(x).logical_and(is_nan(previous).logical_not()))
        sources = is_new.where(positions.broadcast_to(shape=x.shape), 0).cummax(axis=axis)
        return (g.full_like(0.0).scatter_add(sources, g, axis=axis),)


class CumMax(RunningExtremum):
    """y[i] = the largest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].

    NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient. PyTorch:
    the values of `cummax`, whose gradient goes to the last entry in a tie. JAX: `lax.cummax`, which also has `reverse`,
    and in which ties share the gradient.
    """

    name = "cummax"
    ufunc = "maximum"
    truths = (
        Truth(
            operands=[[1.0, 3.0, 2.0, 3.0, 4.0]],
            attrs={"axis": 0},
            value=[1.0, 3.0, 3.0, 3.0, 4.0],
            cotangent=[1.0, 2.0, 4.0, 8.0, 16.0],
            gradients=[[1.0, 14.0, 0.0, 0.0, 16.0]],
            source="by hand: the first of the two that are 3",
        ),
        Truth(
            operands=[[5.0, 3.0, 2.0, 3.0]],
            attrs={"axis": 0, "reverse": True},
            value=[5.0, 3.0, 3.0, 3.0],
            cotangent=[1.0, 2.0, 4.0, 8.0],
            gradients=[[1.0, 0.0, 0.0, 14.0]],
            source="by hand: the first from the end",
        ),
    )


class CumMin(RunningExtremum):
    """y[i] = the smallest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].

    NaN from the first NaN on. In a tie, the first entry in the direction of accumulation gets the gradient. PyTorch:
    the values of `cummin`, whose gradient goes to the last entry in a tie. JAX: `lax.cummin`, which also has `reverse`,
    and in which ties share the gradient.
    """

    name = "cummin"
    ufunc = "minimum"
    truths = (
        Truth(
            operands=[[4.0, 2.0, 3.0, 2.0, 1.0]],
            attrs={"axis": 0},
            value=[4.0, 2.0, 2.0, 2.0, 1.0],
            cotangent=[1.0, 2.0, 4.0, 8.0, 16.0],
            gradients=[[1.0, 14.0, 0.0, 0.0, 16.0]],
            source="by hand: the first of the two that are 2",
        ),
    )


@DeviceFunction
def running_sums(run: RunContext, x: Array, out: Array, axis: int) -> None:
    """Write the cumulative sums of x along `axis` into the dense `out`, in its dtype.

    An infinity or NaN stays in all later sums. If a sum of finite elements overflows, later sums may still be finite:
    not all are computed in order, as NumPy's cumsum does.
    """
    run.xp.cumsum(x, axis=axis, dtype=out.dtype, out=out)


@running_sums.on("cpu")
def _running_sums(run: RunContext, x: HostArray, out: HostArray, axis: int) -> None:
    extent, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if x.dtype != out.dtype:
        np.cumsum(x, axis=axis, dtype=out.dtype, out=out)
    elif out.dtype.kind == "f" and extent and inner == 1 and extent >= SHORTEST_ROW:
        try:
            rows = np.reshape(x, (-1, extent), copy=False)
        except ValueError:  # the rows have no uniform stride
            np.cumsum(x, axis=axis, dtype=out.dtype, out=out)
        else:
            _sum_rows(run, rows, out.reshape(rows.shape))
    elif extent and x.size >= SMALLEST_SLICE * extent and inner >= _WIDTH:
        x, out = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
        out[0] = x[0]
        for i in run.checked(range(1, len(x))):
            np.add(out[i - 1], x[i], out=out[i])
    else:
        np.cumsum(x, axis=axis, dtype=out.dtype, out=out)


def running_bytes(x: TensorType, dtype: DType, axis: int) -> int:
    """Count the bytes that `running_sums` allocates: a chunk of x, and the sums of its runs."""
    extent, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if dtype.kind != "f" or inner != 1 or extent < SHORTEST_ROW:
        return 0
    chunk = min(x.size, max(1, _CHUNK // extent) * extent)
    return dtype.itemsize * (chunk + chunk // _WIDTH)


def _sum_rows(run: RunContext, x: HostArray, out: HostArray) -> None:
    step = max(1, _CHUNK // x.shape[1])
    for start in run.checked(range(0, len(x), step)):
        chunk, sums = x[start : start + step], out[start : start + step]
        is_finite = _sum_by_products(chunk, sums)
        for row in np.flatnonzero(~is_finite):
            np.cumsum(chunk[row], out=sums[row])


def _sum_by_products(x: HostArray, out: HostArray) -> HostArray:
    """Write cumulative sums of rows by matrix products, and return which rows are finite.

    The other rows are wrong: an infinity times a 0 of the matrix is NaN. Rows are cut into runs of _WIDTH elements,
    which one product with a triangle of ones sums at once. The sum of all earlier runs is added to a run's first
    element beforehand.
    """
    rows, extent = x.shape
    run_extent, triangle = extent - extent % _WIDTH, _triangle(out.dtype)
    runs = np.array(x[:, :run_extent], order="C").reshape(-1, _WIDTH)
    sums = np.matmul(runs, triangle[0]).reshape(rows, -1)
    np.cumsum(sums, axis=1, out=sums)
    is_finite: HostArray = np.isfinite(sums[:, -1])
    runs.reshape(rows, -1, _WIDTH)[:, 1:, 0] += sums[:, :-1]
    # A single product if the runs of all rows are contiguous in `out`, else one per row.
    shape = (-1, _WIDTH) if run_extent == extent else (rows, -1, _WIDTH)
    np.matmul(runs.reshape(shape), triangle, out=out[:, :run_extent].reshape(shape))
    if run_extent < extent:
        np.cumsum(x[:, run_extent:], axis=1, out=out[:, run_extent:])
        np.add(out[:, run_extent:], sums[:, -1:], out=out[:, run_extent:])
    return is_finite


@cache
def _triangle(dtype: DType) -> HostArray:
    return np.triu(np.ones((_WIDTH, _WIDTH), dtype))


class CumSum(Indicated, Running):
    """y[i] = x[0] + … + x[i] along `axis`; with `reverse`, x[i] + … + x[n − 1].

    Integers and bool are summed in int64, float16 in float32. PyTorch and NumPy: `cumsum`. JAX: `lax.cumsum`, which
    also has `reverse`.
    """

    name = "cumsum"
    section = "cumsum"
    dtypes = DTYPES
    attrs = {**Running.attrs, "axis": Attr("int", doc="axis to sum along")}
    gradient = "g, summed from the end"
    samples = (
        Sample(Real(4), axis=0),
        Sample(Real(2, 3), axis=-1),
        Sample(Real(2, 3, 2), axis=1),
        Sample(Real(0, 2), axis=0),
        Sample(Ints(2, 3, high=9), axis=0),
        Sample(Real(2, 3), axis=1, reverse=True),
    )

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """Return x's type if it is float or complex; else its shape with dtype int64."""
        return x if x.is_differentiable else x.with_dtype(INT64)

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int, **attrs: Any) -> None:
        """Accumulate, and round once."""
        if out.dtype == FLOAT16:
            out[...] = run.xp.cumsum(x, axis=axis, dtype=accumulator(out))
        else:
            running_sums(run, x, out, axis)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """Accumulate g in reverse: x[i] contributes to y[i] and all later sums."""
        return (g.flip(axes=(axis,)).cumsum(axis=axis).flip(axes=(axis,)),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Count x and the sums in the accumulator's dtype where that differs; or what `running_sums` allocates."""
        dtype, (x,) = accumulator(out), types
        if x.dtype == out.dtype == dtype:
            return running_bytes(x, dtype, attrs["axis"])
        arrays = (x.dtype != dtype) + (out.dtype != dtype)
        return int(arrays * dtype.itemsize * x.size)
