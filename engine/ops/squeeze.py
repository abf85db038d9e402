"""Axes of extent 1 put in and taken out, and axes merged: spellings of `reshape`."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.errors import BadAttribute, ShapeMismatch
from engine.graph.ir import Value
from engine.graph.op import Composite, ResultTypes
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import Shape, TensorType, normalise_axes, show_shape


class Relabelled(Composite):
    """Base: x with its elements in place and other axes. A subclass gives `relabel`, the shape of the result."""

    operands: ClassVar[tuple[str, ...]] = ("x",)
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    gradient: ClassVar[str] = "g, reshaped back"

    @abstractmethod
    def relabel(self, shape: Shape, axes: Sequence[int]) -> Shape:
        """The result's shape for an operand of `shape`."""

    def infer(self, x: TensorType, *, axes: Sequence[int]) -> ResultTypes:
        """x's elements in the new shape."""
        return x.with_shape(self.relabel(x.shape, axes))

    def compose(self, x: Value, *, axes: Sequence[int]) -> Value:
        """A reshape."""
        return x.reshape(shape=self.relabel(x.shape, axes))


class Squeeze(Relabelled):
    """y = x without `axes`, each of which must have extent 1; absent: without all axes of extent 1."""

    name = "squeeze"
    section = "squeeze"
    aliases: ClassVar[Mapping[str, str]] = {"Squeeze": "born"}
    attrs = {"axes": Attr("ints", None, "axes of extent 1; absent: all there are")}
    samples = (Sample(Real(1, 3, 1)), Sample(Real(1, 3, 1), axes=[-1]), Sample(Real(2)), Sample(Real()))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """`axes` sorted and counted from the front. Raises BadAttribute, ShapeMismatch."""
        shape = types[0].shape
        if not attrs["axes"]:
            return {"axes": tuple(i for i, extent in enumerate(shape) if extent == 1)}
        axes = tuple(sorted(normalise_axes(attrs["axes"], len(shape))))
        for axis in axes:
            _check_unit(shape, axis)
        return {"axes": axes}

    def relabel(self, shape: Shape, axes: Sequence[int]) -> Shape:
        """The other axes."""
        return tuple(extent for i, extent in enumerate(shape) if i not in axes)


def _check_unit(shape: Shape, axis: int) -> None:
    if shape[axis] != 1:
        raise ShapeMismatch(
            f"axis {axis} has extent {shape[axis]}, and only an axis of extent 1 can be squeezed",
            operand=0,
            expected="extent 1",
            got=f"extent {shape[axis]}",
        )


class Unsqueeze(Relabelled):
    """y = x with axes of extent 1 put in; `axes` are their positions in the result."""

    name = "unsqueeze"
    section = "squeeze"
    aliases: ClassVar[Mapping[str, str]] = {"Unsqueeze": "born"}
    attrs = {"axes": Attr("ints", None, "positions of the new axes in the result; must be given")}
    samples = (Sample(Real(2, 3), axes=[0]), Sample(Real(2, 3), axes=[-1, 1]), Sample(Real(), axes=[0]))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """`axes` sorted and counted from the front of the result. Raises BadAttribute."""
        if not attrs["axes"]:
            raise BadAttribute("attribute axes is required", expected="axes", got="nothing")
        rank = types[0].ndim + len(attrs["axes"])
        return {"axes": tuple(sorted(normalise_axes(attrs["axes"], rank)))}

    def relabel(self, shape: Shape, axes: Sequence[int]) -> Shape:
        """1 at `axes`, x's extents in between."""
        extents = iter(shape)
        return tuple(1 if i in axes else next(extents) for i in range(len(shape) + len(axes)))


class Flatten(Relabelled):
    """y = x with a run of neighbouring axes merged into one; absent: all of them. A 0-d tensor becomes [1]."""

    name = "flatten"
    section = "squeeze"
    attrs = {"axes": Attr("ints", None, "neighbouring axes to merge; absent: all")}
    samples = (Sample(Real(2, 3)), Sample(Real(2, 3, 2, 2), axes=[1, -2]), Sample(Real()), Sample(Real(2, 3), axes=[1]))

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """`axes` sorted and counted from the front. Raises BadAttribute unless they are neighbours."""
        axes = tuple(sorted(normalise_axes(attrs["axes"], types[0].ndim)))
        if axes and axes != tuple(range(axes[0], axes[-1] + 1)):
            wanted, got = "neighbouring axes, such as [1, 2]", show_shape(attrs["axes"])
            raise BadAttribute(f"attribute axes must be {wanted}, but is {got}", expected=wanted, got=got)
        return {"axes": axes}

    def relabel(self, shape: Shape, axes: Sequence[int]) -> Shape:
        """One extent in place of the run."""
        first, last = (axes[0], axes[-1] + 1) if axes else (0, 0)
        return (*shape[:first], math.prod(shape[first:last]), *shape[last:])
