"""LLVM IR compiled to machine code for a card: refusals and their messages; signatures match nvJitLink's header."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.codegen.native import machine_code
from engine.codegen.native.machine_code import KernelUnavailable
from engine.cuda import compilers as module
from engine.cuda.compilers import card_assembler, card_code, card_ptx
from engine.cuda.libraries import CardLibrary, card_library

pytest.importorskip("llvmlite")
KERNEL = "define ptx_kernel void @rows(ptr byval([5 x i64]) align 8 %table) {{\n  {body}\n  ret void\n}}\n"
EMPTY = KERNEL.format(body="")

needs_assembler = pytest.mark.skipif(card_library("nvJitLink").loaded is None, reason="nvJitLink is not installed")


def test_ptx_declares_the_kernel_and_its_table() -> None:
    ptx = card_ptx(EMPTY, "80")
    assert ".target sm_80" in ptx
    assert ".entry rows(\n\t.param .align 8 .b8 rows_param_0[40]" in ptx


def test_llvm_refuses_invalid_ir() -> None:
    with pytest.raises(KernelUnavailable, match="LLVM did not compile a kernel for a card"):
        card_ptx("define void @rows( {", "90")


def test_number_beyond_64_bits_is_refused() -> None:
    body = "%place = getelementptr i64, ptr %table, i64 99999999999999999999"
    with pytest.raises(KernelUnavailable, match="64 bits"):
        card_ptx(KERNEL.format(body=body), "90")


@needs_assembler
def test_assembler_reports_its_version() -> None:
    assembler = card_assembler()
    assert assembler.major >= 12
    assert re.fullmatch(rf"llvmlite [\d.]+ opt 1, nvJitLink {re.escape(assembler.version)}", assembler.compiler)


@needs_assembler
def test_machine_code_is_the_same_from_any_thread() -> None:
    with ThreadPoolExecutor(4) as threads:
        codes = list(threads.map(lambda _: card_code(EMPTY, "90"), range(8)))
    assert {*codes} == {card_code(EMPTY, "90")}
    assert codes[0].startswith(b"\x7fELF")


@needs_assembler
def test_unknown_architecture_is_refused() -> None:
    with pytest.raises(KernelUnavailable, match=r"nvJitLink .*status \d+"):
        card_code(EMPTY, "999")


@needs_assembler
def test_invalid_ptx_is_refused_with_the_assembler_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "card_ptx", lambda *_: ".version 7.8\n.target sm_90\nno such thing;\n")
    with pytest.raises(
        KernelUnavailable, match=r"nvJitLink refused a kernel .*ptxas|nvJitLink refused a kernel .*error"
    ):
        card_code(EMPTY, "90")


@pytest.mark.parametrize("missing", ["nvJitLink was not found", "too old", "llvmlite"])
def test_missing_or_old_compiler_is_unavailable(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = {
        "nvJitLink was not found": CardLibrary("nvJitLink", missing="it is nowhere"),
        "too old": CardLibrary("nvJitLink", "libnvJitLink.so.12", loaded=object()),
    }
    if missing in libraries:
        monkeypatch.setattr(module, "card_library", lambda name: libraries[missing])
    else:
        monkeypatch.setitem(sys.modules, "llvmlite", None)
        monkeypatch.setattr(module, "llvm", machine_code.llvm.__wrapped__)
        monkeypatch.setattr(module, "_target", module._target.__wrapped__)
    with pytest.raises(KernelUnavailable, match=missing):
        card_assembler()


def header() -> str:
    library = card_library("nvJitLink")
    file = Path(library.path).parents[1] / "include" / "nvJitLink.h" if library.path else Path()
    return file.read_text("utf-8") if file.is_file() else ""


@pytest.mark.skipif(not header(), reason="nvJitLink's header is not installed")
def test_signatures_match_the_header() -> None:
    """Check the unversioned names, the numbers of operands, and the enumerator of PTX input."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header(), flags=re.DOTALL)
    for name, operands in (
        ("Create", 3), ("Destroy", 1), ("AddData", 5), ("Complete", 1), ("Version", 2),
        ("GetLinkedCubinSize", 2), ("GetLinkedCubin", 2), ("GetErrorLogSize", 2), ("GetErrorLog", 2),
    ):  # fmt: skip
        (declared,) = {
            arguments.count(",") + 1
            for arguments in re.findall(rf"extern nvJitLinkResult nvJitLink{name}\s*\((.*?)\)", text, re.DOTALL)
        }
        assert declared == operands, name
    inputs = re.search(r"NVJITLINK_INPUT_CUBIN = 1,\s*NVJITLINK_INPUT_PTX,", text)
    assert inputs
    assert module._PTX == 2
