"""Compiled kernels: machine code of a fused kernel, and kernels bound to their memory, ready to be called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from engine.codegen.kernels.llvm_text import llvm_text
from engine.codegen.kernels.program import FusedKernel, KernelBuilder, Level, Space, part_elements
from engine.codegen.kernels.schedule import Schedule, TableLayout, lanes_of, put_space, schedule, table_layout
from engine.codegen.native.bounds import WATCHED
from engine.codegen.native.machine_code import machine_code
from engine.codegen.native.native_call import SIGNATURE, NativeCall, Otherwise, guarded
from engine.codegen.native.object_file import load_function
from engine.ir.op import NONE, KernelCall
from engine.ir.tensor_type import HostArray

# Adding up the parts that the blocks of a kernel made of its sums, in an order that is always the same.
#
# Parts of columns are added one block after the other; parts of a total in lanes, and these by halves.

#: of the kernels, whatever there is to add: one serves all
LANES: Final = 16


@cache
def part_sum_kernel(dtype: str, kind: str) -> FusedKernel:
    """The kernel that adds up parts of results of this kind: columns, or total."""
    builder = KernelBuilder(dtype)
    part = builder.load(Level.ELEMENT)
    if kind == "columns":
        builder.store("columns", part)
    else:
        builder.store("row", part.row_sum())
    return builder.loop()


def part_sum_space(parts: HostArray) -> Space:
    """Its space for parts [blocks, columns] of columns, all of which one block adds, or [blocks] of a total."""
    rows, columns = parts.shape if parts.ndim == 2 else (1, parts.size)
    return Space((rows,), columns, rows * columns, rows, ((columns,), () if parts.ndim == 2 else (1,)))


#: instructions on elements, or FLOPs, below which a second thread costs more than it helps: some 20 µs
WORTH_THREADS: Final = 400_000


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class NativeKernel:
    """A loaded kernel. What it needs to be bound was found out once."""

    function: Callable[[int, int, Any], None]
    address: int
    lanes: int
    layout: TableLayout
    scratch_rows: int
    #: instructions an element, of all sweeps
    work: int
    memory: Any


def compile_kernel(loop: FusedKernel, lanes: int) -> bytes:
    """The object file of a kernel without FUNCTIONS, for this processor. Raises KernelUnavailable."""
    return machine_code(llvm_text(loop, lanes))


def native_kernel(loop: FusedKernel, lanes: int, data: bytes) -> NativeKernel:
    """Machine code that `compile_kernel` made of the same kernel and lanes, loaded. Raises KernelUnavailable."""
    code = load_function(data)
    return kernel_at(loop, lanes, code.address, code.memory)


def kernel_at(loop: FusedKernel, lanes: int, address: int, memory: Any) -> NativeKernel:
    """The compiled kernel whose code is at `address`, as long as `memory` lives."""
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
    """The calls that compute `results` from `operands`, arrays whose memory starts at row 0, column 0 of the space.

    `loop` is the one that was compiled. Strides are those of `space`; a bool is a byte. Where there are rows, the first
    call is a `NativeCall`. With several threads, where that is worth it, blocks are shared among them; the bits stay
    the same. One thread at a time may make these calls.

    `sums` are the kernels of `part_sum_kernel` by kind; NumPy adds up what has none.

    The scratch of each thread and the parts of sums over blocks lie in `workspace`, of at least `kernel_workspace`
    bytes, which whoever makes the calls may use for something else in between; by default, in memory of their own.
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
    entries = _entries(kernel, space, taking_part)
    call = NativeCall(kernel.function, kernel.address, blocks, entries, (kernel, workspace))
    if scratch.size:
        owns = scratch.ctypes.data + scratch.strides[0] * np.arange(taking_part)
        call.place(kernel.layout.scratch, owns, scratch.strides[0])
    positions = (*kernel.layout.operands, *kernel.layout.results)
    for position, array in zip(positions, [*operands, *places], strict=True):
        call.point(position, array)
    return [(call, ()), *added]


def kernel_workspace(kernel: NativeKernel, loop: FusedKernel, space: Space, threads: int) -> int:
    """Bytes that a bound kernel works in: parts of sums, and the scratch of each thread that takes part."""
    scratch = _taking_part(kernel.work, space, threads) * _scratch_elements(kernel.scratch_rows, kernel.lanes, space)
    return np.dtype(loop.dtype).itemsize * (scratch + _elements_of_parts(loop, space))


def native_workspace(loop: FusedKernel, space: Space, threads: int) -> int:
    """`kernel_workspace` of a kernel without FUNCTIONS that is not compiled yet."""
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
    """Blocks of rows, each of which makes a part of every sum."""
    return -(-math.prod(space.rows) // space.block)


def _taking_part(work: int, space: Space, threads: int) -> int:
    """How many threads do: one where there is nothing to share, or too little."""
    return max(1, min(threads, block_count(space))) if work * space.length >= WORTH_THREADS else 1


def _scratch_elements(scratch_rows: int, lanes: int, space: Space) -> int:
    """What one thread keeps of a row between sweeps."""
    return scratch_rows * -(-space.columns // lanes) * lanes


def _places(
    loop: FusedKernel, space: Space, blocks: int, results: Sequence[HostArray], memory: HostArray
) -> list[HostArray]:
    """Where a kernel writes each result: to itself, or the parts of a sum, of which there are several."""
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
    """The call that adds up the parts of a result."""
    if kind not in sums:
        return np.add.reduce, (parts, 0, None, np.reshape(result, parts.shape[1:], copy=False))
    (call,) = bind_native(sums[kind], part_sum_kernel(parts.dtype.name, kind), part_sum_space(parts), [parts], [result])
    return call


def _entries(kernel: NativeKernel, space: Space, threads: int) -> HostArray:
    """A table for each thread, but for addresses."""
    entries = WATCHED.tables(threads, kernel.layout.size)
    put_space(entries, kernel.layout, space)
    return entries


# Compiled kernels whose sin and cos met an argument that is out of range: computed again by other means.


def range_condition(loop: FusedKernel) -> int:
    """The scalar of which `expand_functions` counts, in the last result of a kernel, how often it is true."""
    found = loop.instructions[loop.results[-1].value]
    if found.op == "row_sum":
        found = loop.instructions[found.args[0]]
    assert found.op == "select"
    return found.args[0]


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
    """`bind_native` for what `expand_functions` made of a kernel, with no wrong result where that `reports_range`.

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
