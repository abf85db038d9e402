"""Loops as LLVM IR for a GPU: the bits of the other printers on the CPU, and the PTX and machine code of a GPU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from engine.codegen.functions.expansions import expand_functions
from engine.codegen.kernels.compiled import bind_native
from engine.codegen.kernels.program import ARITHMETIC, BITS, RANDOM, FusedKernel, KernelBuilder, Level, Space
from engine.codegen.native.machine_code import KernelUnavailable
from engine.cuda.compilers import card_assembler, card_code, card_ptx
from engine.cuda.cuda_text import LONG, SUMS_AT_ONCE, cuda_parts
from engine.cuda.launch import CudaKernel
from engine.cuda.ptx_text import ptx_recurrence_text
from tests.engine.codegen.kernels.accuracy import CASES
from tests.engine.codegen.kernels.c_compiler import COMPILER, c_kernels
from tests.engine.codegen.kernels.cases import SPECIAL, Array, Case, assert_same_bits, expected, random_case
from tests.engine.codegen.kernels.cuda_shim import host_kernels, run_on_host
from tests.engine.codegen.kernels.ptx_shim import host_ptx_kernels, text_of
from tests.engine.codegen.kernels.recurrences import random_steps

pytest.importorskip("llvmlite")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
DTYPES: Final = ("float32", "float64")
ARCHITECTURES: Final = ("80", "90", "100")


def card_loop(case: Case) -> CudaKernel:
    return CudaKernel(case.loop, cuda_parts(case.loop), case.space, case.lanes)


def run(cases: list[Case], folder: Path) -> list[list[Array]]:
    """Run each case."""
    loops, outputs = [card_loop(case) for case in cases], []
    for case, loop, kernels in zip(cases, loops, host_ptx_kernels(loops, folder), strict=True):
        results = case.results()
        assert not run_on_host(kernels, loop, case.operands, results)
        outputs.append(results)
    return outputs


# ---------------------------------------------------------------- on the CPU


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("first", range(400, 460, 20))
def test_ptx_kernels_match_numpy(first: int, tmp_path: Path) -> None:
    cases = [random_case(seed, fma=False) for seed in range(first, first + 20)]
    for case, results in zip(cases, run(cases, tmp_path), strict=True):
        assert_same_bits(case, results, expected(case))


@pytest.mark.slow
@needs_compiler
def test_fused_multiply_add_matches_the_other_printers(tmp_path: Path) -> None:
    """The other printers are CUDA C and C for the CPU."""
    cases = [random_case(seed) for seed in range(430, 442)]
    for name in ("c", "cuda", "ptx"):
        (tmp_path / name).mkdir()
    loops = [card_loop(case) for case in cases]
    in_c = c_kernels([(case.loop, case.lanes) for case in cases], tmp_path / "c")
    in_cuda = host_kernels([(loop.parts, loop.lanes) for loop in loops], tmp_path / "cuda")
    for k, (case, actual) in enumerate(zip(cases, run(cases, tmp_path / "ptx"), strict=True)):
        cuda_results, c_results = case.results(), case.results()
        run_on_host(in_cuda[k], loops[k], case.operands, cuda_results)
        with np.errstate(all="ignore"):  # as when plans run
            for call, arguments in bind_native(in_c[k], case.loop, case.space, case.operands, c_results):
                call(*arguments)
        assert_same_bits(case, actual, cuda_results)
        assert_same_bits(case, actual, c_results)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("first", [400, 420])
def test_kernels_without_row_pointers_match_numpy(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.cuda.ptx_text.MAX_ROW_POINTERS", 0)
    cases = [random_case(seed, fma=False) for seed in range(first, first + 20)]
    assert "freeze" in text_of(card_loop(cases[0]))
    for case, results in zip(cases, run(cases, tmp_path), strict=True):
        assert_same_bits(case, results, expected(case))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_parts_match_numpy(dtype: str, tmp_path: Path) -> None:
    """Each row is a part; NumPy sums many parts pairwise."""
    builder = KernelBuilder(dtype)
    x = builder.load(Level.ELEMENT)
    builder.store("columns", x)
    builder.store("total", x.row_sum())
    cases = []
    for rows in (0, 1, 7, 8, 9, 128, 129, 1000, 1500):
        for columns in (1, 2, 33, 700):
            space = Space((rows,), columns, rows * columns, 1, ((columns,), (), ()))
            data = np.random.default_rng(0).normal(size=(rows, columns)).astype(dtype)
            cases.append(Case(builder.build(), space, [data]))
    for case, results in zip(cases, run(cases, tmp_path), strict=True):
        assert_same_bits(case, results, expected(case))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("columns", [1, 5])
def test_many_sums_of_a_loop_match_numpy(columns: int, tmp_path: Path) -> None:
    """More sums of both kinds than a table holds, with blocks of one row, three rows and all rows."""
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    for k in range(SUMS_AT_ONCE + 6):
        builder.store("columns" if k % 2 else "total", x * (k + 1.0) if k % 2 else (x * (k + 1.0)).row_sum())
    given = np.random.default_rng(0).normal(size=(40, columns))
    spaces = [
        Space((40,), columns, 40 * columns, block, ((columns,), *[()] * len(builder.results))) for block in (1, 3, 40)
    ]
    cases = [Case(builder.build(), space, [given]) for space in spaces]
    for case, results in zip(cases, run(cases, tmp_path), strict=True):
        assert_same_bits(case, results, expected(case))


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_extrema_of_signed_zeros_match_the_other_printers(dtype: str, tmp_path: Path) -> None:
    """Each reduction takes the second of two equal numbers, in lanes of a thread and between threads."""
    builder = KernelBuilder(dtype)
    x = builder.load(Level.ELEMENT)
    builder.store("row", x.row_max())
    builder.store("row", x.row_min())
    rng, cases = np.random.default_rng(0), []
    for columns in (2, 20, 40, 64, 100):
        space = Space((40,), columns, 40 * columns, 1, ((columns,), (1,), (1,)))
        cases.append(Case(builder.build(), space, [rng.choice([0.0, -0.0], (40, columns)).astype(dtype)]))
    for case, results in zip(cases, run(cases, tmp_path), strict=True):
        assert_same_bits(case, results, expected(case))


def function_loop(function: str, dtype: str) -> FusedKernel:
    builder = KernelBuilder(dtype)
    builder.store("element", builder.apply(function, builder.load(Level.ELEMENT)))
    return expand_functions(builder.build())


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_have_the_bits_of_c(dtype: str, tmp_path: Path) -> None:
    """Compared with C for the CPU; arguments out of range are reported."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=500) * 10.0 ** rng.integers(-45, 39, 500), SPECIAL]).astype(dtype)
    loops = [function_loop(function, dtype) for function, of_dtype in CASES if of_dtype == dtype]
    bound = [range_reporting(loop, Space((1,), len(x), len(x), 1, ((len(x),), (len(x),)))) for loop in loops]
    (tmp_path / "c").mkdir()
    in_c = c_kernels([(loop, card.lanes) for loop, card in zip(loops, bound, strict=True)], tmp_path / "c", "-O1")
    for loop, card, kernels, kernel in zip(loops, bound, host_ptx_kernels(bound, tmp_path), in_c, strict=True):
        space = card.space._replace(strides=(*card.space.strides, *[()] * (len(loop.results) - 1)))
        results = Case(loop, space, [x[np.newaxis]]).results()
        with np.errstate(all="ignore"):
            for call, arguments in bind_native(kernel, loop, space, [x[np.newaxis]], results):
                call(*arguments)
        case = Case(loop._replace(results=loop.results[:1]), card.space, [x[np.newaxis]])
        actual = case.results()
        out_of_range = run_on_host(kernels, card, case.operands, actual)
        assert out_of_range == (len(results) > 1 and bool(results[1] > 0))
        assert_same_bits(case, actual, results[:1])


