"""Slices and single indices, padding, and boxes that are read or replaced at fixed or computed starts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, ClassVar

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, counted
from engine.ir.graph import Value
from engine.ir.op import Array, Composite, Namespace, Op, ResultTypes, View
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.sample import Bools, Ints, Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, INT64, HostArray, Shape, TensorType, normalise_axis, promote, show_shape
from engine.ops.common import batching
from engine.ops.common.numerics import (
    FILL_AS,
    one_per_axis,
    require_axes,
    require_shape,
    resolve_fill,
    with_extent,
    wrong_shape,
)
from engine.ops.common.support import Indicated, Selecting
from engine.ops.index.indices import require_integer
from engine.ops.rewrites import no_op


def slice_axis(x: Value, axis: int, start: int, stop: int) -> Value:
    """Slice x from `start` to `stop` on one axis."""
    stops = [stop if i == axis else extent for i, extent in enumerate(x.shape)]
    return x.slice(starts=[start if i == axis else 0 for i in range(x.ndim)], stops=stops)


def bounds(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the start and stop of consecutive parts of these sizes."""
    return list(pairwise(accumulate(sizes, initial=0)))


def along(axis: int, start: int, stop: int) -> tuple[slice, ...]:
    """Return the NumPy index that slices an array from `start` to `stop` on one axis."""
    return (*[slice(None)] * axis, slice(start, stop))


def dilate(x: Value, axis: int, step: int) -> Value:
    """Insert step − 1 zeros between neighbours on `axis`, by padding each entry to a row of length `step`."""
    if step == 1:
        return x
    (*before, extent), after = x.shape[: axis + 1], x.shape[axis + 1 :]
    rows = x.reshape(shape=(math.prod(x.shape[: axis + 1]), 1, math.prod(after)))
    padded = rows.pad(pad_width=(0, 0, 0, step - 1, 0, 0)).reshape(shape=(*before, extent * step, *after))
    return slice_axis(padded, axis, 0, extent * step - step + 1)


