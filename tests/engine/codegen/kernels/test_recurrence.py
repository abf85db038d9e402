"""Recurrences by every printer: the bits of steps that are computed one after the other."""

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
from tests.engine.codegen.kernels.recurrences import Steps, by_c, by_cuda, by_llvm, by_ptx, random_steps, step_by_step
from tests.sampling import sampled

pytest.importorskip("llvmlite")

Printer = Callable[[Steps, list[Array]], bool]
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
PRINTERS = [
    pytest.param(by_llvm, id="llvm"),
    pytest.param(by_c, id="c", marks=needs_compiler),
    pytest.param(by_cuda, id="cuda", marks=needs_compiler),
    pytest.param(by_ptx, id="ptx", marks=needs_compiler),
]


@pytest.mark.parametrize("seed", sampled(range(24), lambda seed: [min(seed, 8)]))
@pytest.mark.parametrize("printer", PRINTERS)
def test_the_bits_are_those_of_the_steps(printer: Printer, seed: int) -> None:
    given = random_steps(seed)
    found = given.results()
    assert not printer(given, found)
    for n, (one, other) in enumerate(zip(found, step_by_step(given), strict=True)):
        np.testing.assert_array_equal(one, other, strict=True, err_msg=f"result {n}")
        if one.dtype != bool:
            np.testing.assert_array_equal(np.signbit(one)[one == 0], np.signbit(other)[other == 0])


@pytest.mark.parametrize("columns", [1, 5, 40])
@pytest.mark.parametrize("level", [Level.ELEMENT, Level.ROW])
@pytest.mark.parametrize("printer", PRINTERS)
def test_a_step_out_of_range_is_told(printer: Printer, level: Level, columns: int) -> None:
    builder = KernelBuilder("float64")
    y, u = builder.load(Level.ELEMENT), builder.load(level)
    builder.store("element", y + u.sin())
    written = Recurrence(builder.loop(), (Carry(0, 0),), (1,))
    recurrence = written.ranged(expand_functions(written.loop))
    wide = columns if level == Level.ELEMENT else 1
    space = Space((2,), columns, 2 * columns, 1, ((columns,), (wide,), (columns,)))
    moving = np.zeros((3, 2, wide))
    for largest, is_far in ((1.0, False), (float("nan"), False), (1e30, True)):
        moving[1, 1, -1] = largest
        given = Steps(recurrence, space, 3, [np.ones((2, columns)), moving])
        assert printer(given, given.results()) == is_far


@pytest.mark.parametrize("printer", PRINTERS)
def test_what_lies_beyond_a_row_is_not_out_of_range(printer: Printer) -> None:
    builder = KernelBuilder("float64")
    y, far = builder.load(Level.ELEMENT), builder.load(Level.ELEMENT)
    builder.store("element", y + (builder.constant(1e300) - far).sin())
    written = Recurrence(builder.loop(), (Carry(0, 0),), ())
    recurrence = written.ranged(expand_functions(written.loop))
    given = Steps(recurrence, Space((1,), 5, 5, 1, ((5,), (5,), (5,))), 3, [np.ones((1, 5)), np.full((1, 5), 1e300)])
    assert not printer(given, given.results())


needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("seed", range(4))
def test_nvrtc_compiles_it(seed: int, architecture: str) -> None:
    text = cuda_recurrence_text(random_steps(seed).recurrence)
    assert nvrtc.compiled(text, [*OPTIONS, f"--gpu-architecture={architecture}"])


def test_what_it_varies_with() -> None:
    """A carry, what moves, and all that is made of them; not what stays."""
    builder = KernelBuilder("float32")
    y, k, u = builder.load(Level.ELEMENT), builder.load(Level.ROW), builder.load(Level.ROW)
    fixed = k.sqrt()
    builder.store("element", y * fixed + u)
    recurrence = Recurrence(builder.loop(), (Carry(0, 0),), (2,))
    assert recurrence.varying() == {y.number, u.number, *range(fixed.number + 1, len(builder.instructions))}
    assert recurrence.needed() == [*range(len(builder.instructions))]
    assert recurrence.stored == []
