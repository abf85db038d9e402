"""A tensor with a box of it replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.errors import BadAttribute, counted
from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Bools, Real, Sample
from engine.graph.tensor_type import Shape, TensorType, promote, show_shape
from engine.oplib import batching
from engine.oplib.operands import one_for_each_axis, wrong_shape


class UpdateSlice(Op):
    """y = x, with `update` in place of the box of its shape that begins at `starts`, one entry for each axis.

    A negative start counts from the end, as in slice; a box that reaches beyond x is refused, not moved. The result has
    the common dtype of x and update.
    """

    name = "update_slice"
    section = "update_slice"
    operands = ("x", "update")
    dtypes = DTYPES
    attrs = {"starts": Attr("ints", doc="first position of the update on each axis")}
    gradient = "dx = g, zero where the update lies; d update = g there"
    samples = (
        Sample(Real(4, 5), Real(2, 3), starts=[1, 2]),
        Sample(Real(3, 4), Real(3, 1), starts=[0, -1]),
        Sample(Real(3), Bools(2), starts=[-3]),
        Sample(Real(), Real(), starts=[]),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """`starts` counted from the front. Raises BadAttribute, ShapeMismatch."""
        x, update = types
        if update.ndim != x.ndim or any(n > m for n, m in zip(update.shape, x.shape, strict=True)):
            raise wrong_shape(1, "update", f"rank {x.ndim} and at most shape {show_shape(x.shape)}, as x has", update)
        starts = attrs["starts"]
        if len(starts) != x.ndim:
            wanted, got = one_for_each_axis(x.ndim), counted(len(starts), "entry", "entries")
            raise BadAttribute(f"attribute starts must have {wanted}, but has {got}", expected=wanted, got=got)
        return {"starts": tuple(map(_start, range(x.ndim), starts, x.shape, update.shape))}

    def infer(self, x: TensorType, update: TensorType, *, starts: Shape) -> ResultTypes:
        """x's shape, the common dtype of both."""
        return x.with_dtype(promote(x.dtype, update.dtype))

    def forward(self, run: RunContext, x: Array, update: Array, *, out: Array, starts: Shape) -> None:
        """Copy x, then the update over it."""
        out[...] = x
        out[_box(starts, update)] = update

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]] | None:
        """The same two, where none is cast."""
        x, update = operands
        if not x.dtype == update.dtype == out.dtype:
            return None
        return [(out, x), (out[_box(attrs["starts"], update)], update)]

    def vjp(self, g: Value, y: Value, x: Value, update: Value, *, starts: Shape) -> Sequence[Value | None]:
        """What was replaced has no say."""
        stops = [s + n for s, n in zip(starts, update.shape, strict=True)]
        return g.update_slice(g.full_like(0.0, update.shape), starts=starts), g.slice(starts=starts, stops=stops)

    def batch(self, mapped: Sequence[bool], *operands: Value, starts: Shape) -> Value:
        """All of N, on both operands."""
        x, update = batching.expand(mapped, operands)
        return x.update_slice(update, starts=(0, *starts))


def _box(starts: Shape, update: Array) -> tuple[Any, ...]:
    return (..., *(slice(s, s + n) for s, n in zip(starts, update.shape, strict=True)))


def _start(axis: int, start: int, extent: int, length: int) -> int:
    """`start` counted from the front. Raises BadAttribute unless `length` entries from there lie within `extent`."""
    first = start + extent if start < 0 else start
    if not 0 <= first <= extent - length:
        wanted = f"between {-extent} and {extent - length} on axis {axis}, where {length} of {extent} are replaced"
        raise BadAttribute(f"attribute starts must be {wanted}, but is {start}", expected=wanted, got=str(start))
    return first
