"""Parts of all pools: their attributes, the windows they look at, and the way along one axis of these."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import NUMBERS
from engine.graph.errors import BadAttribute
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import DType, Shape, TensorType, show_shape
from engine.oplib.accumulate import accumulator, wide_out, wide_out_bytes
from engine.oplib.extremes import identity_of
from engine.oplib.known_numbers import are_numbers
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
        """The stride filled in, and the least that says so. Raises BadAttribute, ShapeMismatch where no window fits."""
        complete = {**attrs, "stride": attrs["stride"] or attrs["kernel_size"]}
        for name, numbers in complete.items():
            check_spatial(name, numbers)
        check_padding(complete["kernel_size"], complete["padding"])
        operand, x = len(types) - 1, types[-1]
        if x.ndim < 2 or 0 in x.shape[-2:]:
            raise wrong_shape(operand, "x", "two spatial axes at its end, of extents of at least 1", x)
        windows = placed(**complete)
        check_fits(windows, x.shape[-2:], operand)
        return {**complete, "stride": windows.least(x.shape[-2:]).stride}

    def result_dtype(self, dtype: DType) -> DType:
        """The result's dtype for planes of `dtype`; by default the same."""
        return dtype

    def infer(self, x: TensorType, **attrs: Any) -> ResultTypes:
        """[..., *positions]."""
        positions = placed(**attrs).positions(x.shape[-2:])
        return TensorType((*x.shape[:-2], *positions), self.result_dtype(x.dtype))

    def batch(self, mapped: Sequence[bool], x: Value, **attrs: Any) -> Value:
        """Itself: leading axes are free."""
        return x.builder.emit(self, (x,), attrs)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """One for each tap."""
        return super().flops(out) * placed(**attrs).taps


def check_padding(size: Shape, padding: Shape) -> None:
    """Raise BadAttribute where a window could lie in the padding alone."""
    if any(2 * p > k for p, k in zip(padding, size, strict=True)):
        wanted, got = f"at most half the kernel size {show_shape(size)}", show_shape(padding)
        raise BadAttribute(f"attribute padding must be {wanted}, but is {got}", expected=wanted, got=got)


def placed(*, kernel_size: Shape, stride: Shape, padding: Shape) -> Windows:
    """The windows of a pool."""
    return Windows(kernel_size, stride, padding, (1,) * len(kernel_size))


def rows_of(x: TensorType, out: TensorType) -> TensorType:
    """The type of what is reduced over rows only."""
    return out.with_shape((*out.shape[:-1], x.shape[-1]))


def slide(run: RunContext, ufunc: Ufunc, x: Array, out: Array, windows: Windows, start: float) -> None:
    """out = the reduction of each window of x by `ufunc`, whose neutral element is `start`: one axis, then the other.

    Taking k + k elements together costs less than taking k · k.
    """
    rows = run.xp.empty((*out.shape[:-1], x.shape[-1]), out.dtype)
    slide_along(run, ufunc, x, rows, windows, -2, start)
    slide_along(run, ufunc, rows, out, windows, -1, start)


def slide_along(run: RunContext, ufunc: Ufunc, x: Array, out: Array, windows: Windows, axis: int, start: float) -> None:
    """`slide` along one axis, tap by tap."""
    met = windows.meetings(axis, x.shape[axis], out.shape[axis])
    taps = [_at(here, seen, axis) for _, here, seen in met]
    if len(taps) > 1 and all(out[here].shape == out.shape for here, _ in taps[:2]):
        (_, first), (_, second), *taps = taps
        ufunc(x[first], x[second], out=out, dtype=out.dtype)
    else:
        out.fill(start)
    for here, seen in run.through(taps):
        ufunc(out[here], x[seen], out=out[here])


def give_back(run: RunContext, g: Array, x: Array, out: Array, windows: Windows) -> None:
    """out = Σ g over the windows of which an element of x is the first maximum: by rows, and in these by columns."""
    xp = run.xp
    rows = xp.empty((*x.shape[:-1], g.shape[-1]), x.dtype)
    slide_along(run, xp.maximum, x, rows, windows, -1, identity_of("maximum", x.dtype))
    given = xp.empty(rows.shape, accumulator(out))
    _give_rows(run, g, rows, given, windows)
    sums = wide_out(xp, out)
    _place_along(run, given, x, rows, sums, windows, -1)
    if sums is not out:
        out[...] = sums


def _give_rows(run: RunContext, g: Array, rows: Array, out: Array, windows: Windows) -> None:
    largest = run.xp.empty(g.shape, rows.dtype)
    slide_along(run, run.xp.maximum, rows, largest, windows, -2, identity_of("maximum", rows.dtype))
    _place_along(run, g, rows, largest, out, windows, -2)


def give_back_workspace(out: TensorType, g: TensorType, x: TensorType) -> int:
    """Bytes that `give_back` allocates: maxima over columns and what comes to these, and then masks and terms."""
    number = accumulator(out).itemsize
    rows, places = math.prod(x.shape[:-1]) * g.shape[-1], g.size
    to_rows = places * (x.dtype.itemsize + 2 + g.dtype.itemsize)
    to_columns = rows * (2 + number) + wide_out_bytes(out)
    return rows * (x.dtype.itemsize + number) + max(to_rows, to_columns)


def _place_along(run: RunContext, g: Array, x: Array, largest: Array, out: Array, windows: Windows, axis: int) -> None:
    """Add to `out`, zero before, each g at the first element of its window along `axis` that is the largest, or NaN."""
    out.fill(0)
    # Where there is no NaN, there is none to look for.
    xp, numbers = run.xp, are_numbers(run, largest)
    searching = xp.ones(g.shape, bool)
    for tap, here, seen in windows.meetings(axis, x.shape[axis], g.shape[axis]):
        place, element = _at(here, seen, axis)
        left = searching[place]
        if windows.padding[axis] or tap + 1 < windows.size[axis]:
            _place(xp, g[place], _found(xp, x[element], largest[place], left, numbers), out[element])
        else:  # the last tap of a whole window: what has not been found before is here
            _place(xp, g[place], left, out[element])


def _found(xp: Namespace, x: Array, largest: Array, left: Array, numbers: bool) -> Array:
    """Where the first of the largest is, of those that are left; these are fewer then."""
    found = xp.equal(x, largest)
    if not numbers:
        found |= x != x  # noqa: PLR0124 - true of NaN only
    found &= left
    left ^= found
    return found


def _place(xp: Namespace, g: Array, found: Array, out: Array) -> None:
    # The bits of g or of 0: a product of numbers would make NaN of infinity and 0.
    out += xp.multiply(g.view(f"i{g.itemsize}"), found).view(g.dtype)


def _at(here: slice, seen: slice, axis: int) -> tuple[tuple[object, ...], tuple[object, ...]]:
    after = (slice(None),) * (-1 - axis)
    return (..., here, *after), (..., seen, *after)
