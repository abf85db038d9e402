"""LLVM IR → machine code of this processor, or of a named one, as an object file. LLVM is loaded when first used."""

from __future__ import annotations

import platform
import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from engine.codegen.native.kernel_errors import KernelUnavailable

#: what instructions a processor has, and how they are best arranged, on x86 and on ARM
_TELLING: Final = frozenset(
    {"vendor_id", "cpu family", "model", "model name", "stepping", "flags"}
    | {"CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"}
)
#: without one of these it is not known what instructions there are
_INSTRUCTIONS: Final = frozenset({"flags", "Features"})


@cache
def described_processor(source: Path = Path("/proc/cpuinfo")) -> str | None:
    """Describe this machine's processors as the system does, in a tenth of a millisecond; None if it does not say."""
    try:
        lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    split = (line.partition(":") for line in lines)
    facts = {(name.strip(), " ".join(value.split())) for name, _, value in split if name.strip() in _TELLING}
    return repr(sorted(facts)) if any(name in _INSTRUCTIONS and value for name, value in facts) else None


_OPTIONS: Final = {"opt": 2, "reloc": "pic", "codemodel": "small"}
#: whole numbers of so many digits that they may be too many for 32 bits
_LARGE: Final = re.compile(r"(?<![\w.%@])-?\d{10,}(?![\w.])")


@cache
def llvm() -> Any:
    """Load llvmlite's binding, ready to write code for this machine. Raises KernelUnavailable."""
    try:
        from llvmlite import binding  # noqa: PLC0415 - 75 MB, for the processes that compile
    except (ImportError, OSError) as error:
        raise KernelUnavailable(f"kernels cannot be compiled: llvmlite cannot be loaded ({error})") from error
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def host_processor() -> tuple[str, str]:
    """Return the name and features of this processor, as LLVM has them; machine code depends on both.

    Raises KernelUnavailable.
    """
    binding = llvm()
    try:
        return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    except RuntimeError as error:
        raise KernelUnavailable(f"LLVM does not know this processor: {error}") from error


@cache
def target() -> dict[str, str]:
    """Describe what machine code depends on beside its text: machine, processor, and the compiler with its options.

    LLVM is not loaded for it, unless the system does not describe the processor. Raises KernelUnavailable.
    """
    try:
        compiler = f"llvmlite {version('llvmlite')} {_OPTIONS}"
    except PackageNotFoundError as error:
        raise KernelUnavailable("kernels cannot be compiled: llvmlite is not installed") from error
    return {
        "system": f"{sys.platform} {platform.machine()}",
        "processor": described_processor() or " ".join(host_processor()),
        "compiler": compiler,
    }


def machine_code(text: str, processor: tuple[str, str] | None = None) -> bytes:
    """Compile LLVM IR to an object file for a processor, by its name and features: ("x86-64-v3", ""); else the host.

    Raises KernelUnavailable if llvmlite is missing, LLVM refuses the text, the host lacks what kernels need, or a
    number in the text is too large for its type.
    """
    demand_words(text)
    binding = llvm()
    if processor is None:
        processor = host_processor()
        # Without it, or if LLVM does not know the processor, x86 would call a function of C for each multiply-add.
        if platform.machine() in ("x86_64", "AMD64") and "+fma" not in processor[1].split(","):
            raise KernelUnavailable("this processor has no fused multiply-add, which kernels are written in")
    try:
        machine = target_machine(*processor)
        module = binding.parse_assembly(text, binding.create_context())
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        return bytes(machine.emit_object(module))
    except RuntimeError as error:
        raise KernelUnavailable(f"LLVM did not compile a kernel: {str(error).strip()}") from error


def target_machine(name: str, features: str) -> Any:
    """Make LLVM's target machine for a processor of this machine's family. Raises KernelUnavailable."""
    binding = llvm()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, **_OPTIONS)


def demand_words(text: str) -> None:
    """Raise KernelUnavailable if a number is too large for its type.

    LLVM cuts such a number off silently, and an offset then points anywhere.
    """
    for line in text.splitlines():
        for number in map(int, _LARGE.findall(line)):
            bits = 64 if "i64" in line else 32
            if not -(1 << bits - 1) <= number < 1 << bits - 1:
                raise KernelUnavailable(f"a kernel has a number that {bits} bits do not hold: {line.strip()}")


def link(data: bytes, name: str) -> tuple[int, Any]:
    """Load an object file by LLVM; return the address of its function, and the object that keeps it loaded.

    Raises KernelUnavailable.
    """
    binding = llvm()
    try:
        machine = target_machine(*host_processor())
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        engine.add_object_file(binding.ObjectFileRef.from_data(data))
        engine.finalize_object()
        address = engine.get_function_address(name)
    except (RuntimeError, OSError) as error:
        raise KernelUnavailable(f"LLVM did not load a kernel: {str(error).strip()}") from error
    if not address:
        raise KernelUnavailable(f"the object file of a kernel has no {name}")
    return address, engine
