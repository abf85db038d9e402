"""Reading at several index tensors, adding there, and writing there."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, OperandCount, ShapeMismatch, counted
from engine.ir.graph import Value, permute, unpermute
from engine.ir.op import Array, Composite, NoGradient, Op, ResultTypes
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, INT64, HostArray, Shape, TensorType, normalise_axes, promote, show_shape
from engine.ops.common.numerics import wrong_shape
from engine.ops.index.indices import FROM_END, check_indices, column_of, require_integer, within_extent
from engine.ops.reduce.segments import offset_indices, reduce_segments

INDEXED_AXES: Final = Attr("ints", None, "the axis that each index is of; absent: the first ones, in their order")
_ATTRS: Mapping[str, Attr] = {"axes": INDEXED_AXES, "from_end": FROM_END}


class LastWriter(Op):
    """y[p] = the last i with index[i] = p, or −1 where there is none: int64 [extent], of an index [n]."""

    name = "last_writer"
    internal = True
    operands = ("index",)
    attrs: ClassVar[Mapping[str, Attr]] = {"extent": Attr("int", doc="how many places there are", minimum=0)}
    gradient: ClassVar[str] = "none: indices have no derivative"
    vjp = NoGradient("indices have no derivative")

    def infer(self, index: TensorType, *, extent: int) -> ResultTypes:
        """A number for each place."""
        return TensorType((extent,), INT64)

    def forward(self, run: RunContext, index: Array, *, out: Array, extent: int) -> None:
        """After the range check."""
        check_indices(index, extent, operand=0)
        out[...] = -1
        _write_largest(run, index, out)

    def batch(self, mapped: Sequence[bool], index: Value, *, extent: int) -> Value:
        """Places of N examples, one behind the other, of which each counts its own entries."""
        n, count = index.shape
        flat = offset_indices(index, extent, 0).reshape(shape=(n * count,))
        found = last_writer(flat, n * extent).reshape(shape=(n, extent))
        before = index.builder.arange(n).mul(count).reshape(shape=(n, 1))
        own = found - before
        return (found < 0).where(found, own)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write it as the largest number of a segment."""
        (index,) = operands
        numbers = index.builder.arange(index.shape[0])
        return (numbers.segment_max(index, segments=attrs["extent"]).clamp(min=-1),)

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """The numbers of the entries."""
        return INT64.itemsize * types[0].size


_OP: Final = LastWriter()


def last_writer(index: Value, extent: int) -> Value:
    """Append, for each place, the last entry of an index [n] with entries in [0, extent) that is it; −1 for none."""
    return index.builder.emit(_OP, (index,), {"extent": extent})


@DeviceFunction
def _write_largest(run: RunContext, index: Array, out: Array) -> None:
    """Write the largest number: which of several threads writes last is not defined."""
    reduce_segments(run, "maximum", run.xp.arange(len(index)), index, out)


@_write_largest.on("cpu")
def _write_in_order(_: RunContext, index: HostArray, out: HostArray) -> None:
    """NumPy assigns one after the other."""
    out[index] = np.arange(len(index))


def axes_of(axes: Sequence[int] | None, count: int, x: TensorType) -> tuple[int, ...]:
    """The axis of each of `count` indices, counted from the front. Raises BadAttribute, OperandCount."""
    if axes is None:
        if count > x.ndim:
            got = counted(count, "index", "indices")
            wanted = f"at most {counted(x.ndim, 'index', 'indices')}, one an axis of x"
            raise OperandCount(f"takes {wanted}, but got {got}", expected=wanted, got=got)
        return tuple(range(count))
    if len(axes) != count:
        wanted, got = f"{counted(count, 'entry', 'entries')}, one an index", counted(len(axes), "entry", "entries")
        raise BadAttribute(f"attribute axes must have {wanted}, but has {got}", expected=wanted, got=got)
    return tuple(normalise_axes(axes, x.ndim))


def common_shape(indices: Sequence[TensorType]) -> Shape:
    """Broadcast the shapes of the indices, operands from 1 on. Raises DtypeMismatch, ShapeMismatch."""
    shape: Shape = ()
    for i, index in enumerate(indices, 1):
        require_integer(index, i, "indices")
        try:
            shape = tuple(np.broadcast_shapes(shape, index.shape))
        except ValueError:
            wanted, got = f"a shape that broadcasts with {show_shape(shape)}", show_shape(index.shape)
            raise ShapeMismatch(
                f"operand {i} (indices) must have {wanted}, as those before it, but has {got}",
                operand=i,
                expected=wanted,
                got=got,
            ) from None
    return shape


