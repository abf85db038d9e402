"""Supports of cotangents: what was not selected does not count, whatever its local derivative is.

At x = [4, 0], the gradient of y = where(x > 0, sqrt(x), 0) is [1/4, 0]. The rule of `where` gives sqrt the cotangent
[g, 0], and the rule of sqrt multiplies it by [1/4, ∞], which is [g/4, NaN]. So the sweep carries along where a
cotangent may differ from zero, and elementwise rules set the rest to zero:

    where   gives sqrt the cotangent [g, 0] with the support x > 0
    sqrt    gives x where(x > 0, [g, 0] · [1/4, ∞], 0), with the same support

Ops that select attach a support, or narrow it down: `where`, `slice`, `max`, `gather` and others. Ops that move or add
numbers pass it on. For both, the support of an operand is where the op's own rule gives an *indicator*, which is 1
inside of the support of g, a number other than zero (`Indicated`). Elementwise ops keep it (see `Elementwise`). Other
ops drop it: their operands' cotangents have none. Cotangents that meet have the union, or none if one of them has none.

A zero by value is no selection: at 0, exp(log(x)) has the cotangent exp(log(0)) = 0 before log, and the derivative 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import Any, ClassVar

from engine.ir.graph import Value, shaped
from engine.ir.op import Definition, Support
from engine.ir.tensor_type import reduced_shape


class Indicated(Definition):
    """Base of ops whose rule moves, adds or selects numbers, and multiplies them by nothing that may be infinite."""

    def supported_vjp(
        self, gs: Sequence[Value | None], supports: Sequence[Support | None] | None, y: Any, *xs: Any, **attrs: Any
    ) -> tuple[Sequence[Any], Sequence[Support | None]]:
        """Return the rule's cotangents, and where it gives the indicator of the support a number other than zero."""
        gradients, none = super().supported_vjp(gs, supports, y, *xs, **attrs)
        if (
            supports is not None
            and not self.selects
            and not all(g is None or s is not None for g, s in zip(gs, supports, strict=True))
        ):
            return gradients, none
        indicated: list[Sequence[Any]] = []

        def emit(i: int) -> Any:
            if not indicated:
                known = supports or [None] * len(gs)
                ones = [None if g is None else _indicator(g, s) for g, s in zip(gs, known, strict=True)]
                indicated.append(super(Indicated, self).supported_vjp(ones, None, y, *xs, **attrs)[0])
            return indicated[0][i].not_equal(0.0)

        lines = self.selected_lines(y, xs, attrs) if supports is None else frozenset()
        return gradients, [
            Support(partial(emit, i), lines) if isinstance(g, Value) else None for i, g in enumerate(gradients)
        ]

    def selected_lines(self, y: Any, xs: Sequence[Value], attrs: Mapping[str, Any]) -> Set[int]:
        """Return the axes along which each line of the operand has an element in the support, if all of y does."""
        return frozenset()


class Selecting(Indicated):
    """Base of such ops that leave out elements of an operand."""

    selects: ClassVar[bool] = True


def _indicator(g: Value, support: Support | None) -> Value:
    """Return 1 where a cotangent may differ from zero, and 0 elsewhere."""
    return g.full_like(1.0) if support is None else support.value.where(g.full_like(1.0), 0.0)


class RowIndicated(Definition):
    """Base of ops on rows, the elements along `axes` or `axis`: a row of which nothing was selected does not count."""

    def supported_vjp(
        self, gs: Sequence[Any], supports: Sequence[Support | None] | None, y: Any, *xs: Any, **attrs: Any
    ) -> tuple[Sequence[Any], Sequence[Support | None]]:
        """Set the cotangents of rows outside of the support to zero; of the others, all elements are in the support."""
        gradients, none = super().supported_vjp(gs, supports, y, *xs, **attrs)
        support, (x,) = None if supports is None else supports[0], xs
        if support is None:
            return gradients, none
        axes = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
        if y.shape == x.shape and support.lines >= {*axes}:  # something was selected of each row
            return gradients, none
        rows = support.value.any(axes=axes, keepdims=True) if y.shape == x.shape else support.value
        kept = shaped(rows, reduced_shape(x.shape, axes, True)).broadcast_to(shape=x.shape)
        return [kept.where(gradients[0], 0.0)], [Support(lambda: kept)]
