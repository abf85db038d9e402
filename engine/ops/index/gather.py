"""Reading by an index tensor, and its adjoint: adding at an index tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from engine.ops.index.indices import (
    FROM_END,
    check_indices,
    from_front,
    grid,
    is_repeated,
    listed_from_front,
    picks_slices,
    require_integer,
)

#: elements of a chunk: its positions stay in the second cache
PICKED_CHUNK: Final = 1 << 14
_AXIS = Attr("int", 0, "the axis that is indexed")


class PickedPlaces(NamedTuple):
    """Neighbours in an index tensor: what to index that by to see them, and what they pick.

    `places` is int64, dense and of their shape; it counts elements from number `first` of the array's memory, and holds
    until the next chunk is asked for.
    """

    where: tuple[Any, ...]
    first: int
    places: HostArray


def chunks_of(index: HostArray, steps: Sequence[int], axis: int) -> Iterator[PickedPlaces]:
    """All of `index`, in its order: it picks on `axis` of an array, and on the others the position that it stands at.

    `steps` has the array's distance between neighbours on each axis, in elements. In a chunk nothing is ever negative.
    """
    if not index.size:
        return
    cut, count = _cut(index.shape)
    own = _own_places(index.shape, steps, axis, cut, count)
    buffer: HostArray = np.empty((count, *index.shape[cut + 1 :]), INT64)
    outer = [0 if i == axis else step for i, step in enumerate(steps)]
    for lead in np.ndindex(index.shape[:cut]):
        begin = sum(i * step for i, step in zip(lead, outer, strict=False))
        for start in range(0, index.shape[cut], count):
            where = (*lead, slice(start, start + count))
            picked = index[where]
            places = np.multiply(picked, steps[axis], out=buffer[: len(picked)], dtype=INT64)
            if own is not None:
                places += own[: len(picked)]
            yield PickedPlaces(where, begin + start * outer[cut], places)


def chunk_bytes_of(index: TensorType) -> int:
    """Count the bytes that `chunks_of` allocates: the positions of a chunk, and what all of them have in common."""
    return 2 * INT64.itemsize * min(PICKED_CHUNK, index.size)


def memory_of(x: HostArray) -> HostArray | None:
    """The elements from x's first to its last as they lie in memory, 1-d; None where x has none, or runs backwards."""
    if not x.size or min(x.strides, default=0) < 0:
        return None
    length = 1 + sum((n - 1) * step for n, step in zip(x.shape, element_steps(x), strict=True))
    return np.lib.stride_tricks.as_strided(x, (length,), (x.itemsize,), writeable=False)


def is_walked_forwards(x: TensorType) -> bool:
    """Whether `memory_of` an array of this type is there."""
    return x.size > 0 and min(x.strides, default=0) >= 0


