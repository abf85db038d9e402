"""Recipes of reading and adding at indices."""

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
    moved = [0 if i == axis else step for i, step in enumerate(x.strides)]
    shape, at = out.shape, index.strides
    if axis and axis == out.ndim - 1 and shape[-1] == 1:  # one of each row: rows follow one another
        moved, shape, at = moved[:-1], shape[:-1], at[:-1]
    if out.dtype.itemsize not in MOVED_AS or at[-1] != index.dtype.itemsize or shape[-1] < PICKED_AT_ONCE:
        return None
    extent, step = x.shape[axis], x.strides[axis]
    is_signed = index.dtype.kind == "i"
    of = Picking(out.dtype.itemsize, shape, extent, step, tuple(moved), at, index.dtype.itemsize, is_signed)
    return picking(of)


def scatter_recipe(
    _: Kernel, out: TensorType, x: TensorType, index: TensorType, updates: TensorType, *, axis: int
) -> Recipe | None:
    """Row by row, for floats that add up in their own dtype, where the axis is the last of several."""
    if not has_loops(out.dtype) or not x.dtype == updates.dtype == out.dtype:
        return None
    if not 0 < axis == x.ndim - 1:
        return None
    of = Adding(
        out.dtype.name,
        out.dtype.itemsize,
        x.shape[:-1],
        x.shape[-1],
        index.shape[-1],
        x.strides,
        index.strides,
        updates.strides,
        index.dtype.itemsize,
        index.dtype.kind == "i",
    )
    return adding(of) if index.shape[:-1] == x.shape[:-1] else None
