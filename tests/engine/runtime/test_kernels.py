"""Kernels of plans: compiled, stored, reused by the next process, and never a reason to fail."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, registry
from engine.codegen.native import machine_code
from engine.codegen.native import machine_code as executable
from engine.codegen.native.machine_code import KernelStore, KernelUnavailable, described_processor, kernel_key
from engine.codegen.native.native_call import IS_SUPPORTED, runner_text, shared_runner
from engine.compiler.fused_kernel import Fused
from engine.compiler.fusion import fuse
from engine.compiler.plan import make_plan
from engine.ir.run_context import RunContext
from engine.runtime import numpy_backend as kernels
from engine.runtime.numpy_backend import Kernels, NumPyExecutor
from tests.engine.runtime.kernel_plans import FEED, assert_right, bits, counted, layers, warnings

pytest.importorskip("llvmlite")
ROOT = Path(__file__).parents[3]
Patch = pytest.MonkeyPatch


def compiled_bits(store: KernelStore | None = None, determinism: Any = "fast") -> list[bytes]:
    """Return an executor's bits once nothing is being compiled; assert right numbers before and after."""
    executor = NumPyExecutor(determinism=determinism, compile="on", store=store)
    plan = layers(fused=determinism == "bitwise")
    for _ in range(2):
        assert_right(executor.run(plan, FEED), plan)
    executor.settle()
    assert_right(executor.run(plan, FEED), plan)
    return bits(executor, plan)


@pytest.fixture(autouse=True, scope="module")
def shared_runner_without_store() -> None:
    """Create the runner of this process, which would otherwise be stored in the folder of the first test."""
    shared_runner(KernelStore())


def kernels_in(folder: Path) -> list[Path]:
    """Return the stored files except the runner."""
    runner = kernel_key(runner_text(), **machine_code.target())
    return sorted(path for path in folder.iterdir() if not path.name.startswith(runner))


def numpy_bits() -> list[bytes]:
    return [array.tobytes() for array in NumPyExecutor().interpret(layers(), FEED)]


# ---------------------------------------------------------------- compiling


def test_compilation_can_stop_between_kernels(monkeypatch: Patch) -> None:
    texts, plan = counted(monkeypatch), layers(4, fused=True)
    assert Kernels().compile(plan, lambda: len(texts) == 2) is None
    assert len(texts) == 2


def test_plan_uses_all_of_its_kernels_or_none(monkeypatch: Patch) -> None:
    plan, compiled = layers(3, fused=True), kernels.machine_code

    def second_fails(text: str) -> bytes:
        if len(texts) == 2:
            raise KernelUnavailable("this one is not for us")
        return compiled(text)

    texts = counted(monkeypatch, second_fails)
    executor = NumPyExecutor(determinism="bitwise", compile="on")
    assert bits(executor, plan) == [array.tobytes() for array in NumPyExecutor().interpret(plan, FEED)]
    assert len(texts) == 2


def test_failed_kernel_is_not_retried(monkeypatch: Patch) -> None:
    def refuses(_: str) -> bytes:
        raise KernelUnavailable("no")

    texts, kernel_set = counted(monkeypatch, refuses), Kernels()
    for _ in range(3):
        with pytest.raises(KernelUnavailable, match="no"):
            kernel_set.compile(layers(fused=True))
    assert len(texts) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_bound_calls_keep_their_kernels_alive() -> None:
    """With the argument check of sin, and without."""
    builder = Builder(registry())
    x = builder.leaf(TensorType((6, 40), np.dtype("float32")), 0)
    for y in (x.sin() + x, x.exp() + x):
        plan = make_plan(fuse(builder.graph([y]), 0, compiled=True), Limits())
        binder = Kernels().compile(plan)
        assert binder is not None
        (compiled,) = binder.compiled.values()
        memory = weakref.ref(compiled.kernel.memory)
        step = next(step for step in plan.steps if isinstance(step.op, Fused))
        out = tuple(np.zeros(type.shape, type.dtype) for type in step.types)
        calls = binder.calls(RunContext(np, workspace=np.empty(binder.workspace(step), np.uint8)), step, [FEED[0]], out)
        del binder, compiled
        gc.collect()
        assert memory() is not None
        for function, arguments in calls:
            function(*arguments)
        np.testing.assert_allclose(out[0], NumPyExecutor().interpret(plan, FEED)[0], rtol=1e-5, atol=1e-6)
        del calls, function, arguments
        gc.collect()
        assert memory() is None


