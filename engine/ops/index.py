"""Reading at several index tensors, adding there, and writing there."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES
from engine.graph.ir import Value
from engine.graph.op import Composite, ResultTypes
from engine.graph.sample import Ints, Real, Sample
from engine.graph.tensor_type import TensorType, promote, show_shape
from engine.graph.truth import Truth
from engine.oplib.from_end import FROM_END
from engine.oplib.last_writer import last_writer
from engine.oplib.operands import wrong_shape
from engine.oplib.several_indices import INDEXED_AXES, IndexedAxes, axes_of, common_shape

_ATTRS: Mapping[str, Attr] = {"axes": INDEXED_AXES, "from_end": FROM_END}


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
        """By places on the axes as one."""
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
    section = "index"
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
    section = "index"
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
        """Of each place the last to write, if there is one."""
        dtype = promote(x.dtype, updates.dtype)
        if not updates.type.size:
            return x.cast(dtype=dtype)
        writer = last_writer(flat, at.places)
        read = updates.gather(at.spread(writer.clamp(min=0)), axis=at.before)
        column = (writer >= 0).reshape(shape=(at.places, *[1] * (x.ndim - at.before - 1)))
        return column.where(read, x)