class Slice(Selecting, View):
    """y = x[starts[0]:stops[0]:steps[0], starts[1]:stops[1]:steps[1], …]: one entry for each axis.

    A list may have fewer entries than x has axes; the remaining axes use the defaults. Bounds are as in NumPy: negative
    ones count from the end, and bounds beyond an end are moved to that end. Steps are at least 1.
    """

    name = "slice"
    section = "slice"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {
        "starts": Attr("ints", None, "first position on each axis; default: 0"),
        "stops": Attr("ints", None, "end position on each axis, not included; default: the extent"),
        "steps": Attr("ints", None, "distance between positions on each axis; default: 1", minimum=1),
    }
    gradient = "g at the positions that were read, 0 elsewhere"
    samples = (
        Sample(Real(4, 5), starts=[1, 0], stops=[3, 5]),
        Sample(Real(7, 6), starts=[-6, 1], stops=[7, -1], steps=[2, 3]),
        Sample(Real(3, 4), stops=[9, -9]),
        Sample(Real(3, 4), starts=[1]),
        Sample(Real(3), starts=[1], steps=[5]),
        Sample(Real()),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the bounds to [0, extent] and the stops to the last position read. Raises BadAttribute."""
        extents = types[0].shape
        lists = [_entries(name, attrs[name], len(extents)) for name in self.attrs]
        bounds = map(slice, *lists)
        spans = [_span(bound, extent) for bound, extent in zip(bounds, extents, strict=True)]
        return {
            "starts": tuple(s.start for s in spans),
            "stops": tuple(s.stop for s in spans),
            "steps": tuple(s.step for s in spans),
        }

    def infer(self, x: TensorType, *, starts: Shape, stops: Shape, steps: Shape) -> ResultTypes:
        """Return x's type with the number of positions on each axis."""
        return x.with_shape([_count(range(*bounds)) for bounds in zip(starts, stops, steps, strict=True)])

    def view(self, xp: Namespace, x: Array, *, starts: Shape, stops: Shape, steps: Shape) -> Array:
        """Index with slices; the ellipsis keeps a 0-d tensor an array."""
        return x[(..., *map(slice, starts, stops, steps))]

    def leading_part(self, read: Shape, operand: Shape, attrs: Mapping[str, Any]) -> Shape:
        """Return the shape read if the slice starts at 0 with steps of 1; else the operand's shape."""
        return read if not any(attrs["starts"]) and set(attrs["steps"]) <= {1} else operand

    def vjp(self, g: Value, y: Value, x: Value, *, starts: Shape, stops: Shape, steps: Shape) -> Sequence[Value | None]:
        """Insert zeros between the entries according to the steps, then pad to the ends."""
        for axis, step in enumerate(steps):
            g = dilate(g, axis, step)
        after = [extent - stop for extent, stop in zip(x.shape, stops, strict=True)]
        return (g.pad(pad_width=tuple(chain.from_iterable(zip(starts, after, strict=True)))),)

    def batch(self, mapped: Sequence[bool], x: Value, *, starts: Shape, stops: Shape, steps: Shape) -> Value:
        """Slice the whole axis N."""
        return x.slice(starts=(0, *starts), stops=(x.shape[0], *stops), steps=(1, *steps))


def _entries(name: str, entries: Sequence[int] | None, ndim: int) -> Sequence[int | None]:
    """Extend a list of attribute `name` with None to one entry per axis. Raises BadAttribute if it is too long."""
    listed = entries or ()
    if len(listed) > ndim:
        expected = f"at most {counted(ndim, 'entry', 'entries')}, one for each axis"
        received = counted(len(listed), "entry", "entries")
        raise BadAttribute(
            f"attribute {name} must have {expected}, but has {received}",
            attribute=name,
            expected=expected,
            got=received,
        )
    return [*listed, *[None] * (ndim - len(listed))]


def _span(bounds: slice, extent: int) -> range:
    """Return the positions as a canonical range: of equal ranges, the one with the smallest stop and step."""
    span = range(*bounds.indices(extent))
    count = _count(span)
    return range(span[0], span[-1] + 1, span.step) if count > 1 else range(span.start, span.start + count)


def _count(span: range) -> int:
    """Return the length. `len` fails beyond sys.maxsize, but an extent that is only planned may be any number."""
    return max(0, -(-(span.stop - span.start) // span.step))


class Select(Composite):
    """y = x at one `index` along `axis`, without that axis: x[index], x[:, index], …

    A negative index counts from the end. Same as PyTorch's select. To read at many indices, use `gather`.
    """

    name = "select"
    section = "slice"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {
        "index": Attr("int", doc="position to read"),
        "axis": Attr("int", 0, "axis to read at one position"),
    }
    gradient = "g at the index, 0 elsewhere"
    samples = (
        Sample(Real(3, 4), index=1),
        Sample(Real(2, 3, 2), index=-1, axis=1),
        Sample(Real(3), index=0, axis=-1),
        Sample(Ints(2, 3, high=9), index=-2),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise axis and index to count from the front. Raises BadAttribute, ShapeMismatch."""
        require_axes(types[0], 1, "to select on")
        axis = normalise_axis(attrs["axis"], types[0].ndim)
        return {"index": _position(attrs["index"], types[0].shape[axis], axis), "axis": axis}

    def infer(self, x: TensorType, *, index: int, axis: int) -> ResultTypes:
        """Return x's type without the axis."""
        return x.with_shape((*x.shape[:axis], *x.shape[axis + 1 :]))

    def compose(self, x: Value, *, index: int, axis: int) -> Value:
        """Slice one position, and drop the axis by a reshape."""
        return slice_axis(x, axis, index, index + 1).reshape(shape=(*x.shape[:axis], *x.shape[axis + 1 :]))


def _position(index: int, extent: int, axis: int) -> int:
    """Count `index` from the front. Raises BadAttribute if it is out of range."""
    if -extent <= index < extent:
        return index % extent
    if not extent:
        expected, received = f"an entry of axis {axis}", "extent 0"
        raise BadAttribute(
            f"attribute index must name {expected}, but its extent is 0",
            attribute="index",
            expected=expected,
            got=received,
        )
    expected = f"between {-extent} and {extent - 1} on axis {axis}"
    raise BadAttribute(
        f"attribute index must be {expected}, but is {index}", attribute="index", expected=expected, got=str(index)
    )


class Pad(Indicated, Op):
    """y = x with `fill` around it: pad_width[2i] entries before and pad_width[2i + 1] after, on each axis i.

    To pad with an infinity or NaN, use `fill_as`. PyTorch's `functional.pad` lists the last axis first. JAX's and
    NumPy's `pad` take pairs, in the same order as here.
    """

    name = "pad"
    section = "slice"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {
        "pad_width": Attr("ints", doc="entries before and after, one axis after the other", minimum=0),
        "fill": Attr("number", 0.0, "value of the padding"),
        "fill_as": FILL_AS,
    }
    gradient = "g without the padding"
    rewrites = (no_op,)
    samples = (
        Sample(Real(2, 3), pad_width=[1, 0, 0, 2]),
        Sample(Real(3), pad_width=[2, 1], fill=-1.5),
        Sample(Real(0, 2), pad_width=[1, 1, 0, 0]),
        Sample(Real(), pad_width=[]),
        *(Sample(Real(2, 1), pad_width=[0, 0, 0, 0], fill_as=word) for word in FILL_AS.choices),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Convert the fill to x's dtype. Raises BadAttribute if that fails or `pad_width` has the wrong length."""
        attrs = resolve_fill(attrs, types[0].dtype)
        count, received = 2 * types[0].ndim, len(attrs["pad_width"])
        if received != count:
            expected = f"{count} entries, before and after each axis"
            raise BadAttribute(
                f"attribute pad_width must have {expected}, but has {received}",
                attribute="pad_width",
                expected=expected,
                got=str(received),
            )
        return {**attrs, "pad_width": tuple(attrs["pad_width"])}

    def infer(self, x: TensorType, *, pad_width: Shape, **attrs: Any) -> ResultTypes:
        """Return x's type with the padded extents."""
        return x.with_shape([b + e + a for b, e, a in zip(pad_width[::2], x.shape, pad_width[1::2], strict=True)])

    def forward(self, run: RunContext, x: Array, *, out: Array, pad_width: Shape, fill: float, **attrs: Any) -> None:
        """Fill `out`, then copy x into its place."""
        out[...] = fill
        out[(..., *(slice(b, b + e) for b, e in zip(pad_width[::2], x.shape, strict=True)))] = x

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]] | None:
        """Return the copies that `forward` makes: the fill everywhere, then x."""
        (x,), starts = operands, attrs["pad_width"][::2]
        fill = xp.broadcast_to(xp.full((), attrs["fill"], out.dtype), out.shape)
        return [(out, fill), (out[(..., *(slice(b, b + e) for b, e in zip(starts, x.shape, strict=True)))], x)]

    def vjp(self, g: Value, y: Value, x: Value, *, pad_width: Shape, **attrs: Any) -> Sequence[Value | None]:
        """Slice g: the padding is constant."""
        starts = pad_width[::2]
        return (g.slice(starts=starts, stops=[b + e for b, e in zip(starts, x.shape, strict=True)]),)

    def batch(self, mapped: Sequence[bool], x: Value, *, pad_width: Shape, fill: float, **attrs: Any) -> Value:
        """Leave the axis N unpadded."""
        return x.pad(pad_width=(0, 0, *pad_width), fill=fill)


# Boxes with computed starts: in one array, and in a batch of N examples with different starts.


@DeviceFunction
def read_box(run: RunContext, x: Array, starts: Array, out: Array) -> None:
    """Copy the box of x at `starts` into `out`, whose shape is that of the box. Starts are clamped into x.

    On a device, index with arrays axis by axis, so that the host does not wait for the starts.
    """
    xp = run.xp
    for axis, (size, positions) in enumerate(zip(out.shape, _box_positions(run, x, starts, out.shape), strict=True)):
        if size < x.shape[axis]:
            x = xp.take(x, positions, axis)
    out[...] = x


@read_box.on("cpu")
def _read_box(_: RunContext, x: HostArray, starts: HostArray, out: HostArray) -> None:
    out[...] = x[_clamped_box(x.shape, starts, out.shape)]


@DeviceFunction
def write_box(run: RunContext, out: Array, starts: Array, updates: Array) -> None:
    """Copy updates into the box of `out` at `starts`, which are clamped into `out`."""
    if updates.ndim:
        out[run.xp.ix_(*_box_positions(run, out, starts, updates.shape))] = updates
    else:
        out[...] = updates


@write_box.on("cpu")
def _write_box(_: RunContext, out: HostArray, starts: HostArray, updates: HostArray) -> None:
    out[_clamped_box(out.shape, starts, updates.shape)] = updates


def _clamped_box(shape: Shape, starts: HostArray, sizes: Shape) -> tuple[slice, ...]:
    firsts = [min(max(start, 0), n - size) for start, n, size in zip(starts.tolist(), shape, sizes, strict=True)]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def _box_positions(run: RunContext, x: Array, starts: Array, sizes: Shape) -> list[Array]:
    xp = run.xp
    return [
        xp.clip(starts[i].astype(INT64), 0, n - size) + xp.arange(size)
        for i, (n, size) in enumerate(zip(x.shape, sizes, strict=True))
    ]


def read_boxes(x: Value, starts: Value, sizes: Sequence[int]) -> Value:
    """Read the boxes of N examples x [N, …] at starts [N, rank]: a gather along each axis where the box is smaller."""
    for i, size in enumerate(sizes):
        axis = i + 1
        if size < x.shape[axis]:
            first = _clamped_starts(starts, i, x.shape[axis] - size)
            positions = first.add(x.builder.arange(size))
            index = positions.reshape(shape=_axis_shape(x.ndim, axis, x.shape[0], size))
            x = x.gather(index.broadcast_to(shape=with_extent(x.shape, axis, size)), axis=axis)
    return x


def write_boxes(x: Value, updates: Value, starts: Value) -> Value:
    """Replace the boxes of N examples x [N, …] at starts [N, rank] by updates [N, …]: a `where` over all elements."""
    n = x.shape[0]
    inside: Value | None = None
    for i, extent in enumerate(x.shape[1:]):
        axis, size = i + 1, updates.shape[i + 1]
        if size == extent:
            continue
        if not size:
            return x
        # Positions relative to the box: those outside it are masked, and read an arbitrary entry of updates.
        relative = x.builder.arange(extent).sub(_clamped_starts(starts, i, extent - size))
        mask = (relative >= 0).logical_and(relative < size).reshape(shape=_axis_shape(x.ndim, axis, n, extent))
        inside = mask if inside is None else inside.logical_and(mask)
        index = relative.clamp(min=0, max=size - 1).reshape(shape=_axis_shape(x.ndim, axis, n, extent))
        shape = with_extent(updates.shape, axis, extent)
        updates = updates.gather(index.broadcast_to(shape=shape), axis=axis)
    return updates if inside is None else inside.where(updates, x)


def _clamped_starts(starts: Value, axis: int, last: int) -> Value:
    """Return the starts on one axis, clamped to [0, last]: int64 [N, 1]."""
    axis_starts = starts.slice(starts=(0, axis), stops=(starts.shape[0], axis + 1))
    return axis_starts.cast(dtype=INT64).clamp(min=0, max=last)


def _axis_shape(rank: int, axis: int, n: int, size: int) -> list[int]:
    return [n if i == 0 else size if i == axis else 1 for i in range(rank)]


def _require_starts(starts: TensorType, x: TensorType, operand: int) -> None:
    """Raise DtypeMismatch or ShapeMismatch unless starts are one integer per axis of x."""
    require_integer(starts, operand, "starts")
    require_shape(starts, (x.ndim,), operand, "starts", "one start for each axis of x")


class SliceAt(Selecting, Op):
    """y = x[s₀ : s₀ + sizes[0], s₁ : s₁ + sizes[1], …], where s is the operand `starts`: int64 [rank].

    Each start, negative ones included, is moved into [0, extent − size], so that the result always has the same shape.
    JAX: `lax.dynamic_slice`, which first counts negative starts from the end. PyTorch: x.narrow, which takes a start on
    one axis.
    """

    name = "slice_at"
    section = "slice_at"
    operands = ("x", "starts")
    dtypes = DTYPES
    since = 2
    attrs: ClassVar[Mapping[str, Attr]] = {
        "sizes": Attr("ints", doc="extents of the box, one for each axis", minimum=0)
    }
    gradient = "g in the box, 0 elsewhere; none for starts"
    samples = (
        Sample(Real(4, 5), Ints(2, low=-1, high=4), sizes=[2, 3]),
        Sample(Real(3, 4, 2), Ints(3, high=4), sizes=[3, 1, 0]),
        Sample(Real(6), Ints(1, high=7), sizes=[4]),
        Sample(Real(), Ints(0, high=1), sizes=[]),
    )
    truths = (
        Truth(
            operands=[[1.0, 2.0, 4.0, 8.0], [3]],
            attrs={"sizes": [2]},
            value=[4.0, 8.0],
            cotangent=[1.0, 3.0],
            gradients=[[0.0, 0.0, 1.0, 3.0], None],
            source="by hand: the start is moved to 2",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Check the sizes. Raises BadAttribute if their number is not x's rank, or a size exceeds x's extent."""
        sizes, x = tuple(attrs["sizes"]), types[0]
        if len(sizes) != x.ndim:
            expected, received = one_per_axis(x.ndim), counted(len(sizes), "entry", "entries")
            raise BadAttribute(
                f"attribute sizes must have {expected}, but has {received}",
                attribute="sizes",
                expected=expected,
                got=received,
            )
        for axis, (size, extent) in enumerate(zip(sizes, x.shape, strict=True)):
            if size > extent:
                expected = f"at most {extent} on axis {axis}"
                raise BadAttribute(
                    f"attribute sizes must be {expected}, but is {size}",
                    attribute="sizes",
                    expected=expected,
                    got=str(size),
                )
        return {"sizes": sizes}

    def infer(self, x: TensorType, starts: TensorType, *, sizes: Shape) -> ResultTypes:
        """Return x's type with the shape of the box. Raises DtypeMismatch, ShapeMismatch."""
        _require_starts(starts, x, 1)
        return x.with_shape(sizes)

    def forward(self, run: RunContext, x: Array, starts: Array, *, out: Array, sizes: Shape) -> None:
        """Copy the box."""
        read_box(run, x, starts, out)

    def vjp(self, g: Value, y: Value, x: Value, starts: Value, *, sizes: Shape) -> Sequence[Value | None]:
        """Put g into zeros at the box."""
        return x.full_like(0.0).update_slice_at(g, starts), None

    def batch(self, mapped: Sequence[bool], x: Value, starts: Value, *, sizes: Shape) -> Value:
        """Read or write one box over the whole axis N if the starts are not mapped; else a box per example."""
        if not mapped[1]:
            return x.slice_at(starts.pad(pad_width=(1, 0)), sizes=(x.shape[0], *sizes))
        x, starts = batching.expand(mapped, (x, starts))
        return read_boxes(x, starts, sizes)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 0: the op only moves data."""
        return 0


class UpdateSliceAt(Selecting, Op):
    """y = x with the box that begins at `starts` replaced by `updates`; `starts` is an operand, int64 [rank].

    The box has the shape of `updates`. Each start, negative ones included, is moved into [0, extent − size], so that
    the box fits into x. The result has the common dtype of x and updates. JAX: `lax.dynamic_update_slice`, which first
    counts negative starts from the end. PyTorch: `slice_scatter`, which takes a start on one axis, as a number.
    """

    name = "update_slice_at"
    section = "slice_at"
    operands = ("x", "updates", "starts")
    dtypes = DTYPES
    since = 2
    gradient = "dx = g, 0 in the box; d updates = g in the box; none for starts"
    samples = (
        Sample(Real(4, 5), Real(2, 3), Ints(2, low=-1, high=4)),
        Sample(Real(3, 4), Real(3, 0), Ints(2, high=4)),
        Sample(Real(6), Real(4), Ints(1, high=7)),
        Sample(Real(), Real(), Ints(0, high=1)),
    )
    truths = (
        Truth(
            operands=[[1.0, 2.0, 4.0, 8.0], [16.0, 32.0], [-5]],
            value=[16.0, 32.0, 4.0, 8.0],
            cotangent=[1.0, 3.0, 5.0, 7.0],
            gradients=[[0.0, 0.0, 5.0, 7.0], [1.0, 3.0], None],
            source="by hand: the start is moved to 0",
        ),
    )

    def infer(self, x: TensorType, updates: TensorType, starts: TensorType) -> ResultTypes:
        """Return x's shape with the common dtype of x and updates. Raises DtypeMismatch, ShapeMismatch."""
        is_contained = updates.ndim == x.ndim and all(n <= m for n, m in zip(updates.shape, x.shape, strict=True))
        if not is_contained:
            raise wrong_shape(1, "updates", f"rank {x.ndim} and at most shape {show_shape(x.shape)}, like x", updates)
        _require_starts(starts, x, 2)
        return x.with_dtype(promote(x.dtype, updates.dtype))

    def forward(self, run: RunContext, x: Array, updates: Array, starts: Array, *, out: Array) -> None:
        """Copy x, then the updates over it."""
        out[...] = x
        write_box(run, out, starts, updates)

    def vjp(self, g: Value, y: Value, x: Value, updates: Value, starts: Value) -> Sequence[Value | None]:
        """Zero the cotangent of replaced elements."""
        return (
            g.update_slice_at(g.full_like(0.0, updates.shape), starts),
            g.slice_at(starts, sizes=updates.shape),
            None,
        )

    def batch(self, mapped: Sequence[bool], x: Value, updates: Value, starts: Value) -> Value:
        """Read or write one box over the whole axis N if the starts are not mapped; else a box per example."""
        if not mapped[2]:
            x, updates = batching.expand(mapped[:2], (x, updates))
            return x.update_slice_at(updates, starts.pad(pad_width=(1, 0)))
        x, updates, starts = batching.expand(mapped, (x, updates, starts))
        dtype = promote(x.dtype, updates.dtype)
        return write_boxes(x, updates, starts).cast(dtype=dtype)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 0: the op only moves data."""
        return 0


class UpdateSlice(Selecting, Op):
    """y = x with the box that begins at `starts`, one entry for each axis, replaced by `update`.

    The box has the shape of `update`. A negative start counts from the end, as in slice. A box that extends beyond x is
    an error; it is not moved. The result has the common dtype of x and update.
    """

    name = "update_slice"
    section = "update_slice"
    operands = ("x", "update")
    dtypes = DTYPES
    attrs = {"starts": Attr("ints", doc="first position of the update on each axis")}
    gradient = "dx = g, 0 in the box; d update = g in the box"
    samples = (
        Sample(Real(4, 5), Real(2, 3), starts=[1, 2]),
        Sample(Real(3, 4), Real(3, 1), starts=[0, -1]),
        Sample(Real(3), Bools(2), starts=[-3]),
        Sample(Real(), Real(), starts=[]),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise `starts` to count from the front. Raises BadAttribute, ShapeMismatch."""
        x, update = types
        if update.ndim != x.ndim or any(n > m for n, m in zip(update.shape, x.shape, strict=True)):
            raise wrong_shape(1, "update", f"rank {x.ndim} and at most shape {show_shape(x.shape)}, like x", update)
        starts = attrs["starts"]
        if len(starts) != x.ndim:
            expected, received = one_per_axis(x.ndim), counted(len(starts), "entry", "entries")
            raise BadAttribute(
                f"attribute starts must have {expected}, but has {received}",
                attribute="starts",
                expected=expected,
                got=received,
            )
        return {"starts": tuple(map(_start, range(x.ndim), starts, x.shape, update.shape))}

    def infer(self, x: TensorType, update: TensorType, *, starts: Shape) -> ResultTypes:
        """Return x's shape with the common dtype of both."""
        return x.with_dtype(promote(x.dtype, update.dtype))

    def forward(self, run: RunContext, x: Array, update: Array, *, out: Array, starts: Shape) -> None:
        """Copy x, then the update over it."""
        out[...] = x
        out[_box(starts, update)] = update

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]] | None:
        """Return the two copies that `forward` makes, unless one needs a cast."""
        x, update = operands
        if not x.dtype == update.dtype == out.dtype:
            return None
        return [(out, x), (out[_box(attrs["starts"], update)], update)]

    def vjp(self, g: Value, y: Value, x: Value, update: Value, *, starts: Shape) -> Sequence[Value | None]:
        """Zero the cotangent of replaced elements."""
        stops = [s + n for s, n in zip(starts, update.shape, strict=True)]
        return g.update_slice(g.full_like(0.0, update.shape), starts=starts), g.slice(starts=starts, stops=stops)

    def batch(self, mapped: Sequence[bool], *operands: Value, starts: Shape) -> Value:
        """Update the whole axis N of both operands."""
        x, update = batching.expand(mapped, operands)
        return x.update_slice(update, starts=(0, *starts))


def _box(starts: Shape, update: Array) -> tuple[Any, ...]:
    return (..., *(slice(s, s + n) for s, n in zip(starts, update.shape, strict=True)))


def _start(axis: int, start: int, extent: int, length: int) -> int:
    """Count `start` from the front. Raises BadAttribute unless `length` entries from there fit into `extent`."""
    first = start + extent if start < 0 else start
    if not 0 <= first <= extent - length:
        expected = (
            f"between {-extent} and {extent - length} on axis {axis}, where {length} of {extent} entries are replaced"
        )
        raise BadAttribute(
            f"attribute starts must be {expected}, but is {start}",
            attribute="starts",
            expected=expected,
            got=str(start),
        )
    return first
