"""Pooling: one number for each window of a plane, its maximum or its mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np

from engine.graph.ir import Value
from engine.graph.op import Array, NoGradient, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import INT64, DType, TensorType, to_average
from engine.graph.truth import Truth
from engine.oplib import batching
from engine.oplib.accumulate import accumulator
from engine.oplib.convolution_layout import slices, within_chunk
from engine.oplib.extremes import identity_of
from engine.oplib.operands import require_shape
from engine.oplib.pooling import Pooling, give_back, give_back_workspace, placed, rows_of, slide


class MaxPool2D(Pooling):
    """y[…, i, j] = the largest element of the window at (i, j); NaN where it holds one.

    x [..., h, w]; padding counts as −∞. As PyTorch's max_pool2d.
    """

    name = "max_pool2d"
    section = "pooling"
    aliases: ClassVar[Mapping[str, str]] = {"MaxPool2DOp": "born", "MaxPool2D": "born"}
    gradient = "g, added at the first maximum (in row-major order) of each window"

    def forward(self, run: RunContext, x: Array, *, out: Array, **attrs: Any) -> None:
        """Maxima over rows, then over columns."""
        slide(run, run.xp.maximum, x, out, placed(**attrs), identity_of("maximum", x.dtype))

    def vjp(self, g: Value, y: Value, x: Value, **attrs: Any) -> Sequence[Value | None]:
        """To the elements that were chosen."""
        return (g.max_pool2d_back(x, **attrs),)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """The maxima over rows."""
        assert isinstance(out, TensorType)
        return rows_of(x, out).nbytes


class MaxPool2DIndices(Pooling):
    """y[…, i, j] = where the first maximum (in row-major order) of the window at (i, j) lies: h · width + w.

    int64, flat within its plane, as PyTorch's return_indices; a NaN counts as a maximum.
    """

    name = "max_pool2d_indices"
    section = "pooling"
    is_captured = False
    gradient = "none: the result is int64"
    vjp = NoGradient("the result is int64")

    def result_dtype(self, dtype: DType) -> DType:
        """Positions."""
        return INT64

    def forward(self, run: RunContext, x: Array, *, out: Array, **attrs: Any) -> None:
        """Count, at each position, the taps before the first one that is the maximum, or NaN."""
        xp = run.xp
        windows, width = placed(**attrs), x.shape[-1]
        largest = xp.empty(out.shape, x.dtype)
        slide(run, xp.maximum, x, largest, windows, identity_of("maximum", x.dtype))
        rows, columns = (list(windows.meetings(axis, x.shape[axis], out.shape[axis])) for axis in (-2, -1))
        above, before = windows.padding
        taps = xp.asarray([(a - above) * width + b - before for (a, *_), (b, *_) in product(rows, columns)])
        searching, passed = xp.ones(out.shape, bool), xp.zeros(out.shape, np.min_scalar_type(taps.size))
        for (_, i, h), (_, j, w) in run.through(product(rows, columns)):
            seen = x[..., h, w]
            missed = xp.not_equal(seen, largest[..., i, j])
            missed &= seen == seen  # noqa: PLR0124 - false of NaN only
            searching[..., i, j] &= missed
            passed += searching
        down, right = (stride * xp.arange(n) for stride, n in zip(windows.stride, out.shape[-2:], strict=True))
        xp.add(taps[passed], down[:, None] * width + right, out=out)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """The maxima, and beside them those over rows, or later: masks, counts, and the taps found."""
        assert isinstance(out, TensorType)
        largest, counts = out.with_dtype(x.dtype), np.min_scalar_type(placed(**attrs).taps).itemsize * out.size
        plane = 2 * INT64.itemsize * math.prod(out.shape[-2:])
        return largest.nbytes + max(rows_of(x, largest).nbytes, counts + 2 * out.size + out.nbytes + plane)


class MaxPool2DBack(Pooling):
    """y[…, h, w] = Σ g[…, i, j] over the windows (i, j) of which x[…, h, w] is the first maximum, in row-major order.

    g [..., h', w'], x [..., h, w]: what is 0 elsewhere, and what max_pool2d gives back of g. A NaN counts as a maximum.
    """

    name = "max_pool2d_back"
    section = "pooling"
    operands = ("g", "x")
    gradient = "dg = the cotangent at max_pool2d_indices; none for x, of which the result is constant in pieces"
    may_disconnect = ("x",)
    samples = (
        Sample(Real(2, 2, 2, 2), Real(2, 2, 4, 6), kernel_size=[2, 3]),
        Sample(Real(1, 2, 5, 3), Real(1, 2, 5, 6), kernel_size=[3, 2], stride=[1, 3], padding=[1, 1]),
        Sample(Real(2, 3), Real(5, 5), kernel_size=[3, 3], stride=[2, 2], padding=[0, 1]),
    )
    truths = (
        Truth(
            operands=[[[2.0, 3.0]], [[1.0, 7.0, 7.0], [7.0, 5.0, 6.0]]],
            attrs={"kernel_size": [2, 2], "stride": [1, 1]},
            value=[[0.0, 5.0, 0.0], [0.0, 0.0, 0.0]],
            cotangent=[[1.0, 4.0, 2.0], [3.0, 5.0, 6.0]],
            gradients=[[[4.0, 4.0]], None],
            source="by hand: both windows have their first 7 in the middle of the upper row",
        ),
    )

    def infer(self, *types: TensorType, **attrs: Any) -> ResultTypes:
        """x's shape, in g's dtype. Raises ShapeMismatch."""
        g, x = types
        pooled = super().infer(x, **attrs)
        assert isinstance(pooled, TensorType)
        require_shape(g, pooled.shape, 0, "g", "one number for each window of x")
        return g.with_shape(x.shape)

    def forward(self, run: RunContext, *arrays: Array, out: Array, **attrs: Any) -> None:
        """Some planes at a time."""
        g, x = arrays
        for some in run.through(_planes(x)):
            give_back(run, g[some], x[some], out[some], placed(**attrs))

    def vjp(self, g: Value, y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """What the cotangent is where g went."""
        given, x = operands
        lead, spatial = given.shape[:-2], (math.prod(given.shape[-2:]),)
        index = x.max_pool2d_indices(**attrs).reshape(shape=(*lead, *spatial))
        flat = g.reshape(shape=(*lead, math.prod(g.shape[-2:])))
        return flat.gather(index, axis=-1).reshape(shape=given.shape), None

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Itself: leading axes are free."""
        g, x = batching.expand(mapped, operands)
        return g.builder.emit(self, (g, x), attrs)

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """What the first planes take: the most that are looked at together."""
        g, x = types
        assert isinstance(out, TensorType)
        if x.ndim > 2:
            out, g, x = (t.with_shape((_planes_at_once(x), *t.shape[1:])) for t in (out, g, x))
        return give_back_workspace(out, g, x)


