"""Order along an axis: sorts, and the largest entries. Stable as NumPy's, NaN last."""

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
from engine.ops.common.numerics import first_extreme, identity_of, with_extent

#: so many are found one by one faster than by sorting all
_FEW: Final = 256


class Ordering(Op):
    """Base: the axis, and batching over the next one."""

    is_captured = False
    section = "sort"
    operands: ClassVar[tuple[str, ...]] = ("x",)
    attrs: ClassVar[Mapping[str, Attr]] = {"axis": Attr("int", doc="the axis to sort along")}
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(5), axis=0),
        Sample(Real(3, 4), axis=0),
        Sample(Real(2, 4), axis=-1),
        Sample(Ints(3, 5, high=3), axis=1),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front. Raises BadAttribute."""
        return {"axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def batch(self, mapped: Sequence[bool], x: Value, *, axis: int) -> Value:
        """The next axis."""
        return x.builder.emit(self, (x,), {"axis": axis + 1})

    def flops(self, out: ResultTypes, x: TensorType, *, axis: int) -> int:
        """n log₂ n comparisons a line."""
        return x.size * max(x.shape[axis] - 1, 0).bit_length()


class Sort(Ordering):
    """y = x in ascending order along an axis; equal entries keep their order, NaN comes last."""

    name = "sort"
    gradient = "g, put back where the entries came from"

    def infer(self, x: TensorType, *, axis: int) -> ResultTypes:
        """x's type."""
        return x

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int) -> None:
        """Copy, then sort in place."""
        out[...] = x
        is_stable = _tells_equals_apart(run, out)
        out.sort(axis=axis, kind="stable" if is_stable else "quicksort")

    def vjp(self, g: Value, y: Value, x: Value, *, axis: int) -> Sequence[Value | None]:
        """A permutation's adjoint is its inverse."""
        return (x.full_like(0.0).scatter_add(x.argsort(axis=axis), g, axis=axis),)

    def workspace(self, out: TensorType, x: TensorType, *, axis: int) -> int:
        """A line to sort in, unless the result's own are dense, and half of one for merging."""
        return _line_copy(out, axis) + _merging(x, axis)


@DeviceFunction
def _tells_equals_apart(_: RunContext, x: Array) -> bool:  # noqa: ARG001 - nothing is known
    """Whether equal entries may be told apart; as far as is known without waiting to hear it."""
    return True


@_tells_equals_apart.on("cpu")
def _tells_zeros_apart(_: RunContext, x: Array) -> bool:
    """Whether there is a −0 to be told from 0. As an integer, its bits are the least that there is.

    Else the order of equals does not show, and NumPy has sorts that are twenty times as fast as its stable one.
    """
    if x.dtype.kind != "f" or not x.size:
        return False
    bits = x.view(f"i{x.itemsize}")
    return bool(bits.min() == np.iinfo(bits.dtype).min)


class ArgSort(Ordering):
    """y = the int64 positions that put x in ascending order along an axis; equal entries keep theirs, NaN last."""

    name = "argsort"
    gradient = "none: positions are constant"
    vjp = NoGradient("positions are constant")

    def infer(self, x: TensorType, *, axis: int) -> ResultTypes:
        """x's shape in int64."""
        return x.with_dtype(INT64)

    def forward(self, run: RunContext, x: Array, *, out: Array, axis: int) -> None:
        """The stable sort of positions."""
        out[...] = run.xp.argsort(x, axis=axis, kind="stable")

    def workspace(self, out: TensorType, x: TensorType, *, axis: int) -> int:
        """The positions; lines of x and of these to sort in, unless they are dense; half a line for merging."""
        return out.nbytes + _line_copy(x, axis) + _line_copy(out, axis) + _merging(out, axis)


def _line_copy(x: TensorType, axis: int) -> int:
    """Bytes of a dense copy of one line, where NumPy makes it."""
    return 0 if x.strides[axis] == x.dtype.itemsize else x.shape[axis] * x.dtype.itemsize


def _merging(x: TensorType, axis: int) -> int:
    """Bytes for merging at most, which is when a line's halves are sorted apart."""
    return x.shape[axis] // 2 * x.dtype.itemsize


