"""Run LLVM IR for a GPU on the CPU: the text is retargeted and linked with the threads of `cuda_on_host.c`."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engine.codegen.native.machine_code import machine_code
from engine.cuda.launch import CudaKernel
from engine.cuda.ptx_text import ptx_text
from tests.engine.codegen.kernels.c_compiler import compile_c
from tests.engine.codegen.kernels.cuda_shim import HostKernels, shimmed

_CALLS: Final = Path(__file__).with_name("ptx_on_host.c")
#: text that only a GPU supports, and its replacement on the CPU
_REPLACEMENTS: Final = (
    (r"ptx_kernel void", "void"),
    (r"ptr byval\(\[\d+ x i64\]\) align 8 %table", "ptr %table"),
    (r"@llvm\.nvvm\.read\.ptx\.sreg\.(\w+)\.([xy])", r"@sreg_\1_\2"),
    (r"@llvm\.nvvm\.shfl\.sync\.(down|idx)\.i32", r"@shfl_sync_\1"),
)
_KERNELS: Final = ("rows", "columns", "add_rows", "add_parts")
_NAMES: Final = re.compile(rf"(?<=@)({'|'.join(_KERNELS)})(?=\()")


def host_ptx_kernels(loops: Sequence[CudaKernel], folder: Path) -> list[HostKernels]:
    """Build the kernels of loops, linking all of a dtype at once."""
    kernels: dict[int, HostKernels] = {}
    for dtype in {loop.fused.dtype for loop in loops}:
        chosen = [k for k, loop in enumerate(loops) if loop.fused.dtype == dtype]
        texts = [_NAMES.sub(rf"\g<1>{k}", text_of(loops[k])) for k in chosen]
        (folder / dtype).mkdir()
        library = host_library(dtype, texts, folder / dtype)
        kernels.update((k, HostKernels(library, k, _KERNELS)) for k in chosen)
    return [kernels[k] for k in range(len(loops))]


def text_of(loop: CudaKernel) -> str:
    """Print the LLVM IR of a loop."""
    return ptx_text(loop.parts, loop.lanes, loop.kernels)


def host_library(dtype: str, texts: Sequence[str], folder: Path) -> ctypes.CDLL:
    """Build GPU modules as a CPU library with `launch`."""
    objects = [folder / f"{k}.o" for k in range(len(texts))]
    for file, text in zip(objects, texts, strict=True):
        file.write_bytes(machine_code(_for_processor(text)))
    return compile_c(shimmed(dtype, _CALLS.read_text(encoding="utf-8")), folder, "-O1", *map(str, objects))


def _for_processor(text: str) -> str:
    for pattern, replacement in _REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    assert "nvvm" not in text
    return text
