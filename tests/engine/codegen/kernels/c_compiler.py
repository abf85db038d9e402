"""Compile C text to kernels with the machine's C compiler, as a reference for LLVM's kernels."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from engine.codegen.kernels.c_text import host_definitions
from engine.codegen.kernels.compiled import NativeKernel, kernel_at
from engine.codegen.kernels.program import FusedKernel
from tests.engine.codegen.kernels.c_text import c_text

COMPILER = shutil.which("gcc") or shutil.which("clang")
#: no contraction: only the fused multiply-adds of the loop are fused
FLAGS = ("-O3", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC")


def compile_c(text: str, folder: Path, *flags: str) -> ctypes.CDLL:
    """Compile `text` in `folder` and load the library."""
    assert COMPILER
    source, library = folder / "kernel.c", folder / "kernel.so"
    source.write_text(text, encoding="utf-8")
    subprocess.run([COMPILER, *FLAGS, *flags, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def c_kernel(loop: FusedKernel, lanes: int, folder: Path, *flags: str) -> NativeKernel:
    """Compile the kernel of a loop as C."""
    return c_kernels([(loop, lanes)], folder, *flags)[0]


def c_kernels(loops: Sequence[tuple[FusedKernel, int]], folder: Path, *flags: str) -> list[NativeKernel]:
    """Compile the kernels of loops and their lanes, all of a dtype at once, which takes less time."""
    kernels: dict[int, NativeKernel] = {}
    for dtype in {loop.dtype for loop, _ in loops}:
        chosen = [(k, loop, lanes) for k, (loop, lanes) in enumerate(loops) if loop.dtype == dtype]
        head = host_definitions(dtype)
        texts = [
            c_text(loop, lanes).removeprefix(head).replace(" kernel(", f" kernel{k}(") for k, loop, lanes in chosen
        ]
        (folder / dtype).mkdir()
        library = compile_c(head + "".join(texts), folder / dtype, *flags)
        for k, loop, lanes in chosen:
            address = ctypes.cast(getattr(library, f"kernel{k}"), ctypes.c_void_p).value
            assert address
            kernels[k] = kernel_at(loop, lanes, address, library)
    return [kernels[k] for k in range(len(loops))]
