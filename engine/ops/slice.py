"""Boxes and single indices: cut out, put into a larger tensor, read and replaced at computed starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.errors import BadAttribute, counted
from engine.graph.ir import Value
from engine.graph.op import Array, Composite, Namespace, Op, ResultTypes, View
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import Shape, TensorType, normalise_axis
from engine.oplib.fill import FILL_AS, filled
from engine.oplib.operands import require_axes
from engine.oplib.slices import cut, spread_out
from engine.rewrites.movement import unchanged


class Slice(View):
    """y = x[starts[0]:stops[0]:steps[0], starts[1]:stops[1]:steps[1], …]: one entry for each axis.

    A list may be shorter: the axes that it does not reach are whole, or every position of theirs is read. Bounds as
    NumPy's: negative ones count from the end, and beyond an end means at that end. Steps are at least 1.
    """

    name = "slice"
    section = "slice"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {
        "starts": Attr("ints", None, "first position on each axis; absent: 0"),
        "stops": Attr("ints", None, "the position to stop before, on each axis; absent: the extent"),
        "steps": Attr("ints", None, "distance between positions on each axis; absent: 1", minimum=1),
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
        """Bounds from 0 to the extent, none beyond the last position that is read. Raises BadAttribute."""
        extents = types[0].shape
        given = [_entries(name, attrs[name], len(extents)) for name in self.attrs]
        bounds = map(slice, *given)
        spans = [_span(bound, extent) for bound, extent in zip(bounds, extents, strict=True)]
        return {
            "starts": tuple(s.start for s in spans),
            "stops": tuple(s.stop for s in spans),
            "steps": tuple(s.step for s in spans),
        }

    def infer(self, x: TensorType, *, starts: Shape, stops: Shape, steps: Shape) -> ResultTypes:
        """The number of positions on each axis."""
        return x.with_shape([_count(range(*bounds)) for bounds in zip(starts, stops, steps, strict=True)])

    def view(self, xp: Namespace, x: Array, *, starts: Shape, stops: Shape, steps: Shape) -> Array:
        """NumPy's basic indexing; the ellipsis keeps a 0-d tensor an array."""
        return x[(..., *map(slice, starts, stops, steps))]

    def leading_part(self, read: Shape, operand: Shape, attrs: Mapping[str, Any]) -> Shape:
        """As much, where it begins at the beginning and leaves nothing out."""
        return read if not any(attrs["starts"]) and set(attrs["steps"]) <= {1} else operand

    def vjp(self, g: Value, y: Value, x: Value, *, starts: Shape, stops: Shape, steps: Shape) -> Sequence[Value | None]:
        """Spread the entries out to their distances, then fill up to the ends with zeros."""
        for axis, step in enumerate(steps):
            g = spread_out(g, axis, step)
        after = [extent - stop for extent, stop in zip(x.shape, stops, strict=True)]
        return (g.pad(pad_width=tuple(chain.from_iterable(zip(starts, after, strict=True)))),)

    def batch(self, mapped: Sequence[bool], x: Value, *, starts: Shape, stops: Shape, steps: Shape) -> Value:
        """All of N."""
        return x.slice(starts=(0, *starts), stops=(x.shape[0], *stops), steps=(1, *steps))


def _entries(name: str, given: Sequence[int] | None, ndim: int) -> Sequence[int | None]:
    """One for each axis: None from where the list ends."""
    named = given or ()
    if len(named) > ndim:
        wanted = f"at most {counted(ndim, 'entry', 'entries')}, one for each axis"
        got = counted(len(named), "entry", "entries")
        raise BadAttribute(f"attribute {name} must have {wanted}, but has {got}", expected=wanted, got=got)
    return [*named, *[None] * (ndim - len(named))]


def _span(bounds: slice, extent: int) -> range:
    """The positions; of the ranges that say the same, the one with the least stop and step."""
    span = range(*bounds.indices(extent))
    count = _count(span)
    return range(span[0], span[-1] + 1, span.step) if count > 1 else range(span.start, span.start + count)


