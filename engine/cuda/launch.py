"""Launches: the kernels of a loop bound to their memory, on how many threads and with which table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.kernels.compiled import block_count
from engine.codegen.kernels.program import FusedKernel, ResultKind, Space
from engine.codegen.kernels.recurrence import Recurrence, recurrence_layout, recurrence_table
from engine.codegen.kernels.schedule import table_layout
from engine.cuda.cuda_text import SUMS_AT_ONCE, WARP, CudaParts, has_reductions, table_entries
from engine.ir.op import Array
from engine.ir.tensor_type import HostArray

#: threads of a block, elements of a thread where there are many, and from where on there are
_THREADS: Final = 256
_EACH: Final = 4
_MANY: Final = 1 << 20
#: warps of a block, and the most blocks along an axis: beyond, each goes on with the next of its rows
_WARPS: Final = 4
MOST_BLOCKS: Final = 65535

#: what a card calls a number of threads, or of blocks: along x, and along y
Extent = tuple[int, int]


class Launch(NamedTuple):
    """A kernel by its name, its blocks, the threads of each, its table, and the arrays that this points at."""

    kernel: str
    grid: Extent
    block: Extent
    table: HostArray
    kept: tuple[Any, ...]


class _Sum(NamedTuple):
    """Addresses of what is added up, of so many columns, and of where the sums go."""

    addends: int
    result: int
    columns: int


class _Memory:
    """Workspace, handed out one after the other."""

    def __init__(self, address: int, itemsize: int) -> None:
        self.address, self._itemsize, self.used = address, itemsize, 0

    def reserve(self, elements: int) -> int:
        """The address of so many elements."""
        start = self.address + self.used
        self.used += -(-elements * self._itemsize // 256) * 256
        return start


class CudaKernel:
    """A loop in parts, over a space, with lanes: what is launched for it, and in how much memory that works."""

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
        """Bytes: addends of totals and reductions, one a row, and the parts of sums."""
        memory = _Memory(0, self._itemsize)
        self._launches_nowhere(memory)
        return memory.used

    @property
    def kernels(self) -> list[str]:
        """Names of what is launched, in this order."""
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
        """What computes `results`, to be launched in this order: nothing for a space without rows.

        Arrays begin at row 0, column 0; `address` tells where that is. `workspace` and `flag` are addresses: of that
        many bytes, and of a byte that becomes 1 where the loop is out of range.
        """
        memory = _Memory(workspace, self._itemsize)
        found = self._launches([address(a) for a in operands], [address(a) for a in results], memory, flag)
        return [launch._replace(kept=(*operands, *results)) for launch in found]

    def _launches(self, operands: Sequence[int], results: Sequence[int], memory: _Memory, flag: int) -> list[Launch]:
        kinds = [result.kind for result in self.loop.results[: len(results)]]
        addends = [memory.reserve(self._rows) if kind == "total" else 0 for kind in kinds]
        saved = [memory.reserve(self._rows) for _ in self.parts.saved]
        launches = []
        if self.parts.rows is not None and self._rows:
            by_row = [a or r for a, r, kind in zip(addends, results, kinds, strict=True) if kind != "columns"]
            flags = [flag] if self.parts.flags else []
            launches.append(self._row_by_row(self.parts.rows, operands, [*by_row, *saved, *flags]))
        parts = [self._place_of_parts(kind, r, memory) for r, kind in zip(results, kinds, strict=True)]
        if self.parts.columns is not None and self._blocks:
            sums = [part for part, kind in zip(parts, kinds, strict=True) if kind == "columns"]
            launches.append(self._column_by_column(self.parts.columns, [*operands, *saved], sums))
        totals = [_Sum(a, part, 1) for a, part, kind in zip(addends, parts, kinds, strict=True) if kind == "total"]
        launches += self._adding_up("add_rows", self._blocks, totals) if self._blocks else []
        if self._blocks != 1:
            added = zip(parts, results, map(self._columns_of, kinds), strict=True)
            launches += self._adding_up("add_parts", self.space.columns, [_Sum(*each) for each in added if each[-1]])
        return launches

    def _columns_of(self, kind: ResultKind) -> int:
        """How many sums over rows a result is; 0 where it is none."""
        return {"columns": self.space.columns, "total": 1}.get(kind, 0)

    def _place_of_parts(self, kind: ResultKind, result: int, memory: _Memory) -> int:
        """Where the blocks of a sum write theirs: to the result itself, where there is one."""
        columns = self._columns_of(kind)
        return memory.reserve(self._blocks * columns) if columns and self._blocks != 1 else result

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

    def _column_by_column(self, loop: FusedKernel, operands: Sequence[int], results: Sequence[int]) -> Launch:
        strides = [*self.space.strides[: len(self.loop.operands)], *(self._dense for _ in self.parts.saved)]
        table = self._table(loop, [*operands, *results], [*strides, *(() for _ in results)])
        return _along("columns", self._blocks * self.space.columns, table)

    def _adding_up(self, kernel: str, items: int, sums: Sequence[_Sum]) -> list[Launch]:
        """All of them by one launch, or as many as a table holds: of the longest, so many threads have an item.

        As NumPy does it, parts of one column are added up pairwise, and those of several row by row.
        """
        found = []
        for first in range(0, len(sums), SUMS_AT_ONCE):
            chosen = sums[first : first + SUMS_AT_ONCE]
            table = self._entries_of(self._rows, self.space.block, self._blocks, *chain.from_iterable(chosen))
            launch = _along(kernel, items, table)
            found.append(launch._replace(grid=(launch.grid[0], len(chosen))))
        return found

    @property
    def _dense(self) -> tuple[int, ...]:
        """The strides of one value a row."""
        return tuple(math.prod(self.space.rows[axis + 1 :]) for axis in range(len(self.space.rows)))

    def _table(self, loop: FusedKernel, addresses: Sequence[int], strides: Sequence[tuple[int, ...]]) -> HostArray:
        layout, space = table_layout(loop), self.space
        table = self._entries_of(space.columns, space.length, self._rows, space.block, *space.rows)
        for at, address, steps in zip((*layout.operands, *layout.results), addresses, strides, strict=True):
            table[at : at + 1 + len(steps)] = address, *steps
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
    """The launch of `steps` on arrays at these addresses: of operands and results, of the entries of the first step.

    `entries` are as for `recurrence_table`; at `flag` lies a byte that becomes 1 where a step is out of range.
    """
    layout, table = recurrence_layout(recurrence), recurrence_table(recurrence, space, steps, entries)
    table[[*layout.loop.operands, *layout.loop.results, layout.flag]] = np.array([*operands, *results, flag])
    grid, block = thread_blocks(math.prod(space.rows), space.columns)
    return Launch("steps", grid, block, table, kept)


def thread_blocks(rows: int, columns: int, each: int = 1) -> tuple[Extent, Extent]:
    """Blocks, and the threads of one, so that each thread has so many elements of a row."""
    wide = min(_THREADS, 1 << max(columns - 1, 0).bit_length())
    return (_blocks(columns, wide * each), _blocks(rows, _THREADS // wide)), (wide, _THREADS // wide)


def _blocks(items: int, at_once: int) -> int:
    return max(1, min(-(-items // at_once), MOST_BLOCKS))


def _along(kernel: str, items: int, table: HostArray) -> Launch:
    """One thread for each item."""
    wide = _THREADS // 2
    return Launch(kernel, (_blocks(items, wide), 1), (wide, 1), table, ())
