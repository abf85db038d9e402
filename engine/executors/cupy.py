"""The GPU. CuPy is imported when an executor is opened, never before."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.executors.base import Executor
from engine.op import Array, Namespace


def is_available() -> bool:
    """Whether CuPy is installed and finds a GPU."""
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy  # noqa: PLC0415 - optional

    return bool(cupy.is_available())


class CuPyExecutor(Executor):
    """Runs plans with CuPy on the current device, on the calling thread's stream."""

    def __init__(self) -> None:
        """Raises RuntimeError when there is no usable GPU."""
        if not is_available():
            raise RuntimeError("no GPU can be used: CuPy is not installed, or finds no device")
        import cupy  # noqa: PLC0415 - optional

        self._cupy = cupy
        self.device = f"cuda:{cupy.cuda.Device().id}"  # type: ignore[misc]

    @property
    def xp(self) -> Namespace:
        """The module cupy."""
        return self._cupy

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """A copy on the GPU; as one axis, since a 0-d copy loses the sign of -0.0."""
        return self._cupy.asarray(np.ravel(array)).reshape(array.shape)

    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """Copies on the host; waits for the stream, so that a failed kernel is noticed here and not later."""
        self._cupy.cuda.get_current_stream().synchronize()
        return [self._cupy.asnumpy(a) for a in arrays]
