"""C text → a kernel, by the machine's C compiler: the peer that LLVM's kernels are compared with."""

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
#: no contraction: a fused multiply-add is one only where the loop says so
FLAGS = ("-O3", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC")


def compile_c(text: str, folder: Path, *flags: str) -> ctypes.CDLL:
    """The library that `text` is compiled to, in `folder`, loaded."""
    assert COMPILER
    source, library = folder / "kernel.c", folder / "kernel.so"
    source.write_text(text, encoding="utf-8")
    subprocess.run([COMPILER, *FLAGS, *flags, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def c_kernel(loop: FusedKernel, lanes: int, folder: Path, *flags: str) -> NativeKernel:
    """The kernel of a loop, compiled as C."""
    return c_kernels([(loop, lanes)], folder, *flags)[0]


def c_kernels(wanted: Sequence[tuple[FusedKernel, int]], folder: Path, *flags: str) -> list[NativeKernel]:
    """The kernels of loops and their lanes: those of a dtype are compiled in one piece, which takes less time."""
    found: dict[int, NativeKernel] = {}
    for dtype in {loop.dtype for loop, _ in wanted}:
        chosen = [(k, loop, lanes) for k, (loop, lanes) in enumerate(wanted) if loop.dtype == dtype]
        head = host_definitions(dtype)
        texts = [
            c_text(loop, lanes).removeprefix(head).replace(" kernel(", f" kernel{k}(") for k, loop, lanes in chosen
        ]
        (folder / dtype).mkdir()
        library = compile_c(head + "".join(texts), folder / dtype, *flags)
        for k, loop, lanes in chosen:
            address = ctypes.cast(getattr(library, f"kernel{k}"), ctypes.c_void_p).value
            assert address
            found[k] = kernel_at(loop, lanes, address, library)
    return [found[k] for k in range(len(wanted))]
