"""Table of whole numbers in which a kernel finds its sizes, addresses and strides, alike for all that is compiled."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

from engine.graph.tensor_type import HostArray
from engine.loops.program import Loop, Space


class TableEntry(IntEnum):
    """Positions of what comes first; extents, as many as there are row axes, from theirs on."""

    COLUMNS = 0
    LENGTH = 1
    ROWS = 2
    BLOCK_ROWS = 3
    EXTENTS = 4


class TableLayout(NamedTuple):
    """Positions in the table: of each operand and result its address, which its strides along the row axes follow."""

    operands: tuple[int, ...]
    results: tuple[int, ...]
    scratch: int

    @property
    def size(self) -> int:
        """Entries of the table."""
        return self.scratch + 1


def put_space(tables: HostArray, layout: TableLayout, space: Space) -> None:
    """Write the sizes and strides of a space into tables, int64 [threads, entries]."""
    sizes = space.columns, space.length, math.prod(space.rows), space.block, *space.rows
    tables[:, TableEntry.COLUMNS : TableEntry.COLUMNS + len(sizes)] = sizes
    for position, strides in zip((*layout.operands, *layout.results), space.strides, strict=True):
        tables[:, position + 1 : position + 1 + len(strides)] = strides


def table_layout(loop: Loop) -> TableLayout:
    """Columns, length, rows, block, extents of the row axes; then operands, results and the scratch of a thread.

    The results columns and total have no strides: the part of block b begins at b · columns, or is number b.
    """
    position = TableEntry.EXTENTS + loop.row_axes
    operands, results = [], []
    for _ in loop.operands:
        operands.append(position)
        position += 1 + loop.row_axes
    for result in loop.results:
        results.append(position)
        position += 1 + (0 if result.adds_up else loop.row_axes)
    return TableLayout(tuple(operands), tuple(results), position)
