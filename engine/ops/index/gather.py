"""Gather, and its adjoint scatter-add: read and add at the positions in an index tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.errors import BadAttribute, OperandCount, ShapeMismatch
from engine.ir.graph import Value
from engine.ir.op import Array, Composite, Op, ResultTypes
from engine.ir.run_context import DeviceFunction, RunContext
from engine.ir.sample import Ints, Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, INT64, HostArray, Shape, TensorType, normalise_axis, promote, show_shape
from engine.ops.common import batching
from engine.ops.common.numerics import atomic_accumulator, with_extent, wrong_shape
from engine.ops.common.support import Indicated, Selecting
from engine.ops.index.indices import (
    FROM_END,
    check_indices,
    coordinate_grid,
    is_broadcast_list,
    list_from_front,
    make_non_negative,
    require_integer,
    selects_slices,
)

#: elements of a chunk: its positions stay in the L2 cache
CHUNK_ELEMENTS: Final = 1 << 14
_AXIS = Attr("int", 0, "axis to index")


class IndexChunk(NamedTuple):
    """Chunk of an index tensor: the NumPy index `where` that selects it, and the memory positions that it reads.

    `offsets` is int64, dense and of the chunk's shape. It counts elements from element `first` of the array's memory.
    Its buffer is reused for the next chunk.
    """

    where: tuple[Any, ...]
    first: int
    offsets: HostArray


def index_chunks(index: HostArray, steps: Sequence[int], axis: int) -> Iterator[IndexChunk]:
    """Yield `index` in chunks, in order, with the positions in memory of the elements that it reads along `axis`.

    `steps` are the strides of the array in elements. No offset is negative.
    """
    if not index.size:
        return
    cut, count = _chunk_extent(index.shape)
    # The offsets of the coordinates other than `axis` repeat in every chunk: compute them once.
    coordinate_offsets = _coordinate_offsets(index.shape, steps, axis, cut, count)
    buffer: HostArray = np.empty((count, *index.shape[cut + 1 :]), INT64)
    outer = [0 if i == axis else step for i, step in enumerate(steps)]
    for lead in np.ndindex(index.shape[:cut]):
        begin = sum(i * step for i, step in zip(lead, outer, strict=False))
        for start in range(0, index.shape[cut], count):
            where = (*lead, slice(start, start + count))
            chunk = index[where]
            offsets = np.multiply(chunk, steps[axis], out=buffer[: len(chunk)], dtype=INT64)
            if coordinate_offsets is not None:
                offsets += coordinate_offsets[: len(chunk)]
            yield IndexChunk(where, begin + start * outer[cut], offsets)


def index_chunk_bytes(index: TensorType) -> int:
    """Count the bytes that `index_chunks` allocates: the offsets of a chunk, and those that all chunks share."""
    return 2 * INT64.itemsize * min(CHUNK_ELEMENTS, index.size)


def memory_view(x: HostArray) -> HostArray | None:
    """Return the memory from x's first element to its last as a 1-d view; None if empty or with negative strides."""
    if not x.size or min(x.strides, default=0) < 0:
        return None
    length = 1 + sum((n - 1) * step for n, step in zip(x.shape, element_steps(x), strict=True))
    return np.lib.stride_tricks.as_strided(x, (length,), (x.itemsize,), writeable=False)


def has_forward_strides(x: TensorType) -> bool:
    """Whether `memory_view` returns a view for an array of this type."""
    return x.size > 0 and min(x.strides, default=0) >= 0


