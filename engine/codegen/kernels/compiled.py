"""Compiled kernels: machine code of a fused kernel, and kernels bound to their memory, ready to be called."""

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
from engine.codegen.native.native_call import SIGNATURE, WATCHED, NativeCall, Otherwise, guarded
from engine.ir.op import NONE, KernelCall
from engine.ir.tensor_type import HostArray

#: lanes of the kernels that add up parts of sums, whatever there is to add: one serves all
LANES: Final = 16
#: instructions on elements, or FLOPs, below which a second thread costs more than it helps: some 20 µs
WORTH_THREADS: Final = 400_000

# Addition of the parts that the blocks of a kernel made of its sums, in an order that is always the same: parts of
# columns one block after the other; parts of a total in lanes, and these by halves.


@cache
def part_sum_kernel(dtype: str, kind: str) -> FusedKernel:
    """Write the kernel that adds up parts of results of this kind: columns, or total."""
    builder = KernelBuilder(dtype)
    part = builder.load(Level.ELEMENT)
    if kind == "columns":
        builder.store("columns", part)
    else:
        builder.store("row", part.row_sum())
    return builder.loop()


def part_sum_space(parts: HostArray) -> Space:
    """Return its space for parts [blocks, columns] of columns, all of which one block adds, or [blocks] of a total."""
    rows, columns = parts.shape if parts.ndim == 2 else (1, parts.size)
    return Space((rows,), columns, rows * columns, rows, ((columns,), () if parts.ndim == 2 else (1,)))


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class NativeKernel:
    """A loaded kernel, with all that binding it needs to know."""

    function: Callable[[int, int, Any], None]
    address: int
    lanes: int
    layout: TableLayout
    scratch_rows: int
    #: instructions an element, of all sweeps
    work: int
    memory: Any


def compile_kernel(loop: FusedKernel, lanes: int) -> bytes:
    """Compile a kernel without FUNCTIONS to an object file for this processor. Raises KernelUnavailable."""
    return machine_code(llvm_text(loop, lanes))


def native_kernel(loop: FusedKernel, lanes: int, data: bytes) -> NativeKernel:
    """Load machine code that `compile_kernel` made of the same kernel and lanes. Raises KernelUnavailable."""
    code = load_function(data)
    return kernel_at(loop, lanes, code.address, code.memory)


def kernel_at(loop: FusedKernel, lanes: int, address: int, memory: Any) -> NativeKernel:
    """Describe the compiled kernel whose code is at `address`, as long as `memory` lives."""
    passes = schedule(loop)
    return NativeKernel(
        SIGNATURE(address), address, lanes, table_layout(loop), len(passes.scratch), _work(passes), memory
    )


def bind_native(
    kernel: NativeKernel,
    loop: FusedKernel,
    space: Space,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    threads: int = 1,
    workspace: HostArray | None = None,
    sums: Mapping[str, NativeKernel] = NONE,
) -> list[KernelCall]:
    """Bind the calls that compute `results` from `operands`, whose memory starts at row 0, column 0 of the space.

    `loop` is the one that was compiled. Strides are those of `space`; a bool is a byte. If there are rows, the first
    call is a `NativeCall`. Several threads share the blocks, if that is worth it, with the same bits. One thread at a
    time may make these calls. `sums` are the kernels of `part_sum_kernel` by kind; NumPy adds up parts of other kinds.

    The scratch of each thread and the parts of sums over blocks lie in `workspace`, of at least `kernel_workspace`
    bytes, which the caller may use for something else between calls; by default, in memory of their own.
    """
    if workspace is None:
        workspace = np.empty(kernel_workspace(kernel, loop, space, threads), np.uint8)
    blocks = block_count(space)
    taking_part = _taking_part(kernel.work, space, threads)
    each = _scratch_elements(kernel.scratch_rows, kernel.lanes, space)
    scratch: HostArray = np.ndarray((taking_part, each), loop.dtype, workspace)
    places = _places(loop, space, blocks, results, workspace[scratch.nbytes :])
    added = [
        _sum(result.kind, parts, array, sums if blocks else NONE)
        for result, parts, array in zip(loop.results, places, results, strict=True)
        if parts is not array
    ]
    if not blocks:
        return added
    entries = WATCHED.tables(taking_part, kernel.layout.size)  # one for each thread
    put_space(entries, kernel.layout, space)
    call = NativeCall(kernel.function, kernel.address, blocks, entries, (kernel, workspace))
    if scratch.size:
        owns = scratch.ctypes.data + scratch.strides[0] * np.arange(taking_part)
        call.place(kernel.layout.scratch, owns, scratch.strides[0])
    positions = (*kernel.layout.operands, *kernel.layout.results)
    for position, array in zip(positions, [*operands, *places], strict=True):
        call.point(position, array)
    return [(call, ()), *added]


