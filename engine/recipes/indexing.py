"""Reading and adding at indices."""

from __future__ import annotations

from typing import Any

from engine.graph.dtypes import has_loops
from engine.graph.op import Kernel
from engine.graph.tensor_type import TensorType
from engine.microkernels.adding import Adding, adding
from engine.microkernels.picking import PICKED_AT_ONCE, Picking, picking
from engine.microkernels.recipe import Recipe
from engine.microkernels.routine import MOVED_AS


def gather_recipe(
    _: Kernel,
    out: TensorType,
    x: TensorType,
    index: TensorType,
    *,
    axis: int,
    **attrs: Any,  # noqa: ARG001 - of the op
) -> Recipe | None:
    """Vectors of indices; none for whole rows, along which an index is repeated, nor where they are short.

    Nor of bits that no vector has.
    """
    of = _picking(out, x, index, axis)
    is_in_vectors = of is not None and of.index[-1] == of.index_bytes and of.shape[-1] >= PICKED_AT_ONCE
    return picking(of) if of is not None and is_in_vectors else None


def body_gather_recipe(
    _: Kernel,
    out: TensorType,
    x: TensorType,
    index: TensorType,
    *,
    axis: int,
    **attrs: Any,  # noqa: ARG001 - of the op
) -> Recipe | None:
    """Read at indices of whole rows and short ones, too."""
    of = _picking(out, x, index, axis)
    return None if of is None else picking(of)


def _picking(out: TensorType, x: TensorType, index: TensorType, axis: int) -> Picking | None:
    moved = [0 if i == axis else step for i, step in enumerate(x.strides)]
    shape, at = out.shape, index.strides
    if axis and axis == out.ndim - 1 and shape[-1] == 1:  # one of each row: rows follow one another
        moved, shape, at = moved[:-1], shape[:-1], at[:-1]
    if out.dtype.itemsize not in MOVED_AS:
        return None
    extent, step = x.shape[axis], x.strides[axis]
    is_signed = index.dtype.kind == "i"
    return Picking(out.dtype.itemsize, shape, extent, step, tuple(moved), at, index.dtype.itemsize, is_signed)


def scatter_recipe(
    _: Kernel,
    out: TensorType,
    x: TensorType,
    index: TensorType,
    updates: TensorType,
    *,
    axis: int,
    **attrs: Any,  # noqa: ARG001 - of the op
) -> Recipe | None:
    """Row by row, for floats that add up in their own dtype, where the axis is the last of several."""
    return body_scatter_recipe(_, out, x, index, updates, axis=axis) if 0 < axis == x.ndim - 1 else None


def body_scatter_recipe(
    _: Kernel,
    out: TensorType,
    x: TensorType,
    index: TensorType,
    updates: TensorType,
    *,
    axis: int,
    **attrs: Any,  # noqa: ARG001 - of the op
) -> Recipe | None:
    """Along any axis: what is added to an element comes in the order of the index."""
    of = adding_of(out, x, index, updates, axis) if has_loops(out.dtype) else None
    return None if of is None else adding(of)


def adding_of(out: TensorType, x: TensorType, index: TensorType, updates: TensorType, axis: int) -> Adding | None:
    """Addition along an axis; None where an operand is to be converted before, or not all rows are covered."""
    if not x.dtype == updates.dtype == out.dtype:
        return None
    order = [*(a for a in range(x.ndim) if a != axis), axis]
    *rows, extent = (x.shape[a] for a in order)
    *covered, count = (index.shape[a] for a in order)
    if covered != rows:
        return None
    lies, added, updated, made = (tuple(type.strides[a] for a in order) for type in (x, index, updates, out))
    bits = index.dtype.itemsize, index.dtype.kind == "i"
    where = lies, added, updated, made
    return Adding(out.dtype.name, out.dtype.itemsize, tuple(rows), extent, count, *where, *bits)
