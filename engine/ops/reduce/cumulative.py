"""Running sums, products, extremes and logarithms of sums. The gradients are runs from the other end."""

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
    normalise_axis,
    to_add_up,
    to_average,
)
from engine.ops.common import batching
from engine.ops.common.numerics import accumulator, is_nan, wide, wide_out, wide_out_bytes, widened
from engine.ops.index.indices import column_of
from engine.ops.index.slice import along, cut

#: elements of a slice across the axis from which NumPy's calls for each take less time than Python's floats
_LEAST_SLICE: Final = 24
#: elements of a line that are Python's floats at a time
_LINE: Final = 1 << 13
#: bytes of one of these, with its place in a list
_FLOAT_BYTES: Final = 32
#: elements that a product with a triangle of ones adds up
_WIDTH: Final = 32
#: elements of a row from which that is faster, and of the rows that are taken at a time
LEAST_ROW: Final = 4 * _WIDTH
_CHUNK: Final = 1 << 16
#: elements of a slice across the axis from which one addition for each is faster
LEAST_SLICE: Final = 256


class Running(Op):
    """Base: the axis and the direction, and batching over the next axis."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "axis": Attr("int", doc="the axis to run along"),
        "reverse": Attr("bool", False, "whether to run from the end to the front", since=2),
    }
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(4), axis=0),
        Sample(Real(2, 3), axis=-1),
        Sample(Real(2, 3, 2), axis=1, reverse=True),
        Sample(Real(0, 2), axis=0),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front. Raises BadAttribute."""
        return {**attrs, "axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def compose(self, x: Value, *, axis: int, reverse: bool) -> Value | None:
        """Run over x reversed, and reverse the result."""
        if not reverse:
            return None
        turned = x.builder.emit(self, (x.flip(axes=(axis,)),), {"axis": axis, "reverse": False})
        return turned.flip(axes=(axis,))

    def batch(self, mapped: Sequence[bool], x: Value, *, axis: int, reverse: bool) -> Value:
        """The next axis."""
        return x.builder.emit(self, (x,), {"axis": axis + 1, "reverse": reverse})


def shifted(x: Value, axis: int, by: int = 1, fill: float = 0.0) -> Value:
    """x moved towards the end of `axis` by so many places, `fill` in front of it; negative ones move to the front."""
    gap = min(abs(by), x.shape[axis])
    start = 0 if by > 0 else gap
    widths = [0] * (2 * x.ndim)
    widths[2 * axis + (by < 0)] = gap
    return cut(x, axis, start, start + x.shape[axis] - gap).pad(pad_width=tuple(widths), fill=fill)


class LinearRecurrence(Op):
    """h[0] = b[0] and h[i] = a[i] · h[i − 1] + b[i] along `axis`; a[0] is not read. One after the other.

    a and b have one shape and one dtype, float or complex, and so has h.
    """

    name = "linear_recurrence"
    internal = True
    operands = ("a", "b")
    dtypes = (*FLOATS, *COMPLEX)
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": Attr("int", doc="the axis to run along")}
    gradient: ClassVar[str] = "db[i] = g[i] + conj a[i + 1] · db[i + 1], da[i] = db[i] · conj h[i − 1]"

    def infer(self, a: TensorType, b: TensorType, *, axis: int) -> ResultTypes:
        """b's type."""
        return b

    def forward(self, run: RunContext, a: Array, b: Array, *, out: Array, axis: int) -> None:
        """One after the other."""
        if out.size:
            _recur(run, a, b, out, axis)

    def vjp(self, g: Value, y: Value, a: Value, b: Value, *, axis: int) -> Sequence[Value | None]:
        """The same, from the end."""
        back = recurrence_back(conjugate(a), g, axis)
        return back * conjugate(shifted(y, axis)), back

    def batch(self, mapped: Sequence[bool], *operands: Value, axis: int) -> Value:
        """The next axis, with N on both operands."""
        a, b = batching.expand(mapped, operands)
        return recurrence(a, b, axis + 1)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """In log₂ n rounds, each of which has twice as many terms: a[0] is 0, so that nothing comes from before."""
        (a, h), axis = operands, attrs["axis"]
        n, distance = h.shape[axis], 1
        a = shifted(shifted(a, axis, -1), axis)
        while distance < n:
            h = h + a * shifted(h, axis, distance)
            a = a * shifted(a, axis, distance)
            distance *= 2
        return (h,)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """A product and a sum for each element."""
        return 2 * types[1].size

    def workspace(self, out: ResultTypes, *types: TensorType, axis: int) -> int:
        """A slice of products; or three chunks of a line as Python's floats, and one to be cast."""
        b = types[1]
        extent, across = b.shape[axis], b.size // max(1, b.shape[axis])
        if across >= _LEAST_SLICE:
            return across * b.dtype.itemsize
        return min(extent, _LINE) * (3 * _FLOAT_BYTES + 8)


_OP: Final = LinearRecurrence()


def recurrence(a: Value, b: Value, axis: int) -> Value:
    """h[0] = b[0] and h[i] = a[i] · h[i − 1] + b[i]."""
    return b.builder.emit(_OP, (a, b), {"axis": axis})


def recurrence_back(a: Value, b: Value, axis: int) -> Value:
    """h[i] = b[i] + a[i + 1] · h[i + 1], and the last b as it is."""
    turned = recurrence(shifted(a, axis, -1).flip(axes=(axis,)), b.flip(axes=(axis,)), axis)
    return turned.flip(axes=(axis,))


@DeviceFunction
def _recur(run: RunContext, a: Array, b: Array, out: Array, axis: int) -> None:
    """Slice by slice."""
    xp = run.xp
    a, b, out = (xp.moveaxis(x, axis, 0) for x in (a, b, out))
    out[0] = b[0]
    for i in run.through(range(1, len(out))):
        now = out[i : i + 1]  # a slice: a number alone has no place to write to
        xp.multiply(a[i : i + 1], out[i - 1 : i], out=now)
        now += b[i : i + 1]


@_recur.on("cpu")
def _recur_on_cpu(run: RunContext, a: HostArray, b: HostArray, out: HostArray, axis: int) -> None:
    """Short slices by Python's floats, which are doubles: a call for each would take longer."""
    if out.size >= _LEAST_SLICE * out.shape[axis]:
        _recur.general(run, a, b, out, axis)
        return
    a, b, out = (np.moveaxis(x, axis, -1) for x in (a, b, out))
    for where in np.ndindex(out.shape[:-1]):
        last: complex | None = None
        for start in run.through(range(0, out.shape[-1], _LINE)):
            part = (*where, slice(start, start + _LINE))
            found = list(_line(a[part].tolist(), b[part].tolist(), last))
            last = found[-1]
            out[part] = found


def _line(a: list[complex], b: list[complex], last: complex | None) -> Iterator[complex]:
    """Run on behind the `last` of the part before, if there was one."""
    for factor, term in zip(a, b, strict=True):
        last = term if last is None else factor * last + term
        yield last


class RunningFloats(Running):
    """Base: by a ufunc's `accumulate`, in the accumulator's dtype."""

    section = "cumulative"
    ufunc: ClassVar[str]
    since = 2
    result_dtype = staticmethod(to_average)

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """x's shape."""
        return x.with_dtype(self.result_dtype(x.dtype))

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int, **attrs: Any) -> None:
        """Rounded once."""
        target = wide_out(run.xp, out)
        _accumulate(run, self.ufunc, x, target, axis)
        if target is not out:
            out[...] = target

    def workspace(self, out: TensorType, *types: TensorType, **attrs: Any) -> int:
        """x in the dtype that it runs in, and the results in float32 where these are float16."""
        dtype, (x,) = accumulator(out), types
        return (x.dtype != dtype) * dtype.itemsize * x.size + wide_out_bytes(out)


