"""A recurrence on a card: one kernel, whose threads each go through all steps of an element."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from engine.loops.c_recurrence import CRecurrence
from engine.loops.cuda_launch import Launch, thread_blocks
from engine.loops.cuda_text import cuda_definitions
from engine.loops.program import Space
from engine.loops.recurrence import Recurrence, recurrence_layout, recurrence_table


def cuda_recurrence_text(recurrence: Recurrence) -> str:
    """A file with the kernel `steps` for NVRTC, which takes a table by value. Its steps have none of FUNCTIONS."""
    table = f"struct Table {{ long long at[{recurrence_layout(recurrence).size}]; }};\n"
    return cuda_definitions(recurrence.loop.dtype) + table + cuda_steps(recurrence)


def cuda_steps(recurrence: Recurrence) -> str:
    """The kernel without the definitions of its dialect."""
    return "\n".join(_Steps(recurrence).kernel()) + "\n"


class _Steps(CRecurrence):
    """Steps of which each thread has elements of its own."""

    def kernel(self) -> Iterator[str]:
        """The function, line by line."""
        yield "KERNEL steps(GIVEN) {\nconst long long* const table = TABLE;"
        yield from self.sizes()
        yield from self.steps()
        step = "GRID_Y * (long long)HIGH"
        yield f"for (long long row = BLOCK_Y * (long long)HIGH + THREAD_Y; row < rows; row += {step}) {{"
        yield "const long long left = length - row * columns, count = left < columns ? left : columns;"
        yield from self.pointers()
        step = "GRID_X * (long long)WIDE"
        yield f"for (long long c = BLOCK_X * (long long)WIDE + THREAD_X; c < count; c += {step}) {{"
        yield from self.element("c")
        yield "}\n}\n}"


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
