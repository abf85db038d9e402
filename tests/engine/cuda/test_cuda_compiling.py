"""Choice of the compiler for card kernels, and parallel compilation, with compilers that log their calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.codegen.native.machine_code import KernelStore, KernelUnavailable
from engine.compiler.fusion import fuse
from engine.compiler.plan import Plan, make_plan
from engine.cuda import compilers as cuda_compiling
from engine.cuda import kernels as cuda_kernels
from engine.cuda.compilers import CardAssembler, CardCompiler, CardText, card_compilers, compilations, in_threads
from engine.cuda.cuda_text import cuda_parts
from engine.cuda.kernels import CudaKernels, kernel_card_text
from engine.cuda.launch import CudaKernel
from engine.ir.graph import Builder
from engine.ir.run_context import NO_LIMITS
from engine.ir.tensor_type import TensorType
from engine.ops import registry
from tests.engine.codegen.kernels.cases import random_case


class DriverError(Exception):
    pass


class Card:
    """The part of CuPy in use: an sm_90 card, NVRTC 13.0, and a driver that refuses `unloadable` code."""

    def __init__(self, unloadable: bytes = b"none") -> None:
        self.loaded: list[bytes] = []
        card = self

        class Module:
            def load(self, code: bytes) -> None:
                if code.startswith(unloadable):
                    raise DriverError("no kernel image")
                card.loaded.append(code)

        self.cuda = SimpleNamespace(
            Device=lambda: SimpleNamespace(compute_capability="90"),
            nvrtc=SimpleNamespace(getVersion=lambda: (13, 0)),
            function=SimpleNamespace(Module=Module),
            driver=SimpleNamespace(CUDADriverError=DriverError),
        )


class Compilers:
    """Both compilers, each returning its input under its name; `asked` logs the calls in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuses: tuple[str, ...] = ()) -> None:
        self.asked: list[str] = []
        monkeypatch.setattr(cuda_kernels, "card_compilers", lambda cupy: [self._of("llvm"), self._of("cuda")])
        self._refuses, self._lock = refuses, threading.Lock()

    def _of(self, language: Any) -> CardCompiler:
        return CardCompiler(language, f"{language} 1.0", "90", lambda text: self._code(language, text))

    def _code(self, language: str, text: str) -> bytes:
        with self._lock:
            self.asked.append(language)
        if language in self._refuses:
            raise KernelUnavailable(f"{language} refused")
        return f"{language} {text}".encode()


def plan_of(count: int) -> Plan:
    """A plan of `count` kernels with distinct texts, except that the last one repeats the text before it."""
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType((5 + k, 9), np.dtype("float64")), k) for k in range(count)]
    graph = builder.graph([(x.exp() + (1.5 + min(k, count - 2))).sum(axes=[1]) for k, x in enumerate(leaves)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.compiler.fusion._COSTLY", 0)
        return make_plan(fuse(graph, 0, compiled=True), NO_LIMITS)


def kernel_count(kernels: Any) -> int:
    assert kernels is not None
    return len(kernels)


def test_llvm_is_preferred_to_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    compilers, card = Compilers(monkeypatch), Card()
    kernels = CudaKernels(card)
    assert kernel_count(kernels.compile(plan_of(4))) == 4
    assert compilers.asked == ["llvm"] * 3
    assert all(code.startswith(b"llvm define ptx_kernel") for code in card.loaded)
    assert kernels.compiled == len(set(card.loaded)) == len(card.loaded) == kernels.loaded_count == 3


def test_text_is_compiled_once_and_then_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    compilers, store = Compilers(monkeypatch), KernelStore()
    first, again = CudaKernels(Card(), store), CudaKernels(Card(), store)
    kernel_count(first.compile(plan_of(3)))
    calls = list(compilers.asked)
    kernel_count(again.compile(plan_of(3)))
    assert compilers.asked == calls
    assert (again.compiled, again.loaded_count) == (0, first.loaded_count)


def test_nvrtc_compiles_kernels_that_llvm_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    compilers, card = Compilers(monkeypatch, refuses=("llvm",)), Card()
    kernels = CudaKernels(card)
    kernel_count(kernels.compile(plan_of(2)))
    assert sorted(compilers.asked) == ["cuda", "llvm"]
    assert card.loaded[0].startswith(b"cuda ")
    kernel_count(kernels.compile(plan_of(2)))
    assert len(compilers.asked) == 2  # the refusal is cached


def test_nvrtc_compiles_kernels_that_the_driver_rejects(monkeypatch: pytest.MonkeyPatch) -> None:
    Compilers(monkeypatch)
    card = Card(unloadable=b"llvm")
    assert kernel_count(CudaKernels(card).compile(plan_of(2))) == 2
    assert all(code.startswith(b"cuda ") for code in card.loaded)
    assert card.loaded


def test_error_has_the_reasons_of_both_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    compilers, kernels = Compilers(monkeypatch, refuses=("llvm", "cuda")), CudaKernels(Card())
    for _ in range(2):
        with pytest.raises(KernelUnavailable, match="llvm refused; cuda refused"):
            kernels.compile(plan_of(2))
    assert len(compilers.asked) == 2


def test_compilation_stops_between_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_compiling, "_cores", lambda: 1)
    compilers, kernels = Compilers(monkeypatch), CudaKernels(Card())
    assert kernels.compile(plan_of(4), stop=lambda: kernels.compiled >= 2) is None
    assert len(compilers.asked) == 2
    assert kernel_count(kernels.compile(plan_of(4)))
    assert kernels.compiled == len(compilers.asked) == 3


def test_kernels_of_the_first_ops_are_compiled_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_compiling, "_cores", lambda: 1)
    Compilers(monkeypatch)
    plan, card = plan_of(4), Card()
    ops = [step.op for step in plan.steps if step.op.name == "fused"]
    kernels = CudaKernels(card).compile(plan, first=ops[::-1])
    assert kernels is not None
    assert list(kernels) == list(dict.fromkeys(ops[::-1]))


