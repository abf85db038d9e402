"""Flip, roll and tile: entries reordered or repeated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute
from engine.ir.graph import Value
from engine.ir.op import Array, Composite, Namespace, Op, ResultTypes, View
from engine.ir.run_context import RunContext
from engine.ir.sample import Real, Sample
from engine.ir.tensor_type import DTYPES, Shape, TensorType, normalise_axes
from engine.ops.common.batching import shift_axes
from engine.ops.common.support import Indicated
from engine.ops.index.slice import along


class Flip(Indicated, View):
    """y = x with the order of the entries reversed on `axes`; by default, on all axes."""

    name = "flip"
    section = "flip"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {"axes": Attr("ints", None, "axes to reverse; default: all")}
    gradient = "g, flipped"
    samples = (Sample(Real(2, 3)), Sample(Real(2, 3), axes=[-1]), Sample(Real()))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Sort `axes`, counted from the front. Raises BadAttribute."""
        return {"axes": tuple(sorted(normalise_axes(attrs["axes"], types[0].ndim)))}

    def infer(self, x: TensorType, *, axes: Sequence[int]) -> ResultTypes:
        """Return x's type."""
        return x

    def view(self, xp: Namespace, x: Array, *, axes: Sequence[int]) -> Array:
        """Return a view with negative strides; the ellipsis keeps a 0-d tensor an array."""
        return x[(..., *(slice(None, None, -1 if i in axes else None) for i in range(x.ndim)))]

    def vjp(self, g: Value, y: Value, x: Value, *, axes: Sequence[int]) -> Sequence[Value | None]:
        """Flip g: a flip is its own inverse, and so its own adjoint."""
        return (g.flip(axes=axes),)

    def batch(self, mapped: Sequence[bool], x: Value, *, axes: Sequence[int]) -> Value:
        """Flip the next axes. Scalars stay as they are, since an empty list would mean all axes."""
        return x.flip(axes=shift_axes(axes)) if axes else x


class Roll(Indicated, Op):
    """y[(i + shift) mod n] = x[i] on each of `axes`; without `axes`, on the flattened tensor.

    Give one shift for each axis, or one shift without `axes`. Negative shifts move entries towards the front.
    """

    name = "roll"
    section = "flip"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {
        "shifts": Attr("ints", doc="distance to move, for each axis"),
        "axes": Attr("ints", None, "axes to move along; default: the flattened tensor"),
    }
    gradient = "g, rolled back"
    samples = (
        Sample(Real(2, 3), shifts=[-4]),
        Sample(Real(2, 3), shifts=[1, 7], axes=[0, -1]),
        Sample(Real(5), shifts=[2], axes=[0]),
        Sample(Real(), shifts=[3]),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise axes to count from the front, and shifts to [0, extent). Raises BadAttribute."""
        shape = types[0].shape
        axes = normalise_axes(attrs["axes"], len(shape)) if attrs["axes"] else None
        extents = [types[0].size] if axes is None else [shape[a] for a in axes]
        _check_shifts(attrs["shifts"], len(extents), axes is None)
        return {"shifts": tuple(s % max(n, 1) for s, n in zip(attrs["shifts"], extents, strict=True)), "axes": axes}

    def infer(self, x: TensorType, *, shifts: Shape, axes: Shape | None) -> ResultTypes:
        """Return x's type."""
        return x

    def compose(self, x: Value, *, shifts: Shape, axes: Shape | None) -> Value | None:
        """Roll several axes one after the other, and the flattened tensor as a single axis."""
        if axes is None:
            return x.flatten().roll(shifts=shifts, axes=(0,)).reshape(shape=x.shape)
        if len(axes) == 1:
            return None
        for distance, axis in zip(shifts, axes, strict=True):
            x = x.roll(shifts=(distance,), axes=(axis,))
        return x

    def forward(self, run: RunContext, x: Array, *, out: Array, shifts: Shape, axes: Shape) -> None:
        """Make the two copies of `as_copies`."""
        for destination, source in self.as_copies(run.xp, (x,), out, {"shifts": shifts, "axes": axes}):
            destination[...] = source

    def as_copies(
        self, xp: Namespace, operands: Sequence[Array], out: Array, attrs: Mapping[str, Any]
    ) -> Sequence[tuple[Array, Array]]:
        """Return copies of the part that stays within the axis and the part that wraps around."""
        (x,), (distance,), (axis,) = operands, attrs["shifts"], attrs["axes"]
        extent = x.shape[axis]
        return [
            (out[along(axis, distance, extent)], x[along(axis, 0, extent - distance)]),
            (out[along(axis, 0, distance)], x[along(axis, extent - distance, extent)]),
        ]

    def vjp(self, g: Value, y: Value, x: Value, *, shifts: Shape, axes: Shape) -> Sequence[Value | None]:
        """Roll g back."""
        return (g.roll(shifts=[-s for s in shifts], axes=axes),)

    def batch(self, mapped: Sequence[bool], x: Value, *, shifts: Shape, axes: Shape) -> Value:
        """Roll along the next axis."""
        return x.roll(shifts=shifts, axes=shift_axes(axes))


def _check_shifts(shifts: Sequence[int], expected: int, flat: bool) -> None:
    if len(shifts) != expected:
        reason = "without axes" if flat else "one for each entry of axes"
        raise BadAttribute(
            f"attribute shifts must have length {expected}, {reason}, but has {len(shifts)}",
            attribute="shifts",
            expected=f"length {expected}",
            got=f"length {len(shifts)}",
        )


class Tile(Composite):
    """y = x repeated `repeats` times along each axis.

    As in NumPy, the shorter of shape and repeats is padded with leading ones.
    """

    name = "tile"
    section = "flip"
    operands = ("x",)
    dtypes = DTYPES
    attrs = {"repeats": Attr("ints", doc="number of repetitions along each axis", minimum=0)}
    gradient = "g, summed over the repetitions"
    samples = (
        Sample(Real(2, 3), repeats=[2, 3]),
        Sample(Real(2), repeats=[3, 1, 2]),
        Sample(Real(2, 3), repeats=[2]),
        Sample(Real(2), repeats=[0]),
        Sample(Real(), repeats=[2]),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Prepend ones, so that there are at least as many repeats as axes."""
        repeats = tuple(attrs["repeats"])
        return {"repeats": (*[1] * (types[0].ndim - len(repeats)), *repeats)}

    def infer(self, x: TensorType, *, repeats: Shape) -> ResultTypes:
        """Return x's type with the extents multiplied by the repeats."""
        return x.with_shape([e * r for e, r in zip(_prepend_ones(x.shape, len(repeats)), repeats, strict=True)])

    def compose(self, x: Value, *, repeats: Shape) -> Value:
        """Repeat axis by axis: insert an axis before it, broadcast, and merge them. The rank thus stays small."""
        y = x.reshape(shape=_prepend_ones(x.shape, len(repeats)))
        for axis, times in enumerate(repeats):
            before, after = math.prod(y.shape[:axis]), math.prod(y.shape[axis:])
            shape = (*y.shape[:axis], times * y.shape[axis], *y.shape[axis + 1 :])
            if times != 1:
                repeated = y.reshape(shape=(before, 1, after)).broadcast_to(shape=(before, times, after))
                y = repeated.reshape(shape=shape)
        return y


def _prepend_ones(shape: Shape, rank: int) -> Shape:
    return (*[1] * (rank - len(shape)), *shape)
