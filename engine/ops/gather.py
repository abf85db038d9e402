"""Reading by an index tensor, and its adjoint: adding at an index tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.by_device import DeviceFunction
from engine.graph.dtypes import DTYPES
from engine.graph.errors import BadAttribute, OperandCount, ShapeMismatch
from engine.graph.ir import Value
from engine.graph.op import Array, Op, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import INT64, HostArray, Shape, TensorType, normalise_axis, promote, show_shape
from engine.graph.truth import Truth
from engine.oplib import batching
from engine.oplib.accumulate import atomic_accumulator
from engine.oplib.adding_at import add_elements, add_elements_bytes, add_rows, add_rows_bytes
from engine.oplib.flat_places import chunk_bytes_of, chunks_of, element_steps, is_walked_forwards, memory_of
from engine.oplib.from_end import FROM_END, from_front, listed_from_front
from engine.oplib.indices import check_indices, grid, is_repeated, picks_slices, require_integer

_AXIS = Attr("int", 0, "the axis that is indexed")


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
        _check_covered(x.shape, index.shape, axis, 1)
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

    def workspace(self, out: ResultTypes, *types: TensorType, axis: int, **attrs: Any) -> int:
        """The positions that are read at; of an operand that runs backwards, what was read, too."""
        x, index = types
        assert isinstance(out, TensorType)
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
        _check_covered(x.shape, index.shape, axis, 1)
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
        """Of indices that may be negative, those that are not."""
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
        self, out: ResultTypes, x: TensorType, index: TensorType, updates: TensorType, *, axis: int, **attrs: Any
    ) -> int:
        """The positions that are added at, and sums in a wider dtype."""
        assert isinstance(out, TensorType)
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


def _check_covered(shape: Shape, index: Shape, axis: int, operand: int) -> None:
    fits = len(index) == len(shape) and all(
        i == axis or n <= m for i, (n, m) in enumerate(zip(index, shape, strict=True))
    )
    if not fits:
        wanted = f"rank {len(shape)} and at most shape {show_shape(shape)} off axis {axis}"
        raise ShapeMismatch(
            f"operand {operand} (index) must have {wanted}, but has shape {show_shape(index)}",
            operand=operand,
            expected=wanted,
            got=show_shape(index),
        )


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
