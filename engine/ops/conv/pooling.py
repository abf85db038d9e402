"""Pooling over planes: the maximum or the mean of each window."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute
from engine.ir.graph import Value
from engine.ir.op import Array, Namespace, NoGradient, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import INT64, NUMBERS, DType, Shape, TensorType, mean_dtype, show_shape
from engine.ops.common import batching
from engine.ops.common.batching import BatchedAsIs
from engine.ops.common.numerics import (
    accumulation_buffer,
    accumulation_buffer_bytes,
    accumulator,
    extremum_identity,
    known_without_nan,
    require_shape,
    wrong_shape,
)
from engine.ops.common.support import Selecting
from engine.ops.conv.im2col import slices, within_chunk
from engine.ops.conv.windows import Windows, check_fits, check_spatial

KERNEL_SIZE = Attr("ints", doc="extents of the windows along each spatial axis", minimum=1)
STRIDE = Attr("ints", None, "distance between windows along each spatial axis; default: the kernel size", minimum=1)
PADDING = Attr("ints", (0, 0), "padding on both sides of each spatial axis; at most half the kernel size", minimum=0)

Ufunc = Callable[..., Array]


class Pooling(BatchedAsIs):
    """Base: planes [..., h, w] give planes [..., h', w'], h' = ⌊(h + 2 · padding − kernel_size) / stride⌋ + 1."""

    section = "pooling"
    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"kernel_size": KERNEL_SIZE, "stride": STRIDE, "padding": PADDING}
    dtypes: ClassVar[tuple[str, ...]] = NUMBERS
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(2, 2, 4, 6), kernel_size=[2, 3]),
        Sample(Real(1, 2, 5, 6), kernel_size=[3, 2], stride=[1, 3], padding=[1, 1]),
        Sample(Real(5, 5), kernel_size=[3, 3], stride=[2, 2], padding=[0, 1]),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Fill in the stride, as the smallest equivalent number.

        Raises BadAttribute, ShapeMismatch if no window fits.
        """
        complete = {**attrs, "stride": attrs["stride"] or attrs["kernel_size"]}
        for name, numbers in complete.items():
            check_spatial(name, numbers)
        check_padding(complete["kernel_size"], complete["padding"])
        operand, x = len(types) - 1, types[-1]
        if x.ndim < 2 or 0 in x.shape[-2:]:
            raise wrong_shape(operand, "x", "two spatial axes at the end, with extents of at least 1", x)
        windows = pool_windows(**complete)
        check_fits(windows, x.shape[-2:], operand)
        return {**complete, "stride": windows.canonical_placing(x.shape[-2:]).stride}

    def result_dtype(self, dtype: DType) -> DType:
        """Return the result's dtype for planes of `dtype`: by default the same."""
        return dtype

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """Return the type [..., *positions]."""
        positions = pool_windows(**attrs).positions(x.shape[-2:])
        return TensorType((*x.shape[:-2], *positions), self.result_dtype(x.dtype))

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return one for each tap."""
        return super().flops(out) * pool_windows(**attrs).taps


def check_padding(size: Shape, padding: Shape) -> None:
    """Raise BadAttribute if a window could lie in the padding alone."""
    if any(2 * p > k for p, k in zip(padding, size, strict=True)):
        expected, received = f"at most half the kernel size {show_shape(size)}", show_shape(padding)
        raise BadAttribute(
            f"attribute padding must be {expected}, but is {received}",
            attribute="padding",
            expected=expected,
            got=received,
        )


def pool_windows(*, kernel_size: Shape, stride: Shape, padding: Shape) -> Windows:
    """Return the windows of a pool."""
    return Windows(kernel_size, stride, padding, (1,) * len(kernel_size))


def row_pooled_type(x: TensorType, out: TensorType) -> TensorType:
    """Return the type of x reduced along rows only."""
    return out.with_shape((*out.shape[:-1], x.shape[-1]))


def reduce_windows(run: RunContext, ufunc: Ufunc, x: Array, out: Array, windows: Windows, start: float) -> None:
    """Reduce each window of x by `ufunc`, whose neutral element is `start`: along one axis, then along the other.

    Combining k + k elements costs less than combining k · k.
    """
    rows = run.xp.empty((*out.shape[:-1], x.shape[-1]), out.dtype)
    reduce_windows_along(run, ufunc, x, rows, windows, -2, start)
    reduce_windows_along(run, ufunc, rows, out, windows, -1, start)


def reduce_windows_along(
    run: RunContext, ufunc: Ufunc, x: Array, out: Array, windows: Windows, axis: int, start: float
) -> None:
    """Reduce along one axis, tap by tap."""
    tap_slices = windows.tap_slices(axis, x.shape[axis], out.shape[axis])
    taps = [_axis_indices(windows_index, elements, axis) for _, windows_index, elements in tap_slices]
    # if the first two taps lie within x for every window, they initialise `out`, which saves filling it
    if len(taps) > 1 and all(out[windows_index].shape == out.shape for windows_index, _ in taps[:2]):
        (_, first), (_, second), *taps = taps
        ufunc(x[first], x[second], out=out, dtype=out.dtype)
    else:
        out.fill(start)
    for windows_index, elements in run.checked(taps):
        ufunc(out[windows_index], x[elements], out=out[windows_index])


def scatter_to_maxima(run: RunContext, g: Array, x: Array, out: Array, windows: Windows) -> None:
    """Add each g to the first maximum of its window in x: to maxima of rows first, then to elements of these rows."""
    xp = run.xp
    rows = xp.empty((*x.shape[:-1], g.shape[-1]), x.dtype)
    reduce_windows_along(run, xp.maximum, x, rows, windows, -1, extremum_identity("maximum", x.dtype))
    row_gradients = xp.empty(rows.shape, accumulator(out))
    _scatter_to_rows(run, g, rows, row_gradients, windows)
    sums = accumulation_buffer(xp, out)
    _scatter_along(run, row_gradients, x, rows, sums, windows, -1)
    if sums is not out:
        out[...] = sums


def _scatter_to_rows(run: RunContext, g: Array, rows: Array, out: Array, windows: Windows) -> None:
    largest = run.xp.empty(g.shape, rows.dtype)
    reduce_windows_along(run, run.xp.maximum, rows, largest, windows, -2, extremum_identity("maximum", rows.dtype))
    _scatter_along(run, g, rows, largest, out, windows, -2)


def scatter_workspace(out: TensorType, g: TensorType, x: TensorType) -> int:
    """Count the bytes that `scatter_to_maxima` allocates: row maxima and their gradients, then masks and terms."""
    number = accumulator(out).itemsize
    rows, windows = math.prod(x.shape[:-1]) * g.shape[-1], g.size
    to_rows = windows * (x.dtype.itemsize + 2 + g.dtype.itemsize)
    to_columns = rows * (2 + number) + accumulation_buffer_bytes(out)
    return rows * (x.dtype.itemsize + number) + max(to_rows, to_columns)


def _scatter_along(
    run: RunContext, g: Array, x: Array, largest: Array, out: Array, windows: Windows, axis: int
) -> None:
    """Add to `out`, cleared first, each g at the first largest element of its window along `axis`; NaN is largest."""
    out.fill(0)
    # without NaN among the maxima, the comparison for NaN can be skipped
    xp, has_no_nan = run.xp, known_without_nan(run, largest)
    searching = xp.ones(g.shape, bool)
    for tap, windows_index, elements in windows.tap_slices(axis, x.shape[axis], g.shape[axis]):
        window, element = _axis_indices(windows_index, elements, axis)
        unassigned = searching[window]
        if windows.padding[axis] or tap + 1 < windows.size[axis]:
            _add_where(
                xp, g[window], _take_maxima(xp, x[element], largest[window], unassigned, has_no_nan), out[element]
            )
        else:  # the last tap of a whole window: every window still without its maximum has it here
            _add_where(xp, g[window], unassigned, out[element])


def _take_maxima(xp: Namespace, x: Array, largest: Array, unassigned: Array, has_no_nan: bool) -> Array:
    """Mark the elements that are the first maximum of a window still `unassigned`, and clear these windows' flags."""
    is_maximum = xp.equal(x, largest)
    if not has_no_nan:
        is_maximum |= x != x  # noqa: PLR0124 - true of NaN only
    is_maximum &= unassigned
    unassigned ^= is_maximum
    return is_maximum


