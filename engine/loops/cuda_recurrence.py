"""A recurrence on a card: one kernel, whose threads each go through all steps of an element."""

from __future__ import annotations

from collections.abc import Iterator

from engine.loops.c_recurrence import CRecurrence
from engine.loops.cuda_text import cuda_definitions
from engine.loops.recurrence import Recurrence, recurrence_layout


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
