"""Entries selected by a mask, a stated number of them: their positions, and the entries themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from engine.ir.attributes import Attr
from engine.ir.graph import Builder, Value
from engine.ir.op import Composite, NoGradient, ResultTypes, wrong_dtype
from engine.ir.sample import Bools, Ints, Real, Sample, Truth
from engine.ir.tensor_type import DTYPES, INT64, TensorType, normalise_axis
from engine.ops.common.batching import pack
from engine.ops.common.numerics import FILL_AS, require_axes, require_shape, resolve_fill, with_extent
from engine.ops.index.indices import axis_shape, take_slices

_K = Attr("int", doc="number of entries in the result", minimum=0)


def _true_positions(mask: Value, k: int) -> tuple[Value, Value]:
    """Return the positions of the first k true entries of a mask [n], int64 [k] padded with 0, and their total number.

    A true entry writes its position to the slot given by the running count. False entries and those beyond k write to
    slot k, which is cut off. Shapes thus do not depend on the mask.
    """
    builder, n = mask.builder, mask.shape[0]
    running_count = mask.cumsum(axis=0)
    count = mask.sum()
    slots = mask.logical_and(running_count <= k).where(running_count.sub(1), _int64(builder, k))
    positions = mask.where(builder.arange(n), _int64(builder, 0))
    zeros = builder.full((k + 1,), 0, INT64)
    return zeros.scatter_add(slots, positions, axis=0).slice(starts=(0,), stops=(k,)), count


def _int64(builder: Builder, number: int) -> Value:
    return builder.full((), number, INT64)


class NonZero(Composite):
    """The first k positions where `mask` is true, in row-major order: int64 [k, rank]; and their total count: int64 [].

    You set k, so that shapes do not depend on the mask. If there are more than k positions, the rest are dropped; if
    there are fewer, the remaining rows are zeros. The count, which is not limited to k, tells you which. JAX: `nonzero`
    with a size, which returns the columns as a tuple. PyTorch: `nonzero`, which has as many rows as there are
    positions.
    """

    name = "nonzero"
    section = "masks"
    operands = ("mask",)
    attrs: ClassVar[Mapping[str, Attr]] = {"k": _K}
    dtypes = ("bool",)
    since = 2
    several = True
    gradient = "none: positions are whole numbers"
    vjp = NoGradient("places are whole numbers")
    samples = (
        Sample(Bools(6), k=4),
        Sample(Bools(2, 3), k=7),
        Sample(Bools(2, 3, 2), k=2),
        Sample(Bools(), k=2),
        Sample(Bools(3), k=0),
    )
    truths = (
        Truth(operands=[[[False, True], [True, True]]], attrs={"k": 2}, value=([[0, 1], [1, 0]], 3), source="by hand"),
    )

    def infer(self, mask: TensorType, *, k: int) -> ResultTypes:
        """Return the types int64 [k, rank] and []."""
        return TensorType((k, mask.ndim), INT64), TensorType((), INT64)

    def compose(self, mask: Value, *, k: int) -> Value:
        """Find positions in the flattened mask, and convert them to coordinates."""
        builder, shape = mask.builder, mask.shape
        positions, count = _true_positions(mask.reshape(shape=(mask.type.size,)), k)
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        columns = [
            positions.floor_div(stride).mod(n).reshape(shape=(k, 1)) for stride, n in zip(strides, shape, strict=True)
        ]
        coordinates = columns[0].cat(*columns[1:], axis=1) if columns else builder.full((k, 0), 0, INT64)
        return pack(builder, [coordinates, count])


class Compress(Composite):
    """The first k entries of x along `axis` where `mask` [extent] is true; and their total count: int64 [].

    You set k, so that shapes do not depend on the mask. If there are more than k entries, the rest are dropped; if
    there are fewer, the remaining entries are `fill`. The count, which is not limited to k, tells you which. NumPy:
    `compress`. JAX: `compress`, which also takes a size and a fill_value. PyTorch: x[mask], which has as many entries
    as the mask selects.
    """

    name = "compress"
    section = "masks"
    operands = ("x", "mask")
    dtypes = DTYPES
    attrs: ClassVar[Mapping[str, Attr]] = {
        "k": _K,
        "axis": Attr("int", 0, "axis that the mask applies to"),
        "fill": Attr("number", 0.0, "value of the remaining entries"),
        "fill_as": FILL_AS,
    }
    since = 2
    several = True
    gradient = "g to the entries that were read; none for mask"
    samples = (
        Sample(Real(5, 2), Bools(5), k=3),
        Sample(Real(2, 4), Bools(4), k=6, axis=-1, fill=2.5),
        Sample(Real(3), Bools(3), k=0),
        Sample(Ints(3, high=9), Bools(3), k=4, fill=-1),
        *(Sample(Real(3), Bools(3), k=0, fill_as=word) for word in FILL_AS.choices),
    )
    truths = (
        Truth(
            operands=[[1.0, 2.0, 4.0, 8.0], [False, True, False, True]],
            attrs={"k": 3, "fill": -1.0},
            value=([2.0, 8.0, -1.0], 2),
            cotangent=([1.0, 3.0, 5.0], None),
            gradients=[[0.0, 1.0, 0.0, 3.0], None],
            source="by hand",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Normalise the axis, and convert the fill to x's dtype. Raises BadAttribute, ShapeMismatch."""
        require_axes(types[0], 1, "to pick from")
        return {**resolve_fill(attrs, types[0].dtype), "axis": normalise_axis(attrs["axis"], types[0].ndim)}

    def infer(self, x: TensorType, mask: TensorType, *, k: int, axis: int, **attrs: Any) -> ResultTypes:
        """Return x's type with extent k on the axis, and int64 []. Raises DtypeMismatch, ShapeMismatch."""
        if mask.dtype.kind != "b":
            raise wrong_dtype("mask", 1, ("bool",), mask)
        require_shape(mask, (x.shape[axis],), 1, "mask", f"one for each entry of axis {axis} of x")
        return x.with_shape(with_extent(x.shape, axis, k)), TensorType((), INT64)

    def compose(self, x: Value, mask: Value, *, k: int, axis: int, fill: float, **attrs: Any) -> Value:
        """Read at the positions, and fill those after the count."""
        builder = x.builder
        positions, count = _true_positions(mask, k)
        padding = builder.full(with_extent(x.shape, axis, k), fill, x.dtype)
        if not x.shape[axis] or not k:
            return pack(builder, [padding, count])
        is_filled = (builder.arange(k) < count).reshape(shape=axis_shape(x.ndim, axis, k))
        return pack(builder, [is_filled.where(take_slices(x, positions, axis), padding), count])
