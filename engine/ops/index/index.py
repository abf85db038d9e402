"""Advanced indexing: read, add and write at several index tensors."""

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
from engine.ops.index.indices import FROM_END, axis_shape, check_indices, require_integer, within_extent
from engine.ops.reduce.segments import offset_indices, reduce_segments

#: attribute `axes` of ops that index several axes
INDEXED_AXES: Final = Attr("ints", None, "axis of each index; default: the first axes, in order")
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
        """Return int64 [extent]."""
        return TensorType((extent,), INT64)

    def forward(self, run: RunContext, index: Array, *, out: Array, extent: int) -> None:
        """Check the range, then write the entries' numbers; the last one stands."""
        check_indices(index, extent, operand=0)
        out[...] = -1
        _write_largest(run, index, out)

    def batch(self, mapped: Sequence[bool], index: Value, *, extent: int) -> Value:
        """Concatenate the N examples, each with its own range of positions, and subtract the entries before each."""
        n, count = index.shape
        flat = offset_indices(index, extent, 0).reshape(shape=(n * count,))
        writers = last_writer(flat, n * extent).reshape(shape=(n, extent))
        first_entries = index.builder.arange(n).mul(count).reshape(shape=(n, 1))
        relative = writers - first_entries
        return (writers < 0).where(writers, relative)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the largest entry number of each segment."""
        (index,) = operands
        numbers = index.builder.arange(index.shape[0])
        return (numbers.segment_max(index, segments=attrs["extent"]).clamp(min=-1),)

    def workspace(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Count the bytes of the entry numbers."""
        return INT64.itemsize * types[0].size


_LAST_WRITER: Final = LastWriter()


def last_writer(index: Value, extent: int) -> Value:
    """Append a node: for each position in [0, extent), the last entry of an index [n] that equals it; −1 if none."""
    return index.builder.emit(_LAST_WRITER, (index,), {"extent": extent})


@DeviceFunction
def _write_largest(run: RunContext, index: Array, out: Array) -> None:
    """Write the largest entry number by a segment reduction: the order of writes by GPU threads is undefined."""
    reduce_segments(run, "maximum", run.xp.arange(len(index)), index, out)


@_write_largest.on("cpu")
def _write_in_order(_: RunContext, index: HostArray, out: HostArray) -> None:
    """Assign directly: NumPy assigns in order, so the last write stands."""
    out[index] = np.arange(len(index))


def resolve_axes(axes: Sequence[int] | None, count: int, x: TensorType) -> tuple[int, ...]:
    """Return the axis of each of `count` indices, counted from the front. Raises BadAttribute, OperandCount."""
    if axes is None:
        if count > x.ndim:
            received = counted(count, "index", "indices")
            expected = f"at most {counted(x.ndim, 'index', 'indices')}, one for each axis of x"
            raise OperandCount(f"takes {expected}, but got {received}", expected=expected, got=received)
        return tuple(range(count))
    if len(axes) != count:
        expected, received = (
            f"{counted(count, 'entry', 'entries')}, one for each index",
            counted(len(axes), "entry", "entries"),
        )
        raise BadAttribute(
            f"attribute axes must have {expected}, but has {received}",
            attribute="axes",
            expected=expected,
            got=received,
        )
    return tuple(normalise_axes(axes, x.ndim))


def common_shape(indices: Sequence[TensorType]) -> Shape:
    """Return the broadcast shape of the indices, operands from 1 on. Raises DtypeMismatch, ShapeMismatch."""
    shape: Shape = ()
    for i, index in enumerate(indices, 1):
        require_integer(index, i, "indices")
        try:
            shape = tuple(np.broadcast_shapes(shape, index.shape))
        except ValueError:
            expected, received = f"a shape that broadcasts with {show_shape(shape)}", show_shape(index.shape)
            raise ShapeMismatch(
                f"operand {i} (indices) must have {expected}, like the indices before it, but has {received}",
                operand=i,
                expected=expected,
                got=received,
            ) from None
    return shape