@DeviceFunction
def _accumulate(run: RunContext, ufunc: str, x: Array, out: Array, axis: int) -> None:
    """The results of `ufunc` along the axis, in the dtype of `out`: in log₂ n rounds, each of twice as many entries."""
    xp, distance, n = run.xp, 1, out.shape[axis]
    out[...] = x
    while distance < n:
        nearer, further = along(axis, distance, n), along(axis, 0, n - distance)
        out[nearer] = getattr(xp, ufunc)(out[nearer], out[further])
        distance *= 2


@_accumulate.on("cpu")
def _accumulate_in_order(_: RunContext, ufunc: str, x: Array, out: Array, axis: int) -> None:
    """One after the other, by NumPy."""
    getattr(np, ufunc).accumulate(x, axis=axis, dtype=out.dtype, out=out)


class CumProd(RunningFloats):
    """y[i] = x[0] · … · x[i] along `axis`; with `reverse`, x[i] · … · x[n − 1].

    Integers and bool multiply in int64, float16 in float32. The gradient is exact whatever the number of zeros, and so
    are those of higher order. PyTorch's and NumPy's `cumprod`; `reverse` is that of JAX's `lax.cumprod`.
    """

    name = "cumprod"
    dtypes = DTYPES
    ufunc = "multiply"
    gradient = "(product of those before i) · Σ g[k] · (product of those behind i, to k), over k from i on"
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
    result_dtype = staticmethod(to_add_up)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """Gather the factors behind x[i] from the end; y / x would be 0 / 0 at a zero."""
        y, x = widened(self, y, (x,), {"axis": axis, **attrs})
        return (conjugate(shifted(y, axis, fill=1.0)) * recurrence_back(conjugate(x), wide(g), axis),)