def element_steps(x: HostArray) -> Shape:
    """Return the strides of an array in elements."""
    return tuple(stride // x.itemsize for stride in x.strides)


def _chunk_extent(shape: Shape) -> tuple[int, int]:
    """Return the axis that is cut into chunks, and a chunk's extent on it; later axes are not cut."""
    inner = 1
    for axis in reversed(range(len(shape))):
        if inner * shape[axis] > CHUNK_ELEMENTS:
            return axis, CHUNK_ELEMENTS // inner
        inner *= shape[axis]
    return 0, shape[0]


def _coordinate_offsets(shape: Shape, steps: Sequence[int], axis: int, cut: int, count: int) -> HostArray | None:
    """Return the offsets that coordinates on other axes add within a chunk; None if all are 0."""
    extents = (count, *shape[cut + 1 :])
    other_axes = [i for i in range(cut, len(shape)) if i != axis and extents[i - cut] > 1]
    if not other_axes:
        return None
    total: HostArray = np.zeros(extents, INT64)
    for i in other_axes:
        total += (steps[i] * np.arange(extents[i - cut])).reshape(-1, *[1] * (len(shape) - 1 - i))
    return total


@DeviceFunction
def add_at(run: RunContext, target: Array, index: tuple[Array, ...], updates: Any) -> None:
    """Add updates to target[index], accumulating repeated indices."""
    run.xp.add.at(target, index, updates)


@add_at.on("cuda")
def _add_at(run: RunContext, target: Array, index: tuple[Array, ...], updates: Any) -> None:
    """View int64 as uint64: CUDA's 64-bit atomic addition is unsigned, and the bits of the sum are the same."""
    if target.dtype == INT64:
        target, updates = target.view("uint64"), run.xp.asarray(updates, dtype="int64").view("uint64")
    run.xp.add.at(target, index, updates)


# SciPy's product of a sparse matrix of ones with a dense matrix adds into its result row by row. It is 10 to 30 times
# as fast as `add.at` for rows, and a third faster for elements. The private functions are called because the public
# `@` allocates a result as large as the target.


@DeviceFunction
def add_rows(run: RunContext, target: Array, index: Array, rows: Array) -> None:
    """Add rows[i, …] to target[index[i], …] in order; `target` is dense."""
    add_at(run, target, (index,), rows)


@add_rows.on("cpu")
def _add_rows(run: RunContext, target: HostArray, index: HostArray, rows: HostArray) -> None:
    if not rows.size:
        return
    from scipy.sparse import _sparsetools  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    count, width = len(rows), rows[0].size
    step = _rows_of_chunk(count, width, rows.dtype == target.dtype and rows.flags.c_contiguous)
    ends, ones, sums = np.arange(step + 1), np.ones(step, target.dtype), target.reshape(-1)

    def add(positions: HostArray, chunk: HostArray) -> None:
        if width == 1:
            _add_one_by_one(_sparsetools, sums, positions, chunk)
        else:
            _sparsetools.csc_matvecs(len(target), len(positions), width, ends, positions, ones, chunk, sums)

    for start in run.checked(range(0, count, step)):
        part = slice(start, start + step)
        # Passed without a local name: a name would keep these chunks alive while the next ones are made.
        add(index[part].astype(INT64, copy=False), _dense(rows[part], target))


def add_rows_bytes(target: TensorType, rows: TensorType) -> int:
    """Count the bytes that `add_rows` allocates: a chunk of the matrix, and of the rows if they are converted."""
    count, width = rows.shape[0] if rows.size else 0, rows.size // max(1, rows.shape[0])
    unconverted = rows.is_dense and rows.dtype == target.dtype
    step = _rows_of_chunk(count, width, unconverted)
    return step * (2 * INT64.itemsize + target.dtype.itemsize * (1 if unconverted else 1 + width))


@DeviceFunction
def add_elements(run: RunContext, target: Array, index: Array, axis: int, updates: Array) -> None:
    """Add updates[i, j, …] to target[index[i, j, …], j, …] in order, for axis 0; likewise for other axes.

    `target` is dense. On other axes, the index may have smaller extents.
    """
    add_at(run, target, coordinate_grid(run.xp, index, axis), updates)


@add_elements.on("cpu")
def _add_elements(run: RunContext, target: HostArray, index: HostArray, axis: int, updates: HostArray) -> None:
    if not updates.size:
        return
    from scipy.sparse import _sparsetools  # noqa: PLC0415 - see above

    sums = target.reshape(-1)
    for where, first, offsets in run.checked(index_chunks(index, element_steps(target), axis)):
        _add_one_by_one(_sparsetools, sums[first:], offsets.reshape(-1), _dense(updates[where], target))


def add_elements_bytes(index: TensorType) -> int:
    """Count the bytes that `add_elements` allocates: offsets, and a chunk of the updates if they are converted."""
    return index_chunk_bytes(index) + INT64.itemsize * min(CHUNK_ELEMENTS, index.size)


def _rows_of_chunk(count: int, width: int, unconverted: bool) -> int:
    """Return the number of rows that are added at a time, of `count` rows of `width` elements."""
    return min(count, CHUNK_ELEMENTS if unconverted else max(1, CHUNK_ELEMENTS // max(1, width)))


def _dense(values: HostArray, target: HostArray) -> HostArray:
    """Return the values flattened and dense, in the target's dtype."""
    return values.astype(target.dtype, order="C", copy=False).reshape(-1)


def _add_one_by_one(sparsetools: Any, sums: HostArray, positions: HostArray, values: HostArray) -> None:
    """Add values[i] to sums[positions[i]]: the product of a one-column matrix and 1."""
    column, one = np.array([0, len(positions)], INT64), np.ones(1, sums.dtype)
    sparsetools.csc_matvec(len(sums), 1, column, positions, values, one, sums)


class Gather(Selecting, Op):
    """y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes.

    `index` has x's rank and may be smaller than x on the other axes, as in PyTorch; y has its shape. With one operand,
    the list `indices` selects slices: y is x at those positions of the axis. Indices lie in [0, extent). With
    `from_end`, they lie in [−extent, extent), and negative ones count from the end, as in x[i] of PyTorch, JAX and
    NumPy. PyTorch: `gather`, which rejects negative indices. JAX: `take_along_axis`.
    """

    name = "gather"
    section = "gather"
    aliases = {"GatherOp": "born", "Gather": "born, cjc"}
    operands = ("x", "index?")
    dtypes = DTYPES
    attrs = {
        "axis": _AXIS,
        "indices": Attr("ints", None, "positions on the axis, instead of `index`", max_length=10**6),
        "from_end": FROM_END,
    }
    gradient = "dx = scatter_add(0, index, g): repeated indices accumulate; none for index"
    samples = (
        Sample(Real(4, 3), Ints(2, 3, high=4)),
        Sample(Real(3, 4), Ints(2, 5, high=4), axis=-1),
        Sample(Real(3), Ints(5, high=3)),
        Sample(Real(4, 3), indices=[2, 0, 2]),
        Sample(Real(2, 3), indices=[1, 1], axis=1),
        Sample(Real(4, 3), Ints(2, 3, low=-4, high=4), from_end=True),
        Sample(Real(2, 3), indices=[-1, 2, -3], axis=1, from_end=True),
    )
    truths = (
        Truth(
            operands=[[1.0, 2.0, 4.0], [-1, 0, -1]],
            attrs={"from_end": True},
            value=[4.0, 1.0, 4.0],
            gradients=[[1.0, 0.0, 2.0], None],
            source="by hand",
        ),
    )

    def selected_lines(self, y: Value, xs: Sequence[Value], attrs: Mapping[str, Any]) -> Set[int]:
        """Return the axis of the indices, if they read of all lines along it."""
        extents = [(e, f) for k, (e, f) in enumerate(zip(y.shape, xs[0].shape, strict=True)) if k != attrs["axis"]]
        return {attrs["axis"]} if y.shape[attrs["axis"]] and all(e == f for e, f in extents) else frozenset()

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis and the list of indices. Raises BadAttribute, OperandCount.

        Exactly one of the operand `index` and the attribute `indices` must be given.
        """
        axis = normalise_axis(attrs["axis"], types[0].ndim)
        if len(types) == 2 and attrs["indices"]:
            raise BadAttribute("takes an index operand or the attribute indices, but got both", attribute="indices")
        listed, extent = attrs["indices"], types[0].shape[axis]
        if len(types) == 1:
            _check_list(listed, extent, -extent if attrs["from_end"] else 0)
            listed = list_from_front(listed, extent) if attrs["from_end"] else listed
        return {**attrs, "axis": axis, "indices": listed}

    def infer(
        self, x: TensorType, index: TensorType | None = None, *, axis: int, indices: Sequence[int] | None, **attrs: Any
    ) -> ResultTypes:
        """Return x's dtype with the index's shape; for a list, x's shape with the list's length on the axis."""
        if index is None:
            return x.with_shape((*x.shape[:axis], len(indices or ()), *x.shape[axis + 1 :]))
        require_integer(index, 1, "index")
        _check_index_shape(x.shape, index, axis)
        return x.with_shape(index.shape)

    def compose(self, x: Value, index: Value | None = None, *, axis: int, indices: Any, from_end: bool) -> Value | None:
        """Write a list as a constant index tensor, and make negative indices non-negative."""
        if index is not None:
            non_negative = make_non_negative(index, x.shape[axis], 1, from_end)
            return x.gather(non_negative, axis=axis) if from_end else None
        shape = tuple(len(indices) if i == axis else e for i, e in enumerate(x.shape))
        column_shape = tuple(len(indices) if i == axis else 1 for i in range(x.ndim))
        listed = x.builder.constant(np.array(indices, dtype="int64").reshape(column_shape))
        return x.gather(listed.broadcast_to(shape=shape), axis=axis)

    def forward(self, run: RunContext, x: Array, index: Array, *, out: Array, axis: int, **attrs: Any) -> None:
        """Check the range, then read."""
        check_indices(_distinct_indices(index, axis), x.shape[axis], operand=1)
        _read_elements(run, x, index, out, axis)

    def vjp(self, g: Value, y: Value, x: Value, index: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """Add g where x was read: the adjoint of reading."""
        return x.full_like(0.0).scatter_add(index, g, axis=axis), None

    def batch(self, mapped: Sequence[bool], *xs: Value, axis: int, **attrs: Any) -> Value:
        """Gather along the next axis, with N on both operands."""
        x, index = batching.expand(mapped, xs)
        return x.gather(index, axis=axis + 1)

    def workspace(self, out: TensorType, *types: TensorType, axis: int, **attrs: Any) -> int:
        """Count the positions, and for an operand with negative strides also the elements read."""
        x, index = types
        if x.is_dense and selects_slices(x, index, axis):
            return 0 if index.dtype == INT64 else INT64.itemsize * index.shape[axis]
        if has_forward_strides(x):
            return index_chunk_bytes(index)
        return out.nbytes + INT64.itemsize * sum(index.shape)


class ScatterAdd(Indicated, Op):
    """y = x, then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0; likewise for the other axes.

    `index` and `updates` have the same shape, of x's rank, and may be smaller than x on the other axes. Repeated
    indices accumulate. This is the adjoint of `gather`. Indices lie in [0, extent); with `from_end`, negative ones
    count from the end. PyTorch: `scatter_add`, which rejects negative indices. JAX: `x.at[…].add`, which accepts them
    and drops updates that are out of range.
    """

    name = "scatter_add"
    section = "gather"
    operands = ("x", "index", "updates")
    dtypes = DTYPES
    attrs = {"axis": _AXIS, "from_end": FROM_END}
    gradient = "dx = g, d updates = gather(g, index); none for index"
    samples = (
        Sample(Real(4, 3), Ints(2, 3, high=4), Real(2, 3)),
        Sample(Real(3, 4), Ints(2, 5, high=4), Real(2, 5), axis=-1),
        Sample(Real(3), Ints(5, high=3), Real(5)),
        Sample(Real(4, 3), Ints(2, 3, low=-4, high=4), Real(2, 3), from_end=True),
    )
    truths = (
        Truth(
            operands=[[1.0, 2.0, 4.0], [-1, 0, 2], [8.0, 16.0, 32.0]],
            attrs={"from_end": True},
            value=[17.0, 2.0, 44.0],
            cotangent=[1.0, 2.0, 3.0],
            gradients=[[1.0, 2.0, 3.0], None, [3.0, 1.0, 3.0]],
            source="by hand",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis to count from the front. Raises BadAttribute."""
        return {**attrs, "axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def infer(self, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **attrs: Any) -> ResultTypes:
        """Return x's shape with the common dtype of x and updates."""
        require_integer(index, 1, "index")
        _check_index_shape(x.shape, index, axis)
        if updates.shape != index.shape:
            expected, received = show_shape(index.shape), show_shape(updates.shape)
            raise ShapeMismatch(
                f"operand 2 (updates) must have the index's shape {expected}, but has {received}",
                operand=2,
                expected=expected,
                got=received,
            )
        return x.with_dtype(promote(x.dtype, updates.dtype))

    def compose(self, x: Value, index: Value, updates: Value, *, axis: int, from_end: bool) -> Value | None:
        """Make negative indices non-negative."""
        non_negative = make_non_negative(index, x.shape[axis], 1, from_end)
        return x.scatter_add(non_negative, updates, axis=axis) if from_end else None

    def forward(
        self, run: RunContext, x: Array, index: Array, updates: Array, *, out: Array, axis: int, **attrs: Any
    ) -> None:
        """Check the range, copy x, then add the updates one by one."""
        listed = _distinct_indices(index, axis)
        check_indices(listed, x.shape[axis], operand=1)
        dtype = atomic_accumulator(out)
        total = out if dtype == out.dtype else run.xp.empty(out.shape, dtype)
        total[...] = x
        if axis == 0 and selects_slices(x, index, axis):
            add_rows(run, total, listed, updates)
        else:
            add_elements(run, total, index, axis, updates)
        if total is not out:
            out[...] = total

    def vjp(
        self, g: Value, y: Value, x: Value, index: Value, updates: Value, *, axis: int, **attrs: Any
    ) -> Sequence[Value | None]:
        """Read g where updates were added: the adjoint of adding."""
        return g, None, g.gather(index, axis=axis)

    def batch(self, mapped: Sequence[bool], *xs: Value, axis: int, **attrs: Any) -> Value:
        """Scatter along the next axis, with N on all operands."""
        x, index, updates = batching.expand(mapped, xs)
        return x.scatter_add(index, updates, axis=axis + 1)

    def workspace(
        self, out: TensorType, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **attrs: Any
    ) -> int:
        """Count the positions, and the sums if they have a wider dtype."""
        total = out.with_dtype(atomic_accumulator(out))
        wide_bytes = 0 if total.dtype == out.dtype else total.nbytes
        if axis == 0 and selects_slices(x, index, axis):
            return wide_bytes + add_rows_bytes(total, updates)
        return wide_bytes + add_elements_bytes(index)


def _check_list(indices: Sequence[int] | None, extent: int, least: int) -> None:
    if not indices:
        raise OperandCount("needs an index operand or the attribute indices, but got neither", expected="2 operands")
    for i in indices:
        if not least <= i < extent:
            expected = f"in [{least}, {extent})"
            raise BadAttribute(
                f"attribute indices must lie {expected}, but holds {i}",
                attribute="indices",
                expected=expected,
                got=str(i),
            )


def _check_index_shape(shape: Shape, index: TensorType, axis: int) -> None:
    extents = enumerate(zip(index.shape, shape, strict=False))
    if index.ndim != len(shape) or any(i != axis and n > m for i, (n, m) in extents):
        raise wrong_shape(
            1, "index", f"rank {len(shape)} and at most shape {show_shape(shape)} except on axis {axis}", index
        )


@DeviceFunction
def _read_elements(run: RunContext, x: Array, index: Array, out: Array, axis: int) -> None:
    """Write x[index[i, j, …], j, …] to out[i, j, …] for axis 0; likewise for other axes."""
    cropped = x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape))]
    out[...] = cropped[coordinate_grid(run.xp, index, axis)]


@_read_elements.on("cpu")
def _read_elements_on_cpu(run: RunContext, x: HostArray, index: HostArray, out: HostArray, axis: int) -> None:
    """Take whole slices if x is dense and the index selects slices; else elements by their offsets in memory."""
    if x.flags.c_contiguous and selects_slices(x, index, axis):
        np.take(x, _distinct_indices(index, axis), axis, out=out, mode="clip")
    elif (memory := memory_view(x)) is not None:
        for where, first, offsets in run.checked(index_chunks(index, element_steps(x), axis)):
            np.take(memory[first:], offsets, out=out[where], mode="clip")
    else:
        _read_elements.general(run, x, index, out, axis)


def _distinct_indices(index: Array, axis: int) -> Array:
    """Return the distinct part of the index: if it is broadcast along other axes, only a list along `axis`."""
    if not is_broadcast_list(index, axis):
        return index
    return index[tuple(slice(None) if i == axis else 0 for i in range(index.ndim))]


class TakeAlong(Composite):
    """y[i, j, …] = x[index[i, j, …], j, …] for axis 0; likewise for the other axes. Same as NumPy's take_along_axis.

    `index` has x's rank. On the axis, y has the extent of the index; on the other axes, x and the index broadcast.
    Indices lie in [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end. PyTorch:
    `take_along_dim`, which rejects negative indices. JAX: `take_along_axis`, which accepts them.
    """

    name = "take_along"
    section = "take_along"
    operands = ("x", "index")
    dtypes = DTYPES
    attrs = {"axis": Attr("int", 0, "axis to index"), "from_end": FROM_END}
    gradient = "g, added where x was read: repeated indices accumulate; none for index"
    samples = (
        Sample(Real(4, 3), Ints(2, 3, high=4)),
        Sample(Real(3, 4), Ints(1, 5, high=4), axis=-1),
        Sample(Real(1, 4, 2), Ints(3, 2, 1, high=4), axis=1),
        Sample(Real(3), Ints(5, high=3)),
        Sample(Real(1, 4, 2), Ints(3, 2, 1, low=-4, high=4), axis=1, from_end=True),
    )
    truths = (
        Truth(
            operands=[[[1.0, 2.0, 4.0]], [[-1], [-3]]],
            attrs={"axis": 1, "from_end": True},
            value=[[4.0], [1.0]],
            gradients=[[[1.0, 0.0, 1.0]], None],
            source="by hand",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis to count from the front. Raises BadAttribute."""
        return {**attrs, "axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def infer(self, x: TensorType, index: TensorType, *, axis: int, **attrs: Any) -> ResultTypes:
        """Broadcast the shapes off the axis, with the index's extent on it. Raises DtypeMismatch, ShapeMismatch."""
        require_integer(index, 1, "index")
        return x.with_shape(with_extent(_broadcast_off_axis(x.shape, index, axis), axis, index.shape[axis]))

    def compose(self, x: Value, index: Value, *, axis: int, from_end: bool) -> Value:
        """Broadcast x and the index off the axis, then gather."""
        index = make_non_negative(index, x.shape[axis], 1, from_end)
        shape = _broadcast_off_axis(x.shape, index.type, axis)
        source, positions = (
            v if v.shape == (target := with_extent(shape, axis, v.shape[axis])) else v.broadcast_to(shape=target)
            for v in (x, index)
        )
        return source.gather(positions, axis=axis)


def _broadcast_off_axis(shape: Shape, index: TensorType, axis: int) -> Shape:
    """Broadcast x's `shape` and the index's off the axis; the extent on it is 1. Raises ShapeMismatch."""
    x_shape, index_shape = (with_extent(s, axis, 1) if len(s) > axis else s for s in (shape, index.shape))
    if len(x_shape) != len(index_shape) or any(
        m != n and 1 not in (m, n) for m, n in zip(x_shape, index_shape, strict=True)
    ):
        expected = f"rank {len(shape)} and extents that broadcast with {show_shape(shape)} except on axis {axis}"
        raise wrong_shape(1, "index", expected, index)
    return tuple(n if m == 1 else m for m, n in zip(x_shape, index_shape, strict=True))