def element_steps(x: HostArray) -> Shape:
    """The strides of an array in elements."""
    return tuple(stride // x.itemsize for stride in x.strides)


def _cut(shape: Shape) -> tuple[int, int]:
    """The axis along which chunks follow one another, and the extent of one there; behind it they have all."""
    inner = 1
    for axis in reversed(range(len(shape))):
        if inner * shape[axis] > PICKED_CHUNK:
            return axis, PICKED_CHUNK // inner
        inner *= shape[axis]
    return 0, shape[0]


def _own_places(shape: Shape, steps: Sequence[int], axis: int, cut: int, count: int) -> HostArray | None:
    """Places that coordinates off the axis add to those of a chunk, counted from its first; None if there are none."""
    extents = (count, *shape[cut + 1 :])
    others = [i for i in range(cut, len(shape)) if i != axis and extents[i - cut] > 1]
    if not others:
        return None
    total: HostArray = np.zeros(extents, INT64)
    for i in others:
        total += (steps[i] * np.arange(extents[i - cut])).reshape(-1, *[1] * (len(shape) - 1 - i))
    return total


@DeviceFunction
def add_at(run: RunContext, target: Array, index: tuple[Array, ...], updates: Any) -> None:
    """target[index] += updates."""
    run.xp.add.at(target, index, updates)


@add_at.on("cuda")
def _add_at(run: RunContext, target: Array, index: tuple[Array, ...], updates: Any) -> None:
    """CUDA adds atomically to unsigned numbers of 64 bits only; the bits of the sum are the same."""
    if target.dtype == INT64:
        target, updates = target.view("uint64"), run.xp.asarray(updates, dtype="int64").view("uint64")
    run.xp.add.at(target, index, updates)


# SciPy's products of a sparse matrix, all its entries 1, with a dense one add into their result one by one, ten to
# thirty times as fast as `add.at` adds rows, and by a third faster than it adds elements. The public `@` does no more
# than call them, with a result of its own that is as large as the target.


@DeviceFunction
def add_rows(run: RunContext, target: Array, index: Array, rows: Array) -> None:
    """target[index[i], …] += rows[i, …], one after the other; `target` lies densely."""
    add_at(run, target, (index,), rows)


@add_rows.on("cpu")
def _add_rows(run: RunContext, target: HostArray, index: HostArray, rows: HostArray) -> None:
    if not rows.size:
        return
    from scipy.sparse import _sparsetools  # noqa: PLC0415 - a tenth of a second, for the graphs that need it

    count, width = len(rows), rows[0].size
    step = _rows_of_chunk(count, width, rows.dtype == target.dtype and rows.flags.c_contiguous)
    ends, ones, sums = np.arange(step + 1), np.ones(step, target.dtype), target.reshape(-1)

    def add(places: HostArray, chunk: HostArray) -> None:
        if width == 1:
            _add_one_by_one(_sparsetools, sums, places, chunk)
        else:
            _sparsetools.csc_matvecs(len(target), len(places), width, ends, places, ones, chunk, sums)

    for start in run.through(range(0, count, step)):
        part = slice(start, start + step)
        # no name for either: it would keep them while the next ones are made
        add(index[part].astype(INT64, copy=False), _dense(rows[part], target))


def add_rows_bytes(target: TensorType, rows: TensorType) -> int:
    """Count the bytes that `add_rows` allocates: a chunk of the matrix, and of the rows if these are converted."""
    count, width = rows.shape[0] if rows.size else 0, rows.size // max(1, rows.shape[0])
    ready = rows.is_dense and rows.dtype == target.dtype
    step = _rows_of_chunk(count, width, ready)
    return step * (2 * INT64.itemsize + target.dtype.itemsize * (1 if ready else 1 + width))


@DeviceFunction
def add_elements(run: RunContext, target: Array, index: Array, axis: int, updates: Array) -> None:
    """target[index[i, j, …], j, …] += updates[i, j, …] for axis 0, and alike for the others, one after the other.

    `target` lies densely; off the axis, the index may be smaller.
    """
    add_at(run, target, grid(run.xp, index, axis), updates)


@add_elements.on("cpu")
def _add_elements(run: RunContext, target: HostArray, index: HostArray, axis: int, updates: HostArray) -> None:
    if not updates.size:
        return
    from scipy.sparse import _sparsetools  # noqa: PLC0415 - see above

    sums = target.reshape(-1)
    for where, first, places in run.through(chunks_of(index, element_steps(target), axis)):
        _add_one_by_one(_sparsetools, sums[first:], places.reshape(-1), _dense(updates[where], target))


def add_elements_bytes(index: TensorType) -> int:
    """Count the bytes that `add_elements` allocates: positions, and a chunk of the updates if these are converted."""
    return chunk_bytes_of(index) + INT64.itemsize * min(PICKED_CHUNK, index.size)


def _rows_of_chunk(count: int, width: int, ready: bool) -> int:
    """Count the rows that are added at a time, of so many, each of so many elements."""
    return min(count, PICKED_CHUNK if ready else max(1, PICKED_CHUNK // max(1, width)))


def _dense(values: HostArray, target: HostArray) -> HostArray:
    """The values in the target's dtype, one after the other."""
    return values.astype(target.dtype, order="C", copy=False).reshape(-1)


def _add_one_by_one(sparsetools: Any, sums: HostArray, places: HostArray, values: HostArray) -> None:
    """sums[places[i]] += values[i]: a matrix of one column, all of it times 1."""
    column, one = np.array([0, len(places)], INT64), np.ones(1, sums.dtype)
    sparsetools.csc_matvec(len(sums), 1, column, places, values, one, sums)


class Gather(Op):
    """y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others.

    `index` has x's rank and may be smaller than x off the axis, as in PyTorch; y has its shape. With one operand,
    the list `indices` picks slices: y = x at those positions of the axis. Indices lie in [0, extent); with `from_end`,
    in [−extent, extent), and negative ones count from the end, as those of x[i] in PyTorch, JAX and NumPy do.
    PyTorch's `gather` and JAX's `take_along_axis`, of which the former takes no negative index.
    """

    name = "gather"
    section = "gather"
    aliases = {"GatherOp": "born", "Gather": "born, cjc"}
    operands = ("x", "index?")
    dtypes = DTYPES
    attrs = {
        "axis": _AXIS,
        "indices": Attr("ints", None, "positions on the axis, in place of `index`", longest=10**6),
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

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The axis counted from the front; exactly one of `index` and `indices`. Raises BadAttribute, OperandCount."""
        axis = normalise_axis(attrs["axis"], types[0].ndim)
        if len(types) == 2 and attrs["indices"]:
            raise BadAttribute("takes an index operand or the attribute indices, but got both")
        listed, extent = attrs["indices"], types[0].shape[axis]
        if len(types) == 1:
            _check_listed(listed, extent, -extent if attrs["from_end"] else 0)
            listed = listed_from_front(listed, extent) if attrs["from_end"] else listed
        return {**attrs, "axis": axis, "indices": listed}

    def infer(
        self, x: TensorType, index: TensorType | None = None, *, axis: int, indices: Sequence[int] | None, **attrs: Any
    ) -> ResultTypes:
        """The index's shape; for a list, x's with its length on the axis."""
        if index is None:
            return x.with_shape((*x.shape[:axis], len(indices or ()), *x.shape[axis + 1 :]))
        require_integer(index, 1, "index")
        _check_covered(x.shape, index, axis)
        return x.with_shape(index.shape)

    def compose(self, x: Value, index: Value | None = None, *, axis: int, indices: Any, from_end: bool) -> Value | None:
        """A list of indices is a constant index tensor; and none is negative in the end."""
        if index is not None:
            places = from_front(index, x.shape[axis], 1, from_end)
            return x.gather(places, axis=axis) if from_end else None
        shape = tuple(len(indices) if i == axis else e for i, e in enumerate(x.shape))
        column = tuple(len(indices) if i == axis else 1 for i in range(x.ndim))
        listed = x.builder.constant(np.array(indices, dtype="int64").reshape(column))
        return x.gather(listed.broadcast_to(shape=shape), axis=axis)

    def forward(self, run: RunContext, x: Array, index: Array, *, out: Array, axis: int, **attrs: Any) -> None:
        """Read, after the range check."""
        check_indices(_listed(index, axis), x.shape[axis], operand=1)
        _read_elements(run, x, index, out, axis)

    def vjp(self, g: Value, y: Value, x: Value, index: Value, *, axis: int, **attrs: Any) -> Sequence[Value | None]:
        """The adjoint of reading is adding."""
        return x.full_like(0.0).scatter_add(index, g, axis=axis), None

    def batch(self, mapped: Sequence[bool], *xs: Value, axis: int, **attrs: Any) -> Value:
        """The next axis, with N on both operands."""
        x, index = batching.expand(mapped, xs)
        return x.gather(index, axis=axis + 1)

    def workspace(self, out: TensorType, *types: TensorType, axis: int, **attrs: Any) -> int:
        """The positions that are read at; of an operand that runs backwards, what was read, too."""
        x, index = types
        if x.is_dense and picks_slices(x, index, axis):
            return 0 if index.dtype == INT64 else INT64.itemsize * index.shape[axis]
        if is_walked_forwards(x):
            return chunk_bytes_of(index)
        return out.nbytes + INT64.itemsize * sum(index.shape)


class ScatterAdd(Op):
    """y = x, and then y[index[i, j, …], j, …] += updates[i, j, …] for axis 0, and alike for the others.

    `index` and `updates` have the same shape, of x's rank, and may be smaller than x off the axis. Repeated indices
    accumulate. The adjoint of `gather`. Indices lie in [0, extent); with `from_end`, negative ones count from the end.
    PyTorch's `scatter_add`, which takes no negative index; JAX's `x.at[…].add`, which does, and drops those outside.
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
        """The axis counted from the front. Raises BadAttribute."""
        return {**attrs, "axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def infer(self, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **attrs: Any) -> ResultTypes:
        """x's shape, the common dtype of x and updates."""
        require_integer(index, 1, "index")
        _check_covered(x.shape, index, axis)
        if updates.shape != index.shape:
            wanted, got = show_shape(index.shape), show_shape(updates.shape)
            raise ShapeMismatch(
                f"operand 2 (updates) must have the index's shape {wanted}, but has {got}",
                operand=2,
                expected=wanted,
                got=got,
            )
        return x.with_dtype(promote(x.dtype, updates.dtype))

    def compose(self, x: Value, index: Value, updates: Value, *, axis: int, from_end: bool) -> Value | None:
        """Make indices that may be negative non-negative."""
        places = from_front(index, x.shape[axis], 1, from_end)
        return x.scatter_add(places, updates, axis=axis) if from_end else None

    def forward(
        self, run: RunContext, x: Array, index: Array, updates: Array, *, out: Array, axis: int, **attrs: Any
    ) -> None:
        """Copy x, then add one by one, after the range check."""
        places = _listed(index, axis)
        check_indices(places, x.shape[axis], operand=1)
        dtype = atomic_accumulator(out)
        total = out if dtype == out.dtype else run.xp.empty(out.shape, dtype)
        total[...] = x
        if axis == 0 and picks_slices(x, index, axis):
            add_rows(run, total, places, updates)
        else:
            add_elements(run, total, index, axis, updates)
        if total is not out:
            out[...] = total

    def vjp(
        self, g: Value, y: Value, x: Value, index: Value, updates: Value, *, axis: int, **attrs: Any
    ) -> Sequence[Value | None]:
        """The adjoint of adding is reading."""
        return g, None, g.gather(index, axis=axis)

    def batch(self, mapped: Sequence[bool], *xs: Value, axis: int, **attrs: Any) -> Value:
        """The next axis, with N on all operands."""
        x, index, updates = batching.expand(mapped, xs)
        return x.scatter_add(index, updates, axis=axis + 1)

    def workspace(
        self, out: TensorType, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **attrs: Any
    ) -> int:
        """The positions that are added at, and sums in a wider dtype."""
        total = out.with_dtype(atomic_accumulator(out))
        wide = 0 if total.dtype == out.dtype else total.nbytes
        if axis == 0 and picks_slices(x, index, axis):
            return wide + add_rows_bytes(total, updates)
        return wide + add_elements_bytes(index)


def _check_listed(indices: Sequence[int] | None, extent: int, least: int) -> None:
    if not indices:
        raise OperandCount("needs an index operand or the attribute indices, but got neither", expected="2 operands")
    for i in indices:
        if not least <= i < extent:
            wanted = f"in [{least}, {extent})"
            raise BadAttribute(f"attribute indices must lie {wanted}, but holds {i}", expected=wanted, got=str(i))


def _check_covered(shape: Shape, index: TensorType, axis: int) -> None:
    extents = enumerate(zip(index.shape, shape, strict=False))
    if index.ndim != len(shape) or any(i != axis and n > m for i, (n, m) in extents):
        raise wrong_shape(1, "index", f"rank {len(shape)} and at most shape {show_shape(shape)} off axis {axis}", index)


@DeviceFunction
def _read_elements(run: RunContext, x: Array, index: Array, out: Array, axis: int) -> None:
    """out[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others."""
    cropped = x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape))]
    out[...] = cropped[grid(run.xp, index, axis)]


@_read_elements.on("cpu")
def _read_in_memory(run: RunContext, x: HostArray, index: HostArray, out: HostArray, axis: int) -> None:
    """The same: whole slices of what lies densely, else elements by their places in memory."""
    if x.flags.c_contiguous and picks_slices(x, index, axis):
        np.take(x, _listed(index, axis), axis, out=out, mode="clip")
    elif (memory := memory_of(x)) is not None:
        for where, first, places in run.through(chunks_of(index, element_steps(x), axis)):
            np.take(memory[first:], places, out=out[where], mode="clip")
    else:
        _read_elements.general(run, x, index, out, axis)


def _listed(index: Array, axis: int) -> Array:
    """All that is in the index: a repeated one is a list along `axis`."""
    if not is_repeated(index, axis):
        return index
    return index[tuple(slice(None) if i == axis else 0 for i in range(index.ndim))]


class TakeAlong(Composite):
    """y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others: NumPy's take_along_axis.

    `index` has x's rank; off the axis the two broadcast, and on it y has the index's extent. Indices lie in
    [0, extent); with `from_end`, in [−extent, extent), and negative ones count from the end. PyTorch's
    `take_along_dim`, which takes no negative index, and JAX's `take_along_axis`, which does.
    """

    name = "take_along"
    section = "take_along"
    operands = ("x", "index")
    dtypes = DTYPES
    attrs = {"axis": Attr("int", 0, "the axis that is indexed"), "from_end": FROM_END}
    gradient = "g added where it was read: repeated indices accumulate; none for index"
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
        """The axis counted from the front. Raises BadAttribute."""
        return {**attrs, "axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def infer(self, x: TensorType, index: TensorType, *, axis: int, **attrs: Any) -> ResultTypes:
        """The index's extent on the axis, the two broadcast elsewhere. Raises DtypeMismatch, ShapeMismatch."""
        require_integer(index, 1, "index")
        return x.with_shape(with_extent(_common(x.shape, index, axis), axis, index.shape[axis]))

    def compose(self, x: Value, index: Value, *, axis: int, from_end: bool) -> Value:
        """Both broadcast off the axis, and a gather."""
        index = from_front(index, x.shape[axis], 1, from_end)
        shape = _common(x.shape, index.type, axis)
        wide, places = (
            v if v.shape == (to := with_extent(shape, axis, v.shape[axis])) else v.broadcast_to(shape=to)
            for v in (x, index)
        )
        return wide.gather(places, axis=axis)


def _common(shape: Shape, index: TensorType, axis: int) -> Shape:
    """x's `shape` and the index's, broadcast off the axis; 1 on it. Raises ShapeMismatch."""
    here, there = (with_extent(s, axis, 1) if len(s) > axis else s for s in (shape, index.shape))
    if len(here) != len(there) or any(m != n and 1 not in (m, n) for m, n in zip(here, there, strict=True)):
        wanted = f"rank {len(shape)} and extents that broadcast with {show_shape(shape)} off axis {axis}"
        raise wrong_shape(1, "index", wanted, index)
    return tuple(n if m == 1 else m for m, n in zip(here, there, strict=True))