class CumLogSumExp(RunningFloats):
    """y[i] = log(exp x[0] + … + exp x[i]) along `axis`, stable; with `reverse`, of x[i] to x[n − 1].

    As of logsumexp: where all so far is −inf, y is −inf and the gradient 0; those that are inf share it. Where one so
    far is NaN, so are y and the gradient. Integers give float64. PyTorch's `logcumsumexp`; JAX's `lax.cumlogsumexp`,
    which has `reverse`.
    """

    name = "cumlogsumexp"
    ufunc = "logaddexp"
    gradient = "Σ g[k] · exp(x[i] − y[k]) over k from i on"
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
        """Split what y[i] receives from the end in shares of at most 1: of x[i], and of all before it."""
        y, x = widened(self, y, (x,), {"axis": axis, **attrs})
        own, before = _shares(y, x, axis)
        return (own * recurrence_back(before, wide(g), axis),)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """A difference, an exponential, a logarithm and two sums, each."""
        return 5 * types[0].size


def _shares(y: Value, x: Value, axis: int) -> tuple[Value, Value]:
    """exp(x[i] − y[i]) and exp(y[i − 1] − y[i]).

    0 where y is −inf; where it is inf, one part for each x that is.
    """
    top, infinite = y.equal(math.inf), y.abs().equal(math.inf)
    level = infinite.where(0.0, y)
    own, before = ((infinite.where(-math.inf, term) - level).exp() for term in (x, shifted(y, axis)))
    largest = x.equal(math.inf)
    part = largest.cast(dtype=y.dtype) / largest.cast(dtype=y.dtype).cumsum(axis=axis).clamp(min=1.0)
    return top.where(part, own), top.where(1.0 - part, before)


class RunningExtremum(Running):
    """Base: the largest or the smallest so far. A NaN wins, and stays."""

    section = "cumulative"
    since = 2
    ufunc: ClassVar[str]
    gradient: ClassVar[str] = "g to the entry that is y: of ties the first in the direction of the run, the first NaN"
    samples: ClassVar[tuple[Sample, ...]] = (*Running.samples, Sample(Ints(3, 2, high=4), axis=0))

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """x's type."""
        return x

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int, **attrs: Any) -> None:
        """In x's dtype."""
        _accumulate(run, self.ufunc, x, out, axis)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """Added up where y was found first: at the last entry so far that was unlike the y before it."""
        if not x.type.size:
            return (g,)
        places = x.builder.arange(x.shape[axis]).reshape(shape=column_of(x.ndim, axis))
        known = shifted(y, axis)
        is_better = x > known if self.ufunc == "maximum" else x < known
        is_new = is_better.logical_or(is_nan(x).logical_and(is_nan(known).logical_not()))
        found = is_new.where(places.broadcast_to(shape=x.shape), 0).cummax(axis=axis)
        return (g.full_like(0.0).scatter_add(found, g, axis=axis),)


