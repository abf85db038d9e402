"""CPU seconds that kernels for a card take to compile, by LLVM with nvJitLink and by NVRTC: no card is needed for it.

`python3 -m benchmarks.card_compiling W6 W4` wants the wheels nvidia-nvjitlink and nvidia-cuda-nvrtc. The sides take
turns, kernel by kernel; printing the text is part of both.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from benchmarks.sides import LIMITS, recorded
from benchmarks.suite import find
from engine import Compiler, registry
from engine.codegen.kernels.program import KernelBuilder, Level, Space, lanes_of
from engine.compiler.body_plans import kernel_ops
from engine.compiler.fit_memory import compiled_within
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import graph_of
from engine.cuda.compilers import CardText, card_code
from engine.cuda.cuda_text import OPTIONS, cuda_parts
from engine.cuda.kernels import cuda_fused_kernel, kernel_card_text
from engine.cuda.launch import CudaKernel

#: what is compiled, unless it is said: many nodes, few, and one loop of one operation
DEFAULT: Final = ("W6", "W4", "small")


def loops_of(name: str) -> list[CudaKernel]:
    """Those of a workload's plan, as a card has it, each once; of "small", the one of x + y."""
    loops = [_small()] if name == "small" else _fused(name)
    return list({kernel_card_text(loop).cuda(): loop for loop in loops}.values())


def _small() -> CudaKernel:
    builder = KernelBuilder("float32")
    builder.store("element", builder.load(Level.ELEMENT) + builder.load(Level.ELEMENT))
    loop, space = builder.build(), Space((4,), 1000, 4000, 1, ((1000,),) * 3)
    return CudaKernel(loop, cuda_parts(loop), space, lanes_of(loop, space.columns))


def _fused(name: str) -> list[CudaKernel]:
    program, types, asked = recorded(find(name)())
    plan = Compiler(LIMITS).compile(program, types, asked).plan
    within = compiled_within(graph_of(plan, registry()), plan.peak_bytes, 1, microkernels=False, few_launches=True)
    ops = kernel_ops(within.plan if within else plan, lambda _: False)
    return [cuda_fused_kernel(op) for op in ops if isinstance(op, Fused)]


def by_llvm(text: CardText, architecture: str) -> None:
    """Machine code, as it is made where both are there."""
    assert text.llvm is not None
    card_code(text.llvm(), architecture)


def by_nvrtc(text: CardText, architecture: str) -> None:
    """The same by NVRTC, called as CuPy does."""
    nvrtc, program, source = nvrtc_of_its_wheel(), ctypes.c_void_p(), text.cuda().encode()
    assert nvrtc is not None, "the wheel nvidia-cuda-nvrtc is not installed"
    options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture=sm_{architecture}")]
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"loop.cu", 0, None, None) == 0
    assert nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)) == 0
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


@cache
def nvrtc_of_its_wheel() -> ctypes.CDLL | None:
    """The library; None where that is not installed."""
    spec = find_spec("nvidia")
    folders = map(Path, (spec and spec.submodule_search_locations) or ())
    found = sorted(path for folder in folders for path in folder.glob("*/lib/libnvrtc.so.*") if ".alt" not in path.name)
    return ctypes.CDLL(str(found[-1])) if found else None


def cpu_seconds(side: Callable[[CardText, str], None], loop: CudaKernel, architecture: str) -> float:
    """Of all threads of this process: printing, too."""
    begun = time.process_time()
    side(kernel_card_text(loop), architecture)
    return time.process_time() - begun


def measure(name: str, architecture: str) -> tuple[int, float, float]:
    """Kernels, and the seconds of both sides."""
    loops, ours, theirs = loops_of(name), 0.0, 0.0
    for loop in loops:
        ours += cpu_seconds(by_llvm, loop, architecture)
        theirs += cpu_seconds(by_nvrtc, loop, architecture)
    return len(loops), ours, theirs


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each workload."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=DEFAULT, help="of workloads")
    parser.add_argument("--architecture", default="90", help="compute capability without its point")
    options = parser.parse_args(arguments)
    measure("small", options.architecture)  # loads both, outside of what is measured
    for name in options.names:
        count, ours, theirs = measure(name, options.architecture)
        print(f"{name}: {count} kernels, LLVM and nvJitLink {ours:.3f} s, NVRTC {theirs:.3f} s, {theirs / ours:.1f} x")


if __name__ == "__main__":
    main()