# ---------------------------------------------------------------- stored kernels


def test_rejected_kernel_is_recompiled_once_and_replaced(monkeypatch: Patch) -> None:
    stored: dict[str, bytes] = {}

    class RecordingStore(KernelStore):
        def put(self, key: str, code: bytes) -> None:
            stored[key] = code
            super().put(key, code)

    store, texts, plan = RecordingStore(), counted(monkeypatch), layers(fused=True)
    assert Kernels(store).compile(plan)
    original, count = dict(stored), len(texts)
    assert count == len(original) > 1
    for key in original:
        store.put(key, b"\x7fELF no more")
    for _ in range(2):
        assert Kernels(store).compile(plan)
    assert len(texts) == 2 * count
    assert stored == original


def test_unloadable_kernel_is_not_stored(monkeypatch: Patch) -> None:
    counted(monkeypatch, lambda _: b"junk")
    store = KernelStore()
    monkeypatch.setattr(store, "put", lambda key, code: pytest.fail("it was kept"))
    with pytest.raises(KernelUnavailable):
        Kernels(store).compile(layers(fused=True))


def test_changed_text_is_a_new_kernel(monkeypatch: Patch, tmp_path: Path) -> None:
    """The text is the key of a kernel, so a changed printer recompiles. Kernels of products stay."""
    compiled_bits(KernelStore(tmp_path))
    count, printed = len(list(tmp_path.iterdir())), kernels.llvm_text
    monkeypatch.setattr(kernels, "llvm_text", lambda loop, lanes: printed(loop, lanes) + "; as of now\n")
    texts = counted(monkeypatch)
    compiled_bits(KernelStore(tmp_path))
    assert len(texts) == len(list(tmp_path.iterdir())) - count > 0
    assert all(text.endswith("; as of now\n") for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["system", "processor", "compiler"])
def test_folder_of_another_machine_is_not_used(part: str, monkeypatch: Patch, tmp_path: Path) -> None:
    compiled_bits(KernelStore(tmp_path))
    count, target = len(list(tmp_path.iterdir())), machine_code.target()
    monkeypatch.setattr(kernels, "target", lambda: {**target, part: "another"})
    texts = counted(monkeypatch)
    compiled_bits(KernelStore(tmp_path))
    assert len(texts) == count


CPU = "processor : 0\nmodel name : CPU 7\ncpu MHz : 2600\nflags : fpu avx2 fma\n\nprocessor : 1\nflags : fpu avx2 fma\n"


