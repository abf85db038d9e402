"""Concatenation, stacking, splitting, and records and maps stored as one tensor of equal parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, OverBudget, ShapeMismatch
from engine.ir.graph import Value
from engine.ir.op import Array, Composite, Namespace, Op, ResultTypes
from engine.ir.run_context import Limits, RunContext
from engine.ir.sample import Bools, Real, Sample
from engine.ir.tensor_type import DTYPES, Shape, TensorType, normalise_axis, promote, show_shape
from engine.ops.common import batching
from engine.ops.common.numerics import require_axes, with_extent
from engine.ops.common.support import Indicated, Selecting
from engine.ops.index.slice import along, bounds, slice_axis

_AXIS = Attr("int", 0, "axis to split")
#: limit on the parts of a tensor, since each part may be read by its own node
MOST_PARTS = Limits.nodes


class Cat(Indicated, Op):
    """y = the operands, joined along `axis`; their other extents must be equal.

    The result has their common dtype. `sizes`, if given, must be their extents on the axis.
    """

    name = "cat"
    section = "cat"
    aliases: ClassVar[Mapping[str, str]] = {"CatOp": "born", "Cat": "born, cjc"}
    operands = ("x...",)
    dtypes = DTYPES
    attrs = {
        "axis": Attr("int", 0, "axis to join along"),
        "sizes": Attr("ints", None, "the operands' extents on the axis, checked if given", max_length=Limits.nodes),
    }
    gradient = "g, split into the operands' parts"
    samples = (
        Sample(Real(2, 3), Real(1, 3), sizes=[2, 1]),
        Sample(Real(2, 1), Real(2, 0), Real(2, 2), axis=-1),
        Sample(Real(2), Bools(3)),
        Sample(Real(2)),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis, and check and drop `sizes`. Raises BadAttribute, ShapeMismatch."""
        require_axes(types[0], 1, "to join along (stack makes one)")
        axis = normalise_axis(attrs["axis"], types[0].ndim)
        for i, type in enumerate(types):
            _require_same_shape(types[0], type, axis, i)
        extents = [t.shape[axis] for t in types]
        if attrs["sizes"] and list(attrs["sizes"]) != extents:
            expected, received = show_shape(attrs["sizes"]), show_shape(extents)
            raise ShapeMismatch(
                f"sizes is {expected}, but the operands have {received} on the axis",
                attribute="sizes",
                expected=expected,
                got=received,
            )
        return {"axis": axis, "sizes": None}

    def infer(self, *types: TensorType, axis: int, sizes: None) -> ResultTypes:
        """Return the common dtype, with the sum of the extents on the axis."""
        shape = with_extent(types[0].shape, axis, sum(t.shape[axis] for t in types))
        return TensorType(shape, promote(*{t.dtype for t in types}))

    def forward(self, run: RunContext, *xs: Array, out: Array, axis: int, sizes: None) -> None:
        """Copy each operand into its place."""
        for x, (start, stop) in zip(xs, bounds([x.shape[axis] for x in xs]), strict=True):
            out[along(axis, start, stop)] = x

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]] | None:
        """Return one copy per operand; None if an operand needs a cast."""
        axis = attrs["axis"]
        intervals = bounds([x.shape[axis] for x in operands])
        if any(x.dtype != out.dtype for x in operands):
            return None
        return [(out[along(axis, *interval)], x) for x, interval in zip(operands, intervals, strict=True)]

    def vjp(self, g: Value, y: Value, *xs: Value, axis: int, sizes: None) -> Sequence[Value | None]:
        """Slice g into the operands' parts."""
        intervals = bounds([x.shape[axis] for x in xs])
        return [
            slice_axis(g, axis, *interval) if x.type.is_differentiable else None
            for x, interval in zip(xs, intervals, strict=True)
        ]

    def batch(self, mapped: Sequence[bool], *xs: Value, axis: int, sizes: None) -> Value:
        """Join along the next axis, with N on all operands."""
        first, *others = batching.expand(mapped, xs)
        return first.cat(*others, axis=axis + 1)


def _require_same_shape(first: TensorType, type: TensorType, axis: int, operand: int) -> None:
    is_same = type.ndim == first.ndim and with_extent(type.shape, axis, 0) == with_extent(first.shape, axis, 0)
    if not is_same:
        extents = ", ".join("any" if i == axis else str(extent) for i, extent in enumerate(first.shape))
        received = show_shape(type.shape)
        raise ShapeMismatch(
            f"operand {operand} (x) must have shape [{extents}], like operand 0 except on axis {axis}, but has "
            f"{received}",
            operand=operand,
            expected=f"[{extents}]",
            got=received,
        )


