"""Compilers of GPU kernels: LLVM with nvJitLink, if both are there, and NVRTC, in a thread for each core.

LLVM makes PTX of LLVM IR, and nvJitLink assembles it; neither needs a GPU or its driver. NVRTC compiles CUDA C. The two
texts of a kernel give the same bits, so that a kernel may be made by either. PTX has add.rn, mul.rn, div.rn and
sqrt.rn, and flushes no subnormal numbers unless the text asks for it: floats are as in IEEE 754.

Sources: nvJitLink.h and the guide of CUDA 13 to it; LLVM, "User Guide for NVPTX Back-end".
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.metadata import version
from threading import Lock
from typing import Any, Final, Literal, NamedTuple

from engine.codegen.native.machine_code import KernelUnavailable, demand_words, kernel_key, llvm
from engine.codegen.native.native_call import share
from engine.cuda.cuda_text import OPTIONS
from engine.cuda.libraries import card_library

_TRIPLE: Final = "nvptx64-nvidia-cuda"
#: optimisation level of LLVM: with 0 it does not know which memory is global, and the assembler optimises, too
_OPT: Final = 1
#: NVJITLINK_INPUT_PTX
_PTX: Final = 2
#: characters of the assembler's messages
_MOST_SAID: Final = 500


class CardAssembler(NamedTuple):
    """nvJitLink, with a version as in "13.5"."""

    version: str

    @property
    def major(self) -> int:
        """Major version of its CUDA."""
        return int(self.version.partition(".")[0])

    @property
    def compiler(self) -> str:
        """Both programs, with their options: machine code depends on these beside its text and the card."""
        return f"llvmlite {version('llvmlite')} opt {_OPT}, nvJitLink {self.version}"


def card_assembler() -> CardAssembler:
    """Find nvJitLink. Raises KernelUnavailable if it, or LLVM for GPUs, is missing, or it is older than 12.3."""
    _target()
    library = card_library("nvJitLink")
    if library.loaded is None:
        raise KernelUnavailable(f"nvJitLink was not found: {library.missing}")
    if library.version is None:
        raise KernelUnavailable(f"nvJitLink is too old: {library.path} does not tell its version")
    return CardAssembler(library.version)


def card_code(text: str, architecture: str) -> bytes:
    """Compile a module for cards of this compute capability (90: 9.0). Threads may call it side by side.

    Raises KernelUnavailable, also if a number in the text is too large for its type.
    """
    card_assembler()
    ptx = card_ptx(text, architecture)
    linker = _Linker(architecture)
    try:
        return linker.assembled(ptx)
    finally:
        linker.destroy()


def card_ptx(text: str, architecture: str) -> str:
    """Compile a module to PTX. Raises KernelUnavailable."""
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
    """Open LLVM's target for GPUs. Raises KernelUnavailable."""
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        return binding.Target.from_triple(_TRIPLE)
    except RuntimeError as error:
        raise KernelUnavailable(f"this LLVM has no cards: {str(error).strip()}") from error


class _Linker:
    """Handle of nvJitLink, for one text of PTX."""

    def __init__(self, architecture: str) -> None:
        self._calls, self._handle = card_library("nvJitLink").loaded, ctypes.c_void_p()
        options = (ctypes.c_char_p * 1)(f"-arch=sm_{architecture}".encode())
        status = self._calls.nvJitLinkCreate(ctypes.byref(self._handle), ctypes.c_uint32(len(options)), options)
        if status:
            raise KernelUnavailable(f"nvJitLink does not know cards of sm_{architecture} (status {status})")

    def assembled(self, ptx: str) -> bytes:
        """Assemble machine code. Raises KernelUnavailable."""
        data = ptx.encode()
        size = ctypes.c_size_t(len(data) + 1)  # with the 0 at its end
        self._demand(self._calls.nvJitLinkAddData(self._handle, _PTX, data, size, b"loop.ptx"))
        self._demand(self._calls.nvJitLinkComplete(self._handle))
        return self._read_result("LinkedCubin")

    def destroy(self) -> None:
        """Destroy the handle."""
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
    """A kernel's text in CUDA C, and in LLVM IR if there is one, printed on demand."""

    cuda: Callable[[], str]
    llvm: Callable[[], str] | None = None


class CardCompiler(NamedTuple):
    """Compiler for the current card, of texts in a language; `name` has its version and options."""

    language: Literal["llvm", "cuda"]
    name: str
    architecture: str
    compile: Callable[[str], bytes]


class CardWay(NamedTuple):
    """A way from a text to machine code: the key under which that is stored, and the function that compiles it."""

    key: str
    compile: Callable[[], bytes]


def card_compilers(cupy: Any) -> list[CardCompiler]:
    """List the compilers for the calling thread's card, the preferred one first.

    NVRTC comes with CuPy. A nvJitLink of another CUDA may write code that the driver cannot load.
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
    """Yield the ways to compile a text, in the order of the compilers; the text is printed when its way is reached."""
    for compiler in compilers:
        prints = text.llvm if compiler.language == "llvm" else text.cuda
        if prints is not None:
            printed, processor = prints(), f"sm_{compiler.architecture}"
            key = kernel_key(printed, system="cuda", processor=processor, compiler=compiler.name)
            yield CardWay(key, partial(compiler.compile, printed))


def in_threads(jobs: Iterator[Callable[[], object]]) -> None:
    """Run jobs in a thread for each core. Jobs are taken from the iterator one by one, when a thread is free."""
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
    """Compile CUDA C for cards of this compute capability (90: 9.0). Raises KernelUnavailable."""
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
