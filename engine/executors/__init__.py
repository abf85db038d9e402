"""What runs a plan: NumPy on the CPU, CuPy on a GPU. One loop, two array modules."""

from __future__ import annotations

from engine.executors import cupy_backend, numpy_backend
from engine.executors.interpreter import Executor


def open_executor(device: str = "auto", threads: int = 1) -> Executor:
    """The executor for `device`: cpu, cuda, or auto (cuda where a usable GPU is found); on a CPU, `threads` a kernel.

    Raises RuntimeError when cuda is asked for and cannot be had.
    """
    if device == "cuda" or (device == "auto" and cupy_backend.is_available()):
        return cupy_backend.CuPyExecutor()
    if device in ("cpu", "auto"):
        return numpy_backend.NumPyExecutor(threads)
    raise ValueError(f"device must be auto, cpu or cuda, but is {device}")
