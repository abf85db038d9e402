"""Boxes whose starts are computed: read, and replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.errors import BadAttribute, counted
from engine.graph.ir import Value
from engine.graph.op import Array, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import Shape, TensorType, promote, show_shape
from engine.graph.truth import Truth
from engine.oplib import batching
from engine.oplib.dynamic_boxes import read_box, read_boxes, write_box, write_boxes
from engine.oplib.indices import require_integer
from engine.oplib.operands import one_for_each_axis, require_shape, wrong_shape


def _require_starts(starts: TensorType, x: TensorType, operand: int) -> None:
    """Raise DtypeMismatch, ShapeMismatch unless there is a whole number for each axis of x."""
    require_integer(starts, operand, "starts")
    require_shape(starts, (x.ndim,), operand, "starts", "one start an axis of x")


class SliceAt(Op):
    """y = x[s₀ : s₀ + sizes[0], s₁ : s₁ + sizes[1], …], s being `starts`: int64 [rank], which are computed.

    Each is moved into [0, extent − size], negative ones too, so that there are always as many entries. JAX's
    `lax.dynamic_slice`, which first counts negative starts from the end; PyTorch's x.narrow takes a start on one axis.
    """

    name = "slice_at"
    section = "slice_at"
    operands = ("x", "starts")
    dtypes = DTYPES
    since = 2
    attrs: ClassVar[Mapping[str, Attr]] = {
        "sizes": Attr("ints", doc="extents of the box, one for each axis", minimum=0)
    }
    gradient = "g where the box was, 0 elsewhere; none for starts"
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
        """The sizes. Raises BadAttribute for another number of them than axes, and for one that x does not have."""
        sizes, x = tuple(attrs["sizes"]), types[0]
        if len(sizes) != x.ndim:
            wanted, got = one_for_each_axis(x.ndim), counted(len(sizes), "entry", "entries")
            raise BadAttribute(f"attribute sizes must have {wanted}, but has {got}", expected=wanted, got=got)
        for axis, (size, extent) in enumerate(zip(sizes, x.shape, strict=True)):
            if size > extent:
                wanted = f"at most {extent} on axis {axis}"
                raise BadAttribute(f"attribute sizes must be {wanted}, but is {size}", expected=wanted, got=str(size))
        return {"sizes": sizes}

    def infer(self, x: TensorType, starts: TensorType, *, sizes: Shape) -> ResultTypes:
        """The box. Raises DtypeMismatch, ShapeMismatch."""
        _require_starts(starts, x, 1)
        return x.with_shape(sizes)

    def forward(self, run: RunContext, x: Array, starts: Array, *, out: Array, sizes: Shape) -> None:
        """Copy the box."""
        read_box(run, x, starts, out)

    def vjp(self, g: Value, y: Value, x: Value, starts: Value, *, sizes: Shape) -> Sequence[Value | None]:
        """Put back where it was."""
        return x.full_like(0.0).update_slice_at(g, starts), None

    def batch(self, mapped: Sequence[bool], x: Value, starts: Value, *, sizes: Shape) -> Value:
        """All of N, where the starts are the same; else each box by itself."""
        if not mapped[1]:
            return x.slice_at(starts.pad(pad_width=(1, 0)), sizes=(x.shape[0], *sizes))
        x, starts = batching.expand(mapped, (x, starts))
        return read_boxes(x, starts, sizes)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """None: numbers are only moved."""
        return 0


class UpdateSliceAt(Op):
    """y = x, with `updates` in place of the box of its shape that begins at `starts`: int64 [rank], which are computed.

    Each start is moved into [0, extent − size], negative ones too, so that all of updates lies within. The result has
    the common dtype of x and updates. JAX's `lax.dynamic_update_slice`, which first counts negative starts from the
    end; PyTorch's `slice_scatter` takes a start on one axis, as a number.
    """

    name = "update_slice_at"
    section = "slice_at"
    operands = ("x", "updates", "starts")
    dtypes = DTYPES
    since = 2
    gradient = "dx = g, zero where the updates lie; d updates = g there; none for starts"
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
        """x's shape, the common dtype of x and updates. Raises DtypeMismatch, ShapeMismatch."""
        fits = updates.ndim == x.ndim and all(n <= m for n, m in zip(updates.shape, x.shape, strict=True))
        if not fits:
            raise wrong_shape(1, "updates", f"rank {x.ndim} and at most shape {show_shape(x.shape)}, as x has", updates)
        _require_starts(starts, x, 2)
        return x.with_dtype(promote(x.dtype, updates.dtype))

    def forward(self, run: RunContext, x: Array, updates: Array, starts: Array, *, out: Array) -> None:
        """Copy x, then the updates over it."""
        out[...] = x
        write_box(run, out, starts, updates)

    def vjp(self, g: Value, y: Value, x: Value, updates: Value, starts: Value) -> Sequence[Value | None]:
        """What was replaced has no say."""
        return (
            g.update_slice_at(g.full_like(0.0, updates.shape), starts),
            g.slice_at(starts, sizes=updates.shape),
            None,
        )

    def batch(self, mapped: Sequence[bool], x: Value, updates: Value, starts: Value) -> Value:
        """All of N, where the starts are the same; else each box by itself."""
        if not mapped[2]:
            x, updates = batching.expand(mapped[:2], (x, updates))
            return x.update_slice_at(updates, starts.pad(pad_width=(1, 0)))
        x, updates, starts = batching.expand(mapped, (x, updates, starts))
        dtype = promote(x.dtype, updates.dtype)
        return write_boxes(x, updates, starts).cast(dtype=dtype)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """None: numbers are only moved."""
        return 0
