"""Compilers of kernels for a card: LLVM with nvJitLink, where both are there, and NVRTC, in all cores' threads.

The texts that they read give the same bits, so that a kernel may be made by whichever takes it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.metadata import version
from threading import Lock
from typing import Any, Final, Literal, NamedTuple

from engine.codegen.native.kernel_errors import KernelUnavailable
from engine.codegen.native.kernel_store import kernel_key
from engine.codegen.native.machine_code import demand_words, llvm
from engine.codegen.native.native_call import share
from engine.cuda.cuda_text import OPTIONS
from engine.cuda.libraries import card_library

# LLVM IR → machine code of a card: PTX by LLVM, from which nvJitLink assembles it. Neither needs a card or driver.
#
# PTX has add.rn, mul.rn, div.rn and sqrt.rn, and nothing that flushes subnormal numbers, as long as the text does not
# ask for more: what a float is, is what IEEE 754 says.
#
# Sources: nvJitLink.h and the guide of CUDA 13 to it; LLVM, "User Guide for NVPTX Back-end".

_TRIPLE: Final = "nvptx64-nvidia-cuda"
#: of LLVM: for more, an assembler optimises as well, and none is too little for it to know which memory is global
_OPT: Final = 1
#: NVJITLINK_INPUT_PTX
_PTX: Final = 2
#: of what the assembler says
_MOST_SAID: Final = 500


class CardAssembler(NamedTuple):
    """nvJitLink, as in "13.5"."""

    version: str

    @property
    def major(self) -> int:
        """Of which CUDA it is."""
        return int(self.version.partition(".")[0])

    @property
    def compiler(self) -> str:
        """What machine code depends on beside its text and the card: both programs, with their options."""
        return f"llvmlite {version('llvmlite')} opt {_OPT}, nvJitLink {self.version}"


def card_assembler() -> CardAssembler:
    """What there is. Raises KernelUnavailable where it, or LLVM for cards, is missing, or it is older than 12.3."""
    _target()
    found = card_library("nvJitLink")
    if found.loaded is None:
        raise KernelUnavailable(f"nvJitLink was not found: {found.missing}")
    if found.version is None:
        raise KernelUnavailable(f"nvJitLink is too old: {found.path} does not tell its version")
    return CardAssembler(found.version)


def card_code(text: str, architecture: str) -> bytes:
    """Machine code of a module for cards of this compute capability (90: 9.0). Threads may call it side by side.

    Raises KernelUnavailable, also where a number in the text is too large for its type.
    """
    card_assembler()
    ptx = card_ptx(text, architecture)
    linker = _Linker(architecture)
    try:
        return linker.assembled(ptx)
    finally:
        linker.destroy()


def card_ptx(text: str, architecture: str) -> str:
    """The PTX of a module. Raises KernelUnavailable."""
    demand_words(text)
    binding, target = llvm(), _target()
    try:
        machine = target.create_target_machine(cpu=f"sm_{architecture}", opt=_OPT)
        module = binding.parse_assembly(text, binding.create_context())
        module.triple = _TRIPLE
        module.data_layout = str(machine.target_data)
        ptx: str = machine.emit_assembly(module)
    except RuntimeError as error:
        raise KernelUnavailable(f"LLVM did not compile a kernel for a card: {str(error).strip()}") from error
    return ptx


@cache
def _target() -> Any:
    """LLVM's target for cards. Raises KernelUnavailable."""
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        return binding.Target.from_triple(_TRIPLE)
    except RuntimeError as error:
        raise KernelUnavailable(f"this LLVM has no cards: {str(error).strip()}") from error


class _Linker:
    """A handle of nvJitLink, for one text of PTX."""

    def __init__(self, architecture: str) -> None:
        self._calls, self._handle = card_library("nvJitLink").loaded, ctypes.c_void_p()
        options = (ctypes.c_char_p * 1)(f"-arch=sm_{architecture}".encode())
        status = self._calls.nvJitLinkCreate(ctypes.byref(self._handle), ctypes.c_uint32(len(options)), options)
        if status:
            raise KernelUnavailable(f"nvJitLink does not know cards of sm_{architecture} (status {status})")

    def assembled(self, ptx: str) -> bytes:
        """The machine code. Raises KernelUnavailable."""
        data = ptx.encode()
        size = ctypes.c_size_t(len(data) + 1)  # with the 0 at its end
        self._demand(self._calls.nvJitLinkAddData(self._handle, _PTX, data, size, b"loop.ptx"))
        self._demand(self._calls.nvJitLinkComplete(self._handle))
        return self._read_result("LinkedCubin")

    def destroy(self) -> None:
        """Give back what it holds."""
        self._calls.nvJitLinkDestroy(ctypes.byref(self._handle))

    def _demand(self, status: int) -> None:
        if status:
            said = self._read_result("ErrorLog").rstrip(b"\0\n").decode(errors="replace")
            raise KernelUnavailable(f"nvJitLink refused a kernel (status {status}): {said[:_MOST_SAID]}")

    def _read_result(self, what: str) -> bytes:
        size = ctypes.c_size_t()
        sized = getattr(self._calls, f"nvJitLinkGet{what}Size")(self._handle, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        status = sized or getattr(self._calls, f"nvJitLinkGet{what}")(self._handle, buffer)
        if status:
            raise KernelUnavailable(f"nvJitLink gives nothing out (status {status})")
        return buffer.raw


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
