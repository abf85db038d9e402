"""Opening of executors by kind of device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import isabstract, isclass
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final

from engine.codegen.native.machine_code import KernelStore
from engine.runtime.interpreter import DEVICE_WORKSPACE, INSTANCE_BYTES, Executor, ExecutorSettings
from engine.runtime.tiers import Compiling, Determinism

#: module of the CUDA executor, imported by name because its package depends on this one; loads CuPy when opened
_CUDA_BACKEND: Final = "engine.cuda.cupy_backend"


def _backends() -> Iterator[type[Executor]]:
    """Yield the executors of modules in this package whose names end in `_backend`, and the CUDA executor."""
    names = [module.name for module in iter_modules([str(Path(__file__).parent)], f"{__package__}.")]
    for name in dict.fromkeys([*names, _CUDA_BACKEND]):
        if name.endswith("_backend"):
            values = vars(import_module(name)).values()
            yield from (
                value for value in values if isclass(value) and issubclass(value, Executor) and not isabstract(value)
            )


#: kind of device → its executor
BACKENDS: Final[Mapping[str, type[Executor]]] = MappingProxyType(
    {backend.device: backend for backend in sorted(_backends(), key=lambda each: each.position)}
)


def open_executor(
    device: str = "auto",
    threads: int = 1,
    determinism: Determinism = "fast",
    store: KernelStore | None = None,
    instance_bytes: int = INSTANCE_BYTES,
    device_bytes: int | None = None,
    device_workspace: int = DEVICE_WORKSPACE,
    *,
    compile: Compiling = "off",
) -> Executor:
    """Open the executor for `device`: a kind in BACKENDS, such as cpu or cuda, or auto (cuda if a usable GPU is found).

    On a CPU, one kernel uses up to `threads` threads. With `compile` on, kernels are compiled in the background
    (`determinism` fast) or before the first result (bitwise), and cached in `store`. Idle prepared plans take up to
    `instance_bytes` in total; on a GPU, pinned memory for transfers takes as much again. At most `device_bytes` of a
    GPU's memory are used, by default nine tenths. Of these, kernels and libraries share `device_workspace`, at most a
    quarter.

    Raises ValueError for an unknown device, and RuntimeError if it cannot be opened.
    """
    usable = [
        backend for kind, backend in BACKENDS.items() if kind == device or (device == "auto" and backend.is_available())
    ]
    if not usable:
        *others, last = "auto", *sorted(BACKENDS)
        raise ValueError(f"device must be {', '.join(others)} or {last}, but is {device}")
    sizes = instance_bytes, device_bytes, device_workspace
    return usable[0].open(ExecutorSettings(threads, determinism, store, *sizes, compile))
