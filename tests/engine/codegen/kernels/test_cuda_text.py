"""Loops as CUDA C: the bits of the other printers on the CPU, and compilation by NVRTC."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from engine.codegen.functions.expansions import expand_functions
from engine.codegen.kernels.compiled import bind_native
from engine.codegen.kernels.program import RANDOM, FusedKernel, KernelBuilder, Level, Space, schedule
from engine.cuda.cuda_text import OPTIONS, SUMS_AT_ONCE, cuda_parts, cuda_text
from engine.cuda.launch import CudaKernel
from tests.engine.codegen.kernels import nvrtc
from tests.engine.codegen.kernels.accuracy import CASES
from tests.engine.codegen.kernels.c_compiler import COMPILER, c_kernels
from tests.engine.codegen.kernels.cases import SPECIAL, Array, Case, assert_same_bits, expected, random_case
from tests.engine.codegen.kernels.cuda_shim import host_kernels, run_on_host
from tests.sampling import sampled

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def run_all(cases: Sequence[Case], folder: Path) -> list[list[Array]]:
    """Run all cases. Their kernels are compiled together, each once, since a compiler is slow to start."""
    loops = {(repr(case.loop), case.lanes): (cuda_parts(case.loop), case.lanes) for case in cases}
    kernels = dict(zip(loops, host_kernels(list(loops.values()), folder), strict=True))
    outputs = []
    for case in cases:
        key, results = (repr(case.loop), case.lanes), case.results()
        loop = CudaKernel(case.loop, loops[key][0], case.space, case.lanes)
        assert not run_on_host(kernels[key], loop, case.operands, results)
        outputs.append(results)
    return outputs


def run(case: Case, folder: Path) -> list[Array]:
    return run_all([case], folder)[0]


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("first", range(400, 430, 15))
def test_cuda_kernels_match_numpy(first: int, tmp_path: Path) -> None:
    cases = [random_case(seed, fma=False) for seed in range(first, first + 15)]
    for case, results in zip(cases, run_all(cases, tmp_path), strict=True):
        assert_same_bits(case, results, expected(case))


@pytest.mark.slow
@needs_compiler
def test_fused_multiply_add_matches_the_c_printer(tmp_path: Path) -> None:
    cases = [random_case(seed) for seed in range(430, 442)]
    (tmp_path / "c").mkdir()
    in_c = c_kernels([(case.loop, case.lanes) for case in cases], tmp_path / "c")
    for case, kernel, actual in zip(cases, in_c, run_all(cases, tmp_path), strict=True):
        results = case.results()
        with np.errstate(all="ignore"):  # as when plans run
            for function, arguments in bind_native(kernel, case.loop, case.space, case.operands, results):
                function(*arguments)
        assert_same_bits(case, actual, results)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_parts_match_numpy(dtype: str, tmp_path: Path) -> None:
    """Each row is a part; NumPy sums many parts pairwise."""
    builder = KernelBuilder(dtype)
    x = builder.load(Level.ELEMENT)
    builder.store("columns", x)
    builder.store("total", x.row_sum())
    cases = []
    for rows, columns in product((0, 1, 7, 8, 9, 128, 129, 1000, 1500), (1, 2, 33, 700)):
        space = Space((rows,), columns, rows * columns, 1, ((columns,), (), ()))
        data = np.random.default_rng(0).normal(size=(rows, columns)).astype(dtype)
        cases.append(Case(builder.build(), space, [data]))
    for case, results in zip(cases, run_all(cases, tmp_path), strict=True):
        assert_same_bits(case, results, expected(case))


@needs_compiler
@pytest.mark.parametrize(("block", "kernels"), [(1, "add_rows add_parts"), (3, "add_rows add_parts"), (40, "add_rows")])
@pytest.mark.parametrize("columns", [1, 5])
def test_one_launch_adds_all_sums_of_a_loop(columns: int, block: int, kernels: str, tmp_path: Path) -> None:
    """A single block has no parts: the kernel of the columns computes the sums."""
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    for k, factor in enumerate([1.0, 3.0, -0.7, 11.0]):
        builder.store("columns" if k % 2 else "total", x * factor if k % 2 else (x * factor).row_sum())
    space = Space((40,), columns, 40 * columns, block, ((columns,), (), (), (), ()))
    given = np.random.default_rng(0).normal(size=(40, columns)).astype("float32")
    case = Case(builder.build(), space, [given])
    assert CudaKernel(case.loop, cuda_parts(case.loop), space, case.lanes).kernels == [
        "rows",
        "columns",
        *kernels.split(),
    ]
    assert_same_bits(case, run(case, tmp_path), expected(case))


@needs_compiler
def test_more_sums_than_a_table_holds_take_several_launches(tmp_path: Path) -> None:
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    for k in range(2 * SUMS_AT_ONCE + 1):
        builder.store("columns", x * (k + 1.0))
    space = Space((9,), 2, 18, 2, ((2,), *[()] * len(builder.results)))
    case = Case(builder.build(), space, [np.random.default_rng(0).normal(size=(9, 2))])
    kernels = CudaKernel(case.loop, cuda_parts(case.loop), space, case.lanes).kernels
    assert kernels == ["columns", "add_parts", "add_parts", "add_parts"]
    assert_same_bits(case, run(case, tmp_path), expected(case))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_have_the_bits_of_c(dtype: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=500) * 10.0 ** rng.integers(-45, 39, 500), SPECIAL]).astype(dtype)
    cases = []
    for loop in (function_loop(function, width) for function, width in CASES if width == dtype):
        space = Space((1,), len(x), len(x), 1, ((len(x),), (len(x),), *[()] * (len(loop.results) - 1)))
        cases.append(Case(loop, space, [x[np.newaxis]]))
    (tmp_path / "c").mkdir()
    in_c = c_kernels([(case.loop, case.lanes) for case in cases], tmp_path / "c")
    parts = [cuda_parts(case.loop, reports_range=len(case.loop.results) > 1) for case in cases]
    built = host_kernels([(case_parts, case.lanes) for case_parts, case in zip(parts, cases, strict=True)], tmp_path)
    for case, host_kernel, case_parts, kernels in zip(cases, in_c, parts, built, strict=True):
        loop, space, results, actual = case.loop, case.space, case.results(), [case.results()[0]]
        for call, arguments in bind_native(host_kernel, loop, space, case.operands, results):
            call(*arguments)
        bound = CudaKernel(loop, case_parts, space._replace(strides=space.strides[:2]), case.lanes)
        out_of_range = run_on_host(kernels, bound, case.operands, actual)
        assert out_of_range == (len(results) > 1 and bool(results[1] > 0))
        assert_same_bits(Case(loop._replace(results=loop.results[:1]), space, case.operands), actual, results[:1])


@needs_compiler
@pytest.mark.parametrize("level", [Level.ELEMENT, Level.ROW])
@pytest.mark.parametrize(("largest", "is_out"), [(1.0, False), (1e30, True), (float("nan"), False)])
def test_argument_out_of_range_is_reported(level: Level, largest: float, is_out: bool, tmp_path: Path) -> None:
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    builder.store("element", x * builder.load(level).sin())
    loop = expand_functions(builder.build())
    space = Space((3,), 5, 15, 2, ((5,), (5,) if level == Level.ELEMENT else (1,), (5,)))
    angles = np.zeros((3, 5 if level == Level.ELEMENT else 1))
    angles[2, -1] = largest
    case = Case(loop._replace(results=loop.results[:1]), space, [np.ones((3, 5)), angles])
    parts = cuda_parts(loop, reports_range=True)
    (kernels,) = host_kernels([(parts, case.lanes)], tmp_path)
    assert run_on_host(kernels, CudaKernel(loop, parts, space, 4), case.operands, case.results()) == is_out


def test_schedule_without_scratch() -> None:
    """Later sweeps recompute values, since a GPU has no scratch for each row in flight."""
    builder = KernelBuilder("float32")
    risen = (builder.load(Level.ELEMENT).abs().sqrt() / 3.0).sqrt()
    builder.store("element", risen / risen.row_sum())
    assert schedule(builder.build()).scratch
    assert not schedule(builder.build(), use_scratch=False).scratch


# ---------------------------------------------------------------- NVRTC


def text_of(case: Case) -> str:
    return cuda_text(cuda_parts(case.loop), case.lanes)


def function_loop(function: str, dtype: str) -> FusedKernel:
    builder = KernelBuilder(dtype)
    builder.store("element", builder.apply(function, builder.load(Level.ELEMENT)))
    return expand_functions(builder.build())


needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
ARCHITECTURES = ["sm_80", "sm_90"]
SEEDS = [*range(400, 410), *range(430, 440)]


def primitives(case: tuple[str, int]) -> Iterator[Hashable]:
    """Yield the primitives and kinds of results that a case prints for an architecture."""
    architecture, loop = case[0], random_case(case[1]).loop
    yield from ((architecture, loop.dtype, i.op) for i in loop.instructions)
    yield from ((architecture, result.kind) for result in loop.results)


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize(("architecture", "seed"), sampled(product(ARCHITECTURES, SEEDS), primitives))
def test_nvrtc_compiles_every_primitive(architecture: str, seed: int) -> None:
    code = nvrtc.compiled(text_of(random_case(seed)), (*OPTIONS, f"--gpu-architecture={architecture}"))
    assert code.startswith(b"\x7fELF")


@pytest.mark.slow
@needs_nvrtc
@pytest.mark.parametrize(("function", "dtype"), CASES)
def test_nvrtc_compiles_every_function(function: str, dtype: str) -> None:
    loop = function_loop(function, dtype)
    parts = cuda_parts(loop, reports_range=len(loop.results) > 1)
    assert nvrtc.compiled(cuda_text(parts, 32), (*OPTIONS, "--gpu-architecture=sm_90")).startswith(b"\x7fELF")


@needs_nvrtc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("primitive", RANDOM)
def test_nvrtc_compiles_random_numbers(primitive: str, dtype: str) -> None:
    builder = KernelBuilder(dtype)
    words = [builder.load(Level.ELEMENT) for _ in range(4)]
    builder.store("element", builder.apply(primitive, *words))
    parts = cuda_parts(expand_functions(builder.build()), reports_range=False)
    assert nvrtc.compiled(cuda_text(parts, 32), (*OPTIONS, "--gpu-architecture=sm_90")).startswith(b"\x7fELF")


@needs_nvrtc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_multiply_and_add_are_not_contracted(dtype: str) -> None:
    """A product and a sum stay two instructions, unlike by default; division and square roots are exact."""
    builder = KernelBuilder(dtype)
    x = builder.load(Level.ELEMENT)
    builder.store("element", (x * x + 1.0) / x.sqrt())
    space = Space((1,), 8, 8, 1, ((8,), (8,)))
    text = text_of(Case(builder.build(), space, []))
    short = "f32" if dtype == "float32" else "f64"
    ours = nvrtc.compiled(text, (*OPTIONS, "--gpu-architecture=compute_90"), ptx=True)
    theirs = nvrtc.compiled(text, ("--use_fast_math", "--gpu-architecture=compute_90"), ptx=True)
    assert f"fma.rn.{short}".encode() not in ours
    assert f"fma.rn.{short}".encode() in theirs.replace(b".ftz", b"")
    assert f"div.rn.{short}".encode() in ours
    assert f"sqrt.rn.{short}".encode() in ours
    assert b".ftz" not in ours