class CumMax(RunningExtremum):
    """y[i] = the largest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].

    NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
    PyTorch's `cummax`, whose gradient takes the last of ties; JAX's `lax.cummax`, which has `reverse`, and shares.
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

    NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
    PyTorch's `cummin`, whose gradient takes the last of ties; JAX's `lax.cummin`, which has `reverse`, and shares.
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
    """out[i] = x[0] + … + x[i] along `axis`, in the dtype of `out`, which is dense. NumPy's add one after the other.

    An infinity or NaN stays in all sums that have it. Where a sum of some elements overflows, one of more may not.
    """
    run.xp.cumsum(x, axis=axis, dtype=out.dtype, out=out)


@running_sums.on("cpu")
def _running_sums(run: RunContext, x: HostArray, out: HostArray, axis: int) -> None:
    extent, behind = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if x.dtype != out.dtype:
        np.cumsum(x, axis=axis, dtype=out.dtype, out=out)
    elif out.dtype.kind == "f" and extent and behind == 1 and extent >= LEAST_ROW:
        try:
            rows = np.reshape(x, (-1, extent), copy=False)
        except ValueError:  # its rows do not lie evenly
            np.cumsum(x, axis=axis, dtype=out.dtype, out=out)
        else:
            _along_rows(run, rows, out.reshape(rows.shape))
    elif extent and x.size >= LEAST_SLICE * extent and behind >= _WIDTH:
        x, out = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
        out[0] = x[0]
        for i in run.through(range(1, len(x))):
            np.add(out[i - 1], x[i], out=out[i])
    else:
        np.cumsum(x, axis=axis, dtype=out.dtype, out=out)


def running_bytes(x: TensorType, dtype: DType, axis: int) -> int:
    """Count the bytes that `running_sums` allocates: chunks of x, and the sums of what its products add up."""
    extent, behind = x.shape[axis], math.prod(x.shape[axis + 1 :])
    if dtype.kind != "f" or behind != 1 or extent < LEAST_ROW:
        return 0
    chunk = min(x.size, max(1, _CHUNK // extent) * extent)
    return dtype.itemsize * (chunk + chunk // _WIDTH)


def _along_rows(run: RunContext, x: HostArray, out: HostArray) -> None:
    step = max(1, _CHUNK // x.shape[1])
    for start in run.through(range(0, len(x), step)):
        chunk, sums = x[start : start + step], out[start : start + step]
        is_finite = _by_products(chunk, sums)
        for row in np.flatnonzero(~is_finite):
            np.cumsum(chunk[row], out=sums[row])


def _by_products(x: HostArray, out: HostArray) -> HostArray:
    """Return which rows are finite; the others are wrong: a product has 0 · ∞ beside each infinity.

    The sum of all chunks before one is added to its first element.
    """
    rows, extent = x.shape
    whole, triangle = extent - extent % _WIDTH, _triangle(out.dtype)
    chunks = np.array(x[:, :whole], order="C").reshape(-1, _WIDTH)
    sums = np.matmul(chunks, triangle[0]).reshape(rows, -1)
    np.cumsum(sums, axis=1, out=sums)
    is_finite: HostArray = np.isfinite(sums[:, -1])
    chunks.reshape(rows, -1, _WIDTH)[:, 1:, 0] += sums[:, :-1]
    # one product, where there is nothing between the chunks of two rows
    shape = (-1, _WIDTH) if whole == extent else (rows, -1, _WIDTH)
    np.matmul(chunks.reshape(shape), triangle, out=out[:, :whole].reshape(shape))
    if whole < extent:
        np.cumsum(x[:, whole:], axis=1, out=out[:, whole:])
        np.add(out[:, whole:], sums[:, -1:], out=out[:, whole:])
    return is_finite


@cache
def _triangle(dtype: DType) -> HostArray:
    return np.triu(np.ones((_WIDTH, _WIDTH), dtype))


class CumSum(Running):
    """y[i] = x[0] + … + x[i] along `axis`; with `reverse`, x[i] + … + x[n − 1].

    Integers and bool add up in int64, float16 in float32. PyTorch's and NumPy's `cumsum`; `reverse` is that of JAX's
    `lax.cumsum`.
    """

    name = "cumsum"
    section = "cumsum"
    dtypes = DTYPES
    attrs = {**Running.attrs, "axis": Attr("int", doc="the axis to add up along")}
    gradient = "g, added up from the end"
    samples = (
        Sample(Real(4), axis=0),
        Sample(Real(2, 3), axis=-1),
        Sample(Real(2, 3, 2), axis=1),
        Sample(Real(0, 2), axis=0),
        Sample(Ints(2, 3, high=9), axis=0),
        Sample(Real(2, 3), axis=1, reverse=True),
    )

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """x's shape; int64 for what is not float."""
        return x if x.is_differentiable else x.with_dtype(INT64)

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int, **attrs: Any) -> None:
        """Rounded once."""
        if out.dtype == FLOAT16:
            out[...] = run.xp.cumsum(x, axis=axis, dtype=accumulator(out))
        else:
            running_sums(run, x, out, axis)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """x[i] counts in y[i] and in all that follow."""
        return (g.flip(axes=(axis,)).cumsum(axis=axis).flip(axes=(axis,)),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """x in the dtype that is added up in, and the sums in float32 where the result is float16; parts of both."""
        dtype, (x,) = accumulator(out), types
        if x.dtype == out.dtype == dtype:
            return running_bytes(x, dtype, attrs["axis"])
        arrays = (x.dtype != dtype) + (out.dtype != dtype)
        return int(arrays * dtype.itemsize * x.size)