@dataclass(frozen=True)
class IndexedAxes:
    """Layout of an indexed read or write: x's `shape`, the indexed `axes`, and the indices' common shape `index`.

    The indexed axes of x are made adjacent, merged into one, and read at flat positions. As in NumPy, the result has
    the indices' axes in their place if the indexed axes are adjacent, in any order; else at the front.
    """

    shape: Shape
    axes: tuple[int, ...]
    index: Shape

    @property
    def order(self) -> tuple[int, ...]:
        """Permutation of x's axes that makes the indexed ones adjacent, in the order of the indices."""
        other_axes = [i for i in range(len(self.shape)) if i not in self.axes]
        return (*other_axes[: self.before], *self.axes, *other_axes[self.before :])

    @property
    def before(self) -> int:
        """Number of axes in front of the indexed ones."""
        first, last = min(self.axes), max(self.axes)
        return first if last - first + 1 == len(self.axes) else 0

    @property
    def positions(self) -> int:
        """Extent of the merged axis: number of positions that can be indexed."""
        return math.prod(self.shape[a] for a in self.axes)

    @property
    def outer_extents(self) -> tuple[Shape, Shape]:
        """Extents in front of the indexed axes, and after them."""
        permuted = [self.shape[i] for i in self.order]
        return tuple(permuted[: self.before]), tuple(permuted[self.before + len(self.axes) :])

    @property
    def result(self) -> Shape:
        """Shape of the result of a read."""
        before, after = self.outer_extents
        return (*before, *self.index, *after)

    def merge_axes(self, x: Value) -> Value:
        """Merge the indexed axes of x into one, after `before` other axes."""
        before, after = self.outer_extents
        return permute(x, self.order).reshape(shape=(*before, self.positions, *after))

    def split_axes(self, x: Value) -> Value:
        """Undo `merge_axes`."""
        permuted = tuple(self.shape[i] for i in self.order)
        return unpermute(x.reshape(shape=permuted), self.order)

    def flat_positions(self, indices: Sequence[Value], from_end: bool) -> Value:
        """Combine the indices to positions on the merged axis, int64 [entries]."""
        position: Value | None = None
        for i, (axis, index) in enumerate(zip(self.axes, indices, strict=True), 1):
            checked = within_extent(index, self.shape[axis], i, from_end)
            term = checked if checked.shape == self.index else checked.broadcast_to(shape=self.index)
            if position is not None:
                term = position.mul(self.shape[axis]) + term
            position = term
        assert position is not None
        return position.reshape(shape=(math.prod(self.index),))

    def merge_update_axes(self, updates: Value) -> Value:
        """Merge the indices' axes of updates, whose shape is `result`."""
        before, after = self.outer_extents
        return updates.reshape(shape=(*before, math.prod(self.index), *after))

    def broadcast_positions(self, flat: Value) -> Value:
        """Broadcast flat positions to an index tensor that selects whole slices."""
        before, after = self.outer_extents
        shape = (*before, flat.shape[0], *after)
        return flat.reshape(shape=axis_shape(len(shape), self.before, flat.shape[0])).broadcast_to(shape=shape)