class Stack(Composite):
    """y = the operands, all of one shape, joined along a new axis at position `axis` of the result.

    The result has their common dtype.
    """

    name = "stack"
    section = "cat"
    operands = ("x...",)
    dtypes = DTYPES
    attrs = {"axis": Attr("int", 0, "position of the new axis in the result")}
    gradient = "for each operand, its part of g"
    samples = (Sample(Real(2, 3), Real(2, 3)), Sample(Real(2), Bools(2), Real(2), axis=-1), Sample(Real()))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis to count from the front of the result. Raises BadAttribute."""
        return {"axis": normalise_axis(attrs["axis"], types[0].ndim + 1)}

    def infer(self, *types: TensorType, axis: int) -> ResultTypes:
        """Return the common dtype, with a new axis whose extent is the number of operands. Raises ShapeMismatch."""
        shape = types[0].shape
        for i, type in enumerate(types):
            if type.shape != shape:
                expected, received = show_shape(shape), show_shape(type.shape)
                raise ShapeMismatch(
                    f"operand {i} (x) must have shape {expected}, like operand 0, but has {received}",
                    operand=i,
                    expected=expected,
                    got=received,
                )
        return TensorType((*shape[:axis], len(types), *shape[axis:]), promote(*{t.dtype for t in types}))

    def compose(self, *xs: Value, axis: int) -> Value:
        """Insert an axis of extent 1 in each operand, and join along it."""
        first, *others = (x.unsqueeze(axes=(axis,)) for x in xs)
        return first.cat(*others, axis=axis)


class Split(Selecting, Op):
    """y0, y1, … = x split along `axis` into parts of `sizes`, which add up to the extent; a part may be empty."""

    name = "split"
    section = "split"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {
        "sizes": Attr("ints", doc="extents of the parts on the axis", minimum=0, max_length=MOST_PARTS),
        "axis": _AXIS,
    }
    gradient = "the parts' cotangents, joined; zeros for parts that are not read"
    several = True
    samples = (
        Sample(Real(5, 2), sizes=[2, 0, 3]),
        Sample(Real(2, 3), sizes=[1, 2], axis=-1),
        Sample(Real(3), sizes=[3]),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis to count from the front. Raises BadAttribute, ShapeMismatch."""
        axis, sizes = _normalise_axis(attrs, types[0]), tuple(attrs["sizes"])
        if not sizes:
            raise BadAttribute(
                "attribute sizes must name at least one part", attribute="sizes", expected="at least one", got="none"
            )
        extent, total = types[0].shape[axis], sum(sizes)
        if total != extent:
            expected = f"{extent}, the extent of axis {axis}"
            raise BadAttribute(
                f"attribute sizes must add up to {expected}, but adds up to {total}",
                attribute="sizes",
                expected=expected,
                got=str(total),
            )
        return {"sizes": sizes, "axis": axis}

    def infer(self, x: TensorType, *, sizes: Shape, axis: int) -> ResultTypes:
        """Return one type per part."""
        return _part_types(x, sizes, axis)

    def forward(self, run: RunContext, x: Array, *, out: tuple[Array, ...], sizes: Shape, axis: int) -> None:
        """Copy each part."""
        for part, (start, stop) in zip(out, bounds(sizes), strict=True):
            part[...] = x[along(axis, start, stop)]

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: tuple[Array, ...], attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]]:
        """Return one copy per part."""
        (x,), intervals = operands, bounds(attrs["sizes"])
        return [(part, x[along(attrs["axis"], *interval)]) for part, interval in zip(out, intervals, strict=True)]

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value, *, sizes: Shape, axis: int) -> Sequence[Value | None]:
        """Concatenate the parts' cotangents, with one block of zeros for each run of unread parts."""
        blocks: list[Value] = []
        for is_read, run in groupby(zip(g, sizes, strict=True), key=lambda part: part[0] is not None):
            parts = list(run)
            missing = with_extent(x.shape, axis, sum(size for _, size in parts))
            blocks += [part for part, _ in parts if part is not None] if is_read else [x.full_like(0.0, missing)]
        return (blocks[0].cat(*blocks[1:], axis=axis),)

    def batch(self, mapped: Sequence[bool], x: Value, *, sizes: Shape, axis: int) -> Value:
        """Split along the next axis."""
        return x.split(sizes=sizes, axis=axis + 1)


