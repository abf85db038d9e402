"""Running sums, products, extremes and logarithms of sums. The gradients are runs from the other end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Sample
from engine.graph.tensor_type import DType, TensorType, to_add_up, to_average
from engine.graph.truth import Truth
from engine.oplib.accumulate import accumulator, wide_out, wide_out_bytes
from engine.oplib.conjugates import conjugate
from engine.oplib.extremes import is_nan
from engine.oplib.indices import column_of
from engine.oplib.linear_recurrence import recurrence_back
from engine.oplib.running_op import Running, shifted
from engine.oplib.slices import along
from engine.oplib.widening import wide, widened


class RunningFloats(Running):
    """Base: by a ufunc's `accumulate`, in the accumulator's dtype."""

    ufunc: ClassVar[str]
    since = 2

    def result_dtype(self, dtype: DType) -> DType:
        """The result's, of x's."""
        return to_average(dtype)

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """x's shape."""
        return x.with_dtype(self.result_dtype(x.dtype))

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int, **attrs: Any) -> None:
        """Rounded once."""
        target = wide_out(run.xp, out)
        _accumulate(run, self.ufunc, x, target, axis)
        if target is not out:
            out[...] = target

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """x in the dtype that it runs in, and the results in float32 where these are float16."""
        assert isinstance(out, TensorType)
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
    section = "cumulative"
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

    def result_dtype(self, dtype: DType) -> DType:
        """int64 for what is not float."""
        return to_add_up(dtype)

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """What is behind x[i] is gathered from the end, factor by factor; y / x would be 0 / 0 at a zero."""
        y, x = widened(self, y, (x,), {"axis": axis, **attrs})
        return (conjugate(shifted(y, axis, fill=1.0)) * recurrence_back(conjugate(x), wide(g), axis),)


class CumLogSumExp(RunningFloats):
    """y[i] = log(exp x[0] + … + exp x[i]) along `axis`, stable; with `reverse`, of x[i] to x[n − 1].

    As of logsumexp: where all so far is −inf, y is −inf and the gradient 0; those that are inf share it. Where one so
    far is NaN, so are y and the gradient. Integers give float64. PyTorch's `logcumsumexp`; JAX's `lax.cumlogsumexp`,
    which has `reverse`.
    """

    name = "cumlogsumexp"
    section = "cumulative"
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
        """What comes back to y[i] from the end, in shares of at most 1: of x[i], and of all before it."""
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
        is_new = self._beats(x, known).logical_or(is_nan(x).logical_and(is_nan(known).logical_not()))
        found = is_new.where(places.broadcast_to(shape=x.shape), 0).cummax(axis=axis)
        return (g.full_like(0.0).scatter_add(found, g, axis=axis),)

    def _beats(self, x: Value, known: Value) -> Value:
        """Where x is more extreme."""
        return x > known if self.ufunc == "maximum" else x < known


class CumMax(RunningExtremum):
    """y[i] = the largest of x[0], …, x[i] along `axis`; with `reverse`, of x[i], …, x[n − 1].

    NaN from the first NaN on. Of ties, the first in the direction of the run takes the gradient. The values of
    PyTorch's `cummax`, whose gradient takes the last of ties; JAX's `lax.cummax`, which has `reverse`, and shares.
    """

    name = "cummax"
    section = "cumulative"
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
    section = "cumulative"
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
