"""Run CUDA kernels on the CPU: the machine's C compiler builds their text, and threads are coroutines."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from engine.codegen.kernels.c_text import host_definitions
from engine.cuda.cuda_text import SUMS, CudaParts, cuda_kernels
from engine.cuda.launch import CudaKernel, Launch
from tests.engine.codegen.kernels.c_compiler import compile_c

_SHIM: Final = Path(__file__).with_name("cuda_on_host.c")
Array = np.ndarray[Any, Any]


class HostKernels:
    """The kernels of one loop; `launch` runs one as a GPU would. Names of kernels in `own` end in the loop's number."""

    def __init__(self, library: ctypes.CDLL, number: int, own: Container[str] = ("rows", "columns")) -> None:
        self._library, self._number, self._own = library, number, own

    def launch(self, launch: Launch) -> None:
        own = launch.kernel in self._own
        launch_on_host(self._library, launch._replace(kernel=f"{launch.kernel}{self._number}") if own else launch)


def launch_on_host(library: ctypes.CDLL, launch: Launch) -> None:
    """Run a kernel of a library as a GPU would."""
    extents = np.array([*launch.grid, *launch.block], np.int64)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (extents, launch.table)]
    status = library.launch(getattr(library, launch.kernel), *pointers)
    assert status == 0, "the threads of a warp did not meet equally often"


def host_kernels(loops: Sequence[tuple[CudaParts, int]], folder: Path) -> list[HostKernels]:
    """Compile the kernels of loops in parts and their lanes, all of a dtype at once."""
    built: dict[int, HostKernels] = {}
    for dtype in {_dtype(parts) for parts, _ in loops}:
        chosen = [(k, parts, lanes) for k, (parts, lanes) in enumerate(loops) if _dtype(parts) == dtype]
        texts = [_numbered(cuda_kernels(parts, lanes), k) for k, parts, lanes in chosen]
        (folder / dtype).mkdir()
        library = compile_c(shimmed(dtype, "".join(texts) + SUMS), folder / dtype, "-O1", "-Wno-unknown-pragmas")
        built.update((k, HostKernels(library, k)) for k, _, _ in chosen)
    return [built[k] for k in range(len(loops))]


def shimmed(dtype: str, kernels: str) -> str:
    """Add the definitions with which a C compiler builds GPU kernels."""
    return host_definitions(dtype) + _SHIM.read_text(encoding="utf-8") + kernels


def run_on_host(kernels: HostKernels, loop: CudaKernel, operands: Sequence[Array], results: Sequence[Array]) -> bool:
    """Fill `results`; return whether the loop was out of range."""
    workspace, flag = np.full(loop.workspace, 0x77, np.uint8), np.zeros(1, np.uint8)
    flag_at = flag.ctypes.data
    for launch in loop.bind(operands, results, workspace.ctypes.data, flag_at, lambda array: array.ctypes.data):
        kernels.launch(launch)
    return bool(flag[0])


def _dtype(parts: CudaParts) -> str:
    loop = parts.rows or parts.columns
    assert loop is not None
    return loop.dtype


def _numbered(text: str, number: int) -> str:
    return re.sub(r"KERNEL (rows|columns)\(", rf"KERNEL \g<1>{number}(", text)