def _count(span: range) -> int:
    """The length, also of what is beyond `len`: an extent that is only planned with may be any number."""
    return max(0, -(-(span.stop - span.start) // span.step))


class Select(Composite):
    """y = x at one `index` along `axis`, without that axis: x[index], x[:, index], …

    A negative index counts from the end. As PyTorch's select; `gather` reads at many indices.
    """

    name = "select"
    section = "slice"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {
        "index": Attr("int", doc="the position to read at"),
        "axis": Attr("int", 0, "the axis that is read at one position"),
    }
    gradient = "g at the index, 0 elsewhere"
    samples = (
        Sample(Real(3, 4), index=1),
        Sample(Real(2, 3, 2), index=-1, axis=1),
        Sample(Real(3), index=0, axis=-1),
        Sample(Ints(2, 3, high=9), index=-2),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Axis and index counted from the front. Raises BadAttribute, ShapeMismatch."""
        require_axes(types[0], 1, "to select on")
        axis = normalise_axis(attrs["axis"], types[0].ndim)
        return {"index": _position(attrs["index"], types[0].shape[axis], axis), "axis": axis}

    def infer(self, x: TensorType, *, index: int, axis: int) -> ResultTypes:
        """The other axes."""
        return x.with_shape((*x.shape[:axis], *x.shape[axis + 1 :]))

    def compose(self, x: Value, *, index: int, axis: int) -> Value:
        """A slice of extent 1, reshaped."""
        return cut(x, axis, index, index + 1).reshape(shape=(*x.shape[:axis], *x.shape[axis + 1 :]))


def _position(index: int, extent: int, axis: int) -> int:
    """`index` counted from the front."""
    if -extent <= index < extent:
        return index % extent
    if not extent:
        wanted, got = f"an entry of axis {axis}", "extent 0"
        raise BadAttribute(f"attribute index must name {wanted}, but its extent is 0", expected=wanted, got=got)
    wanted = f"between {-extent} and {extent - 1} on axis {axis}"
    raise BadAttribute(f"attribute index must be {wanted}, but is {index}", expected=wanted, got=str(index))


class Pad(Op):
    """y = x with `fill` around it: pad_width[2i] entries before and pad_width[2i + 1] after, on each axis i.

    An infinity or NaN is stated by `fill_as`. PyTorch's `functional.pad` lists the last axis first; JAX's and NumPy's
    `pad` have pairs, in the order here.
    """

    name = "pad"
    section = "slice"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {
        "pad_width": Attr("ints", doc="entries before and after, for one axis after the other", minimum=0),
        "fill": Attr("number", 0.0, "the number around x"),
        "fill_as": FILL_AS,
    }
    gradient = "g where x is"
    rewrites = (unchanged,)
    samples = (
        Sample(Real(2, 3), pad_width=[1, 0, 0, 2]),
        Sample(Real(3), pad_width=[2, 1], fill=-1.5),
        Sample(Real(0, 2), pad_width=[1, 1, 0, 0]),
        Sample(Real(), pad_width=[]),
        *(Sample(Real(2, 1), pad_width=[0, 0, 0, 0], fill_as=word) for word in FILL_AS.choices),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The fill as a number of x's dtype. Raises BadAttribute where it is none, and for a wrong count."""
        attrs = filled(attrs, types[0].dtype)
        count, got = 2 * types[0].ndim, len(attrs["pad_width"])
        if got != count:
            wanted = f"{count} entries, before and after each axis"
            raise BadAttribute(f"attribute pad_width must have {wanted}, but has {got}", expected=wanted, got=str(got))
        return {**attrs, "pad_width": tuple(attrs["pad_width"])}

    def infer(self, x: TensorType, *, pad_width: Shape, **attrs: Any) -> ResultTypes:
        """Extents with what is before and after."""
        return x.with_shape([b + e + a for b, e, a in zip(pad_width[::2], x.shape, pad_width[1::2], strict=True)])

    def forward(self, run: RunContext, x: Array, *, out: Array, pad_width: Shape, fill: float, **attrs: Any) -> None:
        """Fill, then copy x into its place."""
        out[...] = fill
        out[(..., *(slice(b, b + e) for b, e in zip(pad_width[::2], x.shape, strict=True)))] = x

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]] | None:
        """The fill everywhere, then x into its place."""
        (x,), starts = operands, attrs["pad_width"][::2]
        fill = xp.broadcast_to(xp.full((), attrs["fill"], out.dtype), out.shape)
        return [(out, fill), (out[(..., *(slice(b, b + e) for b, e in zip(starts, x.shape, strict=True)))], x)]

    def vjp(self, g: Value, y: Value, x: Value, *, pad_width: Shape, **attrs: Any) -> Sequence[Value | None]:
        """What is around x is constant."""
        starts = pad_width[::2]
        return (g.slice(starts=starts, stops=[b + e for b, e in zip(starts, x.shape, strict=True)]),)

    def batch(self, mapped: Sequence[bool], x: Value, *, pad_width: Shape, fill: float, **attrs: Any) -> Value:
        """Nothing before and after N."""
        return x.pad(pad_width=(0, 0, *pad_width), fill=fill)