@dataclass(frozen=True)
class IndexedAxes:
    """Places in x of indices of the shape `index`: axes in an order in which theirs lie side by side.

    As NumPy has it, they stay where they are if they lie side by side, in whatever order; else they come first.
    """

    shape: Shape
    axes: tuple[int, ...]
    index: Shape

    @property
    def order(self) -> tuple[int, ...]:
        """The axes of x, those that are indexed side by side, in the indices' order."""
        others = [i for i in range(len(self.shape)) if i not in self.axes]
        return (*others[: self.before], *self.axes, *others[self.before :])

    @property
    def before(self) -> int:
        """How many axes are in front of these."""
        first, last = min(self.axes), max(self.axes)
        return first if last - first + 1 == len(self.axes) else 0

    @property
    def places(self) -> int:
        """How many places the indices tell apart."""
        return math.prod(self.shape[a] for a in self.axes)

    @property
    def outer(self) -> tuple[Shape, Shape]:
        """The extents in front of the indexed axes, and behind them."""
        moved = [self.shape[i] for i in self.order]
        return tuple(moved[: self.before]), tuple(moved[self.before + len(self.axes) :])

    @property
    def result(self) -> Shape:
        """The shape of what is read."""
        before, behind = self.outer
        return (*before, *self.index, *behind)

    def joined(self, x: Value) -> Value:
        """x with its indexed axes as one, behind `before` others."""
        before, behind = self.outer
        return permute(x, self.order).reshape(shape=(*before, self.places, *behind))

    def parted(self, x: Value) -> Value:
        """Undo `joined`."""
        moved = tuple(self.shape[i] for i in self.order)
        return unpermute(x.reshape(shape=moved), self.order)

    def flat(self, indices: Sequence[Value], from_end: bool) -> Value:
        """The place that each entry is of, int64 [entries]."""
        place: Value | None = None
        for i, (axis, index) in enumerate(zip(self.axes, indices, strict=True), 1):
            own = within_extent(index, self.shape[axis], i, from_end)
            wide = own if own.shape == self.index else own.broadcast_to(shape=self.index)
            if place is not None:
                wide = place.mul(self.shape[axis]) + wide
            place = wide
        assert place is not None
        return place.reshape(shape=(math.prod(self.index),))

    def entries(self, updates: Value) -> Value:
        """Updates, of the shape of what is read, with the axes of the indices as one."""
        before, behind = self.outer
        return updates.reshape(shape=(*before, math.prod(self.index), *behind))

    def spread(self, flat: Value) -> Value:
        """The places as an index of whole slices."""
        before, behind = self.outer
        shape = (*before, flat.shape[0], *behind)
        return flat.reshape(shape=column_of(len(shape), self.before, flat.shape[0])).broadcast_to(shape=shape)


