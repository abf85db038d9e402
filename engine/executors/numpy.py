"""The CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from engine.executors.base import Executor
from engine.op import Array, Namespace


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

    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """The arrays themselves."""
        return list(arrays)
