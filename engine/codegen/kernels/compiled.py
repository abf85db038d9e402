"""Compiled kernels: machine code of fused kernels, bound to memory and ready to be called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from engine.codegen.kernels.llvm_text import llvm_text
from engine.codegen.kernels.program import (
    FusedKernel,
    KernelBuilder,
    Level,
    Schedule,
    Space,
    TableLayout,
    lanes_of,
    part_elements,
    put_space,
    schedule,
    table_layout,
)
from engine.codegen.native.machine_code import load_function, machine_code
from engine.codegen.native.native_call import BOUNDS, SIGNATURE, NativeCall, Otherwise, guarded
from engine.ir.op import NONE, KernelCall
from engine.ir.tensor_type import HostArray

#: lanes of the kernels that add up parts of sums: fixed, so that one kernel serves all sizes
LANES: Final = 16
#: element instructions, or FLOPs, below which a second thread costs more than it saves: some 20 µs of work
WORTH_THREADS: Final = 400_000

# Each block of a kernel writes its part of a sum. These kernels add the parts in an order that does not depend on
# threads: parts of `columns` block after block; parts of a `total` in lanes, and then the lanes by halves.


@cache
def part_sum_kernel(dtype: str, kind: str) -> FusedKernel:
    """Build the kernel that adds up the parts of results of a kind, `columns` or `total`."""
    builder = KernelBuilder(dtype)
    part = builder.load(Level.ELEMENT)
    if kind == "columns":
        builder.store("columns", part)
    else:
        builder.store("row", part.row_sum())
    return builder.build()


def part_sum_space(parts: HostArray) -> Space:
    """Return the space of a part-sum kernel: parts [blocks, columns], which one block adds, or [blocks] of a total."""
    rows, columns = parts.shape if parts.ndim == 2 else (1, parts.size)
    return Space((rows,), columns, rows * columns, rows, ((columns,), () if parts.ndim == 2 else (1,)))


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class NativeKernel:
    """A loaded kernel with everything that is needed to bind it."""

    function: Callable[[int, int, Any], None]
    address: int
    lanes: int
    layout: TableLayout
    scratch_rows: int
    #: instructions per element, of all sweeps
    work: int
    memory: Any


def compile_kernel(fused: FusedKernel, lanes: int) -> bytes:
    """Compile a kernel without FUNCTIONS to an object file for this processor. Raises KernelUnavailable."""
    return machine_code(llvm_text(fused, lanes))


def native_kernel(fused: FusedKernel, lanes: int, data: bytes) -> NativeKernel:
    """Load the object file that `compile_kernel` made of the same kernel and lanes. Raises KernelUnavailable."""
    code = load_function(data)
    return kernel_at(fused, lanes, code.address, code.memory)


def kernel_at(fused: FusedKernel, lanes: int, address: int, memory: Any) -> NativeKernel:
    """Describe a compiled kernel at `address`, which `memory` keeps loaded."""
    passes = schedule(fused)
    return NativeKernel(
        SIGNATURE(address), address, lanes, table_layout(fused), len(passes.scratch), _work(passes), memory
    )


def bind_native(
    kernel: NativeKernel,
    fused: FusedKernel,
    space: Space,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    threads: int = 1,
    workspace: HostArray | None = None,
    sums: Mapping[str, NativeKernel] = NONE,
) -> list[KernelCall]:
    """Bind the calls that compute `results` from `operands`, whose memory begins at row 0, column 0 of the space.

    `fused` is the program that was compiled. The arrays have the strides of `space`; a bool is a byte. If there are
    rows, the first call is a `NativeCall`. Several threads share the blocks if that pays, with the same bits. Only one
    thread at a time may make these calls. `sums` are the kernels of `part_sum_kernel` by kind; NumPy adds up parts of
    other kinds.

    Each thread's scratch and the parts of sums are in `workspace`, of at least `kernel_workspace` bytes, which the
    caller may use otherwise between calls. By default, memory is allocated for them.
    """
    if workspace is None:
        workspace = np.empty(kernel_workspace(kernel, fused, space, threads), np.uint8)
    blocks = block_count(space)
    thread_count = _thread_count(kernel.work, space, threads)
    scratch_elements = _scratch_elements(kernel.scratch_rows, kernel.lanes, space)
    # The workspace begins with the scratch rows of each thread; the parts of sums follow.
    scratch: HostArray = np.ndarray((thread_count, scratch_elements), fused.dtype, workspace)
    targets = _sum_targets(fused, space, blocks, results, workspace[scratch.nbytes :])
    part_sums = [
        _sum(result.kind, parts, array, sums if blocks else NONE)
        for result, parts, array in zip(fused.results, targets, results, strict=True)
        if parts is not array
    ]
    # In an empty space, NumPy's sums of no parts set the results to 0.
    if not blocks:
        return part_sums
    entries = BOUNDS.tables(thread_count, kernel.layout.size)  # one for each thread
    put_space(entries, kernel.layout, space)
    call = NativeCall(kernel.function, kernel.address, blocks, entries, (kernel, workspace))
    if scratch.size:
        scratch_addresses = scratch.ctypes.data + scratch.strides[0] * np.arange(thread_count)
        call.place(kernel.layout.scratch, scratch_addresses, scratch.strides[0])
    positions = (*kernel.layout.operands, *kernel.layout.results)
    for position, array in zip(positions, [*operands, *targets], strict=True):
        call.point(position, array)
    return [(call, ()), *part_sums]


def kernel_workspace(kernel: NativeKernel, fused: FusedKernel, space: Space, threads: int) -> int:
    """Count the bytes of a bound kernel's workspace: parts of sums, and the scratch of each thread that takes part."""
    scratch = _thread_count(kernel.work, space, threads) * _scratch_elements(kernel.scratch_rows, kernel.lanes, space)
    return np.dtype(fused.dtype).itemsize * (scratch + _elements_of_parts(fused, space))


