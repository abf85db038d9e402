"""Sorting along an axis, and the largest entries. Sorts are stable and put NaN last, as NumPy's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute
from engine.ir.graph import Value
from engine.ir.op import Array, Namespace, NoGradient, Op, ResultTypes
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.sample import Ints, Real, Sample
from engine.ir.tensor_type import INT64, TensorType, normalise_axis
from engine.ops.common.numerics import extremum_identity, first_extreme, with_extent
from engine.ops.common.support import Indicated, Selecting

#: largest k for which TopK searches k times instead of sorting
_SEARCHED: Final = 256


class Ordering(Op):
    """Base: an op that sorts along one axis."""

    is_captured = False
    section = "sort"
    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": Attr("int", doc="axis to sort along")}
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(5), axis=0),
        Sample(Real(3, 4), axis=0),
        Sample(Real(2, 4), axis=-1),
        Sample(Ints(3, 5, high=3), axis=1),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis to count from the front. Raises BadAttribute."""
        return {"axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def batch(self, mapped: Sequence[bool], x: Value, *, axis: int) -> Value:
        """Sort along the next axis."""
        return x.builder.emit(self, (x,), {"axis": axis + 1})

    def flops(self, out: ResultTypes, x: TensorType, *, axis: int) -> int:
        """Count n log₂ n comparisons per row."""
        return x.size * max(x.shape[axis] - 1, 0).bit_length()


class Sort(Indicated, Ordering):
    """y = x sorted in ascending order along an axis; equal entries keep their order, NaN comes last."""

    name = "sort"
    gradient = "g, moved back to the original positions"

    def infer(self, x: TensorType, *, axis: int) -> ResultTypes:
        """Return x's type."""
        return x

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int) -> None:
        """Copy, then sort in place; use a stable sort only if its order can be observed."""
        out[...] = x
        is_stable = _has_distinguishable_ties(run, out)
        out.sort(axis=axis, kind="stable" if is_stable else "quicksort")

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int) -> Sequence[Value | None]:
        """Scatter g back to where the entries came from: the inverse permutation."""
        return (x.full_like(0.0).scatter_add(x.argsort(axis=axis), g, axis=axis),)

    def workspace(self, out: TensorType, x: TensorType, *, axis: int) -> int:
        """Count a copy of a row, unless the result's rows are dense, and half a row for merging."""
        return _row_copy_bytes(out, axis) + _merging_bytes(x, axis)


@DeviceFunction
def _has_distinguishable_ties(_: RunContext, x: Array) -> bool:  # noqa: ARG001 - nothing is known
    """Whether equal entries may be distinguishable. On a device, assume so rather than wait for the data."""
    return True


@_has_distinguishable_ties.on("cpu")
def _has_negative_zero(_: RunContext, x: Array) -> bool:
    """Whether x has a −0, which differs from 0. Read as an integer, its bits are the smallest value.

    Without one, the order of equal entries is invisible, and NumPy's unstable sorts are 20 times as fast.
    """
    if x.dtype.kind != "f" or not x.size:
        return False
    bits = x.view(f"i{x.itemsize}")
    return bool(bits.min() == np.iinfo(bits.dtype).min)


class ArgSort(Ordering):
    """y = the int64 positions that sort x in ascending order along an axis; equal entries keep their order.

    NaN comes last.
    """

    name = "argsort"
    gradient = "none: positions are whole numbers"
    vjp = NoGradient("positions are constant")

    def infer(self, x: TensorType, *, axis: int) -> ResultTypes:
        """Return x's shape with dtype int64."""
        return x.with_dtype(INT64)

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int) -> None:
        """Call the stable argsort."""
        out[...] = run.xp.argsort(x, axis=axis, kind="stable")

    def workspace(self, out: TensorType, x: TensorType, *, axis: int) -> int:
        """Count the positions, copies of a row of x and of positions unless dense, and half a row for merging."""
        return out.nbytes + _row_copy_bytes(x, axis) + _row_copy_bytes(out, axis) + _merging_bytes(out, axis)


def _row_copy_bytes(x: TensorType, axis: int) -> int:
    """Count the bytes of the dense copy that NumPy makes of a strided row; 0 if rows are dense."""
    return 0 if x.strides[axis] == x.dtype.itemsize else x.shape[axis] * x.dtype.itemsize


def _merging_bytes(x: TensorType, axis: int) -> int:
    """Count the most bytes that merging takes: half a row, if its halves have been sorted separately."""
    return x.shape[axis] // 2 * x.dtype.itemsize


