"""Object files: loaded without LLVM, never writable and executable at once, and refused with one error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.codegen.kernels.compiled import bind_native, compile_kernel, kernel_at, native_kernel
from engine.codegen.kernels.program import FusedKernel, KernelBuilder, Level, Space
from engine.codegen.native import machine_code
from engine.codegen.native import machine_code as executable
from engine.codegen.native import machine_code as object_file
from engine.codegen.native.machine_code import KernelUnavailable, load_function

pytest.importorskip("llvmlite")
LANES = 8
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="object files are read by hand on Linux")


def doubling() -> FusedKernel:
    builder = KernelBuilder("float32")
    builder.store("element", builder.load(Level.ELEMENT) * 2.0)
    return builder.build()


@pytest.fixture(scope="module")
def data() -> bytes:
    return compile_kernel(doubling(), LANES)


def doubled(kernel: Any) -> list[float]:
    x, result = np.arange(20, dtype="float32"), np.zeros(20, "float32")
    for function, arguments in bind_native(kernel, doubling(), Space((1,), 20, 20, 1, ((20,), (20,))), [x], [result]):
        function(*arguments)
    return result.tolist()


def test_object_file_is_loaded_and_runs(data: bytes) -> None:
    assert doubled(native_kernel(doubling(), LANES, data)) == [2.0 * i for i in range(20)]


def test_llvm_loads_files_that_the_loader_does_not_support(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_file, "_RELATIVE", ())
    monkeypatch.setattr(object_file, "ExecutableMemory", None)
    assert doubled(native_kernel(doubling(), LANES, data)) == [2.0 * i for i in range(20)]


@pytest.mark.parametrize(("type", "number"), [("i64", 2**63), ("i64", -(2**64)), ("i32", 2**31), ("i32", -(2**33))])
def test_number_out_of_range_of_its_type_is_refused(type: str, number: int) -> None:
    """LLVM would truncate it. The largest numbers of the type are compiled."""

    def text(number: int) -> str:
        times = f"%v = mul {type} {number}, {number}\n  store {type} %v, ptr %t\n  ret void"
        return f"define void @kernel(i64 %first, i64 %past, ptr %t) {{\n  {times}\n}}\n"

    bits = int(type[1:])
    assert all(machine_code.machine_code(text(largest)) for largest in (2 ** (bits - 1) - 1, -(2 ** (bits - 1))))
    with pytest.raises(KernelUnavailable, match=f"a kernel has a number that {bits} bits do not hold: %v = mul"):
        machine_code.machine_code(text(number))


def test_llvm_linker_gives_the_same_kernel(data: bytes) -> None:
    assert doubled(kernel_at(doubling(), LANES, *machine_code.link(data, "kernel"))) == [2.0 * i for i in range(20)]


@linux_only
def test_truncated_file_is_refused(data: bytes) -> None:
    for size in range(0, len(data), 7):
        with pytest.raises(KernelUnavailable):
            load_function(data[:size])


@linux_only
def test_file_with_damaged_sections_is_refused_or_loaded(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise KernelUnavailable("LLVM is not asked")

    monkeypatch.setattr(object_file, "link", refuse)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        damaged = bytearray(data)
        damaged[rng.integers(len(data) // 2, len(data))] ^= 1 << int(rng.integers(8))
        try:
            load_function(bytes(damaged))
        except KernelUnavailable:
            refused += 1
    assert refused > 20


def test_missing_function_is_refused(data: bytes) -> None:
    with pytest.raises(KernelUnavailable):
        load_function(data, "another")


@linux_only
def test_code_is_never_writable_and_executable(data: bytes) -> None:
    code = load_function(data)
    (line,) = [line for line in Path("/proc/self/maps").read_text().splitlines() if holds(line, code.address)]
    assert line.split()[1] == "r-xp"


def holds(line: str, address: int) -> bool:
    first, _, past = line.split(maxsplit=1)[0].partition("-")
    return int(first, 16) <= address < int(past, 16)


class Refusing:
    """A system that refuses memory, or to make it executable."""

    def __init__(self, mmap: Any) -> None:
        self.mmap = mmap
        self.unmapped = 0

    def mprotect(self, *_: object) -> int:
        return -1

    def munmap(self, *_: object) -> int:
        self.unmapped += 1
        return 0


@linux_only
def test_memory_is_unmapped_if_it_cannot_be_executable(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    system = Refusing(executable._library().mmap)
    monkeypatch.setattr(executable, "_library", lambda: system)
    with pytest.raises(KernelUnavailable, match="refuses executable memory"):
        load_function(data)
    assert system.unmapped == 1


@linux_only
def test_failed_allocation_is_reported(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    system = Refusing(lambda *_: executable._FAILED)
    monkeypatch.setattr(executable, "_library", lambda: system)
    with pytest.raises(KernelUnavailable, match="no memory"):
        load_function(data)
    assert system.unmapped == 0


def test_invalid_text_is_refused_by_llvm() -> None:
    with pytest.raises(KernelUnavailable, match="LLVM did not compile"):
        machine_code.machine_code("define void @kernel( {")


def test_missing_llvmlite_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setattr(machine_code, "llvm", machine_code.llvm.__wrapped__)
    with pytest.raises(KernelUnavailable, match="llvmlite cannot be loaded"):
        machine_code.machine_code("")


def test_processor_without_fused_multiply_add_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "host_processor", lambda: ("x86-64", "+sse2,-fma"))
    with pytest.raises(KernelUnavailable, match="no fused multiply-add"):
        compile_kernel(doubling(), LANES)


class LLVMOnUnknownProcessor:
    """LLVM on a processor that it does not know."""

    def get_host_cpu_name(self) -> str:
        return "generic"

    def get_host_cpu_features(self) -> None:
        raise RuntimeError("failed to get host cpu features.")


def test_processor_unknown_to_llvm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "llvm", LLVMOnUnknownProcessor)
    with pytest.raises(KernelUnavailable, match="does not know this processor"):
        machine_code.host_processor.__wrapped__()
