"""A recurrence as LLVM IR for a card: the kernel of `cuda_recurrence`, a thread for all steps of an element."""

from __future__ import annotations

from engine.loops.assembly import Assembly
from engine.loops.llvm_text import loop_names
from engine.loops.memory import KernelMemory
from engine.loops.ptx_threads import CardThreads, card_kernel, card_module
from engine.loops.recurrence import Recurrence, recurrence_layout
from engine.loops.recurrence_text import RecurrenceText
from engine.loops.schedule import Schedule


def ptx_recurrence_text(recurrence: Recurrence) -> str:
    """A module with the kernel `steps`, for the same launches. Its steps have none of FUNCTIONS."""
    to, layout, nothing = Assembly(recurrence.loop.dtype), recurrence_layout(recurrence), Schedule((), (), ())
    memory = KernelMemory(to, checkable=False)
    text = _Steps(recurrence.loop, 0, nothing, layout.loop, to, memory, recurrence=recurrence, places=layout)
    text.kernel()
    return card_module([card_kernel("steps", layout.size, to)])


class _Steps(RecurrenceText):
    """Steps of which each thread has elements of its own."""

    __slots__ = ()

    def kernel(self) -> None:
        """The function."""
        threads = CardThreads(self.to)
        self._read_table()
        down, along = threads.stride("y"), threads.stride("x")
        with self.to.loop(loop_names("row", "rows.head", "row.begin", "end"), down.first, "%rows", down.step):
            self._begin_row()
            columns = loop_names("c", "columns.head", "columns.body", "columns.past")
            with self.to.loop(columns, along.first, "%count", along.step):
                self._elements("c", "%c")

    def _clear_flag(self) -> None:
        """Whoever launches it does that: threads begin at any time."""