class ReadAtIndices(Composite):
    """y = x[i, j, …]: the entries, or slices, at index tensors, one for each of `axes`, which broadcast together.

    As NumPy's x[i, j]: of axes that are side by side, the indices' axes take the place; of others, they come first.
    Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end. PyTorch's
    and JAX's x[i, j], which count negative ones always; PyTorch refuses those outside, as here, and JAX moves them.
    """

    name = "index"
    section = "index"
    operands = ("x", "indices...")
    dtypes = DTYPES
    attrs = _ATTRS
    since = 2
    gradient = "dx = index_add(0, indices, g): repeated indices accumulate; none for indices"
    samples = (
        Sample(Real(4, 3), Ints(5, high=4), Ints(5, high=3)),
        Sample(Real(3, 4, 2), Ints(2, 1, high=4), Ints(3, low=-2, high=2), axes=[1, -1], from_end=True),
        Sample(Real(3, 4, 2), Ints(2, high=2), Ints(2, high=3), axes=[2, 0]),
        Sample(Real(4, 3), Ints(2, 2, high=4)),
        Sample(Real(4, 3), Ints(high=4), Ints(high=3)),
    )
    truths = (
        Truth(
            operands=[[[1.0, 2.0], [4.0, 8.0]], [1, 0, 1], [-1, 0, 1]],
            attrs={"from_end": True},
            value=[8.0, 1.0, 8.0],
            gradients=[[[1.0, 0.0], [0.0, 2.0]], None, None],
            source="by hand",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis of each index. Raises BadAttribute, OperandCount."""
        x, *indices = types
        return {**attrs, "axes": axes_of(attrs["axes"], len(indices), x)}

    def infer(self, x: TensorType, *indices: TensorType, axes: tuple[int, ...], from_end: bool) -> ResultTypes:
        """The indices' axes in place of those of x. Raises DtypeMismatch, ShapeMismatch."""
        return x.with_shape(IndexedAxes(x.shape, axes, common_shape(indices)).result)

    def compose(self, x: Value, *indices: Value, axes: tuple[int, ...], from_end: bool) -> Value:
        """A gather of whole slices from the axes as one."""
        at = IndexedAxes(x.shape, axes, common_shape([i.type for i in indices]))
        read = at.joined(x).gather(at.spread(at.flat(indices, from_end)), axis=at.before)
        return read.reshape(shape=at.result)


class WritesAtIndices(Composite):
    """Base: x, an index for each of `axes`, and updates, which broadcast to the shape of what `index` reads there."""

    section = "index"
    operands: ClassVar[tuple[str, ...]] = ("x", "indices_and_updates...")
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    attrs = _ATTRS
    since = 2
    samples: ClassVar[tuple[Sample, ...]] = (
        Sample(Real(4, 3), Ints(5, high=4), Ints(5, high=3), Real(5)),
        Sample(Real(3, 4, 2), Ints(2, 1, high=4), Ints(3, low=-2, high=2), Real(3, 2, 3), axes=[1, -1], from_end=True),
        Sample(Real(3, 4, 2), Ints(2, high=2), Ints(2, high=3), Real(2, 4), axes=[2, 0]),
        Sample(Real(4, 3), Ints(6, high=4), Real(3)),
        Sample(Real(4, 3), Ints(high=4), Ints(high=3), Real()),
    )

    @cached_property
    def arity(self) -> tuple[int, float]:
        """x, an index and updates at least."""
        return 3, math.inf

    def operand_name(self, i: int) -> str:
        """The last one cannot be told by its place."""
        return "x" if i == 0 else "indices and updates"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis of each index. Raises BadAttribute, OperandCount."""
        return {**attrs, "axes": axes_of(attrs["axes"], len(types) - 2, types[0])}

    def infer(self, x: TensorType, *types: TensorType, axes: tuple[int, ...], from_end: bool) -> ResultTypes:
        """x's shape, the common dtype of x and updates. Raises DtypeMismatch, ShapeMismatch."""
        *indices, updates = types
        at = IndexedAxes(x.shape, axes, common_shape(indices))
        _check_updates(updates, at, len(types))
        return x.with_dtype(promote(x.dtype, updates.dtype))

    def compose(self, x: Value, *operands: Value, axes: tuple[int, ...], from_end: bool) -> Value:
        """Write at places on the joined axes."""
        *indices, updates = operands
        at = IndexedAxes(x.shape, axes, common_shape([i.type for i in indices]))
        whole = updates if updates.shape == at.result else updates.broadcast_to(shape=at.result)
        return at.parted(self.written(at, at.joined(x), at.flat(indices, from_end), at.entries(whole)))

    @abstractmethod
    def written(self, at: IndexedAxes, x: Value, flat: Value, updates: Value) -> Value:
        """x with updates at these places of its axis behind `at.before` others."""


def _check_updates(updates: TensorType, at: IndexedAxes, operand: int) -> None:
    try:
        fits = np.broadcast_shapes(updates.shape, at.result) == at.result
    except ValueError:
        fits = False
    if not fits:
        wanted = f"a shape that broadcasts to {show_shape(at.result)}, which the indices read"
        raise wrong_shape(operand, "updates", wanted, updates)


class IndexAdd(WritesAtIndices):
    """y = x, and then y[i, j, …] += updates, entry by entry: repeated indices accumulate.

    Operands: x, an index for each of `axes`, updates, which broadcast to what `index` reads. Indices as those of
    `index`. PyTorch's `index_put` with accumulate; JAX's x.at[i, j].add, which drops updates outside.
    """

    name = "index_add"
    gradient = "dx = g, d updates = index(g, indices); none for indices"
    truths = (
        Truth(
            operands=[[[1.0, 2.0], [4.0, 8.0]], [1, 0, 1], [-1, 0, 1], [16.0, 32.0, 64.0]],
            attrs={"from_end": True},
            value=[[33.0, 2.0], [4.0, 88.0]],
            cotangent=[[1.0, 2.0], [3.0, 4.0]],
            gradients=[[[1.0, 2.0], [3.0, 4.0]], None, None, [4.0, 1.0, 4.0]],
            source="by hand",
        ),
    )

    def written(self, at: IndexedAxes, x: Value, flat: Value, updates: Value) -> Value:
        """The adjoint of reading."""
        return x.scatter_add(at.spread(flat), updates, axis=at.before)


class IndexSet(WritesAtIndices):
    """y = x, and then y[i, j, …] = updates: where one place is written twice, the last in row-major order stands.

    It takes the gradient. Operands: x, an index for each of `axes`, updates, which broadcast to what `index` reads.
    Indices as those of `index`. PyTorch's `index_put`, JAX's x.at[i, j].set: neither says which of several stands, and
    the gradient of PyTorch's goes to all of them; JAX drops updates outside.
    """

    name = "index_set"
    gradient = "dx = g, 0 where something was written; d updates = g where they stand, else 0; none for indices"
    truths = (
        Truth(
            operands=[[[1.0, 2.0], [4.0, 8.0]], [1, 0, 1], [-1, 0, 1], [16.0, 32.0, 64.0]],
            attrs={"from_end": True},
            value=[[32.0, 2.0], [4.0, 64.0]],
            cotangent=[[1.0, 2.0], [3.0, 4.0]],
            gradients=[[[0.0, 2.0], [3.0, 0.0]], None, None, [0.0, 1.0, 4.0]],
            source="by hand: the last of the two at (1, 1)",
        ),
    )

    def written(self, at: IndexedAxes, x: Value, flat: Value, updates: Value) -> Value:
        """Write each place's last entry, if there is one."""
        dtype = promote(x.dtype, updates.dtype)
        if not updates.type.size:
            return x.cast(dtype=dtype)
        writer = last_writer(flat, at.places)
        read = updates.gather(at.spread(writer.clamp(min=0)), axis=at.before)
        column = (writer >= 0).reshape(shape=(at.places, *[1] * (x.ndim - at.before - 1)))
        return column.where(read, x)