class TopK(Op):
    """values, indices = the k largest entries of x along `axis`, largest first, and their int64 positions there.

    Of equal entries the one with the lowest index comes first; NaN counts as largest. Two results, read through
    get_output.
    """

    name = "topk"
    section = "topk"
    is_captured = False
    operands = ("x",)
    attrs = {
        "k": Attr("int", doc="how many, at most the axis's extent", minimum=0),
        "axis": Attr("int", 0, "the axis to search"),
    }
    gradient = "that of the values, put back where they came from; none for indices"
    several = True
    samples = (
        Sample(Real(5), k=3),
        Sample(Real(2, 4), k=4, axis=-1),
        Sample(Real(3, 2, 2), k=1, axis=0),
        Sample(Ints(3, 5, high=3), k=2, axis=1),
        Sample(Real(2, 3), k=0, axis=1),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front. Raises BadAttribute."""
        axis, k = normalise_axis(attrs["axis"], types[0].ndim), attrs["k"]
        extent = types[0].shape[axis]
        if k > extent:
            wanted = f"at most {extent}, the extent of axis {axis}"
            raise BadAttribute(f"attribute k must be {wanted}, but is {k}", expected=wanted, got=str(k))
        return {"k": k, "axis": axis}

    def infer(self, x: TensorType, *, k: int, axis: int) -> ResultTypes:
        """k entries on the axis: x's dtype, and int64."""
        values = x.with_shape(with_extent(x.shape, axis, k))
        return values, values.with_dtype(INT64)

    def forward(self, run: RunContext, x: Array, *, out: tuple[Array, Array], k: int, axis: int) -> None:
        """One by one where they are few, else by sorting."""
        xp = run.xp
        values, indices = out
        if k <= _FEW:
            _pick(run, x, values, indices, k, axis)
            return
        _sort(xp, x, indices, k, axis)
        values[...] = xp.take_along_axis(x, indices, axis)

    def vjp(self, g: Sequence[Value | None], y: Value, x: Value, *, k: int, axis: int) -> Sequence[Value | None]:
        """Added where the values were read."""
        return (None if g[0] is None else x.full_like(0.0).scatter_add(y.output(1), g[0], axis=axis),)

    def batch(self, mapped: Sequence[bool], x: Value, *, k: int, axis: int) -> Value:
        """The next axis."""
        return x.topk(k=k, axis=axis + 1)

    def flops(self, out: ResultTypes, x: TensorType, *, k: int, axis: int) -> int:
        """n log₂ n comparisons a line."""
        return x.size * max(x.shape[axis] - 1, 0).bit_length()

    def workspace(self, out: ResultTypes, x: TensorType, *, k: int, axis: int) -> int:
        """A copy, a number for each line and k positions; or an order, with lines to sort in, and then the values."""
        assert isinstance(out, tuple)
        line, last = x.shape[axis], axis == x.ndim - 1
        if k <= _FEW:
            return x.nbytes + (2 * INT64.itemsize + x.dtype.itemsize) * (x.size // max(1, line)) if k else 0
        merging = line if x.dtype.itemsize == 1 else line // 2
        sorting = x.dtype.itemsize * line + INT64.itemsize * (x.size + merging + (0 if last else line))
        return max(sorting, out[0].nbytes + INT64.itemsize * sum(out[0].shape))


def _sort(xp: Namespace, x: Array, indices: Array, k: int, axis: int) -> None:
    """The end of a stable sort, backwards; sorting x backwards, too, puts the first of equal ones first."""
    order = xp.argsort(xp.flip(x, axis), axis=axis, kind="stable")
    last = (slice(None),) * axis + (slice(None, -k - 1, -1),)
    xp.subtract(x.shape[axis] - 1, order[last], out=indices)


def _pick(run: RunContext, x: Array, values: Array, indices: Array, k: int, axis: int) -> None:
    """The largest, k times over, each then replaced by the least number there is."""
    if not x.size or not k:
        return
    xp = run.xp
    rest = xp.moveaxis(x, axis, -1).copy().reshape(-1, x.shape[axis])
    lines, least = xp.arange(len(rest)), identity_of("maximum", x.dtype)
    found = xp.moveaxis(values, axis, -1), xp.moveaxis(indices, axis, -1)
    for i in run.through(range(k)):
        _pick_one(run, rest, lines, found[0][..., i], found[1][..., i], least)
    if bool((found[0][..., -1] == least).any()):
        _pick_least(run, *found, least)


def _pick_one(run: RunContext, rest: Array, lines: Array, value: Array, index: Array, least: Any) -> None:
    """NaN before all else, and of equal ones the first."""
    at = first_extreme(run, "argmax", rest, 1)
    index[...] = at.reshape(index.shape)
    value[...] = rest[lines, at].reshape(value.shape)
    rest[lines, at] = least


def _pick_least(run: RunContext, values: Array, indices: Array, least: Any) -> None:
    """Mend the positions of the least number there is: what was picked before looks like it.

    Once it is the largest that is left, nothing else is left: the next ones are those that were not picked yet, in
    order, and so among the first k.
    """
    xp, (*_, k) = run.xp, values.shape
    ended = values.reshape(-1, k) == least
    picked = indices.reshape(-1, k)
    for line in run.through(xp.nonzero(ended.any(axis=1))[0]):
        before = picked[line][~ended[line]]
        free = xp.setdiff1d(xp.arange(k), before)
        picked[line, len(before) :] = free[: k - len(before)]
    indices[...] = picked.reshape(indices.shape)
