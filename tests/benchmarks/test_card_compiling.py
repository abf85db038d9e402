"""The kernels that the benchmark of card compilers compiles."""

from __future__ import annotations

import re

import pytest

from benchmarks.card_compiling import loops_of, main, nvrtc_of_its_wheel
from engine.cuda.libraries import card_library

pytest.importorskip("llvmlite")


def test_small_loop_is_one_kernel_with_one_addition() -> None:
    (loop,) = loops_of("small")
    assert [instruction.op for instruction in loop.fused.instructions] == ["load", "load", "add"]
    assert loop.kernels == ["rows"]


def test_loops_of_a_workload_are_distinct() -> None:
    loops = loops_of("W2")
    assert len({repr((loop.parts, loop.lanes)) for loop in loops}) == len(loops) > 1


@pytest.mark.slow
@pytest.mark.skipif(not card_library("nvJitLink").loaded or not nvrtc_of_its_wheel(), reason="there are no compilers")
def test_report_line_has_both_compilers_and_their_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    main(["small"])
    assert re.fullmatch(
        r"small: 1 kernels, LLVM and nvJitLink [\d.]+ s, NVRTC [\d.]+ s, [\d.]+ x\n", capsys.readouterr().out
    )