def native_workspace(fused: FusedKernel, space: Space, threads: int) -> int:
    """Count the `kernel_workspace` of a kernel without FUNCTIONS that is not compiled yet."""
    passes = schedule(fused)
    scratch_elements = _scratch_elements(len(passes.scratch), lanes_of(fused, space.columns), space)
    scratch = _thread_count(_work(passes), space, threads) * scratch_elements
    return np.dtype(fused.dtype).itemsize * (scratch + _elements_of_parts(fused, space))


def _work(passes: Schedule) -> int:
    return sum(len(sweep.computed) + len(sweep.fetched) for sweep in passes.sweeps)


def _elements_of_parts(fused: FusedKernel, space: Space) -> int:
    blocks = block_count(space)
    return blocks * part_elements(fused, space) if blocks > 1 else 0


def block_count(space: Space) -> int:
    """Count the blocks of rows. Each block makes a part of every sum."""
    return -(-math.prod(space.rows) // space.block)


def _thread_count(work: int, space: Space, threads: int) -> int:
    """Count the threads that take part: one if there is only one block, or too little work."""
    return max(1, min(threads, block_count(space))) if work * space.length >= WORTH_THREADS else 1


def _scratch_elements(scratch_rows: int, lanes: int, space: Space) -> int:
    """Count the elements that one thread saves between the sweeps of a row, padded to whole vectors."""
    return scratch_rows * -(-space.columns // lanes) * lanes


def _sum_targets(
    fused: FusedKernel, space: Space, blocks: int, results: Sequence[HostArray], memory: HostArray
) -> list[HostArray]:
    """Return the array that the kernel writes for each result: the result, or parts of a sum over several blocks."""
    targets, start = [], 0
    for result, array in zip(fused.results, results, strict=True):
        if not result.adds_up or blocks == 1:
            targets.append(array)
            continue
        shape = (space.columns,) if result.kind == "columns" else ()
        parts: HostArray = np.ndarray((blocks, *shape), array.dtype, memory, start)
        start += parts.nbytes
        targets.append(parts)
    return targets


def _sum(kind: str, parts: HostArray, result: HostArray, sums: Mapping[str, NativeKernel]) -> KernelCall:
    """Bind the call that adds up the parts of a result."""
    if kind not in sums:
        return np.add.reduce, (parts, 0, None, np.reshape(result, parts.shape[1:], copy=False))
    (call,) = bind_native(sums[kind], part_sum_kernel(parts.dtype.name, kind), part_sum_space(parts), [parts], [result])
    return call


def range_condition(fused: FusedKernel) -> int:
    """Return the condition scalar whose true elements the last result of an expanded kernel counts."""
    counted = fused.instructions[fused.results[-1].value]
    if counted.op == "row_sum":
        counted = fused.instructions[counted.args[0]]
    assert counted.op == "select"
    return counted.args[0]


def bind_within_range(
    kernel: NativeKernel,
    fused: FusedKernel,
    space: Space,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    threads: int,
    otherwise: Otherwise,
    workspace: HostArray | None = None,
    sums: Mapping[str, NativeKernel] = NONE,
) -> list[KernelCall]:
    """Bind a kernel of `expand_functions`, with a fallback for arguments out of range if it `reports_range`.

    `space` and `results` are those before expansion. After a run with an argument out of range, `otherwise` binds the
    arrays of that run, and its calls are made.
    """
    if len(fused.results) == len(results):
        return bind_native(kernel, fused, space, operands, results, threads, workspace, sums)
    # The count of arguments out of range is a float, but 0.0 has only zero bits, so a guard can test it as an integer.
    word = np.zeros(1, np.int64)
    count: HostArray = np.ndarray((), fused.dtype, word)
    expanded_space = space._replace(strides=(*space.strides, ()))
    calls = bind_native(kernel, fused, expanded_space, operands, [*results, count], threads, workspace, sums)
    return guarded(calls, word, otherwise, operands, results)
