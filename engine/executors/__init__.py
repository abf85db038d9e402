"""What runs a plan: NumPy on the CPU, CuPy on a GPU. One loop, two array modules."""

from __future__ import annotations

from engine.executors import cupy, numpy
from engine.executors.base import Executor


def open_executor(device: str = "auto") -> Executor:
    """The executor for `device`: cpu, cuda, or auto (cuda where a usable GPU is found).

    Raises RuntimeError when cuda is asked for and cannot be had.
    """
    if device == "cuda" or (device == "auto" and cupy.is_available()):
        return cupy.CuPyExecutor()
    if device in ("cpu", "auto"):
        return numpy.NumPyExecutor()
    raise ValueError(f"device must be auto, cpu or cuda, but is {device}")
