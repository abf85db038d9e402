"""What runs a plan: NumPy on the CPU, CuPy on a GPU. One loop, two array modules."""

from __future__ import annotations

from engine.executors import cupy_backend, numpy_backend
from engine.executors.interpreter import Executor
from engine.executors.leases import LEASE_BYTES, Leases
from engine.executors.tiers import Determinism
from engine.native.kernel_store import KernelStore


def open_executor(
    device: str = "auto",
    threads: int = 1,
    determinism: Determinism | None = None,
    store: KernelStore | None = None,
    lease_bytes: int = LEASE_BYTES,
    device_bytes: int | None = None,
) -> Executor:
    """The executor for `device`: cpu, cuda, or auto (cuda where a usable GPU is found).

    On a CPU, `threads` are what one kernel may use. With `determinism` given, loops are compiled: in the background, by
    and by (fast), or before the first result (bitwise); `store` keeps what was compiled. Plans that
    are ready to run again may take `lease_bytes` in all while they are idle. Of a GPU's memory, at most `device_bytes`
    are taken, by default nine tenths.

    Raises RuntimeError when cuda is asked for and cannot be had.
    """
    if device == "cuda" or (device == "auto" and cupy_backend.is_available()):
        return cupy_backend.CuPyExecutor(determinism, store, device_bytes)
    if device in ("cpu", "auto"):
        return numpy_backend.NumPyExecutor(threads, Leases(lease_bytes), determinism, store)
    raise ValueError(f"device must be auto, cpu or cuda, but is {device}")
