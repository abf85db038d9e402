"""Kernels along axes: casts, reversed copies, extrema, sums over channels, and triangular systems.

Axes of a result that arrays are stepped along: neighbours as one where all allow it, the last one in parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from engine.graph.tensor_type import Shape, Strided, TensorType
from engine.microkernels.routine import Int64, Routine

#: elements of an item, about
ITEM: Final = 1 << 12


def steps_over(shape: Shape, operand: TensorType) -> Shape:
    """Bytes to step along each axis of `shape` in an operand that broadcasts to it; 0 where it is repeated."""
    steps = [0 if extent == 1 else step for extent, step in zip(operand.shape, operand.strides, strict=True)]
    return (0,) * (len(shape) - operand.ndim) + tuple(steps)


def without_matrices(type: TensorType) -> TensorType:
    """The axes before the last two."""
    return Strided(TensorType(type.shape[:-2], type.dtype), type.strides[:-2])


@dataclass(frozen=True)
class Axes:
    """Axes over which arrays are stepped, as few as can be: `outer` extents, and a `run` of which an item is a part.

    `steps` are those of each array along the outer axes, and along the run. A part has `most` elements at the most.
    """

    outer: Shape
    run: int
    steps: tuple[Shape, ...]
    most: int

    @classmethod
    def of(cls, shape: Shape, strides: Sequence[Shape], most: int = ITEM) -> Axes:
        """Those of a space of this shape, and arrays of these strides along it."""
        merged = merged_axes(shape, strides)
        *outer, run = [extent for extent, _ in merged]
        steps = tuple(tuple(each[k] for _, each in merged) for k in range(len(strides)))
        return cls(tuple(outer), run, steps, most)

    @property
    def items(self) -> int:
        """Parts of runs."""
        return math.prod(self.outer) * self._parts

    @property
    def _parts(self) -> int:
        return -(-self.run // self.most)

    def item(self, to: Routine, index: Int64, places: Sequence[str]) -> tuple[list[str], Int64]:
        """Where each array has the part of a run that an item is, and how many elements that has."""
        row, part = to.divided(index, self._parts)
        lead, begin = to.unravelled(row, self.outer), to.mul(part, self.most)
        found = [
            to.at(to.moved(place, lead, steps[:-1]), to.mul(begin, steps[-1]))
            for place, steps in zip(places, self.steps, strict=True)
        ]
        return found, self.run if self._parts == 1 else to.least(self.most, to.sub(self.run, begin))


def merged_axes(shape: Shape, strides: Sequence[Shape]) -> list[tuple[int, Shape]]:
    """Extents, and the steps of all arrays: neighbouring axes along which all step as along one are one.

    At least one axis, without those of extent 1.
    """
    axes = [(extent, tuple(each[a] for each in strides)) for a, extent in enumerate(shape) if extent != 1]
    found = axes[-1:] or [(1, (0,) * len(strides))]
    for (extent, steps), (inner, within) in reversed(list(pairwise(axes))):
        if all(step == each * inner for step, each in zip(steps, within, strict=True)):
            found[0] = extent * found[0][0], found[0][1]
        else:
            found.insert(0, (extent, steps))
    return found