class TopK(Selecting, Op):
    """values, indices = the k largest entries of x along `axis`, largest first, and their int64 positions.

    Among equal entries, the one with the lowest index comes first; NaN counts as largest.
    """

    name = "topk"
    section = "topk"
    is_captured = False
    operands = ("x",)
    attrs = {
        "k": Attr("int", doc="number of entries; at most the axis's extent", minimum=0),
        "axis": Attr("int", 0, "axis to search"),
    }
    gradient = "the cotangent of the values, moved back to the original positions; none for indices"
    several = True
    samples = (
        Sample(Real(5), k=3),
        Sample(Real(2, 4), k=4, axis=-1),
        Sample(Real(3, 2, 2), k=1, axis=0),
        Sample(Ints(3, 5, high=3), k=2, axis=1),
        Sample(Real(2, 3), k=0, axis=1),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis to count from the front. Raises BadAttribute."""
        axis, k = normalise_axis(attrs["axis"], types[0].ndim), attrs["k"]
        extent = types[0].shape[axis]
        if k > extent:
            expected = f"at most {extent}, the extent of axis {axis}"
            raise BadAttribute(
                f"attribute k must be {expected}, but is {k}", attribute="k", expected=expected, got=str(k)
            )
        return {"k": k, "axis": axis}

    def infer(self, x: TensorType, *, k: int, axis: int) -> ResultTypes:
        """Return types with k entries on the axis: x's dtype, and int64."""
        values = x.with_shape(with_extent(x.shape, axis, k))
        return values, values.with_dtype(INT64)

    def forward(self, run: RunContext, x: Array, *, out: tuple[Array, Array], k: int, axis: int) -> None:
        """Search k times if k is small; else sort."""
        xp = run.xp
        values, indices = out
        if k <= _SEARCHED:
            _search_largest(run, x, values, indices, k, axis)
            return
        _sort_largest(xp, x, indices, k, axis)
        values[...] = xp.take_along_axis(x, indices, axis)

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value, *, k: int, axis: int) -> Sequence[Value | None]:
        """Scatter the values' cotangent to where they came from."""
        return (None if g[0] is None else x.full_like(0.0).scatter_add(y.output(1), g[0], axis=axis),)

    def batch(self, mapped: Sequence[bool], x: Value, *, k: int, axis: int) -> Value:
        """Sort along the next axis."""
        return x.topk(k=k, axis=axis + 1)

    def flops(self, out: ResultTypes, x: TensorType, *, k: int, axis: int) -> int:
        """Count n log₂ n comparisons per row."""
        return x.size * max(x.shape[axis] - 1, 0).bit_length()

    def workspace(self, out: ResultTypes, x: TensorType, *, k: int, axis: int) -> int:
        """Count the bytes of a search (a copy, a few numbers per row) or a sort (positions and rows, then values)."""
        assert isinstance(out, tuple)
        length, is_last = x.shape[axis], axis == x.ndim - 1
        if k <= _SEARCHED:
            return x.nbytes + (2 * INT64.itemsize + x.dtype.itemsize) * (x.size // max(1, length)) if k else 0
        merging = length if x.dtype.itemsize == 1 else length // 2
        sorting = x.dtype.itemsize * length + INT64.itemsize * (x.size + merging + (0 if is_last else length))
        return max(sorting, out[0].nbytes + INT64.itemsize * sum(out[0].shape))


def _sort_largest(xp: Namespace, x: Array, indices: Array, k: int, axis: int) -> None:
    """Take the last k of a stable argsort in reverse; x is flipped first, so that the first of equal entries leads."""
    order = xp.argsort(xp.flip(x, axis), axis=axis, kind="stable")
    last = (slice(None),) * axis + (slice(None, -k - 1, -1),)
    xp.subtract(x.shape[axis] - 1, order[last], out=indices)


def _search_largest(run: RunContext, x: Array, values: Array, indices: Array, k: int, axis: int) -> None:
    """Find the maximum k times, each time replacing it by the dtype's smallest number."""
    if not x.size or not k:
        return
    xp = run.xp
    remaining = xp.moveaxis(x, axis, -1).copy().reshape(-1, x.shape[axis])
    rows, smallest = xp.arange(len(remaining)), extremum_identity("maximum", x.dtype)
    results = xp.moveaxis(values, axis, -1), xp.moveaxis(indices, axis, -1)
    for i in run.checked(range(k)):
        _take_maximum(run, remaining, rows, results[0][..., i], results[1][..., i], smallest)
    if bool((results[0][..., -1] == smallest).any()):
        _repair_smallest(run, *results, smallest)


def _take_maximum(run: RunContext, remaining: Array, rows: Array, value: Array, index: Array, smallest: Any) -> None:
    """Move the maximum of each row out of `remaining`: NaN first, and the first of equal entries."""
    positions = first_extreme(run, "argmax", remaining, 1)
    index[...] = positions.reshape(index.shape)
    value[...] = remaining[rows, positions].reshape(value.shape)
    remaining[rows, positions] = smallest


def _repair_smallest(run: RunContext, values: Array, indices: Array, smallest: Any) -> None:
    """Correct the positions of results equal to the dtype's smallest number, which also marks entries already taken.

    If it is a row's maximum, all remaining entries equal it. The next results are thus the entries not yet taken, in
    order, which are among the first k positions.
    """
    xp, (*_, k) = run.xp, values.shape
    is_smallest = values.reshape(-1, k) == smallest
    positions = indices.reshape(-1, k)
    for row in run.checked(xp.nonzero(is_smallest.any(axis=1))[0]):
        taken = positions[row][~is_smallest[row]]
        free = xp.setdiff1d(xp.arange(k), taken)
        positions[row, len(taken) :] = free[: k - len(taken)]
    indices[...] = positions.reshape(indices.shape)
