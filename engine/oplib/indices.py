"""Array code that kernels share, and the places where NumPy and CuPy differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.graph.errors import IndexOutOfRange
from engine.graph.op import Array, Namespace, wrong_dtype
from engine.graph.tensor_type import INTEGERS, TensorType


def require_integer(type: TensorType, operand: int, name: str) -> None:
    """Raise DtypeMismatch unless an index operand holds integers."""
    if type.dtype.name not in INTEGERS:
        raise wrong_dtype(name, operand, INTEGERS, type)


def check_indices(index: Array, extent: int, *, operand: int) -> None:
    """Raise IndexOutOfRange unless all entries lie in [0, extent): NumPy and CuPy would wrap negative ones."""
    if index.size and not (int(index.min()) >= 0 and int(index.max()) < extent):
        wanted = f"in [0, {extent})"
        raise IndexOutOfRange(
            f"operand {operand} holds an index outside the axis: all must lie {wanted}",
            operand=operand,
            expected=wanted,
            got="an entry outside",
        )


def add_at(xp: Namespace, target: Array, index: tuple[Array, ...], updates: Any) -> None:
    """target[index] += updates, where repeated indices accumulate."""
    if xp is not np and target.dtype == np.int64:
        # CUDA adds atomically to unsigned numbers of 64 bits only; the bits of the sum are the same.
        target, updates = target.view("uint64"), xp.asarray(updates, dtype="int64").view("uint64")
    xp.add.at(target, index, updates)