def _add_where(xp: Namespace, g: Array, mask: Array, out: Array) -> None:
    # mask the bits of g: multiplying numbers would turn infinity times 0 into NaN
    out += xp.multiply(g.view(f"i{g.itemsize}"), mask).view(g.dtype)


def _axis_indices(windows: slice, elements: slice, axis: int) -> tuple[tuple[object, ...], tuple[object, ...]]:
    after = (slice(None),) * (-1 - axis)
    return (..., windows, *after), (..., elements, *after)


class MaxPool2D(Selecting, Pooling):
    """y[…, i, j] = the largest element of the window at (i, j); NaN if the window contains NaN.

    x [..., h, w]; padding counts as −∞. Same as PyTorch's max_pool2d.
    """

    name = "max_pool2d"
    aliases: ClassVar[Mapping[str, str]] = {"MaxPool2DOp": "born", "MaxPool2D": "born"}
    gradient = "g, added at the first maximum (in row-major order) of each window"

    def forward(self, run: RunContext, x: Array, *, out: Array, **attrs: Any) -> None:
        """Reduce along rows, then along columns."""
        reduce_windows(run, run.xp.maximum, x, out, pool_windows(**attrs), extremum_identity("maximum", x.dtype))

    def vjp(self, g: Value, y: Value, x: Value, **attrs: Any) -> Sequence[Value | None]:
        """Pass g to the elements that are the maxima."""
        return (g.max_pool2d_back(x, **attrs),)

    def workspace(self, out: TensorType, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of the maxima of rows."""
        return row_pooled_type(x, out).nbytes


class MaxPool2DIndices(Pooling):
    """y[…, i, j] = the position h · width + w of the first maximum (in row-major order) of the window at (i, j).

    Positions are int64 and flat within each plane, as in PyTorch's return_indices. NaN counts as a maximum.
    """

    name = "max_pool2d_indices"
    is_captured = False
    gradient = "none: the result is int64"
    vjp = NoGradient("the result is int64")

    def result_dtype(self, dtype: DType) -> DType:
        """Return int64."""
        return INT64

    def forward(self, run: RunContext, x: Array, *, out: Array, **attrs: Any) -> None:
        """Count, at each position, the taps before the first one that is the maximum, or NaN."""
        xp = run.xp
        windows, width = pool_windows(**attrs), x.shape[-1]
        largest = xp.empty(out.shape, x.dtype)
        reduce_windows(run, xp.maximum, x, largest, windows, extremum_identity("maximum", x.dtype))
        rows, columns = (list(windows.tap_slices(axis, x.shape[axis], out.shape[axis])) for axis in (-2, -1))
        above, before = windows.padding
        taps = xp.asarray([(a - above) * width + b - before for (a, *_), (b, *_) in product(rows, columns)])
        # a window's first maximum has as its number the count of taps before it, all smaller
        searching, tap_numbers = xp.ones(out.shape, bool), xp.zeros(out.shape, np.min_scalar_type(taps.size))
        for (_, i, h), (_, j, w) in run.checked(product(rows, columns)):
            elements = x[..., h, w]
            is_smaller = xp.not_equal(elements, largest[..., i, j])
            is_smaller &= elements == elements  # noqa: PLR0124 - false of NaN only
            searching[..., i, j] &= is_smaller
            tap_numbers += searching
        down, right = (stride * xp.arange(n) for stride, n in zip(windows.stride, out.shape[-2:], strict=True))
        xp.add(taps[tap_numbers], down[:, None] * width + right, out=out)

    def workspace(self, out: TensorType, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of the maxima, with those of rows or, later, masks, counts and taps."""
        largest, counts = out.with_dtype(x.dtype), np.min_scalar_type(pool_windows(**attrs).taps).itemsize * out.size
        plane = 2 * INT64.itemsize * math.prod(out.shape[-2:])
        return largest.nbytes + max(row_pooled_type(x, largest).nbytes, counts + 2 * out.size + out.nbytes + plane)


class MaxPool2DBack(Pooling):
    """y[…, h, w] = Σ g[…, i, j] over the windows (i, j) whose first maximum, in row-major order, is x[…, h, w].

    The gradient of max_pool2d with respect to x for the cotangent g [..., h', w'], with x [..., h, w]; 0 at all other
    elements. NaN counts as a maximum.
    """

    name = "max_pool2d_back"
    operands = ("g", "x")
    gradient = "dg = the cotangent at max_pool2d_indices; none for x: the result is piecewise constant in x"
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
        """Return x's shape in g's dtype. Raises ShapeMismatch."""
        g, x = types
        pooled = super().infer(x, **attrs)
        assert isinstance(pooled, TensorType)
        require_shape(g, pooled.shape, 0, "g", "one number for each window of x")
        return g.with_shape(x.shape)

    def forward(self, run: RunContext, *arrays: Array, out: Array, **attrs: Any) -> None:
        """Compute a few planes at a time."""
        g, x = arrays
        for planes in run.checked(_planes(x)):
            scatter_to_maxima(run, g[planes], x[planes], out[planes], pool_windows(**attrs))

    def vjp(self, g: Value, y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """Read the cotangent at the positions that g went to."""
        pooled, x = operands
        lead, spatial = pooled.shape[:-2], (math.prod(pooled.shape[-2:]),)
        index = x.max_pool2d_indices(**attrs).reshape(shape=(*lead, *spatial))
        flat = g.reshape(shape=(*lead, math.prod(g.shape[-2:])))
        return flat.gather(index, axis=-1).reshape(shape=pooled.shape), None

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Return the op itself: leading axes are free."""
        g, x = batching.expand(mapped, operands)
        return g.builder.emit(self, (g, x), attrs)

    def workspace(self, out: TensorType, *types: TensorType, **attrs: Any) -> int:
        """Return the bytes of the first chunk of planes, the largest."""
        g, x = types
        if x.ndim > 2:
            out, g, x = (t.with_shape((_planes_at_once(x), *t.shape[1:])) for t in (out, g, x))
        return scatter_workspace(out, g, x)


def _planes(x: Array) -> Iterable[slice]:
    """Yield entries of the leading axis, a few at a time; everything if there is a single plane."""
    return slices(len(x), _planes_at_once(x)) if x.ndim > 2 else [slice(None)]


def _planes_at_once(x: Array | TensorType) -> int:
    return within_chunk(x.shape[0], math.prod(x.shape[1:]) * x.dtype.itemsize)


class AvgPool2D(Selecting, Pooling):
    """y[…, i, j] = the sum of the window at (i, j), divided by the kernel size; padding counts as zeros.

    x [..., h, w]. Integers give float64. Same as PyTorch's avg_pool2d.
    """

    name = "avg_pool2d"
    gradient = "conv_transpose2d of g / kernel size with ones"
    result_dtype = staticmethod(mean_dtype)

    def forward(self, run: RunContext, x: Array, *, out: Array, **attrs: Any) -> None:
        """Sum along rows, then along columns."""
        xp = run.xp
        windows = pool_windows(**attrs)
        sums = out if out.dtype == accumulator(out) else xp.empty(out.shape, accumulator(out))
        reduce_windows(run, xp.add, x, sums, windows, 0)
        xp.divide(sums, windows.taps, out=out)

    def vjp(self, g: Value, y: Value, x: Value, **attrs: Any) -> Sequence[Value | None]:
        """Pass each window's share of g to all of its elements."""
        windows = pool_windows(**attrs)
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

    def workspace(self, out: TensorType, x: TensorType, **attrs: Any) -> int:
        """Return the bytes of the sums of rows, and of all sums for float16."""
        sums = out.with_dtype(accumulator(out))
        return row_pooled_type(x, sums).nbytes + (sums.nbytes if sums.dtype != out.dtype else 0)
