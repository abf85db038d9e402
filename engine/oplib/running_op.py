"""Base of the ops that run over an axis: one result for each entry, of all up to it, from either end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.ir import Value
from engine.graph.op import Op
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import TensorType, normalise_axis
from engine.oplib.slices import cut


class Running(Op):
    """Base: the axis and the direction, and batching over the next axis."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {
        "axis": Attr("int", doc="the axis to run along"),
        "reverse": Attr("bool", False, "whether to run from the end to the front", since=2),
    }
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(4), axis=0),
        Sample(Real(2, 3), axis=-1),
        Sample(Real(2, 3, 2), axis=1, reverse=True),
        Sample(Real(0, 2), axis=0),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front. Raises BadAttribute."""
        return {**attrs, "axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def compose(self, x: Value, *, axis: int, reverse: bool) -> Value | None:
        """From the end: of x turned round, turned back."""
        if not reverse:
            return None
        turned = x.builder.emit(self, (x.flip(axes=(axis,)),), {"axis": axis, "reverse": False})
        return turned.flip(axes=(axis,))

    def batch(self, mapped: Sequence[bool], x: Value, *, axis: int, reverse: bool) -> Value:
        """The next axis."""
        return x.builder.emit(self, (x,), {"axis": axis + 1, "reverse": reverse})


def shifted(x: Value, axis: int, by: int = 1, fill: float = 0.0) -> Value:
    """x moved towards the end of `axis` by so many places, `fill` in front of it; negative ones move to the front."""
    gap = min(abs(by), x.shape[axis])
    start = 0 if by > 0 else gap
    widths = [0] * (2 * x.ndim)
    widths[2 * axis + (by < 0)] = gap
    return cut(x, axis, start, start + x.shape[axis] - gap).pad(pad_width=tuple(widths), fill=fill)
