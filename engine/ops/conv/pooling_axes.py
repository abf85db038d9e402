"""Pools over one and three axes, with dilation and ceiling, and adaptive pools with a given number of windows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, ShapeMismatch, counted
from engine.ir.graph import Value
from engine.ir.op import Composite, ResultTypes
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import FLOAT16, NUMBERS, DType, Shape, TensorType, mean_dtype, show_shape
from engine.ops.common.numerics import extremum_identity, upcast, wrong_shape
from engine.ops.conv.pooling import KERNEL_SIZE, STRIDE, check_padding
from engine.ops.conv.windows import Windows, adaptive_ranges, check_spatial, first_max, gather_windows, tap_positions
from engine.ops.index.indices import axis_shape

_CEILING = Attr("bool", False, "whether to count a last window that extends past the end padding but starts before it")
_LINE_TRUTH = {"kernel_size": [2], "ceiling": True}


def _attrs(rank: int, *, dilated: bool) -> dict[str, Attr]:
    dilation = {"dilation": Attr("ints", (1,) * rank, "distance between a window's taps along each axis", minimum=1)}
    padding = Attr("ints", (0,) * rank, "padding on both sides of each axis; at most half the kernel size", minimum=0)
    return {
        "kernel_size": KERNEL_SIZE,
        "stride": STRIDE,
        "padding": padding,
        **(dilation if dilated else {}),
        "ceiling": _CEILING,
    }


class AxisPool(Composite):
    """Base: pools the last `rank` axes, one after the other."""

    section = "pooling_axes"
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = NUMBERS
    since = 2
    rank: ClassVar[int]

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Fill in the stride. Raises BadAttribute, ShapeMismatch if no window fits."""
        (x,), complete = types, {**attrs, "stride": attrs["stride"] or attrs["kernel_size"]}
        for name in ("kernel_size", "stride", "padding", "dilation"):
            if name in complete:
                check_spatial(name, complete[name], self.rank)
        check_padding(complete["kernel_size"], complete["padding"])
        if x.ndim < self.rank or 0 in x.shape[x.ndim - self.rank :]:
            axes = counted(self.rank, "spatial axis", "spatial axes")
            raise wrong_shape(0, "x", f"{axes} at the end, with extents of at least 1", x)
        if min(self._positions(x, complete)) < 1:
            reach = show_shape(_windows(complete).reach)
            raise wrong_shape(0, "x", f"room for windows of {reach}, including padding", x)
        return complete

    def _positions(self, x: TensorType, attrs: Mapping[str, Any]) -> Shape:
        """Return the number of windows on each axis."""
        extents, windows = x.shape[x.ndim - self.rank :], _windows(attrs)
        counts = windows.positions(extents)
        return _with_ceiling(windows, extents, counts) if attrs["ceiling"] else counts

    def result_dtype(self, dtype: DType) -> DType:
        """Return x's dtype."""
        return dtype

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """Return the type [..., *positions]."""
        lead = x.shape[: x.ndim - self.rank]
        return TensorType((*lead, *self._positions(x, attrs)), self.result_dtype(x.dtype))

    def compose(self, x: Value, **attrs: Any) -> Value:
        """Pool the last axis first, so that the first of equal elements is the first in row-major order."""
        counts, dtype = self._positions(x.type, attrs), self.result_dtype(x.dtype)
        y = upcast(x.cast(dtype=dtype) if x.dtype != dtype else x)
        placing = _windows(attrs)
        spans = placing.span(counts)
        for i in reversed(range(self.rank)):
            axis, stride, padding = x.ndim - self.rank + i, placing.stride[i], placing.padding[i]
            padded = _pad(y, axis, padding, spans[i], self.padding_value(y.dtype))
            positions = tap_positions(y, counts[i], placing.size[i], stride, placing.dilation[i])
            windows = gather_windows(padded, axis, positions)
            y = self.reduce_taps(windows, axis, y.shape[axis] + 2 * padding, stride)
        return y.cast(dtype=dtype) if y.dtype != dtype else y

    @abstractmethod
    def padding_value(self, dtype: DType) -> float:
        """Return the value that padding has."""

    @abstractmethod
    def reduce_taps(self, windows: Value, axis: int, extent: int, stride: int) -> Value:
        """Reduce windows on `axis` over their taps, on the next one; `extent` includes the padding."""


