"""Compiled kernels: the same bits from LLVM, C and NumPy, for any instruction set, threads and rows."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

from engine.codegen.functions.expansions import expand_functions
from engine.codegen.kernels import compiled as native
from engine.codegen.kernels.compiled import NativeKernel, bind_native, native_kernel, native_workspace
from engine.codegen.kernels.llvm_text import llvm_text
from engine.codegen.kernels.program import FUNCTIONS, KernelBuilder, Level, Space, lanes_of, schedule
from engine.codegen.native.machine_code import host_processor, machine_code
from engine.codegen.native.native_call import NativeCall
from engine.ir.op import KernelCall
from tests.engine.codegen.kernels.accuracy import CASES
from tests.engine.codegen.kernels.c_compiler import COMPILER, c_kernel
from tests.engine.codegen.kernels.cases import SPECIAL, Array, Case, assert_same_bits, expected, random_case

pytest.importorskip("llvmlite")


AVX2 = ("x86-64-v3", "")


def runs_avx2() -> bool:
    return "+avx2" in host_processor()[1].split(",")


def llvm_kernel(case: Case, processor: tuple[str, str] | None = None) -> NativeKernel:
    return native_kernel(case.loop, case.lanes, machine_code(llvm_text(case.loop, case.lanes), processor))


def run(kernel: NativeKernel, case: Case, threads: int = 1) -> list[Array]:
    results = case.results()
    with np.errstate(all="ignore"):  # as when plans run
        for function, arguments in bind_native(kernel, case.loop, case.space, case.operands, results, threads):
            function(*arguments)
    return results


def native_call(calls: list[KernelCall]) -> NativeCall:
    """Return the call of the kernel, which comes first."""
    call = calls[0][0]
    assert isinstance(call, NativeCall)
    return call


def softmax(rows: int, columns: int) -> Case:
    """Build a loop of three sweeps, the second of which saves values for the third."""
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    risen = (x - x.row_max()).mul(0.25) / 3.0
    builder.store("element", risen / risen.row_sum())
    builder.store("columns", risen)
    builder.store("total", risen.row_min())
    space = Space((rows,), columns, rows * columns, 3, ((columns,), (columns,), (), ()))
    x_values = np.random.default_rng(0).normal(size=(rows, columns)).astype("float32")
    return Case(builder.build(), space, [x_values])


@pytest.mark.parametrize("seed", range(60))
def test_kernel_matches_numpy(seed: int) -> None:
    case = random_case(seed, fma=False)
    assert_same_bits(case, run(llvm_kernel(case), case), expected(case))


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
@pytest.mark.parametrize("seed", range(100, 124))
def test_c_and_llvm_give_the_same_bits(seed: int, tmp_path: Path) -> None:
    case = random_case(seed)
    flags = ["-march=native"] if seed % 2 else []
    assert_same_bits(case, run(c_kernel(case.loop, case.lanes, tmp_path, *flags), case), run(llvm_kernel(case), case))


@pytest.mark.parametrize("seed", range(200, 216))
def test_avx2_gives_the_same_bits(seed: int) -> None:
    if not runs_avx2():
        pytest.skip("this processor has no AVX2")
    case = random_case(seed)
    assert_same_bits(case, run(llvm_kernel(case, AVX2), case), run(llvm_kernel(case), case))


@pytest.mark.parametrize("seed", range(300, 312))
def test_threads_do_not_change_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "WORTH_THREADS", 0)
    case = random_case(seed)
    case.space = case.space._replace(block=1)
    kernel = llvm_kernel(case)
    alone = run(kernel, case)
    for threads in (2, 3):
        assert_same_bits(case, run(kernel, case, threads), alone)


def test_each_thread_has_its_own_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "WORTH_THREADS", 0)
    case = softmax(600, 700)
    kernel = llvm_kernel(case)
    assert kernel.scratch_rows == 1
    calls = bind_native(kernel, case.loop, case.space, case.operands, case.results(), 2)
    assert len(set(native_call(calls).entries[:, kernel.layout.scratch])) == 2
    for _ in range(5):
        assert_same_bits(case, run(kernel, case, 2), expected(case))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [5, 200])
def test_scalars_of_all_types_are_saved_between_sweeps(columns: int, dtype: str) -> None:
    builder = KernelBuilder(dtype)
    x = builder.load(Level.ELEMENT)
    root, share = x.abs().sqrt(), 1.0 / (x + 3.0)
    small, bits = (share / 3.0).lt(0.1), (root / 7.0).bits()
    scalar = small.where(root, share) + bits.from_bits()
    mean = scalar.row_sum() / 3.0
    for value in (root, share, bits.ixor(builder.integer(1)).from_bits()):
        builder.store("element", small.where(value, mean))
    space = Space((3,), columns, 3 * columns, 3, ((columns,),) * 4)
    x_values = np.random.default_rng(0).normal(size=(3, columns)).astype(dtype)
    case = Case(builder.build(), space, [x_values])
    assert {case.loop.instructions[i].type for i in schedule(case.loop).scratch} == {"float", "bool", "int"}
    assert_same_bits(case, run(llvm_kernel(case), case), expected(case))


def test_small_work_stays_on_the_calling_thread() -> None:
    case = softmax(6, 70)
    kernel = llvm_kernel(case)
    calls = bind_native(kernel, case.loop, case.space, case.operands, case.results(), 2)
    call = native_call(calls)
    assert (call.function, call.address, len(call.entries)) == (kernel.function, kernel.address, 1)


@pytest.mark.parametrize("columns", [1, 10, 64, 130])
def test_row_matches_the_same_row_in_a_batch(columns: int) -> None:
    case = softmax(5, columns)
    kernel = llvm_kernel(case)
    batch, _, _ = run(kernel, case)
    for row in range(5):
        alone = Case(case.loop, Space((1,), columns, columns, 3, case.space.strides), [case.operands[0][row:]])
        np.testing.assert_array_equal(run(kernel, alone)[0][0], batch[row])


def test_fused_multiply_add_rounds_once() -> None:
    builder = KernelBuilder("float64")
    x = builder.load(Level.ELEMENT)
    builder.store("element", x.fma(x, -1.0))
    builder.store("element", x * x - 1.0)
    case = Case(builder.build(), Space((1,), 3, 3, 1, ((3,),) * 3), [np.array([[1 + 2.0**-30] * 3])])
    fused, separate = run(llvm_kernel(case), case)
    assert fused.tolist() == [[2.0**-29 + 2.0**-60] * 3]
    assert separate.tolist() == [[2.0**-29] * 3]


def test_empty_rows_reduce_to_the_identity() -> None:
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    for kind in ("row_sum", "row_prod", "row_max", "row_min"):
        builder.store("row", builder.apply(kind, x))
    case = Case(builder.build(), Space((2,), 0, 0, 1, ((0,), (1,), (1,), (1,), (1,))), [np.empty((2, 0), "float32")])
    assert [result.ravel().tolist() for result in run(llvm_kernel(case), case)] == [
        [0.0] * 2,
        [1.0] * 2,
        [float("-inf")] * 2,
        [float("inf")] * 2,
    ]


def test_no_write_beyond_a_row() -> None:
    case = softmax(3, 37)
    frame = np.full((3, 100), 9, "float32")
    case.space = case.space._replace(strides=((37,), (100,), (), ()))
    results = [frame, *case.results()[1:]]
    for function, arguments in bind_native(llvm_kernel(case), case.loop, case.space, case.operands, results, 1):
        function(*arguments)
    assert (frame[:, 37:] == 9).all()
    assert (frame[:, :37] != 9).all()


def test_bound_kernel_can_be_rebound_to_other_arrays() -> None:
    case = softmax(6, 20)
    kernel = llvm_kernel(case)
    calls = bind_native(kernel, case.loop, case.space, case.operands, case.results(), 1)
    call = native_call(calls)
    moved = Case(case.loop, case.space, [case.operands[0][::-1].copy()])
    result = moved.results()[0]
    call.point(kernel.layout.operands[0], moved.operands[0])
    call.point(kernel.layout.results[0], result)
    for function, arguments in calls:
        function(*arguments)
    np.testing.assert_array_equal(result, expected(moved)[0])


@pytest.mark.slow
@pytest.mark.usefixtures("own_garbage")
def test_bound_kernel_keeps_its_arrays_alive() -> None:
    case = softmax(6, 20)
    operand, results = weakref.ref(case.operands[0]), case.results()
    calls = bind_native(llvm_kernel(case), case.loop, case.space, case.operands, results, 1)
    reference = expected(case)
    case.operands.clear()
    gc.collect()
    assert operand() is not None
    for function, arguments in calls:
        function(*arguments)
    assert_same_bits(case, results, reference)


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
@pytest.mark.parametrize(("function", "dtype"), [*CASES, ("mod", "float32"), ("mod", "float64")])
def test_functions_have_the_same_bits_in_llvm_and_c(function: str, dtype: str, tmp_path: Path) -> None:
    builder, count = KernelBuilder(dtype), len(FUNCTIONS[function].operands)
    builder.store("element", builder.apply(function, *(builder.load(Level.ELEMENT) for _ in range(count))))
    loop = expand_functions(builder.build())
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=500) * 10.0 ** rng.integers(-45, 39, 500), SPECIAL]).astype(dtype)
    space = Space((1,), len(x), len(x), 1, (*[(len(x),)] * (count + 1), *[()] * (len(loop.results) - 1)))
    case = Case(loop, space, [x[np.newaxis], x[np.newaxis, ::-1].copy()][:count])
    reference = run(llvm_kernel(case), case)
    assert_same_bits(case, run(c_kernel(loop, case.lanes, tmp_path, "-march=native"), case), reference)
    if runs_avx2():
        assert_same_bits(case, run(llvm_kernel(case, AVX2), case), reference)


def test_workspace_estimate_matches_the_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "WORTH_THREADS", 0)
    case = softmax(9, 130)
    kernel = llvm_kernel(case)
    calls = bind_native(kernel, case.loop, case.space, case.operands, case.results(), 2)
    scratch = 4 * 2 * kernel.scratch_rows * 192  # per thread, in whole vectors
    parts = [arguments[0] for _, arguments in calls[1:]]
    assert [part.shape for part in parts] == [(3, 130), (3,)]
    assert native_workspace(case.loop, case.space, 2) == scratch + sum(part.nbytes for part in parts)


def test_argument_table_of_a_kernel() -> None:
    builder = KernelBuilder("float32", 2)
    x, row = builder.load(Level.ELEMENT), builder.load(Level.ROW)
    builder.store("columns", x)
    builder.store("row", row + x.row_sum())
    space = Space((2, 3), 4, 24, 5, ((12, 4), (1, 0), (), (3, 1)))
    case = Case(builder.build(), space, [np.zeros((2, 3, 4), "float32"), np.zeros(2, "float32")])
    results = [np.zeros(4, "float32"), np.zeros((2, 3), "float32")]
    calls = bind_native(llvm_kernel(case), case.loop, space, case.operands, results)
    call, arguments = native_call(calls), calls[1][1]
    address = [array.ctypes.data for array in (*case.operands, arguments[0], results[1])]
    entries = [4, 24, 6, 5, 2, 3, address[0], 12, 4, address[1], 1, 0, address[2], address[3], 3, 1, 0]
    assert (call.items, call.entries.tolist()) == (2, [entries])


def test_long_programs_have_fewer_lanes() -> None:
    builder = KernelBuilder("float32")
    x = builder.load(Level.ELEMENT)
    for i in range(1000):
        x = x * float(i)
    assert lanes_of(builder.build(), 4096) == 16
    short = softmax(1, 1).loop
    assert [lanes_of(short, columns) for columns in (0, 1, 2, 10, 64, 1000)] == [1, 1, 2, 16, 64, 64]
    assert lanes_of(short._replace(dtype="float64"), 1000) == 32
