"""Tensors cut apart along an axis, into several results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.errors import BadAttribute, OverBudget
from engine.graph.ir import Value
from engine.graph.limits import Limits
from engine.graph.op import Array, Composite, Namespace, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import Shape, TensorType, normalise_axis
from engine.oplib.operands import require_axes, with_extent
from engine.oplib.slices import along, bounds

_AXIS = Attr("int", 0, "the axis that is cut")
#: every part may be read by a node of its own
MOST_PARTS = Limits.nodes


class Split(Op):
    """y0, y1, … = x cut along `axis` into parts of `sizes`, which add up to the extent; a part may be empty.

    Several results, read through get_output.
    """

    name = "split"
    section = "split"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {"sizes": Attr("ints", doc="the parts' extents on the axis", minimum=0, longest=MOST_PARTS), "axis": _AXIS}
    gradient = "the parts' cotangents, joined; zeros for parts that are not read"
    several = True
    samples = (
        Sample(Real(5, 2), sizes=[2, 0, 3]),
        Sample(Real(2, 3), sizes=[1, 2], axis=-1),
        Sample(Real(3), sizes=[3]),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front. Raises BadAttribute, ShapeMismatch."""
        axis, sizes = _axis(attrs, types[0]), tuple(attrs["sizes"])
        if not sizes:
            raise BadAttribute("attribute sizes must name at least one part", expected="at least one", got="none")
        extent, total = types[0].shape[axis], sum(sizes)
        if total != extent:
            wanted = f"{extent}, the extent of axis {axis}"
            raise BadAttribute(
                f"attribute sizes must add up to {wanted}, but adds up to {total}", expected=wanted, got=str(total)
            )
        return {"sizes": sizes, "axis": axis}

    def infer(self, x: TensorType, *, sizes: Shape, axis: int) -> ResultTypes:
        """One type a part."""
        return _parts(x, sizes, axis)

    def forward(self, run: RunContext, x: Array, *, out: tuple[Array, ...], sizes: Shape, axis: int) -> None:
        """Copy each part."""
        for part, (start, stop) in zip(out, bounds(sizes), strict=True):
            part[...] = x[along(axis, start, stop)]

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: tuple[Array, ...], attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]]:
        """One of each part."""
        (x,), places = operands, bounds(attrs["sizes"])
        return [(part, x[along(attrs["axis"], *place)]) for part, place in zip(out, places, strict=True)]

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value, *, sizes: Shape, axis: int) -> Sequence[Value | None]:
        """Joined; one block of zeros for each run of unread parts."""
        blocks: list[Value] = []
        for read, run in groupby(zip(g, sizes, strict=True), key=lambda part: part[0] is not None):
            parts = list(run)
            missing = with_extent(x.shape, axis, sum(size for _, size in parts))
            blocks += [part for part, _ in parts if part is not None] if read else [x.full_like(0.0, missing)]
        return (blocks[0].cat(*blocks[1:], axis=axis),)

    def batch(self, mapped: Sequence[bool], x: Value, *, sizes: Shape, axis: int) -> Value:
        """The next axis."""
        return x.split(sizes=sizes, axis=axis + 1)


class Chunk(Composite):
    """y0, y1, … = x cut along `axis` into at most `chunks` parts of extent ⌈n / chunks⌉, the last of what is left.

    As PyTorch: there may be fewer parts than asked for (6 entries in 4 chunks: 2, 2, 2); an empty axis gives `chunks`
    empty parts. Several results, read through get_output.
    """

    name = "chunk"
    section = "split"
    aliases: ClassVar[Mapping[str, str]] = {"ChunkOp": "born", "Chunk": "born"}
    operands = ("x",)
    dtypes = DTYPES
    attrs = {"chunks": Attr("int", doc="the most parts to cut into", minimum=1), "axis": _AXIS}
    gradient = "the parts' cotangents, joined; zeros for parts that are not read"
    several = True
    samples = (Sample(Real(5, 2), chunks=2), Sample(Real(2, 6), chunks=4, axis=-1), Sample(Real(0), chunks=2))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front. Raises BadAttribute, ShapeMismatch."""
        return {"chunks": attrs["chunks"], "axis": _axis(attrs, types[0])}

    def infer(self, x: TensorType, *, chunks: int, axis: int) -> ResultTypes:
        """One type a part. Raises OverBudget."""
        return _parts(x, _chunk_sizes(x.shape[axis], chunks), axis)

    def compose(self, x: Value, *, chunks: int, axis: int) -> Value:
        """A split into these sizes."""
        return x.split(sizes=_chunk_sizes(x.shape[axis], chunks), axis=axis)


def _axis(attrs: Mapping[str, Any], x: TensorType) -> int:
    require_axes(x, 1, "to cut")
    return normalise_axis(attrs["axis"], x.ndim)


def _parts(x: TensorType, sizes: Sequence[int], axis: int) -> tuple[TensorType, ...]:
    return tuple(x.with_shape(with_extent(x.shape, axis, size)) for size in sizes)


def _chunk_sizes(extent: int, chunks: int) -> Shape:
    size = -(-extent // chunks)
    count = -(-extent // size) if size else chunks
    if count > MOST_PARTS:
        wanted, got = f"at most {MOST_PARTS} parts", f"{count} parts"
        raise OverBudget(f"can make {wanted}, but these would be {got}", expected=wanted, got=got)
    return (*[size] * (count - 1), extent - size * (count - 1))
