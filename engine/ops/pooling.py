"""Pooling: one number for each window of a plane, its maximum or its mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.errors import BadAttribute
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, NoGradient, Op, ResultTypes
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import FLOAT64, INT64, NUMBERS, DType, Shape, TensorType, show_shape
from engine.oplib.accumulate import accumulator
from engine.oplib.operands import wrong_shape
from engine.oplib.spatial import check_fits, check_spatial
from engine.oplib.windows import Windows

KERNEL_SIZE = Attr("ints", doc="extents of the windows along each spatial axis", minimum=1)
STRIDE = Attr("ints", None, "distance of the windows along each spatial axis; absent: the kernel size", minimum=1)
PADDING = Attr("ints", (0, 0), "added on both sides of each spatial axis, at most half the kernel size", minimum=0)

Ufunc = Callable[..., Array]


class Pooling(Op):
    """Base: planes [..., h, w] give planes [..., h', w'], h' = ⌊(h + 2 · padding − kernel_size) / stride⌋ + 1."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"kernel_size": KERNEL_SIZE, "stride": STRIDE, "padding": PADDING}
    dtypes: ClassVar[tuple[str, ...]] = NUMBERS
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(2, 2, 4, 6), kernel_size=[2, 3]),
        Sample(Real(1, 2, 5, 6), kernel_size=[3, 2], stride=[1, 3], padding=[1, 1]),
        Sample(Real(5, 5), kernel_size=[3, 3], stride=[2, 2], padding=[0, 1]),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The stride filled in. Raises BadAttribute."""
        complete = {**attrs, "stride": attrs["stride"] or attrs["kernel_size"]}
        for name, numbers in complete.items():
            check_spatial(name, numbers)
        size, padding = complete["kernel_size"], complete["padding"]
        if any(2 * p > k for p, k in zip(padding, size, strict=True)):
            wanted, got = f"at most half the kernel size {show_shape(size)}", show_shape(padding)
            raise BadAttribute(f"attribute padding must be {wanted}, but is {got}", expected=wanted, got=got)
        return complete

    def result_dtype(self, dtype: DType) -> DType:
        """The result's dtype for planes of `dtype`; by default the same."""
        return dtype

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """[..., *positions]. Raises ShapeMismatch where no window fits."""
        if x.ndim < 2 or 0 in x.shape[-2:]:
            raise wrong_shape(0, "x", "two spatial axes at its end, of extents of at least 1", x)
        windows = placed(**attrs)
        check_fits(windows, x.shape[-2:])
        return TensorType((*x.shape[:-2], *windows.positions(x.shape[-2:])), self.result_dtype(x.dtype))

    def batch(self, mapped: Sequence[bool], x: Value, **attrs: Any) -> Value:
        """Itself: leading axes are free."""
        return x.builder.emit(self, (x,), attrs)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """One for each tap."""
        return super().flops(out) * placed(**attrs).taps


def placed(*, kernel_size: Shape, stride: Shape, padding: Shape) -> Windows:
    """The windows of a pool."""
    return Windows(kernel_size, stride, padding, (1,) * len(kernel_size))


class MaxPool2D(Pooling):
    """y[…, i, j] = the largest element of the window at (i, j); NaN where it holds one.

    x [..., h, w]; padding counts as −∞. As PyTorch's max_pool2d.
    """

    name = "max_pool2d"
    aliases: ClassVar[Mapping[str, str]] = {"MaxPool2DOp": "born", "MaxPool2D": "born"}
    gradient = "g, added at the first maximum (in row-major order) of each window"

    def forward(self, xp: Namespace, x: Array, *, out: Array, **attrs: Any) -> None:
        """Maxima over rows, then over columns."""
        slide(xp, xp.maximum, x, out, placed(**attrs), lowest(x.dtype))

    def vjp(self, g: Value, y: Value, x: Value, **attrs: Any) -> Sequence[Value | None]:
        """To the elements that were chosen, all planes being one row: adding along one axis is fastest."""
        area, planes = math.prod(x.shape[-2:]), math.prod(x.shape[:-2])
        chosen = x.max_pool2d_indices(**attrs).reshape(shape=(planes, math.prod(g.shape[-2:])))
        index = chosen + g.builder.arange(planes * area, area).reshape(shape=(planes, 1))
        row = x.full_like(0.0, (planes * area,))
        return (row.scatter_add(*(v.reshape(shape=(g.type.size,)) for v in (index, g))).reshape(shape=x.shape),)

    def workspace(self, out: ResultTypes, x: TensorType, **attrs: Any) -> int:
        """The maxima over rows."""
        assert isinstance(out, TensorType)
        return rows_of(x, out).nbytes


