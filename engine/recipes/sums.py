"""Sums over the axes before and behind others."""

from __future__ import annotations

from typing import Any, Final

from engine.graph.dtypes import has_loops
from engine.graph.op import Kernel
from engine.graph.tensor_type import TensorType
from engine.microkernels.channel_sums import as_channel_sums, channel_sums
from engine.microkernels.recipe import Recipe

#: elements from which a kernel of their shape is worth its compiling
_MANY: Final = 1 << 12


def sum_recipe(_: Kernel, out: TensorType, x: TensorType, *, axes: tuple[int, ...], **attrs: Any) -> Recipe | None:  # noqa: ARG001 - as in the table
    """Over the axes before and behind the others; those that come last, or first, are for loops."""
    if not has_loops(x.dtype) or x.size < _MANY:
        return None
    of = as_channel_sums(x.dtype.name, x.dtype.itemsize, x.shape, x.strides, axes)
    return of and channel_sums(of)
