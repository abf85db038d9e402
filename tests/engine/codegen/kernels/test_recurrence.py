"""Recurrences in every printer have the bits of steps that are computed one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine.codegen.functions.expansions import expand_functions
from engine.codegen.kernels.program import KernelBuilder, Level, Space
from engine.codegen.kernels.recurrence import Carry, Recurrence
from engine.cuda.cuda_text import OPTIONS, cuda_recurrence_text
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.c_compiler import COMPILER
from tests.engine.codegen.kernels.cases import Array
from tests.engine.codegen.kernels.recurrences import (
    Steps,
    random_steps,
    run_c,
    run_cuda,
    run_llvm,
    run_ptx,
    step_by_step,
)
from tests.sampling import sampled

pytest.importorskip("llvmlite")

Printer = Callable[[Steps, list[Array]], bool]
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
PRINTERS = [
    pytest.param(run_llvm, id="llvm"),
    pytest.param(run_c, id="c", marks=needs_compiler),
    pytest.param(run_cuda, id="cuda", marks=needs_compiler),
    pytest.param(run_ptx, id="ptx", marks=needs_compiler),
]


@pytest.mark.parametrize("seed", sampled(range(24), lambda seed: [min(seed, 8)]))
@pytest.mark.parametrize("printer", PRINTERS)
def test_recurrence_has_the_bits_of_single_steps(printer: Printer, seed: int) -> None:
    given = random_steps(seed)
    results = given.results()
    assert not printer(given, results)
    for n, (one, other) in enumerate(zip(results, step_by_step(given), strict=True)):
        np.testing.assert_array_equal(one, other, strict=True, err_msg=f"result {n}")
        if one.dtype != bool:
            np.testing.assert_array_equal(np.signbit(one)[one == 0], np.signbit(other)[other == 0])


@pytest.mark.parametrize("columns", [1, 5, 40])
@pytest.mark.parametrize("level", [Level.ELEMENT, Level.ROW])
@pytest.mark.parametrize("printer", PRINTERS)
def test_step_out_of_range_is_reported(printer: Printer, level: Level, columns: int) -> None:
    builder = KernelBuilder("float64")
    y, u = builder.load(Level.ELEMENT), builder.load(level)
    builder.store("element", y + u.sin())
    unexpanded = Recurrence(builder.build(), (Carry(0, 0),), (1,))
    recurrence = unexpanded.with_expansion(expand_functions(unexpanded.fused))
    wide = columns if level == Level.ELEMENT else 1
    space = Space((2,), columns, 2 * columns, 1, ((columns,), (wide,), (columns,)))
    moving = np.zeros((3, 2, wide))
    for largest, is_out in ((1.0, False), (float("nan"), False), (1e30, True)):
        moving[1, 1, -1] = largest
        given = Steps(recurrence, space, 3, [np.ones((2, columns)), moving])
        assert printer(given, given.results()) == is_out


@pytest.mark.parametrize("printer", PRINTERS)
def test_values_beyond_a_row_are_not_reported(printer: Printer) -> None:
    builder = KernelBuilder("float64")
    y, far = builder.load(Level.ELEMENT), builder.load(Level.ELEMENT)
    builder.store("element", y + (builder.constant(1e300) - far).sin())
    unexpanded = Recurrence(builder.build(), (Carry(0, 0),), ())
    recurrence = unexpanded.with_expansion(expand_functions(unexpanded.fused))
    given = Steps(recurrence, Space((1,), 5, 5, 1, ((5,), (5,), (5,))), 3, [np.ones((1, 5)), np.full((1, 5), 1e300)])
    assert not printer(given, given.results())


needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("seed", range(4))
def test_nvrtc_compiles_recurrences(seed: int, architecture: str) -> None:
    text = cuda_recurrence_text(random_steps(seed).recurrence)
    assert nvrtc.compiled(text, [*OPTIONS, f"--gpu-architecture={architecture}"])


def test_varying_needed_and_stored_scalars() -> None:
    """Carries, moving operands and everything computed from them vary; fixed operands do not."""
    builder = KernelBuilder("float32")
    y, k, u = builder.load(Level.ELEMENT), builder.load(Level.ROW), builder.load(Level.ROW)
    fixed = k.sqrt()
    builder.store("element", y * fixed + u)
    recurrence = Recurrence(builder.build(), (Carry(0, 0),), (2,))
    assert recurrence.varying() == {y.number, u.number, *range(fixed.number + 1, len(builder.instructions))}
    assert recurrence.needed() == [*range(len(builder.instructions))]
    assert recurrence.stored == []