class MaxPool2DIndices(Pooling):
    """y[…, i, j] = where the first maximum (in row-major order) of the window at (i, j) lies: h · width + w.

    int64, flat within its plane, as PyTorch's return_indices; a NaN counts as a maximum.
    """

    name = "max_pool2d_indices"
    is_captured = False
    gradient = "none: the result is int64"
    vjp = NoGradient("the result is int64")

    def result_dtype(self, dtype: DType) -> DType:
        """Positions."""
        return INT64

    def forward(self, xp: Namespace, x: Array, *, out: Array, **attrs: Any) -> None:
        """Count, at each position, the taps before the first one that is the maximum, or NaN."""
        windows, width = placed(**attrs), x.shape[-1]
        largest = xp.empty(out.shape, x.dtype)
        slide(xp, xp.maximum, x, largest, windows, lowest(x.dtype))
        rows, columns = (list(_taps(windows, axis, x.shape, out.shape)) for axis in (-2, -1))
        taps = xp.asarray([a * width + b for (*_, a), (*_, b) in product(rows, columns)])
        searching, passed = xp.ones(out.shape, bool), xp.zeros(out.shape, np.min_scalar_type(taps.size))
        for (i, h, _), (j, w, _) in product(rows, columns):
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


class AvgPool2D(Pooling):
    """y[…, i, j] = the sum of the window at (i, j), divided by the kernel size; padding counts as zeros.

    x [..., h, w]. Integers give float64. As PyTorch's avg_pool2d.
    """

    name = "avg_pool2d"
    gradient = "conv_transpose2d of g / kernel size with ones"

    def result_dtype(self, dtype: DType) -> DType:
        """float64 for what is not float."""
        return dtype if dtype.kind == "f" else FLOAT64

    def forward(self, xp: Namespace, x: Array, *, out: Array, **attrs: Any) -> None:
        """Sums over rows, then over columns."""
        windows = placed(**attrs)
        sums = out if out.dtype == accumulator(out) else xp.empty(out.shape, accumulator(out))
        slide(xp, xp.add, x, sums, windows, 0)
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


def lowest(dtype: DType) -> float:
    """What no element lies below."""
    return -math.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


def rows_of(x: TensorType, out: TensorType) -> TensorType:
    """The type of what is reduced over rows only."""
    return out.with_shape((*out.shape[:-1], x.shape[-1]))


def slide(xp: Namespace, ufunc: Ufunc, x: Array, out: Array, windows: Windows, start: float) -> None:
    """out = the reduction of each window of x by `ufunc`, whose neutral element is `start`: one axis, then the other.

    Taking k + k elements together costs less than taking k · k.
    """
    rows = xp.empty((*out.shape[:-1], x.shape[-1]), out.dtype)
    _slide_along(ufunc, x, rows, windows, -2, start)
    _slide_along(ufunc, rows, out, windows, -1, start)


def _slide_along(ufunc: Ufunc, x: Array, out: Array, windows: Windows, axis: int, start: float) -> None:
    out.fill(start)
    after = (slice(None),) * (-1 - axis)
    for here, seen, _ in _taps(windows, axis, x.shape, out.shape):
        part = out[(..., here, *after)]
        ufunc(part, x[(..., seen, *after)], out=part)


def _taps(windows: Windows, axis: int, extents: Shape, positions: Shape) -> Iterator[tuple[slice, slice, int]]:
    """For each tap along `axis`, the positions at which it meets an element, those elements, and how far it looks."""
    extent, count, stride, padding = extents[axis], positions[axis], windows.stride[axis], windows.padding[axis]
    reached = range(max(0, padding - (count - 1) * stride), min(windows.size[axis], extent + padding))
    for tap in reached:
        offset = tap - padding
        first, last = max(0, -(offset // stride)), min(count - 1, (extent - 1 - offset) // stride)
        if first <= last:
            seen = slice(first * stride + offset, last * stride + offset + 1, stride)
            yield slice(first, last + 1), seen, offset