def range_reporting(loop: FusedKernel, space: Space) -> CudaKernel:
    """Build the GPU loop of an expanded loop, whose last result may report arguments out of range."""
    reports_range = len(loop.results) > 1
    own = loop._replace(results=loop.results[:1])
    lanes = Case(loop, space, []).lanes
    return CudaKernel(own, cuda_parts(loop, reports_range=reports_range), space, lanes)


@needs_compiler
@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize("level", [Level.ELEMENT, Level.ROW])
def test_argument_out_of_range_is_reported(level: Level, with_rows: bool, tmp_path: Path) -> None:
    """Reported by a thread for each element, and by a team of threads for each row."""
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    builder.store("element", x * builder.load(level).sin() + (x.row_sum() if with_rows else 0.0))
    loop, columns = expand_functions(builder.build()), 70
    wide = columns if level == Level.ELEMENT else 1
    space = Space((3,), columns, 3 * columns, 2, ((columns,), (wide,), (columns,)))
    card = range_reporting(loop, space)
    (kernels,) = host_ptx_kernels([card], tmp_path)
    angles = np.zeros((3, wide))
    for largest, is_out in (1.0, False), (float("nan"), False), (1e30, True):
        angles[2, -1] = largest
        results = Case(card.fused, space, [np.ones((3, columns)), angles]).results()
        assert run_on_host(kernels, card, [np.ones((3, columns)), angles], results) == is_out


