"""The CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from engine.executors.interpreter import Buffer, Executor
from engine.graph.op import Array, Namespace
from engine.graph.tensor_type import TensorType
from engine.planning.arena import ALIGNMENT


class NumPyExecutor(Executor):
    """Runs plans with NumPy, in the calling thread."""

    device: ClassVar[str] = "cpu"

    @property
    def xp(self) -> Namespace:
        """The module numpy."""
        return np

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """`array` itself where it is contiguous."""
        return np.asarray(array, order="C")

    def allocate(self, nbytes: int) -> Buffer:
        """Bytes that nothing was written to."""
        raw = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        return raw[start : start + nbytes]

    def place(self, type: TensorType, buffer: Buffer, offset: int) -> Array:
        """An array on those bytes."""
        return np.ndarray(type.shape, type.dtype, buffer, offset)

    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """The arrays themselves."""
        return list(arrays)