def kernel_workspace(kernel: NativeKernel, loop: FusedKernel, space: Space, threads: int) -> int:
    """Count the bytes that a bound kernel works in: parts of sums, and the scratch of each thread that takes part."""
    scratch = _taking_part(kernel.work, space, threads) * _scratch_elements(kernel.scratch_rows, kernel.lanes, space)
    return np.dtype(loop.dtype).itemsize * (scratch + _elements_of_parts(loop, space))


def native_workspace(loop: FusedKernel, space: Space, threads: int) -> int:
    """Count the `kernel_workspace` of a kernel without FUNCTIONS that is not compiled yet."""
    passes = schedule(loop)
    each = _scratch_elements(len(passes.scratch), lanes_of(loop, space.columns), space)
    scratch = _taking_part(_work(passes), space, threads) * each
    return np.dtype(loop.dtype).itemsize * (scratch + _elements_of_parts(loop, space))


def _work(passes: Schedule) -> int:
    return sum(len(sweep.computed) + len(sweep.fetched) for sweep in passes.sweeps)


def _elements_of_parts(loop: FusedKernel, space: Space) -> int:
    blocks = block_count(space)
    return blocks * part_elements(loop, space) if blocks > 1 else 0


def block_count(space: Space) -> int:
    """Count the blocks of rows, each of which makes a part of every sum."""
    return -(-math.prod(space.rows) // space.block)


def _taking_part(work: int, space: Space, threads: int) -> int:
    """Count the threads that take part: one if there is nothing to share, or too little."""
    return max(1, min(threads, block_count(space))) if work * space.length >= WORTH_THREADS else 1


def _scratch_elements(scratch_rows: int, lanes: int, space: Space) -> int:
    """Count the elements of a row that one thread keeps between sweeps."""
    return scratch_rows * -(-space.columns // lanes) * lanes


def _places(
    loop: FusedKernel, space: Space, blocks: int, results: Sequence[HostArray], memory: HostArray
) -> list[HostArray]:
    """Return the array that a kernel writes each result to: itself, or the parts of a sum over several blocks."""
    places, start = [], 0
    for result, array in zip(loop.results, results, strict=True):
        if not result.adds_up or blocks == 1:
            places.append(array)
            continue
        shape = (space.columns,) if result.kind == "columns" else ()
        parts: HostArray = np.ndarray((blocks, *shape), array.dtype, memory, start)
        start += parts.nbytes
        places.append(parts)
    return places


def _sum(kind: str, parts: HostArray, result: HostArray, sums: Mapping[str, NativeKernel]) -> KernelCall:
    """Bind the call that adds up the parts of a result."""
    if kind not in sums:
        return np.add.reduce, (parts, 0, None, np.reshape(result, parts.shape[1:], copy=False))
    (call,) = bind_native(sums[kind], part_sum_kernel(parts.dtype.name, kind), part_sum_space(parts), [parts], [result])
    return call


def range_condition(loop: FusedKernel) -> int:
    """Return the scalar of which `expand_functions` counts, in the last result of a kernel, how often it is true."""
    counted = loop.instructions[loop.results[-1].value]
    if counted.op == "row_sum":
        counted = loop.instructions[counted.args[0]]
    assert counted.op == "select"
    return counted.args[0]


def bind_within_range(
    kernel: NativeKernel,
    loop: FusedKernel,
    space: Space,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    threads: int,
    otherwise: Otherwise,
    workspace: HostArray | None = None,
    sums: Mapping[str, NativeKernel] = NONE,
) -> list[KernelCall]:
    """Bind a kernel of `expand_functions`, with a fallback for arguments out of range if it `reports_range`.

    `space` and `results` are those before expansion. After a run that had an argument out of range, `otherwise` binds
    the arrays of that run, and its calls are made.
    """
    if len(loop.results) == len(results):
        return bind_native(kernel, loop, space, operands, results, threads, workspace, sums)
    word = np.zeros(1, np.int64)
    count: HostArray = np.ndarray((), loop.dtype, word)
    wider = space._replace(strides=(*space.strides, ()))
    calls = bind_native(kernel, loop, wider, operands, [*results, count], threads, workspace, sums)
    return guarded(calls, word, otherwise, operands, results)
