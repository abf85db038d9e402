"""Products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import DType, TensorType, to_add_up
from engine.oplib.accumulate import count, sum_parts_bytes, wide_out, wide_out_bytes
from engine.oplib.conjugates import conjugate
from engine.oplib.permutation import permute, shaped, unpermute
from engine.oplib.reduction import Reduction, broadcast_back
from engine.oplib.rowwise import Rowwise
from engine.oplib.slices import cut
from engine.oplib.widening import wide


class Prod(Rowwise, Reduction):
    """y = Π x over axes; 1 over nothing. Integers and bool multiply in int64, float16 in float32.

    The gradient is that of a tree of products, exact whatever the number of zeros, and so are those of higher order.
    """

    name = "prod"
    section = "prod"
    dtypes = DTYPES
    gradient = "g · (product of all other elements)"
    samples = (
        *Reduction.samples,
        Sample(Real(7), axes=[0]),
        Sample(Real(2, 5, 3), axes=[1]),
        Sample(Real()),
        Sample(Real(0, 3), axes=[0]),
        Sample(Ints(2, 3, high=4)),
    )

    rows = staticmethod(lambda x, count: x.row_prod())

    def result_dtype(self, dtype: DType) -> DType:
        """int64 for what is not float."""
        return to_add_up(dtype)

    def reduce(self, run: RunContext, x: Array, *, out: Array, axes: tuple[int, ...], keepdims: bool) -> None:
        """NumPy's product, rounded once."""
        xp = run.xp
        target = wide_out(xp, out)
        xp.prod(x, axis=axes, dtype=target.dtype, keepdims=keepdims, out=target)
        if target is not out:
            out[...] = target

    def vjp(self, g: Value, y: Value, x: Value, *, axes: tuple[int, ...], keepdims: bool) -> Sequence[Value | None]:
        """Each element's share is the product of the others: y / x would be 0 / 0 at a zero."""
        return (broadcast_back(wide(g), x, axes) * conjugate(_others_over(wide(x), axes)),)

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """The products in float32 where the result is float16; the parts in which a kernel counts rows out of range."""
        return max(wide_out_bytes(out), sum_parts_bytes(types[0].size) if out.is_float else 0)


def _others_over(x: Value, axes: Sequence[int]) -> Value:
    """For each element of x, the product of all others over `axes`."""
    if not axes:
        return x.full_like(1.0)
    order = (*(i for i in range(x.ndim) if i not in axes), *axes)
    moved = permute(x, order)
    rows = shaped(moved, (*moved.shape[: -len(axes)], count(x.shape, axes)))
    return unpermute(shaped(_others(rows), moved.shape), order)


def _others(x: Value) -> Value:
    """The same over the last axis, down a tree: the product of all others is the sibling's, times the pair's others.

    An element of the first half and one of the second are a pair; in rows of odd length, the middle one has none.
    """
    *rows, n = x.shape
    if n < 2:
        return x.full_like(1.0)
    last, half = x.ndim - 1, (n + 1) // 2
    first, second = cut(x, last, 0, half), cut(x, last, half, n)
    siblings = second.pad(pad_width=(0, 0) * len(rows) + (0, 1), fill=1.0) if n % 2 else second
    outer = _others(first * siblings)
    return (siblings * outer).cat(cut(first * outer, last, 0, n - half), axis=last)