@pytest.mark.parametrize(
    ("change", "is_other"),
    [
        (("avx2", "avx512f"), True), (("CPU 7", "CPU 8"), True), (("2600", "3100"), False),
        (("processor : 1", "processor : 5"), False),
    ],
)  # fmt: skip
def test_processor_is_identified_by_its_features(change: tuple[str, str], is_other: bool, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text(CPU, encoding="utf-8")
    other.write_text(CPU.replace(*change), encoding="utf-8")
    assert described_processor(one)
    assert (described_processor(one) != described_processor(other)) is is_other


@pytest.mark.parametrize("text", ["", "model name : CPU 7\n", "flags :\n", None])
def test_processor_description_falls_back_to_llvm(text: str | None, monkeypatch: Patch, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text, encoding="utf-8")
    monkeypatch.setattr(machine_code, "described_processor", lambda: described_processor(tmp_path / "cpuinfo"))
    assert machine_code.target.__wrapped__()["processor"] == " ".join(machine_code.host_processor())


# ---------------------------------------------------------------- other processes

PROGRAM = """
import sys, hashlib
from pathlib import Path
import engine.runtime.numpy_backend as kernels
from engine.runtime.numpy_backend import NumPyExecutor
from engine.codegen.native.machine_code import KernelStore
from tests.engine.runtime.kernel_plans import FEED, bits, layers
texts = []
compiled = kernels.machine_code
kernels.machine_code = lambda text: texts.append(text) or compiled(text)
executor = NumPyExecutor(determinism=sys.argv[1], compile="on", store=KernelStore(Path(sys.argv[2])))
plan = layers(fused=True)
found = [bits(executor, plan), bits(executor, plan)]
executor.settle()
found.append(bits(executor, plan))
print(len(texts), "llvmlite" in sys.modules, *[hashlib.sha256(b"".join(each)).hexdigest() for each in found])
"""


def process(determinism: str, folder: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", before + PROGRAM, determinism, str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


@pytest.mark.slow
def test_next_process_reuses_kernels_without_a_compiler(tmp_path: Path) -> None:
    first, second = (process("fast", tmp_path).stdout.split() for _ in range(2))
    assert int(first[0]) == len(kernels_in(tmp_path)) > 0
    assert (first[1], second[:2]) == ("True", ["0", "False"])
    assert first[4] == second[4] != first[2]
    assert len(list(tmp_path.iterdir())) == int(first[0]) + IS_SUPPORTED


@pytest.mark.slow
def test_bitwise_results_are_the_same_in_every_process(tmp_path: Path) -> None:
    """With no kernels on disk, with all, and with some."""
    first, second = (process("bitwise", tmp_path).stdout.split() for _ in range(2))
    kernels_in(tmp_path)[0].unlink()
    third = process("bitwise", tmp_path).stdout.split()
    assert (int(first[0]) > 1, second[0], third[0]) == (True, "0", "1")
    assert len({*first[2:], *second[2:], *third[2:]}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("determinism", ["fast", "bitwise"])
def test_llvmlite_may_be_missing(determinism: str, tmp_path: Path) -> None:
    done = process(determinism, tmp_path, 'import sys; sys.modules["llvmlite"] = None\n')
    assert len(set(done.stdout.split()[2:])) == 1
    (line,) = done.stderr.splitlines()
    assert "llvmlite cannot be loaded" in line
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- failures


def failing_compiler(monkeypatch: Patch) -> None:
    def broken(_: str) -> bytes:
        raise RuntimeError("LLVM has a fault")

    monkeypatch.setattr(kernels, "machine_code", broken)


def refused_memory(monkeypatch: Patch) -> None:
    class Library:
        real = executable._library()
        mmap, munmap = real.mmap, real.munmap

        def mprotect(self, *_: Any) -> int:
            return -1

    monkeypatch.setattr(executable, "_library", Library)


def no_multiply_add(monkeypatch: Patch) -> None:
    monkeypatch.setattr(machine_code, "host_processor", lambda: ("x86-64", "+sse2,-fma"))


def unknown_processor(monkeypatch: Patch) -> None:
    monkeypatch.setattr(machine_code, "host_processor", lambda: ("", ""))


FAULTS = [
    (failing_compiler, "LLVM has a fault"),
    (refused_memory, "the system refuses executable memory"),
    (no_multiply_add, "no fused multiply-add"),
    (unknown_processor, "no fused multiply-add"),
]


@pytest.mark.parametrize("determinism", ["fast", "bitwise"])
@pytest.mark.parametrize(("fault", "said"), FAULTS)
def test_compile_failure_is_logged_once_and_numpy_computes(
    fault: Callable[[Patch], None], said: str, determinism: str, monkeypatch: Patch, caplog: pytest.LogCaptureFixture
) -> None:
    fault(monkeypatch)
    actual = compiled_bits(determinism=determinism)
    assert actual == numpy_bits() or determinism == "bitwise"
    (line,) = warnings(caplog)
    assert said in line


@pytest.mark.slow
@pytest.mark.parametrize("determinism", ["fast", "bitwise"])
@pytest.mark.parametrize("length", [0, 50, 700])
def test_truncated_file_is_recompiled(
    length: int, determinism: str, monkeypatch: Patch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    actual = compiled_bits(KernelStore(tmp_path), determinism)
    original = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path, content in original.items():
        path.write_bytes(content[:length])
    texts = counted(monkeypatch)
    assert compiled_bits(KernelStore(tmp_path), determinism) == actual
    assert len(texts) == len(original) > 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == original
    assert not warnings(caplog)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "number"), [("write", errno.ENOSPC), ("mkdir", errno.EROFS), ("rename", errno.EACCES)]
)
def test_unwritable_folder_is_logged(
    call: str, number: int, monkeypatch: Patch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = compiled_bits()

    def failing(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, failing)
    assert compiled_bits(KernelStore(tmp_path / "kernels")) == expected != numpy_bits()
    (line,) = warnings(caplog)
    assert os.strerror(number) in line
