"""Loops that the runner has left for a step that is Python's: it makes that, and sends the runner on behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.executors.body_layout import array_on, memory_at
from engine.executors.native_bodies import BoundBody
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import HostArray, TensorType
from engine.native.native_call import NativeCall
from engine.native.runner_layout import LoopEntry
from engine.planning.plan import Step

#: found once, as they are read at each step
_ENDED: Final = int(LoopEntry.ENDED)
_AT: Final = int(LoopEntry.AT)
_ASKS: Final = int(LoopEntry.ASKS)
_GOES_ON: Final = int(LoopEntry.GOES_ON)


class LeftLoop:
    """Rest of a loop that the runner has left before its end: a call of it comes to that.

    Where a kernel has met what is not for it, the loop runs once more from the beginning, step by step: its carries
    have moved, but the operands are still there, as no step writes to them.
    """

    def __init__(
        self,
        run: RunContext,
        step: Step,
        call: NativeCall,
        described: HostArray,
        bodies: Sequence[BoundBody],
        consts: Sequence[int],
    ) -> None:
        """`consts` are positions in the call's table: those of all operands, and then of the results, begin at 1."""
        self._run, self._step, self._call, self._bodies, self._consts = run, step, call, bodies, consts
        self._words, self._table = described.data, call.entries[0].data
        self._pauses = bodies[-1].pauses, bodies[0].pauses
        arrays = [call.arrays[position] for position in range(1, len(self._table))]
        self._types = list(map(TensorType.of, arrays))

    def __call__(self) -> None:
        """Go on to the end. Raises DeadlineExceeded, and what a step finds in its data, with its node."""
        try:
            for body in self._bodies:
                addresses = {feed: self._table[self._consts[feed]] for feed in body.consts}
                body.begin(self._run.deadline, addresses)
            self._go_on()
        finally:
            for body in self._bodies:
                body.end()

    def _go_on(self) -> None:
        words, check = self._words, self._run.deadline.check
        function, table = self._call.function, self._call.entries.ctypes.data
        while words[_ENDED]:
            at = words[_AT]
            if at < 0:
                raise self._run.watch.ended()
            paused = self._pauses[words[_ASKS]].get(at)
            if paused is None:
                self._run_again()
                return
            check()
            for step in paused:
                step()
            words[_GOES_ON] = 1
            function(0, 1, table)

    def _run_again(self) -> None:
        arrays = [
            array_on(type, memory_at(address, type.nbytes))
            for type, address in zip(self._types, self._table[1:], strict=True)
        ]
        operands = len(self._step.operands)
        function, arguments = self._step.op.bind(self._run, arrays[:operands], arrays[operands:], self._step.attrs)
        function(*arguments)
