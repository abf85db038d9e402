"""Compilers of kernels for a card: LLVM with nvJitLink, where both are there, and NVRTC, in all cores' threads.

The texts that they read give the same bits, so that a kernel may be made by whichever takes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import Any, Literal, NamedTuple

from engine.cards.card_code import card_assembler, card_code
from engine.loops.cuda_text import OPTIONS
from engine.native.kernel_errors import KernelUnavailable
from engine.native.kernel_store import kernel_key
from engine.native.sharing import share


class CardText(NamedTuple):
    """A kernel's text in the languages of compilers, printed when one asks: CUDA C, and LLVM IR, if it has that."""

    cuda: Callable[[], str]
    llvm: Callable[[], str] | None = None


class CardCompiler(NamedTuple):
    """Maker of machine code for the current card, of texts in a language; `name` has its version, and its options."""

    language: Literal["llvm", "cuda"]
    name: str
    architecture: str
    compile: Callable[[str], bytes]


class CardWay(NamedTuple):
    """One of the ways from a text to machine code: by what key that is kept, and what makes it."""

    key: str
    compile: Callable[[], bytes]


def card_compilers(cupy: Any) -> list[CardCompiler]:
    """Those that there are for the calling thread's card, the one that is asked first to begin with.

    NVRTC, which CuPy has, is always there. A nvJitLink that is of another CUDA may write what the driver cannot load.
    """
    architecture, version = cupy.cuda.Device().compute_capability, cupy.cuda.nvrtc.getVersion()
    name = f"nvrtc {'.'.join(map(str, version))} {OPTIONS}"
    nvrtc = CardCompiler("cuda", name, architecture, partial(compile_cuda, cupy, architecture))
    try:
        assembler = card_assembler()
    except KernelUnavailable:
        return [nvrtc]
    if assembler.major != version[0]:
        return [nvrtc]
    llvm = CardCompiler("llvm", assembler.compiler, architecture, partial(card_code, architecture=architecture))
    return [llvm, nvrtc]


def ways(text: CardText, compilers: Sequence[CardCompiler]) -> Iterator[CardWay]:
    """Those that there are, in the order of the compilers; the text is printed for each when that is reached."""
    for compiler in compilers:
        prints = text.llvm if compiler.language == "llvm" else text.cuda
        if prints is not None:
            printed, processor = prints(), f"sm_{compiler.architecture}"
            key = kernel_key(printed, system="cuda", processor=processor, compiler=compiler.name)
            yield CardWay(key, partial(compiler.compile, printed))


def in_threads(jobs: Iterator[Callable[[], object]]) -> None:
    """Do jobs in as many threads at a time as there are cores; each is asked for when a thread is free, one by one."""
    asking = Lock()

    def work(*_: int) -> None:
        while True:
            with asking:
                job = next(jobs, None)
            if job is None:
                return
            job()

    threads = range(_cores())
    share(work, len(threads), threads)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_cuda(cupy: Any, architecture: str, text: str) -> bytes:
    """Machine code of CUDA C for cards of this compute capability (90: 9.0). Raises KernelUnavailable."""
    nvrtc = cupy.cuda.nvrtc
    program = nvrtc.createProgram(text, "loop.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"--gpu-architecture=sm_{architecture}"))
        code: bytes = nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        raise KernelUnavailable(f"NVRTC: {error}: {nvrtc.getProgramLog(program)[:500]}") from None
    finally:
        nvrtc.destroyProgram(program)
    return code