class Chunk(Composite):
    """y0, y1, … = x split along `axis` into at most `chunks` parts of extent ⌈n / chunks⌉; the last may be smaller.

    As in PyTorch, there may be fewer parts than requested (6 entries in 4 chunks: 2, 2, 2). An empty axis gives
    `chunks` empty parts.
    """

    name = "chunk"
    section = "split"
    aliases: ClassVar[Mapping[str, str]] = {"ChunkOp": "born", "Chunk": "born"}
    operands = ("x",)
    dtypes = DTYPES
    attrs = {"chunks": Attr("int", doc="maximum number of parts", minimum=1), "axis": _AXIS}
    gradient = "the parts' cotangents, joined; zeros for parts that are not read"
    several = True
    samples = (Sample(Real(5, 2), chunks=2), Sample(Real(2, 6), chunks=4, axis=-1), Sample(Real(0), chunks=2))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis to count from the front. Raises BadAttribute, ShapeMismatch."""
        return {"chunks": attrs["chunks"], "axis": _normalise_axis(attrs, types[0])}

    def infer(self, x: TensorType, *, chunks: int, axis: int) -> ResultTypes:
        """Return one type per part. Raises OverBudget."""
        return _part_types(x, _chunk_sizes(x.shape[axis], chunks), axis)

    def compose(self, x: Value, *, chunks: int, axis: int) -> Value:
        """Write a split into equal sizes."""
        return x.split(sizes=_chunk_sizes(x.shape[axis], chunks), axis=axis)


def _normalise_axis(attrs: Mapping[str, Any], x: TensorType) -> int:
    require_axes(x, 1, "to cut")
    return normalise_axis(attrs["axis"], x.ndim)


def _part_types(x: TensorType, sizes: Sequence[int], axis: int) -> tuple[TensorType, ...]:
    return tuple(x.with_shape(with_extent(x.shape, axis, size)) for size in sizes)


def _chunk_sizes(extent: int, chunks: int) -> Shape:
    size = -(-extent // chunks)
    count = -(-extent // size) if size else chunks
    if count > MOST_PARTS:
        expected, received = f"at most {MOST_PARTS} parts", f"{count} parts"
        raise OverBudget(
            f"makes {expected}, but this would be {received}", attribute="chunks", expected=expected, got=received
        )
    return (*[size] * (count - 1), extent - size * (count - 1))


class Part(Composite):
    """Base: one of `total` equal parts of the leading axis. A subclass sets the names of its two attributes."""

    section = "containers"
    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    gradient: ClassVar[str] = "g in that part, 0 in the others"
    index: ClassVar[str]
    total: ClassVar[str]

    def infer(self, x: TensorType, **attrs: int) -> ResultTypes:
        """Return x's type with the leading extent divided by `total`. Raises BadAttribute, ShapeMismatch."""
        index, total = attrs[self.index], attrs[self.total]
        if index >= total:
            expected = f"less than {self.total} = {total}"
            raise BadAttribute(
                f"attribute {self.index} must be {expected}, but is {index}",
                attribute=self.index,
                expected=expected,
                got=str(index),
            )
        require_axes(x, 1, "to hold parts")
        extent = x.shape[0]
        if extent % total:
            expected = f"a leading extent that {self.total} = {total} divides"
            raise ShapeMismatch(
                f"operand 0 (x) must have {expected}, but has {extent}", operand=0, expected=expected, got=str(extent)
            )
        return x.with_shape(with_extent(x.shape, 0, extent // total))

    def compose(self, x: Value, **attrs: int) -> Value:
        """Slice the leading axis."""
        size = x.shape[0] // attrs[self.total]
        return slice_axis(x, 0, attrs[self.index] * size, (attrs[self.index] + 1) * size)


class StructField(Part):
    """One field of a record that is stored as one tensor.

    The leading axis is split into `total_fields` equal parts, and y is the part `field_index`; the axis remains.
    """

    name = "struct_field"
    aliases: ClassVar[Mapping[str, str]] = {"StructField": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {
        "field_index": Attr("int", doc="position of the field, from 0", minimum=0),
        "total_fields": Attr("int", doc="number of fields in the record", minimum=1),
    }
    index, total = "field_index", "total_fields"
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(6, 2), field_index=1, total_fields=3),
        Sample(Real(2), field_index=0, total_fields=2),
    )


class MapLookup(Part):
    """The value under one key of a map that is stored as one tensor, with keys in insertion order.

    The leading axis is split into `total_keys` equal parts, and y is the part `key_index`; the axis remains.
    """

    name = "map_lookup"
    aliases: ClassVar[Mapping[str, str]] = {"MapLookup": "cjc"}
    attrs: ClassVar[Mapping[str, Attr]] = {
        "key_index": Attr("int", doc="position of the key in insertion order, from 0", minimum=0),
        "total_keys": Attr("int", doc="number of keys in the map", minimum=1),
    }
    index, total = "key_index", "total_keys"
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(4, 2), key_index=1, total_keys=2),
        Sample(Real(3), key_index=2, total_keys=3),
    )
