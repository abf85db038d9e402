"""Adding up the parts that the blocks of a kernel made of its sums, in an order that is always the same.

Parts of columns are added one block after the other; parts of a total in lanes, and these by halves.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from engine.graph.tensor_type import HostArray
from engine.loops.program import Level, Loop, LoopBuilder, Space

#: of the kernels, whatever there is to add: one serves all
LANES: Final = 16


@cache
def sum_loop(dtype: str, kind: str) -> Loop:
    """The kernel that adds up parts of results of this kind: columns, or total."""
    builder = LoopBuilder(dtype)
    part = builder.load(Level.ELEMENT)
    if kind == "columns":
        builder.store("columns", part)
    else:
        builder.store("row", part.row_sum())
    return builder.loop()


def sum_space(parts: HostArray) -> Space:
    """Its space for parts [blocks, columns] of columns, all of which one block adds, or [blocks] of a total."""
    rows, columns = parts.shape if parts.ndim == 2 else (1, parts.size)
    return Space((rows,), columns, rows * columns, rows, ((columns,), () if parts.ndim == 2 else (1,)))
