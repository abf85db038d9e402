"""Compilers of GPU kernels: LLVM with nvJitLink if both are installed, and NVRTC; one thread per core.

LLVM compiles LLVM IR to PTX, and nvJitLink assembles that; neither needs a GPU or its driver. NVRTC compiles CUDA C.
Both texts of a kernel give the same bits, so either compiler may be used. PTX has add.rn, mul.rn, div.rn and sqrt.rn,
and flushes subnormal numbers only if the text asks for it: arithmetic follows IEEE 754.

Sources: nvJitLink.h and its guide in CUDA 13; LLVM, "User Guide for NVPTX Back-end".
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.metadata import version
from threading import Lock
from typing import Any, Final, Literal, NamedTuple

from engine.codegen.native.machine_code import KernelUnavailable, kernel_key, llvm, require_integers_fit
from engine.codegen.native.native_call import share
from engine.cuda.cuda_text import OPTIONS
from engine.cuda.libraries import card_library

_TRIPLE: Final = "nvptx64-nvidia-cuda"
#: optimisation level of LLVM. Level 0 does not infer which pointers are global; higher ones repeat the assembler's work
_OPT: Final = 1
#: NVJITLINK_INPUT_PTX
_PTX: Final = 2
#: maximum characters of an assembler message in an error
_MAX_MESSAGE: Final = 500


class CardAssembler(NamedTuple):
    """nvJitLink, with a version such as "13.5"."""

    version: str

    @property
    def major(self) -> int:
        """Major version of its CUDA."""
        return int(self.version.partition(".")[0])

    @property
    def compiler(self) -> str:
        """Both programs with their options, on which machine code depends besides the text and the GPU."""
        return f"llvmlite {version('llvmlite')} opt {_OPT}, nvJitLink {self.version}"


def card_assembler() -> CardAssembler:
    """Find nvJitLink. Raises KernelUnavailable if it or LLVM's GPU target is missing, or if it is older than 12.3."""
    _target()
    library = card_library("nvJitLink")
    if library.loaded is None:
        raise KernelUnavailable(f"nvJitLink was not found: {library.missing}")
    if library.version is None:
        raise KernelUnavailable(f"nvJitLink is too old: {library.path} does not tell its version")
    return CardAssembler(library.version)


def card_code(text: str, architecture: str) -> bytes:
    """Compile a module for GPUs of this compute capability (90: 9.0). Thread-safe.

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
    require_integers_fit(text)
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
    """Return LLVM's target for GPUs. Raises KernelUnavailable."""
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        return binding.Target.from_triple(_TRIPLE)
    except RuntimeError as error:
        raise KernelUnavailable(f"this LLVM has no cards: {str(error).strip()}") from error


class _Linker:
    """Handle of nvJitLink for one PTX text."""

    def __init__(self, architecture: str) -> None:
        self._calls, self._handle = card_library("nvJitLink").loaded, ctypes.c_void_p()
        options = (ctypes.c_char_p * 1)(f"-arch=sm_{architecture}".encode())
        status = self._calls.nvJitLinkCreate(ctypes.byref(self._handle), ctypes.c_uint32(len(options)), options)
        if status:
            raise KernelUnavailable(f"nvJitLink does not know cards of sm_{architecture} (status {status})")

    def assembled(self, ptx: str) -> bytes:
        """Return the machine code. Raises KernelUnavailable."""
        data = ptx.encode()
        size = ctypes.c_size_t(len(data) + 1)  # including the terminating 0
        self._demand(self._calls.nvJitLinkAddData(self._handle, _PTX, data, size, b"loop.ptx"))
        self._demand(self._calls.nvJitLinkComplete(self._handle))
        return self._read_result("LinkedCubin")

    def destroy(self) -> None:
        """Destroy the handle."""
        self._calls.nvJitLinkDestroy(ctypes.byref(self._handle))

    def _demand(self, status: int) -> None:
        if status:
            message = self._read_result("ErrorLog").rstrip(b"\0\n").decode(errors="replace")
            raise KernelUnavailable(f"nvJitLink refused a kernel (status {status}): {message[:_MAX_MESSAGE]}")

    def _read_result(self, name: str) -> bytes:
        size = ctypes.c_size_t()
        status_of_size = getattr(self._calls, f"nvJitLinkGet{name}Size")(self._handle, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        status = status_of_size or getattr(self._calls, f"nvJitLinkGet{name}")(self._handle, buffer)
        if status:
            raise KernelUnavailable(f"nvJitLink gives nothing out (status {status})")
        return buffer.raw


class CardText(NamedTuple):
    """Kernel text in CUDA C and, if there is one, in LLVM IR. Each is printed on demand."""

    cuda: Callable[[], str]
    llvm: Callable[[], str] | None = None


class CardCompiler(NamedTuple):
    """Compiler of a language for the current GPU; `name` includes version and options."""

    language: Literal["llvm", "cuda"]
    name: str
    architecture: str
    compile: Callable[[str], bytes]


class Compilation(NamedTuple):
    """Pending compilation of a text: the cache key of its machine code, and the function that compiles it."""

    key: str
    compile: Callable[[], bytes]


def card_compilers(cupy: Any) -> list[CardCompiler]:
    """Return the compilers for the calling thread's GPU, the preferred one first.

    NVRTC comes with CuPy. nvJitLink is used only if its CUDA has the same major version: the driver may be unable to
    load the code of another one.
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


def compilations(text: CardText, compilers: Sequence[CardCompiler]) -> Iterator[Compilation]:
    """Yield the possible compilations of a text, in the order of the compilers; each text is printed on demand."""
    for compiler in compilers:
        print_text = text.llvm if compiler.language == "llvm" else text.cuda
        if print_text is not None:
            source, processor = print_text(), f"sm_{compiler.architecture}"
            key = kernel_key(source, system="cuda", processor=processor, compiler=compiler.name)
            yield Compilation(key, partial(compiler.compile, source))


def in_threads(jobs: Iterator[Callable[[], object]]) -> None:
    """Run jobs in one thread per core. A thread takes the next job from the iterator when it is free."""
    lock = Lock()

    def work(*_: int) -> None:
        while True:
            with lock:
                job = next(jobs, None)
            if job is None:
                return
            job()

    threads = range(_cores())
    share(work, len(threads), threads)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_cuda(cupy: Any, architecture: str, text: str) -> bytes:
    """Compile CUDA C for GPUs of this compute capability (90: 9.0). Raises KernelUnavailable."""
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
