"""Tensors joined along an axis, cut apart along one, and kept as one tensor of equal parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.errors import ShapeMismatch
from engine.graph.ir import Value
from engine.graph.limits import Limits
from engine.graph.op import Array, Composite, Namespace, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Bools, Real, Sample
from engine.graph.tensor_type import TensorType, normalise_axis, promote, show_shape
from engine.oplib import batching
from engine.oplib.operands import require_axes, with_extent
from engine.oplib.slices import along, bounds, cut


class Cat(Op):
    """y = the operands one after the other along `axis`; elsewhere their extents are the same.

    The result has their common dtype. `sizes`, where given, must be their extents on the axis.
    """

    name = "cat"
    section = "cat"
    aliases: ClassVar[Mapping[str, str]] = {"CatOp": "born", "Cat": "born, cjc"}
    operands = ("x...",)
    dtypes = DTYPES
    attrs = {
        "axis": Attr("int", 0, "the axis to join along"),
        "sizes": Attr("ints", None, "the operands' extents on the axis, checked where given", longest=Limits.nodes),
    }
    gradient = "g, cut apart"
    samples = (
        Sample(Real(2, 3), Real(1, 3), sizes=[2, 1]),
        Sample(Real(2, 1), Real(2, 0), Real(2, 2), axis=-1),
        Sample(Real(2), Bools(3)),
        Sample(Real(2)),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front; `sizes` checked and dropped. Raises BadAttribute, ShapeMismatch."""
        require_axes(types[0], 1, "to join along (stack makes one)")
        axis = normalise_axis(attrs["axis"], types[0].ndim)
        for i, type in enumerate(types):
            _require_alike(types[0], type, axis, i)
        extents = [t.shape[axis] for t in types]
        if attrs["sizes"] and list(attrs["sizes"]) != extents:
            wanted, got = show_shape(attrs["sizes"]), show_shape(extents)
            raise ShapeMismatch(f"sizes is {wanted}, but the operands have {got} on the axis", expected=wanted, got=got)
        return {"axis": axis, "sizes": None}

    def infer(self, *types: TensorType, axis: int, sizes: None) -> ResultTypes:
        """The extents on the axis add up."""
        shape = with_extent(types[0].shape, axis, sum(t.shape[axis] for t in types))
        return TensorType(shape, promote(*{t.dtype for t in types}))

    def forward(self, run: RunContext, *xs: Array, out: Array, axis: int, sizes: None) -> None:
        """Copy each into its place."""
        for x, (start, stop) in zip(xs, bounds([x.shape[axis] for x in xs]), strict=True):
            out[along(axis, start, stop)] = x

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]] | None:
        """One of each operand, where none is cast."""
        axis = attrs["axis"]
        places = bounds([x.shape[axis] for x in operands])
        if any(x.dtype != out.dtype for x in operands):
            return None
        return [(out[along(axis, *place)], x) for x, place in zip(operands, places, strict=True)]

    def vjp(self, g: Value, y: Value, *xs: Value, axis: int, sizes: None) -> Sequence[Value | None]:
        """To each operand its part."""
        places = bounds([x.shape[axis] for x in xs])
        return [cut(g, axis, *place) if x.type.is_differentiable else None for x, place in zip(xs, places, strict=True)]

    def batch(self, mapped: Sequence[bool], *xs: Value, axis: int, sizes: None) -> Value:
        """The next axis, with N on all operands."""
        first, *others = batching.expand(mapped, xs)
        return first.cat(*others, axis=axis + 1)


def _require_alike(first: TensorType, type: TensorType, axis: int, operand: int) -> None:
    alike = type.ndim == first.ndim and with_extent(type.shape, axis, 0) == with_extent(first.shape, axis, 0)
    if not alike:
        wanted = ", ".join("any" if i == axis else str(extent) for i, extent in enumerate(first.shape))
        got = show_shape(type.shape)
        raise ShapeMismatch(
            f"operand {operand} (x) must have shape [{wanted}], as operand 0 has off axis {axis}, but has {got}",
            operand=operand,
            expected=f"[{wanted}]",
            got=got,
        )


class Stack(Composite):
    """y = the operands, all of one shape, one after the other along a new axis; `axis` is its place in the result.

    The result has their common dtype.
    """

    name = "stack"
    section = "cat"
    operands = ("x...",)
    dtypes = DTYPES
    attrs = {"axis": Attr("int", 0, "the new axis, counted in the result")}
    gradient = "to each operand its part of g"
    samples = (Sample(Real(2, 3), Real(2, 3)), Sample(Real(2), Bools(2), Real(2), axis=-1), Sample(Real()))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front of the result. Raises BadAttribute."""
        return {"axis": normalise_axis(attrs["axis"], types[0].ndim + 1)}

    def infer(self, *types: TensorType, axis: int) -> ResultTypes:
        """A new extent: the number of operands. Raises ShapeMismatch."""
        shape = types[0].shape
        for i, type in enumerate(types):
            if type.shape != shape:
                wanted, got = show_shape(shape), show_shape(type.shape)
                raise ShapeMismatch(
                    f"operand {i} (x) must have shape {wanted}, as operand 0 has, but has {got}",
                    operand=i,
                    expected=wanted,
                    got=got,
                )
        return TensorType((*shape[:axis], len(types), *shape[axis:]), promote(*{t.dtype for t in types}))

    def compose(self, *xs: Value, axis: int) -> Value:
        """Each with an axis of extent 1, joined along it."""
        first, *others = (x.unsqueeze(axes=(axis,)) for x in xs)
        return first.cat(*others, axis=axis)
