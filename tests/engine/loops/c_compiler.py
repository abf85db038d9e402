"""C text → a kernel, by the machine's C compiler: the peer that LLVM's kernels are compared with."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

from engine.loops.c_text import c_text
from engine.loops.native import NativeKernel, kernel_at
from engine.loops.program import Loop

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


def c_kernel(loop: Loop, lanes: int, folder: Path, *flags: str) -> NativeKernel:
    """The kernel of a loop, compiled as C."""
    library = compile_c(c_text(loop, lanes), folder, *flags)
    address = ctypes.cast(library.kernel, ctypes.c_void_p).value
    assert address
    return kernel_at(loop, lanes, address, library)
