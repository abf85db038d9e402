"""Sums of squares on the CPU, in one pass over memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.graph.tensor_type import DType, HostArray, TensorType
from engine.oplib.accumulate import count
from engine.oplib.reduction import reduced_shape

#: squares that are added up in one go, in as many lanes as a vector has: beyond, sums of sums are more accurate
LONGEST: Final = 4096


def sum_of_squares(
    x: HostArray, axes: Sequence[int], dtype: DType, factor: float = 1.0, out: HostArray | None = None
) -> HostArray:
    """Σ (factor · x)² over axes, which stay at extent 1, in `dtype`; into `out`, where that is given.

    `factor` · x must be within the range of `dtype`, and once more times `factor`; x² need not.
    """
    if out is None:
        out = np.empty(reduced_shape(x.shape, axes, True), dtype)
    length = count(x.shape, axes)
    is_last = tuple(axes) == tuple(range(x.ndim - len(axes), x.ndim))
    if length <= LONGEST or not (is_last and x.flags.c_contiguous):
        kept = [a for a in range(x.ndim) if a not in axes]
        _add_up(x, range(x.ndim), kept, factor, out.reshape([x.shape[a] for a in kept]))
        return out
    rows, whole = x.reshape(-1, length), length - length % LONGEST
    parts = np.empty((len(rows), whole // LONGEST + 1), dtype)
    _add_up(rows[:, :whole].reshape(len(rows), -1, LONGEST), (0, 1, 2), (0, 1), factor, parts[:, 1:])
    _add_up(rows[:, whole:], (0, 1), (0,), factor, parts[:, 0])
    np.add.reduce(parts, 1, out=out.reshape(-1))
    return out


def parts_bytes(x: TensorType, results: int, dtype: DType) -> int:
    """What `sum_of_squares` allocates beside so many sums."""
    return dtype.itemsize * (x.size // LONGEST + results) if x.size > LONGEST * results else 0


def _add_up(x: HostArray, axes: Sequence[int], kept: Sequence[int], factor: float, out: HostArray) -> None:
    scale: Any = out.dtype.type(factor)  # products are made from left to right
    terms = (x, axes, x, axes) if factor == 1 else (scale, (), x, axes, scale, (), x, axes)
    np.einsum(*terms, kept, out=out, dtype=out.dtype, casting="same_kind")
