"""The CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from engine.arena import ALIGNMENT
from engine.executors.base import Buffer, Executor
from engine.op import Array, Namespace
from engine.tensor_type import TensorType


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
        room = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = -room.ctypes.data % ALIGNMENT
        return room[start : start + nbytes]

    def place(self, type: TensorType, buffer: Buffer, offset: int) -> Array:
        """An array on those bytes."""
        return np.ndarray(type.shape, type.dtype, buffer, offset)

    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """The arrays themselves."""
        return list(arrays)