def test_kernels_are_compiled_in_parallel() -> None:
    """Two jobs, each of which waits for the other."""
    meeting, done = threading.Barrier(2), list[int]()

    def job(k: int) -> Callable[[], None]:
        def wait() -> None:
            meeting.wait(60)
            done.append(k)

        return wait

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_compiling, "_cores", lambda: 2)
        in_threads(iter([job(0), job(1)]))
    assert sorted(done) == [0, 1]


# ---------------------------------------------------------------- texts of recipes

TEXTS = ("one recipe", "another recipe")


class Meeting(Compilers):
    """Compilers that wait until `count` texts are being compiled at the same time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int, refuses: tuple[str, ...] = ()) -> None:
        super().__init__(monkeypatch, refuses)
        monkeypatch.setattr(cuda_compiling, "_cores", lambda: count)
        self._barrier, self.texts = threading.Barrier(count), list[str]()

    def _code(self, language: str, text: str) -> bytes:
        with self._lock:
            self.texts.append(text)
        self._barrier.wait(60)
        return super()._code(text if text in self._refuses else language, text)


def test_recipe_texts_are_compiled_in_parallel_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two texts wait for each other, and neither is compiled again when it is loaded."""
    compilers, card, store = Meeting(monkeypatch, 2), Card(), KernelStore()
    kernels = CudaKernels(card, store)
    assert kernels.compile(plan_of(0), texts=[*TEXTS, TEXTS[0]]) == {}
    assert sorted(compilers.texts) == sorted(TEXTS)
    for text in TEXTS:
        kernels.module(text)
        CudaKernels(card, store).module(text)
    assert len(compilers.texts) == kernels.compiled == kernels.loaded_count == 2
    assert sorted({*card.loaded}) == sorted(f"cuda {text}".encode() for text in TEXTS)


def test_recipe_and_kernel_texts_are_compiled_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel and a recipe's text wait for each other."""
    compilers = Meeting(monkeypatch, 2)
    assert kernel_count(CudaKernels(Card()).compile(plan_of(1), texts=TEXTS[:1])) == 1
    assert compilers.texts[0] != compilers.texts[1]
    assert TEXTS[0] in compilers.texts


def test_refused_text_does_not_affect_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compilers = Meeting(monkeypatch, 2, refuses=TEXTS[:1])
    kernels = CudaKernels(Card())
    assert kernels.compile(plan_of(0), texts=TEXTS) == {}
    kernels.module(TEXTS[1])
    for _ in range(2):
        with pytest.raises(KernelUnavailable, match="one recipe refused"):
            kernels.module(TEXTS[0])
    assert sorted(compilers.texts) == sorted(TEXTS)


# ---------------------------------------------------------------- available compilers


def available_compilers(monkeypatch: pytest.MonkeyPatch, assembler: Callable[[], CardAssembler]) -> list[CardCompiler]:
    monkeypatch.setattr(cuda_compiling, "card_assembler", assembler)
    return card_compilers(Card())


def test_nvrtc_alone_if_nvjitlink_is_missing_or_mismatched(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> CardAssembler:
        raise KernelUnavailable("nvJitLink is not installed")

    both = available_compilers(monkeypatch, lambda: CardAssembler("13.5"))
    assert [compiler.language for compiler in both] == ["llvm", "cuda"]
    assert [compiler.language for compiler in available_compilers(monkeypatch, missing)] == ["cuda"]
    other = available_compilers(monkeypatch, lambda: CardAssembler("12.9"))
    assert [compiler.language for compiler in other] == ["cuda"]


def test_cache_keys_differ_by_compiler_version_and_card() -> None:
    case = random_case(400)
    text = kernel_card_text(CudaKernel(case.loop, cuda_parts(case.loop), case.space, case.lanes))
    keys = {
        way.key
        for name in ("1.0", "1.1")
        for architecture in ("80", "90")
        for way in compilations(
            text,
            [
                CardCompiler("llvm", f"llvm {name}", architecture, str.encode),
                CardCompiler("cuda", f"cuda {name}", architecture, str.encode),
            ],
        )
    }
    assert len(keys) == 8


def test_text_in_one_language_has_one_compilation() -> None:
    both = [CardCompiler("llvm", "llvm", "90", str.encode), CardCompiler("cuda", "cuda", "90", str.encode)]
    ((_, compile),) = compilations(CardText(lambda: "KERNEL"), both)
    assert compile() == b"KERNEL"