def _planes(x: Array) -> Iterable[slice]:
    """Entries of the leading axis, some at a time; all of a single plane."""
    return slices(len(x), _planes_at_once(x)) if x.ndim > 2 else [slice(None)]


def _planes_at_once(x: Array | TensorType) -> int:
    return within_chunk(x.shape[0], math.prod(x.shape[1:]) * x.dtype.itemsize)


class AvgPool2D(Pooling):
    """y[…, i, j] = the sum of the window at (i, j), divided by the kernel size; padding counts as zeros.

    x [..., h, w]. Integers give float64. As PyTorch's avg_pool2d.
    """

    name = "avg_pool2d"
    section = "pooling"
    gradient = "conv_transpose2d of g / kernel size with ones"

    def result_dtype(self, dtype: DType) -> DType:
        """float64 for what is not float."""
        return to_average(dtype)

    def forward(self, run: RunContext, x: Array, *, out: Array, **attrs: Any) -> None:
        """Sums over rows, then over columns."""
        xp = run.xp
        windows = placed(**attrs)
        sums = out if out.dtype == accumulator(out) else xp.empty(out.shape, accumulator(out))
        slide(run, xp.add, x, sums, windows, 0)
        xp.divide(sums, windows.taps, out=out)

    def vjp(self, g: Value, y: Value, x: Value, **attrs: Any) -> Sequence[Value | None]:
        """Every element of a window has the same part in it."""
        windows = placed(**attrs)
        images = (math.prod(x.shape[:-2]), 1, *g.shape[-2:])
        covered = windows.cover(g.shape[-2:])
        dx = (
            (g / windows.taps)
            .reshape(shape=images)
            .conv_transpose2d(
                g.full_like(1.0, (1, 1, *windows.size)),
                stride=windows.stride,
                padding=windows.padding,
                output_padding=tuple(e - c for e, c in zip(x.shape[-2:], covered, strict=True)),
            )
        )
        return (dx.reshape(shape=x.shape),)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """The sums over rows; for float16 all sums."""
        assert isinstance(out, TensorType)
        sums = out.with_dtype(accumulator(out))
        return rows_of(x, sums).nbytes + (sums.nbytes if sums.dtype != out.dtype else 0)
