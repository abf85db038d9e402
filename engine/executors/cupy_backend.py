"""The GPU. CuPy is imported when an executor is opened, never before."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.executors.interpreter import Buffer, Executor
from engine.graph.op import Array, Namespace
from engine.graph.tensor_type import TensorType


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
    def device_bytes(self) -> int:
        """Those of CuPy's pool, in use or not."""
        return int(self._cupy.get_default_memory_pool().total_bytes())

    @property
    def xp(self) -> Namespace:
        """The module cupy."""
        return self._cupy

    def to_device(self, array: np.ndarray[Any, Any]) -> Array:
        """A copy on the GPU; as one axis, since a 0-d copy loses the sign of -0.0."""
        return self._cupy.asarray(np.ravel(array)).reshape(array.shape)

    def allocate(self, nbytes: int) -> Buffer:
        """Memory of CuPy's pool, which aligns to 512 bytes."""
        return self._cupy.cuda.alloc(nbytes)

    def place(self, type: TensorType, buffer: Buffer, offset: int) -> Array:
        """An array on that memory."""
        return self._cupy.ndarray(type.shape, type.dtype, buffer + offset)

    def to_host(self, arrays: Sequence[Array]) -> list[np.ndarray[Any, Any]]:
        """Copies on the host; waits for the stream, so that a failed kernel is noticed here and not later."""
        self._cupy.cuda.get_current_stream().synchronize()
        return [self._cupy.asnumpy(a) for a in arrays]
