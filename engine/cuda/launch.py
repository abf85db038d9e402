"""Launches: the kernels of a fused node with their threads and their tables, which point at its arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.kernels.compiled import block_count
from engine.codegen.kernels.program import FusedKernel, ResultKind, Space, table_layout
from engine.codegen.kernels.recurrence import Recurrence, recurrence_layout, recurrence_table
from engine.cuda.cuda_text import SUMS_AT_ONCE, WARP, CudaParts, has_reductions, table_entries
from engine.ir.op import Array
from engine.ir.tensor_type import HostArray

#: threads of a block; elements of a thread if there are many, and the number that is many
_THREADS: Final = 256
_EACH: Final = 4
_MANY: Final = 1 << 20
#: warps of a block, and the most blocks along an axis: beyond, each goes on with the next of its rows
_WARPS: Final = 4
MOST_BLOCKS: Final = 65535

#: number of threads, or of blocks, along x and along y
Extent = tuple[int, int]


class Launch(NamedTuple):
    """A launch of a kernel by its name: blocks, threads of a block, its table, and the arrays that it points at."""

    kernel: str
    grid: Extent
    block: Extent
    table: HostArray
    kept: tuple[Any, ...]


class _Sum(NamedTuple):
    """A sum: addresses of the addends and of the sums, and its columns."""

    addends: int
    result: int
    columns: int


class _Memory:
    """Workspace that is given out piece by piece."""

    def __init__(self, address: int, itemsize: int) -> None:
        self.address, self._itemsize, self.used = address, itemsize, 0

    def reserve(self, elements: int) -> int:
        start = self.address + self.used
        self.used += -(-elements * self._itemsize // 256) * 256
        return start


class CudaKernel:
    """A fused kernel in parts, over a space, with lanes: its launches, and its workspace."""

    def __init__(self, loop: FusedKernel, parts: CudaParts, space: Space, lanes: int) -> None:
        self.loop, self.parts, self.space, self.lanes = loop, parts, space, lanes
        self._entries = table_entries(parts)
        self._itemsize = np.dtype(loop.dtype).itemsize
        self._rows = math.prod(space.rows)
        self._blocks = block_count(space)

    @property
    def table_bytes(self) -> int:
        """Bytes of the argument of each kernel."""
        return self._entries * 8

    @property
    def workspace(self) -> int:
        """Bytes of workspace: addends of totals and reductions, one a row, and the parts of sums."""
        memory = _Memory(0, self._itemsize)
        self._launches_nowhere(memory)
        return memory.used

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels, in the order of their launches."""
        return [launch.kernel for launch in self._launches_nowhere(_Memory(0, self._itemsize))]

    def _launches_nowhere(self, memory: _Memory) -> list[Launch]:
        return self._launches([0] * len(self.loop.operands), [0] * len(self.parts.places), memory, 0)

    def bind(
        self,
        operands: Sequence[Array],
        results: Sequence[Array],
        workspace: int,
        flag: int,
        address: Callable[[Array], int],
    ) -> list[Launch]:
        """Make the launches that compute `results`, in their order; none for a space without rows.

        `address` tells where the first element of an array lies. `workspace` and `flag` are addresses: of that many
        bytes, and of a byte that becomes 1 if the kernel is out of range.
        """
        memory = _Memory(workspace, self._itemsize)
        launches = self._launches([address(a) for a in operands], [address(a) for a in results], memory, flag)
        return [launch._replace(kept=(*operands, *results)) for launch in launches]

    def _launches(self, operands: Sequence[int], results: Sequence[int], memory: _Memory, flag: int) -> list[Launch]:
        kinds = [result.kind for result in self.loop.results[: len(results)]]
        addends = [memory.reserve(self._rows) if kind == "total" else 0 for kind in kinds]
        saved = [memory.reserve(self._rows) for _ in self.parts.saved]
        launches = []
        if self.parts.rows is not None and self._rows:
            by_row = [a or r for a, r, kind in zip(addends, results, kinds, strict=True) if kind != "columns"]
            flags = [flag] if self.parts.flags else []
            launches.append(self._row_by_row(self.parts.rows, operands, [*by_row, *saved, *flags]))
        # where the blocks of a sum write theirs: to the result itself, if there is one block
        parts = [
            memory.reserve(self._blocks * columns) if columns and self._blocks != 1 else result
            for result, columns in zip(results, map(self._columns_of, kinds), strict=True)
        ]
        if self.parts.columns is not None and self._blocks:
            sums = [part for part, kind in zip(parts, kinds, strict=True) if kind == "columns"]
            strides = [*self.space.strides[: len(operands)], *(self._dense for _ in saved), *(() for _ in sums)]
            table = self._table(self.parts.columns, [*operands, *saved, *sums], strides)
            launches.append(_along("columns", self._blocks * self.space.columns, table))
        totals = [_Sum(a, part, 1) for a, part, kind in zip(addends, parts, kinds, strict=True) if kind == "total"]
        launches += self._adding_up("add_rows", self._blocks, totals) if self._blocks else []
        if self._blocks != 1:
            added = zip(parts, results, map(self._columns_of, kinds), strict=True)
            launches += self._adding_up("add_parts", self.space.columns, [_Sum(*each) for each in added if each[-1]])
        return launches

    def _columns_of(self, kind: ResultKind) -> int:
        """Count the sums over rows of a result; 0 if it is no sum."""
        return {"columns": self.space.columns, "total": 1}.get(kind, 0)

    def _row_by_row(self, loop: FusedKernel, operands: Sequence[int], results: Sequence[int]) -> Launch:
        given = self.space.strides[len(operands) :]
        kinds = [result.kind for result in self.loop.results[: len(given)]]
        strides = [
            s if kind != "total" else self._dense for s, kind in zip(given, kinds, strict=True) if kind != "columns"
        ]
        strides += [self._dense] * len(self.parts.saved) + [(0,) * loop.row_axes] * self.parts.flags
        table = self._table(loop, [*operands, *results], [*self.space.strides[: len(operands)], *strides])
        if has_reductions(loop):
            at_once = _WARPS * (WARP // min(self.lanes, WARP))
            return Launch("rows", (_blocks(self._rows, at_once), 1), (WARP, _WARPS), table, ())
        grid, block = thread_blocks(self._rows, self.space.columns, _EACH if self.space.length >= _MANY else 1)
        return Launch("rows", grid, block, table, ())

    def _adding_up(self, kernel: str, items: int, sums: Sequence[_Sum]) -> list[Launch]:
        """Add up all sums by one launch, or as many at a time as a table holds; the longest has so many `items`.

        As in NumPy, parts of one column are added up pairwise, and those of several row by row.
        """
        launches = []
        for first in range(0, len(sums), SUMS_AT_ONCE):
            chosen = sums[first : first + SUMS_AT_ONCE]
            table = self._entries_of(self._rows, self.space.block, self._blocks, *chain.from_iterable(chosen))
            launch = _along(kernel, items, table)
            launches.append(launch._replace(grid=(launch.grid[0], len(chosen))))
        return launches

    @property
    def _dense(self) -> tuple[int, ...]:
        return tuple(math.prod(self.space.rows[axis + 1 :]) for axis in range(len(self.space.rows)))

    def _table(self, loop: FusedKernel, addresses: Sequence[int], strides: Sequence[tuple[int, ...]]) -> HostArray:
        layout, space = table_layout(loop), self.space
        table = self._entries_of(space.columns, space.length, self._rows, space.block, *space.rows)
        for entry, address, steps in zip((*layout.operands, *layout.results), addresses, strides, strict=True):
            table[entry : entry + 1 + len(steps)] = address, *steps
        return table

    def _entries_of(self, *numbers: int) -> HostArray:
        table = np.zeros(self._entries, np.int64)
        table[: len(numbers)] = numbers
        return table


def recurrence_launch(
    recurrence: Recurrence,
    space: Space,
    steps: int,
    entries: Sequence[int],
    operands: Sequence[int],
    results: Sequence[int],
    flag: int,
    kept: tuple[Any, ...] = (),
) -> Launch:
    """Launch `steps` on operands and results at these addresses, which are those of the first step's entries.

    `entries` are as for `recurrence_table`; `flag` is the address of a byte that becomes 1 if a step is out of range.
    """
    layout, table = recurrence_layout(recurrence), recurrence_table(recurrence, space, steps, entries)
    table[[*layout.loop.operands, *layout.loop.results, layout.flag]] = np.array([*operands, *results, flag])
    grid, block = thread_blocks(math.prod(space.rows), space.columns)
    return Launch("steps", grid, block, table, kept)


def thread_blocks(rows: int, columns: int, each: int = 1) -> tuple[Extent, Extent]:
    """Choose blocks, and threads of a block, so that each thread has so many elements of a row."""
    wide = min(_THREADS, 1 << max(columns - 1, 0).bit_length())
    return (_blocks(columns, wide * each), _blocks(rows, _THREADS // wide)), (wide, _THREADS // wide)


def _blocks(items: int, at_once: int) -> int:
    return max(1, min(-(-items // at_once), MOST_BLOCKS))


def _along(kernel: str, items: int, table: HostArray) -> Launch:
    wide = _THREADS // 2
    return Launch(kernel, (_blocks(items, wide), 1), (wide, 1), table, ())