# ---------------------------------------------------------------- as PTX

#: PTX instructions, without types, of the primitives that are one or two of them
WORDS: Final = {
    "neg": "neg", "abs": "abs", "sqrt": "sqrt.rn", "floor": "cvt.rmi", "ceil": "cvt.rpi", "rint": "cvt.rni",
    "add": "add.rn", "sub": "sub.rn", "mul": "mul.rn", "div": "div.rn", "copysign": "copysign", "fma": "fma.rn",
    "lt": "setp.lt", "le": "setp.le", "gt": "setp.gt", "ge": "setp.ge", "eq": "setp.eq", "ne": "setp.neu",
    "minimum": "setp.lt", "maximum": "setp.gt",
}  # fmt: skip
#: instructions on floats that round or may be contracted
ROUNDS: Final = re.compile(r"\b(?:add|sub|mul|div|sqrt|fma|mad|rcp|rsqrt|ex2|lg2|sin|cos|tanh)(?:\.\w+)*\.f(?:32|64)\b")


def primitive_loop(name: str, dtype: str) -> FusedKernel:
    """Build a loop of a primitive of loaded operands; a shift is by 3."""
    builder = KernelBuilder(dtype)
    takes, gives = (ARITHMETIC | BITS)[name]
    args = [
        builder.load(Level.ELEMENT, type) if type != "int" else builder.load(Level.ELEMENT).bits() for type in takes
    ]
    if name in ("shl", "ashr"):
        args[1] = builder.integer(3)
    result = builder.apply(name, *args)
    builder.store("element", result.from_bits() if gives == "int" else result)
    return builder.build()


def ptx_of(loop: FusedKernel) -> str:
    space = Space((2,), 40, 80, 1, tuple((40,) for _ in (*loop.operands, *loop.results)))
    return card_ptx(text_of(CudaKernel(loop, cuda_parts(loop), space, 32)), "90")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*ARITHMETIC, *BITS])
def test_each_primitive_is_its_own_instruction(name: str, dtype: str) -> None:
    """Results are rounded to nearest, with subnormal numbers, and there is no other instruction that rounds."""
    ptx, short = ptx_of(primitive_loop(name, dtype)), dtype.replace("float", "f")
    assert ".ftz" not in ptx
    assert ".approx" not in ptx
    if name in WORDS:
        assert re.search(rf"\t{re.escape(WORDS[name])}(\.\w+)*\.{short}\b", ptx)
    rounding = {f"{WORDS[name]}.{short}"} if name in ("sqrt", "add", "sub", "mul", "div", "fma") else set()
    assert {*ROUNDS.findall(ptx)} == rounding