def _windows(attrs: Mapping[str, Any]) -> Windows:
    size = attrs["kernel_size"]
    return Windows(size, attrs["stride"], attrs["padding"], attrs.get("dilation", (1,) * len(size)))


def _with_ceiling(windows: Windows, extents: Shape, counts: Shape) -> Shape:
    """Count one more window on each axis if it begins within the tensor or the padding before it."""
    spans = zip(windows.padded(extents), windows.span(counts), strict=True)
    begins = zip(counts, windows.stride, extents, windows.padding, strict=True)
    return tuple(
        n + (padded > span and n * stride < extent + padding)
        for (padded, span), (n, stride, extent, padding) in zip(spans, begins, strict=True)
    )


def _pad(x: Value, axis: int, before: int, span: int, fill: float) -> Value:
    """Pad x by `before` in front, and at the end as far as the windows reach."""
    after = max(span - x.shape[axis] - before, 0)
    if not before and not after:
        return x
    widths = [0] * (2 * x.ndim)
    widths[2 * axis : 2 * axis + 2] = before, after
    return x.pad(pad_width=tuple(widths), fill=fill)


class MaxAxisPool(AxisPool):
    """Base of pools that take the maximum."""

    gradient: ClassVar[str] = "g, added at the first maximum (in row-major order) of each window"

    def padding_value(self, dtype: DType) -> float:
        """Return the lowest value."""
        return float(extremum_identity("maximum", dtype))

    def reduce_taps(self, windows: Value, axis: int, extent: int, stride: int) -> Value:
        """Return the first maximum."""
        return first_max(windows, axis + 1)


class AvgAxisPool(AxisPool):
    """Base of pools that take the mean."""

    gradient: ClassVar[str] = "g / (number of taps in the window), added to each of its elements"
    result_dtype = staticmethod(mean_dtype)

    def padding_value(self, dtype: DType) -> float:
        """Return 0."""
        return 0.0

    def reduce_taps(self, windows: Value, axis: int, extent: int, stride: int) -> Value:
        """Average over the taps within the padding: all of them, except in the last window of a ceiling."""
        count, size = windows.shape[axis : axis + 2]
        total = windows.sum(axes=(axis + 1,))
        if (count - 1) * stride + size <= extent:
            return total / size
        starts = windows.builder.arange(count * stride, step=stride).cast(dtype=windows.dtype)
        taps = (float(extent) - starts).clamp(max=float(size))
        return total / taps.reshape(shape=axis_shape(total.ndim, axis, count))


class MaxPool1D(MaxAxisPool):
    """y[…, i] = the largest element of the window at i; NaN if it contains NaN. x [..., w]; padding counts as −∞.

    w' = ⌊(w + 2 · padding − dilation · (kernel_size − 1) − 1) / stride⌋ + 1; with `ceiling`, ⌈…⌉ + 1. PyTorch:
    `max_pool1d`, whose `ceil_mode` is `ceiling`. JAX: `lax.reduce_window` with window_dilation; it has no ceiling mode.
    """

    name = "max_pool1d"
    rank = 1
    attrs: ClassVar[Mapping[str, Attr]] = _attrs(1, dilated=True)
    samples = (
        Sample(Real(2, 7), kernel_size=[3]),
        Sample(Real(1, 2, 6), kernel_size=[2], stride=[3], padding=[1], ceiling=True),
        Sample(Real(8), kernel_size=[2], stride=[2], dilation=[3], ceiling=True),
        Sample(Ints(2, 5, high=9), kernel_size=[2]),
    )
    truths = (
        Truth(
            operands=[[1.0, 4.0, 4.0, 4.0, 2.0]],
            attrs=_LINE_TRUTH,
            value=[4.0, 4.0, 2.0],
            cotangent=[1.0, 3.0, 5.0],
            gradients=[[0.0, 1.0, 3.0, 0.0, 5.0]],
            source="by hand",
        ),
    )


