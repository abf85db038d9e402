"""Compiled loops: machine code as a kernel, and kernels bound to their memory, ready to be called."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from engine.graph.op import KernelCall
from engine.graph.tensor_type import HostArray
from engine.loops.helping_threads import run_in_pieces
from engine.loops.llvm_text import llvm_text
from engine.loops.machine_code import machine_code
from engine.loops.object_file import load_function
from engine.loops.program import Loop, Space, part_elements
from engine.loops.schedule import lanes_of, schedule
from engine.loops.table import TableEntry, TableLayout, table_layout

_SIGNATURE: Final = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
#: instructions on elements, below which a second thread costs more than it helps: some 0.2 ms
WORTH_THREADS: Final = 2_000_000


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class NativeKernel:
    """A loaded kernel. What it needs to be bound was found out once."""

    function: Callable[[int, int, Any], None]
    lanes: int
    layout: TableLayout
    scratch_rows: int
    #: instructions an element, of all sweeps
    work: int
    memory: Any


class KernelTable(ctypes.c_void_p):
    """The table that a kernel is called with, as the pointer that it takes; it keeps the kernel and what it points at.

    `entries` has a row for each thread that may take part, alike but for their scratch.
    """

    entries: HostArray
    layout: TableLayout
    kept: dict[int, HostArray]
    kernel: NativeKernel

    def point_operand(self, number: int, array: HostArray) -> None:
        """Let an operand lie elsewhere from the next call on, with the same strides."""
        self.point(self.layout.operands[number], array)

    def point_result(self, number: int, array: HostArray) -> None:
        """Let a result lie elsewhere; not for columns and total, which NumPy may add up."""
        self.point(self.layout.results[number], array)

    def point(self, position: int, array: HostArray) -> None:
        """Put the address of an array at a position of the table."""
        self.entries[:, position] = array.ctypes.data
        self.kept[position] = array


def compile_loop(loop: Loop, lanes: int) -> bytes:
    """The object file of a loop without FUNCTIONS, for this processor. Raises KernelUnavailable."""
    return machine_code(llvm_text(loop, lanes))


def native_kernel(loop: Loop, lanes: int, data: bytes) -> NativeKernel:
    """What `compile_loop` made of the same loop and lanes, loaded. Raises KernelUnavailable."""
    code = load_function(data)
    return kernel_at(loop, lanes, code.address, code.memory)


def kernel_at(loop: Loop, lanes: int, address: int, memory: Any) -> NativeKernel:
    """The kernel of a loop whose code is at `address`, as long as `memory` lives."""
    passes = schedule(loop)
    work = sum(len(sweep.computed) + len(sweep.fetched) for sweep in passes.sweeps)
    return NativeKernel(_SIGNATURE(address), lanes, table_layout(loop), len(passes.scratch), work, memory)


def bind_native(
    kernel: NativeKernel,
    loop: Loop,
    space: Space,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    threads: int = 1,
) -> list[KernelCall]:
    """The calls that compute `results` from `operands`, arrays whose memory starts at row 0, column 0 of the space.

    `loop` is the one that was compiled. Strides are those of `space`; a bool is a byte. The last argument of the first
    call is a `KernelTable`. With several threads, where that is worth it, blocks are shared among them; the bits stay
    the same. Parts of sums over blocks have memory of their own. One thread at a time may make these calls.
    """
    rows = math.prod(space.rows)
    blocks = -(-rows // space.block)
    taking_part = threads if kernel.work * space.length >= WORTH_THREADS else 1
    places, sums = _parts(loop, space, blocks, results)
    pointer = _table(kernel, loop, space, rows, [*operands, *places], max(1, min(taking_part, blocks)))
    if not blocks:
        return sums
    if taking_part == 1 or blocks == 1:
        return [(kernel.function, (0, blocks, pointer)), *sums]
    return [(_run_in_threads, (kernel.function, blocks, min(taking_part, blocks), pointer)), *sums]


def native_workspace(loop: Loop, space: Space, threads: int) -> int:
    """Bytes that `bind_native` allocates at most: parts of sums, and the scratch of each thread."""
    blocks = -(-math.prod(space.rows) // space.block)
    parts = part_elements(loop, space)
    scratch = threads * len(schedule(loop).scratch) * _padded(space.columns, lanes_of(loop, space.columns))
    return np.dtype(loop.dtype).itemsize * (scratch + (blocks * parts if blocks > 1 else 0))


def _padded(columns: int, lanes: int) -> int:
    return -(-columns // lanes) * lanes


def _run_in_threads(function: Callable[[int, int, int], object], blocks: int, threads: int, of: KernelTable) -> None:
    tables = len(of.entries)
    run_in_pieces(function, [of.entries[i % tables].ctypes.data for i in range(threads)], blocks)


def _parts(
    loop: Loop, space: Space, blocks: int, results: Sequence[HostArray]
) -> tuple[list[HostArray], list[KernelCall]]:
    """Where a kernel writes each result, and the calls that add up the parts of those that have several."""
    places, sums = [], list[KernelCall]()
    for result, array in zip(loop.results, results, strict=True):
        if not result.adds_up or blocks == 1:
            places.append(array)
            continue
        shape = (space.columns,) if result.kind == "columns" else ()
        parts: HostArray = np.empty((blocks, *shape), array.dtype)
        places.append(parts)
        sums.append((np.add.reduce, (parts, 0, None, np.reshape(array, shape, copy=False))))
    return places, sums


def _table(
    kernel: NativeKernel, loop: Loop, space: Space, rows: int, arrays: Sequence[HostArray], threads: int
) -> KernelTable:
    layout = kernel.layout
    scratch: HostArray = np.empty((threads, kernel.scratch_rows * _padded(space.columns, kernel.lanes)), loop.dtype)
    entries: HostArray = np.zeros((threads if scratch.size else 1, layout.size), np.int64)
    sizes = space.columns, space.length, rows, space.block, *space.rows
    entries[:, TableEntry.COLUMNS : TableEntry.COLUMNS + len(sizes)] = sizes
    if scratch.size:
        entries[:, layout.scratch] = scratch.ctypes.data + scratch.strides[0] * np.arange(threads)
    pointer = KernelTable(entries.ctypes.data)
    pointer.entries, pointer.layout, pointer.kept = entries, layout, {layout.scratch: scratch}
    pointer.kernel = kernel
    positions = (*layout.operands, *layout.results)
    for position, array, strides in zip(positions, arrays, space.strides, strict=True):
        pointer.point(position, array)
        entries[:, position + 1 : position + 1 + len(strides)] = strides
    return pointer
