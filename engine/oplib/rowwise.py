"""Formulas for a row of elements, over scalars of a loop: fused kernels read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from engine.graph.dtypes import has_loops
from engine.graph.tensor_type import TensorType
from engine.loops.program import Scalar
from engine.oplib.accumulate import count

#: attributes that say which axes make a row, and how the result lies: a formula for a row is not told
_LAYOUT = ("axis", "axes", "keepdims")


class Rowwise:
    """Base of an op of one operand that computes each row, the elements along some axes, by itself.

    A row's formula is `rows(x, count, **attrs)`, x an element of the row and `count` how many there are. It gives a
    scalar of level ELEMENT where the result has x's shape, and of level ROW where the axes are reduced.
    """

    rows: ClassVar[Callable[..., Scalar]]
    #: whether it may be part of a loop of several nodes
    joins_loops: ClassVar[bool] = True
    #: whether it gives one value a row, over `axes`; else it keeps x's shape, and its row lies along `axis`
    reduces: ClassVar[bool] = True
    #: whether it is x where a row is one element
    is_one_of_one: ClassVar[bool] = True

    def divisor(self, extent: int) -> float | None:
        """Of a sum, which may be made in parts: what Σ x over `extent` elements is divided by. None of all others."""
        return None

    def row_scalar(self, x: Scalar, extent: int, attrs: Mapping[str, Any]) -> Scalar:
        """The result for a row of `extent` elements x."""
        return self.rows(x, extent, **{name: value for name, value in attrs.items() if name not in _LAYOUT})

    def row_axes(self, attrs: Mapping[str, Any]) -> Sequence[int]:
        """The axes along which a row lies."""
        axes: Sequence[int] = attrs["axes"] if self.reduces else (attrs["axis"],)
        return axes

    def row_extent(self, out: TensorType, x: TensorType, attrs: Mapping[str, Any]) -> int:
        """How many elements a row has that `row_scalar` computes: those over the last axes, of float32 or float64.

        0 where it does not: rows lie across memory, are empty, or change their dtype.
        """
        axes = self.row_axes(attrs)
        last = bool(axes) and tuple(axes) == tuple(range(x.ndim - len(axes), x.ndim))
        return count(x.shape, axes) if last and x.dtype == out.dtype and has_loops(x.dtype) else 0