class MaxPool3D(MaxAxisPool):
    """y[…, i, j, k] = the largest element of the window at (i, j, k); NaN if it contains NaN. x [..., d, h, w].

    Padding counts as −∞. Extents are as in max_pool1d. To pool planes with dilation or `ceiling`, use a first kernel
    size of 1. PyTorch: `max_pool3d`, whose `ceil_mode` is `ceiling`. JAX: `lax.reduce_window`.
    """

    name = "max_pool3d"
    rank = 3
    attrs: ClassVar[Mapping[str, Attr]] = _attrs(3, dilated=True)
    samples = (
        Sample(Real(2, 2, 4, 4), kernel_size=[2, 2, 2]),
        Sample(Real(2, 5, 3), kernel_size=[1, 3, 2], stride=[1, 2, 1], padding=[0, 1, 1], dilation=[1, 1, 2]),
        Sample(Real(1, 3, 4, 5), kernel_size=[2, 2, 2], ceiling=True),
    )
    truths = (
        Truth(
            operands=[[[[1.0, 7.0], [7.0, 3.0]], [[7.0, 2.0], [0.0, 5.0]]]],
            attrs={"kernel_size": [2, 2, 2]},
            value=[[[7.0]]],
            gradients=[[[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]],
            source="by hand: the first in row-major order",
        ),
    )


class AvgPool1D(AvgAxisPool):
    """y[…, i] = the mean of the window at i. x [..., w]; padding counts as zeros. Integers give float64.

    Extents are as in max_pool1d. With `ceiling`, the part of a window beyond the padding is not counted. PyTorch:
    `avg_pool1d`, whose `ceil_mode` is `ceiling`. Flax: `avg_pool`, which has no ceiling mode.
    """

    name = "avg_pool1d"
    rank = 1
    attrs: ClassVar[Mapping[str, Attr]] = _attrs(1, dilated=False)
    samples = (
        Sample(Real(2, 7), kernel_size=[3]),
        Sample(Real(1, 2, 6), kernel_size=[2], stride=[3], padding=[1], ceiling=True),
        Sample(Ints(2, 5, high=9), kernel_size=[2]),
    )
    truths = (
        Truth(
            operands=[[1.0, 4.0, 4.0, 2.0, 6.0]],
            attrs=_LINE_TRUTH,
            value=[2.5, 3.0, 6.0],
            gradients=[[0.5, 0.5, 0.5, 0.5, 1.0]],
            source="by hand: the last window has one element",
        ),
    )


class AvgPool3D(AvgAxisPool):
    """y[…, i, j, k] = the mean of the window at (i, j, k). x [..., d, h, w]; padding counts as zeros.

    Integers give float64. Extents are as in max_pool1d. With `ceiling`, the part of a window beyond the padding is not
    counted. PyTorch: `avg_pool3d`, whose `ceil_mode` is `ceiling`. Flax: `avg_pool`, which has no ceiling mode.
    """

    name = "avg_pool3d"
    rank = 3
    attrs: ClassVar[Mapping[str, Attr]] = _attrs(3, dilated=False)
    samples = (
        Sample(Real(2, 2, 4, 4), kernel_size=[2, 2, 2]),
        Sample(Real(2, 5, 3), kernel_size=[1, 3, 2], stride=[1, 2, 1], padding=[0, 1, 1]),
        Sample(Real(1, 3, 4, 5), kernel_size=[2, 2, 2], ceiling=True),
    )
    truths = (
        Truth(
            operands=[[[[1.0, 7.0], [7.0, 3.0]], [[7.0, 2.0], [0.0, 5.0]]]],
            attrs={"kernel_size": [2, 1, 2]},
            value=[[[17.0 / 4], [15.0 / 4]]],
            cotangent=[[[4.0], [8.0]]],
            gradients=[[[[1.0, 1.0], [2.0, 2.0]], [[1.0, 1.0], [2.0, 2.0]]]],
            source="by hand",
        ),
    )


class AdaptivePool(Composite):
    """Base: `sizes` windows on the last axes, window i from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉."""

    section = "pooling_axes"
    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "sizes": Attr("ints", doc="number of windows on each of the last axes", minimum=1)
    }
    dtypes: ClassVar[tuple[str, ...]] = NUMBERS
    since = 2
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(2, 7), sizes=[3]),
        Sample(Real(2, 4, 5), sizes=[2, 7]),
        Sample(Real(3, 4, 2), sizes=[1, 2, 2]),
        Sample(Ints(2, 5, high=9), sizes=[2]),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Check the sizes. Raises BadAttribute for more sizes than axes, ShapeMismatch for empty axes."""
        (x,), sizes = types, tuple(attrs["sizes"])
        if not 0 < len(sizes) <= x.ndim:
            expected, received = f"1 to {counted(x.ndim, 'entry', 'entries')}", counted(len(sizes), "entry", "entries")
            raise BadAttribute(
                f"attribute sizes must have {expected}, but has {received}",
                attribute="sizes",
                expected=expected,
                got=received,
            )
        if 0 in x.shape[x.ndim - len(sizes) :]:
            received = show_shape(x.shape)
            raise ShapeMismatch(
                f"operand 0 (x) must have at least one entry on each pooled axis, but has shape {received}",
                operand=0,
                expected="extents of at least 1",
                got=received,
            )
        return {"sizes": sizes}

    def result_dtype(self, dtype: DType) -> DType:
        """Return x's dtype."""
        return dtype

    def infer(self, x: TensorType, *, sizes: Shape) -> ResultTypes:
        """Return x's type with the sizes on the last axes."""
        return TensorType((*x.shape[: x.ndim - len(sizes)], *sizes), self.result_dtype(x.dtype))

    def compose(self, x: Value, *, sizes: Shape) -> Value:
        """Pool the last axis first. Taps beyond a window's end read its first element again."""
        dtype = self.result_dtype(x.dtype)
        y = upcast(x.cast(dtype=dtype) if x.dtype != dtype else x)
        for i, size in reversed(list(enumerate(sizes, x.ndim - len(sizes)))):
            extent = x.shape[i]
            if size != extent:
                taps = min(extent // size + (2 if extent % size else 0), extent)
                starts, ends = adaptive_ranges(y, extent, size)
                positions = starts.add(y.builder.arange(taps).reshape(shape=(1, taps)))
                within = positions < ends
                windows = gather_windows(y, i, within.where(positions, starts))
                y = self.reduce_taps(windows, i, within, ends.sub(starts))
        return y.cast(dtype=FLOAT16) if dtype == FLOAT16 else y

    @abstractmethod
    def reduce_taps(self, windows: Value, axis: int, within: Value, lengths: Value) -> Value:
        """Reduce windows on `axis` over their taps, on the next one. Taps not `within` a window repeat its first."""


class AdaptiveMaxPool(AdaptivePool):
    """y[…, i] = the maximum of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉; NaN if the window contains NaN.

    Pools as many of the last axes as `sizes` has entries. PyTorch: `adaptive_max_pool1d`, 2d and 3d. JAX has no
    equivalent.
    """

    name = "adaptive_max_pool"
    gradient = "g, added at the first maximum (in row-major order) of each window"
    truths = (
        Truth(
            operands=[[1.0, 4.0, 4.0, 2.0, 6.0]],
            attrs={"sizes": [2]},
            value=[4.0, 6.0],
            cotangent=[1.0, 3.0],
            gradients=[[0.0, 1.0, 0.0, 0.0, 3.0]],
            source="by hand: windows of 3, the middle one of both",
        ),
    )

    def reduce_taps(self, windows: Value, axis: int, within: Value, lengths: Value) -> Value:
        """Return the first maximum: a repeated element comes after the original."""
        return first_max(windows, axis + 1)


class AdaptiveAvgPool(AdaptivePool):
    """y[…, i] = the mean of window i, from ⌊i · n / size⌋ to ⌈(i + 1) · n / size⌉. Integers give float64.

    Pools as many of the last axes as `sizes` has entries. PyTorch: `adaptive_avg_pool1d`, 2d and 3d. JAX has no
    equivalent.
    """

    name = "adaptive_avg_pool"
    gradient = "g / (number of elements in the window), added to each of them"
    truths = (
        Truth(
            operands=[[1.0, 4.0, 4.0, 2.0, 6.0]],
            attrs={"sizes": [2]},
            value=[3.0, 4.0],
            cotangent=[3.0, 6.0],
            gradients=[[1.0, 1.0, 3.0, 2.0, 2.0]],
            source="by hand: windows of 3, the middle one of both",
        ),
    )
    result_dtype = staticmethod(mean_dtype)

    def reduce_taps(self, windows: Value, axis: int, within: Value, lengths: Value) -> Value:
        """Average without the repeated elements."""
        ones = [1] * (windows.ndim - axis - 2)
        counts = within.reshape(shape=(*within.shape, *ones)).where(windows, 0.0).sum(axes=(axis + 1,))
        return counts / lengths.cast(dtype=windows.dtype).reshape(shape=(windows.shape[axis], *ones))