class ReadAtIndices(Composite):
    """y = x[i, j, …]: entries or slices of x at index tensors, one for each of `axes`, which broadcast together.

    As in NumPy's x[i, j], the axes of the indices replace the indexed axes if these are adjacent, and come first
    otherwise. Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end.
    PyTorch and JAX: x[i, j], in which negative indices always count from the end. An index out of range is an error
    here and in PyTorch; JAX moves it into the range.
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
        """Resolve the axis of each index. Raises BadAttribute, OperandCount."""
        x, *indices = types
        return {**attrs, "axes": resolve_axes(attrs["axes"], len(indices), x)}

    def infer(self, x: TensorType, *indices: TensorType, axes: tuple[int, ...], from_end: bool) -> ResultTypes:
        """Return x's type with the indices' axes in place of the indexed ones. Raises DtypeMismatch, ShapeMismatch."""
        return x.with_shape(IndexedAxes(x.shape, axes, common_shape(indices)).result)

    def compose(self, x: Value, *indices: Value, axes: tuple[int, ...], from_end: bool) -> Value:
        """Gather whole slices along the merged axis."""
        layout = IndexedAxes(x.shape, axes, common_shape([i.type for i in indices]))
        slices = layout.merge_axes(x).gather(
            layout.broadcast_positions(layout.flat_positions(indices, from_end)), axis=layout.before
        )
        return slices.reshape(shape=layout.result)


class WritesAtIndices(Composite):
    """Base: the operands are x, an index for each of `axes`, and updates, which broadcast to the result of `index`."""

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
        """Fewest and most operands: at least x, one index and updates."""
        return 3, math.inf

    def operand_name(self, i: int) -> str:
        """Return the operand's name; which operand is the updates depends on the number of operands."""
        return "x" if i == 0 else "indices and updates"

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Resolve the axis of each index. Raises BadAttribute, OperandCount."""
        return {**attrs, "axes": resolve_axes(attrs["axes"], len(types) - 2, types[0])}

    def infer(self, x: TensorType, *types: TensorType, axes: tuple[int, ...], from_end: bool) -> ResultTypes:
        """Return x's shape with the common dtype of x and updates. Raises DtypeMismatch, ShapeMismatch."""
        *indices, updates = types
        layout = IndexedAxes(x.shape, axes, common_shape(indices))
        _check_updates(updates, layout, len(types))
        return x.with_dtype(promote(x.dtype, updates.dtype))

    def compose(self, x: Value, *operands: Value, axes: tuple[int, ...], from_end: bool) -> Value:
        """Write at positions on the merged axis."""
        *indices, updates = operands
        layout = IndexedAxes(x.shape, axes, common_shape([i.type for i in indices]))
        expanded = updates if updates.shape == layout.result else updates.broadcast_to(shape=layout.result)
        return layout.split_axes(
            self.write(
                layout,
                layout.merge_axes(x),
                layout.flat_positions(indices, from_end),
                layout.merge_update_axes(expanded),
            )
        )

    @abstractmethod
    def write(self, layout: IndexedAxes, x: Value, flat: Value, updates: Value) -> Value:
        """Write updates into x at flat positions of its axis `layout.before`."""


def _check_updates(updates: TensorType, layout: IndexedAxes, operand: int) -> None:
    try:
        broadcasts = np.broadcast_shapes(updates.shape, layout.result) == layout.result
    except ValueError:
        broadcasts = False
    if not broadcasts:
        expected = f"a shape that broadcasts to {show_shape(layout.result)}, the shape that the indices select"
        raise wrong_shape(operand, "updates", expected, updates)


class IndexAdd(WritesAtIndices):
    """y = x, then y[i, j, …] += updates, entry by entry: repeated indices accumulate.

    The operands are x, an index for each of `axes`, and updates, which broadcast to what `index` reads. Indices are as
    in `index`. PyTorch: `index_put` with accumulate. JAX: x.at[i, j].add, which drops updates that are out of range.
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

    def write(self, layout: IndexedAxes, x: Value, flat: Value, updates: Value) -> Value:
        """Add the updates: the adjoint of reading."""
        return x.scatter_add(layout.broadcast_positions(flat), updates, axis=layout.before)


class IndexSet(WritesAtIndices):
    """y = x, then y[i, j, …] = updates. If a position is written twice, the last update in row-major order wins.

    Only the winning update gets a gradient. The operands are x, an index for each of `axes`, and updates, which
    broadcast to what `index` reads. Indices are as in `index`. PyTorch: `index_put`. JAX: x.at[i, j].set. Neither
    defines which of several updates wins; PyTorch sends the gradient to all of them, and JAX drops updates that are out
    of range.
    """

    name = "index_set"
    gradient = "dx = g, 0 where an update was written; d updates = g where the update won, else 0; none for indices"
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

    def write(self, layout: IndexedAxes, x: Value, flat: Value, updates: Value) -> Value:
        """Write the last entry of each position, if there is one."""
        # The op's gradient follows from this: only the entry that stands is read.
        dtype = promote(x.dtype, updates.dtype)
        if not updates.type.size:
            return x.cast(dtype=dtype)
        writer = last_writer(flat, layout.positions)
        latest = updates.gather(layout.broadcast_positions(writer.clamp(min=0)), axis=layout.before)
        is_written = (writer >= 0).reshape(shape=(layout.positions, *[1] * (x.ndim - layout.before - 1)))
        return is_written.where(latest, x)