@pytest.mark.parametrize("dtype", DTYPES)
def test_multiply_and_add_are_not_contracted(dtype: str) -> None:
    """A product and a sum stay two instructions in elements, rows and columns."""
    builder = KernelBuilder(dtype)
    x = builder.load(Level.ELEMENT)
    squared = x * x + 1.0
    builder.store("element", squared / squared.row_sum().sqrt())
    builder.store("columns", x * x - squared)
    builder.store("total", (x * x).row_sum())
    ptx, short = ptx_of(builder.build()), dtype.replace("float", "f")
    assert {*ROUNDS.findall(ptx)} == {f"{name}.rn.{short}" for name in ("add", "sub", "mul", "div", "sqrt")}


@pytest.mark.slow
def test_no_unrequested_fused_multiply_add() -> None:
    for seed in range(400, 420):
        ptx = card_ptx(text_of(card_loop(random_case(seed, fma=False))), "90")
        assert all(".rn." in instruction for instruction in ROUNDS.findall(ptx))
        assert "fma" not in ptx
        assert ".ftz" not in ptx


def test_arrays_are_accessed_as_global_memory() -> None:
    """LLVM infers that pointers are global, since the table is the kernel's own parameter."""
    ptx = ptx_of(primitive_loop("add", "float32"))
    assert "ld.global.b32" in ptx
    assert "st.global.b32" in ptx
    assert not re.search(r"\t(ld|st)\.(b|f|u)\d+", ptx)
    assert ".local" not in ptx


def test_long_loops_are_not_unrolled() -> None:
    def of_length(count: int) -> str:
        builder = KernelBuilder("float32")
        x = builder.load(Level.ELEMENT)
        for _ in range(count):
            x = x + 1.0
        builder.store("element", x)
        return ptx_of(builder.build())

    assert "nounroll" in of_length(LONG)
    assert "nounroll" not in of_length(LONG // 4)


def test_sum_kernels_are_written_only_if_needed() -> None:
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    builder.store("element", x + 1.0)
    assert re.findall(r"\.entry (\w+)", ptx_of(builder.build())) == ["rows"]
    builder.store("columns", x)
    assert re.findall(r"\.entry (\w+)", ptx_of(builder.build())) == ["rows", "columns", "add_parts"]
    builder.store("total", x.row_sum())
    assert re.findall(r"\.entry (\w+)", ptx_of(builder.build())) == ["rows", "columns", "add_rows", "add_parts"]


# ---------------------------------------------------------------- as machine code


def has_assembler() -> bool:
    try:
        return bool(card_assembler())
    except KernelUnavailable:
        return False


needs_assembler = pytest.mark.skipif(not has_assembler(), reason="nvJitLink is not installed")


@pytest.mark.slow
@needs_assembler
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvjitlink_accepts_every_primitive(architecture: str) -> None:
    for seed in (*range(400, 410), *range(430, 440)):
        assert card_code(text_of(card_loop(random_case(seed))), architecture).startswith(b"\x7fELF")


@needs_assembler
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvjitlink_accepts_recurrences_and_random_numbers(architecture: str) -> None:
    texts = [ptx_recurrence_text(random_steps(seed).recurrence) for seed in range(2)]
    for primitive in RANDOM:
        builder = KernelBuilder("float32")
        builder.store("element", builder.apply(primitive, *(builder.load(Level.ELEMENT) for _ in range(4))))
        space = Space((1,), 40, 40, 1, ((40,),) * 5)
        loop = expand_functions(builder.build())
        texts.append(text_of(CudaKernel(loop, cuda_parts(loop), space, 32)))
    for text in texts:
        assert card_code(text, architecture).startswith(b"\x7fELF")


@pytest.mark.slow
@needs_assembler
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("function", "dtype"), CASES)
def test_nvjitlink_accepts_every_function(function: str, dtype: str, architecture: str) -> None:
    space = Space((1,), 40, 40, 1, ((40,), (40,)))
    loop = range_reporting(function_loop(function, dtype), space)
    assert card_code(text_of(loop), architecture).startswith(b"\x7fELF")
