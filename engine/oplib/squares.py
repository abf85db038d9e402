"""Sums of squares on the CPU, in one pass over memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from engine.graph.tensor_type import DType, HostArray, TensorType, reduced_shape
from engine.oplib.accumulate import count

#: squares that are added up in one go: beyond, sums of sums are more accurate, and BLAS would take several threads
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
    if not (is_last and x.flags.c_contiguous):
        kept = [a for a in range(x.ndim) if a not in axes]
        _add_up(x, axes, factor, out.reshape([x.shape[a] for a in kept]))
        return out
    rows, whole = x.reshape(-1, length), length - length % LONGEST
    if length <= LONGEST:
        _add_up(rows, (1,), factor, out.reshape(-1))
        return out
    parts = np.empty((len(rows), whole // LONGEST + 1), dtype)
    _add_up(rows[:, :whole].reshape(len(rows), -1, LONGEST), (2,), factor, parts[:, 1:])
    _add_up(rows[:, whole:], (1,), factor, parts[:, 0])
    np.add.reduce(parts, 1, out=out.reshape(-1))
    return out


def parts_bytes(x: TensorType, results: int, dtype: DType) -> int:
    """What `sum_of_squares` allocates beside so many sums."""
    return dtype.itemsize * (x.size // LONGEST + results) if x.size > LONGEST * results else 0


def _add_up(x: HostArray, axes: Sequence[int], factor: float, out: HostArray) -> None:
    """In one go: short rows by BLAS, which takes one thread for them."""
    if factor == 1 and tuple(axes) == (x.ndim - 1,) and x.dtype == out.dtype:
        np.vecdot(x, x, out=out)
        return
    scale: Any = out.dtype.type(factor)  # products are made from left to right
    all, kept = range(x.ndim), [a for a in range(x.ndim) if a not in axes]
    terms = (x, all, x, all) if factor == 1 else (scale, (), x, all, scale, (), x, all)
    np.einsum(*terms, kept, out=out, dtype=out.dtype, casting="same_kind")
