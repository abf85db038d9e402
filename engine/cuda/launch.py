"""Launches of a fused node: its kernels with grids, blocks, and argument tables of its arrays' addresses."""

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

#: threads of a block; elements per thread in a large kernel, and the number of elements from which a kernel is large
_THREADS: Final = 256
_ELEMENTS_PER_THREAD: Final = 4
_LARGE_KERNEL: Final = 1 << 20
#: warps of a block, and maximum blocks along an axis: if there are more rows than that, a block loops over several
_WARPS: Final = 4
MAX_BLOCKS: Final = 65535

#: number of threads or of blocks along x and y
Extent = tuple[int, int]


class Launch(NamedTuple):
    """Launch of a kernel by name: grid, block, argument table, and the arrays that the table points to, kept alive."""

    kernel: str
    grid: Extent
    block: Extent
    table: HostArray
    arrays: tuple[Any, ...]


class _Sum(NamedTuple):
    """Sum over rows: addresses of the addends and of the result, and the number of columns."""

    addends: int
    result: int
    columns: int


class _Memory:
    """Bump allocator for a workspace."""

    def __init__(self, address: int, itemsize: int) -> None:
        self.address, self._itemsize, self.used = address, itemsize, 0

    def reserve(self, elements: int) -> int:
        start = self.address + self.used
        self.used += -(-elements * self._itemsize // 256) * 256
        return start


class CudaKernel:
    """Fused kernel on a GPU: its parts, iteration space and lanes, from which launches and workspace follow."""

    def __init__(self, fused: FusedKernel, parts: CudaParts, space: Space, lanes: int) -> None:
        self.fused, self.parts, self.space, self.lanes = fused, parts, space, lanes
        self._entries = table_entries(parts)
        self._itemsize = np.dtype(fused.dtype).itemsize
        self._rows = math.prod(space.rows)
        self._blocks = block_count(space)

    @property
    def table_bytes(self) -> int:
        """Bytes of each kernel's argument."""
        return self._entries * 8

    @property
    def workspace(self) -> int:
        """Bytes of workspace: the addends of totals and reductions, one per row, and the partial sums of blocks."""
        memory = _Memory(0, self._itemsize)
        self._dry_launches(memory)
        return memory.used

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels, in launch order."""
        return [launch.kernel for launch in self._dry_launches(_Memory(0, self._itemsize))]

    def _dry_launches(self, memory: _Memory) -> list[Launch]:
        return self._launches([0] * len(self.fused.operands), [0] * len(self.parts.places), memory, 0)

    def bind(
        self,
        operands: Sequence[Array],
        results: Sequence[Array],
        workspace: int,
        flag: int,
        address: Callable[[Array], int],
    ) -> list[Launch]:
        """Return the launches that compute `results`, in order; none for a space without rows.

        `address` returns the address of an array's first element. `workspace` is the address of `self.workspace` bytes,
        and `flag` that of a byte that a kernel sets to 1 if an argument is out of range.
        """
        memory = _Memory(workspace, self._itemsize)
        launches = self._launches([address(a) for a in operands], [address(a) for a in results], memory, flag)
        return [launch._replace(arrays=(*operands, *results)) for launch in launches]

    def _launches(self, operands: Sequence[int], results: Sequence[int], memory: _Memory, flag: int) -> list[Launch]:
        kinds = [result.kind for result in self.fused.results[: len(results)]]
        addends = [memory.reserve(self._rows) if kind == "total" else 0 for kind in kinds]
        saved = [memory.reserve(self._rows) for _ in self.parts.saved]
        launches = []
        if self.parts.rows is not None and self._rows:
            by_row = [a or r for a, r, kind in zip(addends, results, kinds, strict=True) if kind != "columns"]
            flags = [flag] if self.parts.flags else []
            launches.append(self._row_launch(self.parts.rows, operands, [*by_row, *saved, *flags]))
        # Each block writes a partial sum. If there is only one block, it writes to the result itself.
        parts = [
            memory.reserve(self._blocks * columns) if columns and self._blocks != 1 else result
            for result, columns in zip(results, map(self._columns_of, kinds), strict=True)
        ]
        if self.parts.columns is not None and self._blocks:
            sums = [part for part, kind in zip(parts, kinds, strict=True) if kind == "columns"]
            strides = [*self.space.strides[: len(operands)], *(self._dense for _ in saved), *(() for _ in sums)]
            table = self._table(self.parts.columns, [*operands, *saved, *sums], strides)
            launches.append(_launch_along_x("columns", self._blocks * self.space.columns, table))
        totals = [_Sum(a, part, 1) for a, part, kind in zip(addends, parts, kinds, strict=True) if kind == "total"]
        launches += self._sum_launches("add_rows", self._blocks, totals) if self._blocks else []
        if self._blocks != 1:
            partial_sums = zip(parts, results, map(self._columns_of, kinds), strict=True)
            launches += self._sum_launches(
                "add_parts", self.space.columns, [_Sum(*each) for each in partial_sums if each[-1]]
            )
        return launches

    def _columns_of(self, kind: ResultKind) -> int:
        """Return the number of sums over rows in a result; 0 if the result is not a sum."""
        return {"columns": self.space.columns, "total": 1}.get(kind, 0)

    def _row_launch(self, kernel: FusedKernel, operands: Sequence[int], results: Sequence[int]) -> Launch:
        result_strides = self.space.strides[len(operands) :]
        kinds = [result.kind for result in self.fused.results[: len(result_strides)]]
        strides = [
            s if kind != "total" else self._dense
            for s, kind in zip(result_strides, kinds, strict=True)
            if kind != "columns"
        ]
        strides += [self._dense] * len(self.parts.saved) + [(0,) * kernel.row_axes] * self.parts.flags
        table = self._table(kernel, [*operands, *results], [*self.space.strides[: len(operands)], *strides])
        if has_reductions(kernel):
            at_once = _WARPS * (WARP // min(self.lanes, WARP))
            return Launch("rows", (_blocks(self._rows, at_once), 1), (WARP, _WARPS), table, ())
        grid, block = thread_blocks(
            self._rows, self.space.columns, _ELEMENTS_PER_THREAD if self.space.length >= _LARGE_KERNEL else 1
        )
        return Launch("rows", grid, block, table, ())

    def _sum_launches(self, kernel: str, items: int, sums: Sequence[_Sum]) -> list[Launch]:
        """Add up all sums in as few launches as the table allows; the longest sum has `items` items.

        As in NumPy, parts of a single column are added pairwise, and those of several columns row by row.
        """
        launches = []
        for first in range(0, len(sums), SUMS_AT_ONCE):
            group = sums[first : first + SUMS_AT_ONCE]
            table = self._entries_of(self._rows, self.space.block, self._blocks, *chain.from_iterable(group))
            launch = _launch_along_x(kernel, items, table)
            launches.append(launch._replace(grid=(launch.grid[0], len(group))))
        return launches

    @property
    def _dense(self) -> tuple[int, ...]:
        return tuple(math.prod(self.space.rows[axis + 1 :]) for axis in range(len(self.space.rows)))

    def _table(self, kernel: FusedKernel, addresses: Sequence[int], strides: Sequence[tuple[int, ...]]) -> HostArray:
        layout, space = table_layout(kernel), self.space
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
    arrays: tuple[Any, ...] = (),
) -> Launch:
    """Return the launch of `steps` on operands and results at the given addresses, those of the first step's entries.

    `entries` are as for `recurrence_table`; `flag` is the address of a byte set to 1 if a step is out of range.
    """
    layout, table = recurrence_layout(recurrence), recurrence_table(recurrence, space, steps, entries)
    table[[*layout.kernel.operands, *layout.kernel.results, layout.flag]] = np.array([*operands, *results, flag])
    grid, block = thread_blocks(math.prod(space.rows), space.columns)
    return Launch("steps", grid, block, table, arrays)


def thread_blocks(rows: int, columns: int, elements: int = 1) -> tuple[Extent, Extent]:
    """Choose grid and block so that each thread has `elements` elements of a row."""
    width = min(_THREADS, 1 << max(columns - 1, 0).bit_length())
    return (_blocks(columns, width * elements), _blocks(rows, _THREADS // width)), (width, _THREADS // width)


def _blocks(items: int, at_once: int) -> int:
    return max(1, min(-(-items // at_once), MAX_BLOCKS))


def _launch_along_x(kernel: str, items: int, table: HostArray) -> Launch:
    width = _THREADS // 2
    return Launch(kernel, (_blocks(items, width), 1), (width, 1), table, ())
