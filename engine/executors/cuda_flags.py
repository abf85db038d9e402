"""Flags on the card: faults that the kernels of one run find in their data, so that nobody waits before the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.executors.cuda_exchange import Exchange
from engine.functions.expansions import reports_range
from engine.graph.ir import at_origin
from engine.graph.op import Array
from engine.graph.tensor_type import HostArray
from engine.oplib.indices import outside
from engine.planning.fused import Fused
from engine.planning.looped import PlannedScan
from engine.planning.plan import Step

_WIDTH: Final = 4  # bytes of a flag
_NOTE: Final = "const long long at = index; if (at < least || at >= extent) atomicCAS(&flag[0], 0, code)"


class CudaFlags:
    """A number for each step: 0, or what it has found first. A loop has found that it is out of range."""

    def __init__(self, cupy: Any, steps: Sequence[Step], found: Array | None = None) -> None:
        """`found` is where they lie: as many as there are steps, int32."""
        self._step = 0
        self._steps = steps
        self._noted = any(map(_may_leave_range, steps))
        self._found: Array = cupy.zeros(max(1, len(steps)), "int32") if found is None else found
        self._ranges: dict[tuple[int, int], tuple[int, int]] = {}
        self._kernel = cupy.ElementwiseKernel(
            "T index, int64 least, int64 extent, int32 code", "raw int32 flag", _NOTE, "gradserve_note"
        )

    def enter(self, step: int) -> None:
        """What is noted from now on is of this step."""
        self._step = step

    def address(self, step: int) -> int:
        """Where that of a step lies."""
        return int(self._found.data.ptr) + _WIDTH * step

    def watch(self) -> None:
        """Kernels of recipes may note something: that a step finds fault is all that is known then."""
        self._noted = True

    def note(self, index: Array, extent: int, operand: int, least: int) -> None:
        """As `IndexNotes` has it."""
        self._noted = True
        self._ranges[self._step, operand] = (extent, least)
        self._kernel(index, least, extent, operand + 1, self._found[self._step : self._step + 1])

    def begin(self) -> None:
        """Before a run."""
        if self._noted:
            self._found.data.memset_async(0, self._found.nbytes)

    def end(self) -> bool:
        """After a run, whose end this waits for if it has noted anything: whether its loops were all within range.

        Raises IndexOutOfRange for the first node that had an index outside. Where a kernel of a recipe has noted one,
        this is false, too: who computes the plan by other means finds it.
        """
        if not self._noted:
            return True
        found = self._read_all()
        for step in map(int, found.nonzero()[0]):
            if _may_leave_range(self._steps[step]):
                return False
            operand = int(found[step]) - 1
            if (step, operand) not in self._ranges:
                return False
            extent, least = self._ranges[step, operand]
            raise at_origin(outside(extent, operand, least), self._steps[step].origin)
        return True

    def _read_all(self) -> HostArray:
        found: HostArray = self._found.get()
        return found


class ExchangedFlags(CudaFlags):
    """Flags that are cleared and fetched with what a run is fed and finds, and read once that is there."""

    def __init__(self, cupy: Any, steps: Sequence[Step], exchange: Exchange) -> None:
        super().__init__(cupy, steps, exchange.flags)
        self._fetched = exchange.fetched_flags

    def begin(self) -> None:
        """They are sent as zeros."""

    def _read_all(self) -> HostArray:
        return self._fetched


def _may_leave_range(step: Step) -> bool:
    """Whether a step's kernel tells that it is out of range. An index is noted by no such step."""
    if isinstance(step.op, Fused):
        return reports_range(step.op.loop)
    return isinstance(step.op, PlannedScan) and step.op.step_loop is not None and step.op.step_loop.reports_range
